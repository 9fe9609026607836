"""Where the compared crowds come from: the paper's generator, or a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from crowdveil.ballots import open_ballots
from crowdveil.errors import CrowdveilError
from crowdveil.evaluation.comparison.entries import Entry
from crowdveil.evaluation.comparison.runs import POOLED, SOCIETY, TRAINED, OnSplit, OnSyntheticCrowd, Run, Task
from crowdveil.study.bundled import synthetic_study
from crowdveil.study.study import Study

_FEWEST = 8
"""A share of a file's voters that is smaller than this tells nothing."""


class Source(Protocol):
    """Crowds that mechanisms are compared on."""

    @property
    def study(self) -> Study:
        """What is asked."""

    @property
    def voters(self) -> int:
        """How many voters a release is made from."""

    @property
    def records(self) -> float:
        """How many answers a voter has, on average."""

    @property
    def quality(self) -> str:
        """The word for what is measured: accuracy or predicted."""

    @property
    def baselines(self) -> tuple[Entry, Entry]:
        """What stands without privacy: first what ratios refer to, then the other one."""

    def runs(self, number: int, seed: int, tasks: Sequence[Task], voters: int | None = None) -> list[Run]:
        """Return the pieces of a comparison on so many crowds, of another size if ``voters`` is given."""

    def describe(self, number: int) -> str:
        """Say in words what a comparison on so many crowds or splits is made from."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""


@dataclass(frozen=True)
class Synthetic:
    """The crowds of the paper's Section 5.1."""

    voters: int
    answers: int
    features: int

    quality = "accuracy"
    baselines = (SOCIETY, POOLED)

    @property
    def study(self) -> Study:
        """The synthetic study with so many features."""
        return synthetic_study(self.features, self.answers)

    @property
    def records(self) -> float:
        """How many answers a voter has."""
        return self.answers

    def runs(self, number: int, seed: int, tasks: Sequence[Task], voters: int | None = None) -> list[Run]:
        """Return a piece for each crowd."""
        size = self.voters if voters is None else voters
        return [OnSyntheticCrowd(size, self.answers, self.features, seed, k, tuple(tasks)) for k in range(number)]

    def describe(self, number: int) -> str:
        """Say the size of the crowds."""
        return (
            f"{number} synthetic crowds of {self.voters} voters, {self.answers} answers each, {self.features} features"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the paper's N, n and d."""
        return {"voters": self.voters, "records": self.answers, "features": self.features}


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
        """Return a piece for each split."""
        return [OnSplit(self.path, voters, seed, k, tuple(tasks)) for k in range(number)]

    def describe(self, number: int) -> str:
        """Say which file, and how many make the release."""
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
    everyone = open_ballots(path).load()
    trained = round(TRAINED * everyone.voters)
    if everyone.voters - trained < _FEWEST:
        raise CrowdveilError(
            f"{path} has {everyone.voters} voters: holding some out to predict needs {4 * _FEWEST} or more"
        )
    return OfFile(path, everyone.study, trained, everyone.records / everyone.voters)
