"""Crowds that mechanisms are compared on: the paper's synthetic ones, or the voters of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from crowdveil.ballots.file import read_ballots
from crowdveil.errors import CrowdveilError
from crowdveil.evaluation.comparison.runs import POOLED, SOCIETY, TRAINED, Entry, OnSplit, OnSyntheticCrowd, Run, Task
from crowdveil.study.bundled import synthetic_study
from crowdveil.study.study import Study

_FEWEST = 8
"""A share of a file's voters that is smaller than this tells nothing."""


class Source(Protocol):
    """Crowds that mechanisms are compared on."""

    @property
    def study(self) -> Study:
        """The study that is asked."""

    @property
    def voters(self) -> int:
        """The number of voters that a release is made from."""

    @property
    def records(self) -> float:
        """The number of records a voter has, on average."""

    @property
    def quality(self) -> str:
        """The word for what is measured: accuracy or predicted."""

    @property
    def baselines(self) -> tuple[Entry, Entry]:
        """The two estimates without privacy: first the one that ratios refer to."""

    def runs(self, number: int, seed: int, tasks: Sequence[Task], voters: int | None = None) -> list[Run]:
        """Return the runs of a comparison on so many crowds, of another size if ``voters`` is given."""

    def describe(self, number: int) -> str:
        """Tell in words what a comparison on so many crowds or splits is made from."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""


@dataclass(frozen=True)
class Synthetic:
    """The crowds of the paper's Section 5.1."""

    voters: int
    records_each: int
    features: int

    quality = "accuracy"
    baselines = (SOCIETY, POOLED)

    @property
    def study(self) -> Study:
        """The synthetic study with so many features."""
        return synthetic_study(self.features, self.records_each)

    @property
    def records(self) -> float:
        """The number of records a voter has."""
        return self.records_each

    def runs(self, number: int, seed: int, tasks: Sequence[Task], voters: int | None = None) -> list[Run]:
        """Return a run for each crowd."""
        size = self.voters if voters is None else voters
        return [OnSyntheticCrowd(size, self.records_each, self.features, seed, k, tuple(tasks)) for k in range(number)]

    def describe(self, number: int) -> str:
        """Tell the size of the crowds."""
        size = f"{self.voters} voters, {self.records_each} records each, {self.features} features"
        return f"{number} synthetic crowds of {size}"

    def as_dict(self) -> dict[str, Any]:
        """Return the paper's N, n and d."""
        return {"voters": self.voters, "records": self.records_each, "features": self.features}


@dataclass(frozen=True)
class OfFile:
    """A ballot file, split at random again and again."""

    path: Path
    study: Study
    voters: int
    records: float

    quality = "predicted"
    baselines = (POOLED, SOCIETY)

    def runs(self, number: int, seed: int, tasks: Sequence[Task], voters: int | None = None) -> list[Run]:
        """Return a run for each split."""
        return [OnSplit(self.path, voters, seed, k, tuple(tasks)) for k in range(number)]

    def describe(self, number: int) -> str:
        """Tell which file, and how many voters make the release."""
        return f"{self.path}, {number} random splits, releases from {self.voters} voters"

    def as_dict(self) -> dict[str, Any]:
        """Return what was read."""
        return {
            "ballots": str(self.path),
            "study": self.study.name,
            "private": False,
            "voters": self.voters,
            "records": self.records,
        }


def synthetic(voters: int, records: int, features: int) -> Synthetic:
    """Check the size of a synthetic crowd."""
    if not voters >= 2:
        raise CrowdveilError(f"--voters is {voters}: a crowd has at least 2")
    source = Synthetic(voters, records, features)
    _ = source.study  # refuses sizes that no study has
    return source


def of_file(path: Path) -> OfFile:
    """Open a ballot file and count whom releases will be made from."""
    everyone = read_ballots(path)
    trained = round(TRAINED * everyone.voters)
    if everyone.voters - trained < _FEWEST:
        raise CrowdveilError(
            f"{path} has {everyone.voters} voters: holding some out to predict needs {4 * _FEWEST} or more"
        )
    return OfFile(path, everyone.study, trained, everyone.records / everyone.voters)
