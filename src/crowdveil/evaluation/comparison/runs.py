"""The runs of a comparison: one crowd, or one split of a file, under every entry.

A run draws all its random numbers by its name, so the results are the same for any number of workers, and all
mechanisms meet the same crowds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np
import polars as pl

from crowdveil.arrays import FloatArray
from crowdveil.ballot_file import read_ballots
from crowdveil.ballots import Ballots
from crowdveil.errors import CrowdveilError
from crowdveil.evaluation.comparison.entries import Entry
from crowdveil.evaluation.toolkit.accuracy import same_side, share, sides
from crowdveil.evaluation.toolkit.crowds import Groups
from crowdveil.evaluation.toolkit.fitted_crowd import fit_crowd
from crowdveil.evaluation.toolkit.seeds import generator, noise
from crowdveil.evaluation.toolkit.sweep import sweep
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.algorithm1 import Algorithm1
from crowdveil.privacy.mechanisms.algorithm2 import Algorithm2
from crowdveil.privacy.mechanisms.subset_selection import SubsetSelection
from crowdveil.sources.simulated import synthetic_crowd
from crowdveil.study.bundled import synthetic_study
from crowdveil.study.study import Study

TEST_PAIRS = 10_000
"""Fresh Gaussian pairs that a release from a synthetic crowd is judged on."""
TRAINED = 0.75
"""Share of a file's voters that a release is made from; the others' choices are to be predicted."""
SOCIETY, POOLED = Entry("society", None), Entry("pooled", None)
"""Without privacy: the mean of the bounded fits (the paper's), and one fit to everybody's records."""

_DRAWS = 4
"""The number of times that a crowd is released again with fresh noise at the epsilons that were asked for."""
_CHEAP_DRAWS = {Algorithm1.name: 64, Algorithm2.name: 16, SubsetSelection.name: 16}
"""More often where it costs little: where a draw fits nothing anew."""

Judge = Callable[[FloatArray], FloatArray]
"""Parameters (rows) -> how good each is."""
Watch = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""The work, in how many runs -> something to tell of each finished one."""


@dataclass(frozen=True)
class Task:
    """An entry to measure, thoroughly (many draws of the noise) or as one point of a curve (one draw)."""

    entry: Entry
    thorough: bool

    @property
    def draws(self) -> int:
        """The number of times to draw the noise."""
        return _CHEAP_DRAWS.get(self.entry.mechanism, _DRAWS) if self.thorough else 1


@dataclass(frozen=True)
class OnSyntheticCrowd:
    """One crowd of the paper's Section 5.1, judged against the social parameter m that generated it."""

    voters: int
    records: int
    features: int
    seed: int
    number: int
    tasks: tuple[Task, ...]

    @property
    def name(self) -> str:
        """The name of the crowd, whatever is compared on it."""
        size = f"N={self.voters} n={self.records} d={self.features}"
        return f"compare, synthetic {size}, seed {self.seed}, crowd {self.number}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Draw the crowd and its test pairs, and carry out every task."""
        rng = generator(self.name)
        crowd = synthetic_crowd(self.voters, self.records, self.features, rng)
        pairs = np.subtract(*rng.standard_normal((2, TEST_PAIRS, self.features)))
        return _measure(self, crowd.ballots, lambda learned: same_side(pairs, crowd.social, learned))


@dataclass(frozen=True)
class OnSplit:
    """The voters of a file, split at random: releases from the larger part predict the choices of the others."""

    path: Path
    voters: int | None
    """None: the training voters as they are. Else so many, drawn from them with replacement."""
    seed: int
    number: int
    tasks: tuple[Task, ...]

    @property
    def name(self) -> str:
        """The name of the split, whatever is compared on it."""
        size = "" if self.voters is None else f", N={self.voters}"
        return f"compare, file, seed {self.seed}, split {self.number}{size}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Split the voters and carry out every task."""
        everyone, rng = read_ballots(self.path), generator(self.name)
        order = rng.permutation(everyone.voters)
        cut = round(TRAINED * everyone.voters)
        members = order[:cut] if self.voters is None else rng.choice(order[:cut], self.voters)
        held_out = everyone.take(order[cut:]).differences.astype(np.float64)
        return _measure(self, everyone.take(members), lambda learned: share(sides(held_out, learned), 1.0))


Run = OnSyntheticCrowd | OnSplit


def _measure(run: Run, ballots: Ballots, judge: Judge) -> pl.DataFrame:
    crowd, voters = fit_crowd(ballots), ballots.voters
    mechanisms = dict.fromkeys(task.entry.mechanism for task in run.tasks)
    targets = {mechanism: crowd.without_noise(mechanism) for mechanism in mechanisms}
    personal = Groups().draw(voters, generator(run.name, "epsilons"))
    rows = [
        (run.number, SOCIETY, float(judge(crowd.society[None])[0]), 0.0),
        (run.number, POOLED, float(judge(crowd.pooled[None])[0]), 0.0),
    ]
    for task in run.tasks:
        entry = task.entry
        epsilons = personal if entry.epsilon is None else Epsilons.same(entry.epsilon, voters)
        source = noise(run.name, entry.mechanism, entry.epsilon, entry.equal_votes)
        learned = crowd.release(entry.mechanism, epsilons, task.draws, source, entry.equal_votes)
        errors = np.square(learned - targets[entry.mechanism]).sum(axis=1)
        rows.append((run.number, entry, float(judge(learned).mean()), float(errors.mean())))
    return pl.DataFrame(
        {
            "number": [number for number, _, _, _ in rows],
            "mechanism": [entry.mechanism for _, entry, _, _ in rows],
            "epsilon": [None if entry.epsilon is None else str(entry.epsilon) for _, entry, _, _ in rows],
            "equal_votes": [entry.equal_votes for _, entry, _, _ in rows],
            "quality": [quality for _, _, quality, _ in rows],
            "squared_error": [error for _, _, _, error in rows],
        }
    )


@dataclass(frozen=True)
class EntryResult:
    """The results of an entry: a value a crowd, in the crowds' order."""

    quality: FloatArray
    """Share of test pairs decided as the truth does, or of held-out choices predicted."""
    squared_error: FloatArray
    """Squared distance of the release from what it would be without noise."""


def carry_out(runs: Sequence[Run], workers: int, tell: Callable[[int], None]) -> dict[Entry, EntryResult]:
    """Carry out all runs on this many processes, and collect what each entry gave."""
    with TemporaryDirectory(prefix="crowdveil-compare-") as folder:
        return collect(sweep(runs, 1, workers, Path(folder), tell))


def collect(table: pl.DataFrame) -> dict[Entry, EntryResult]:
    """Gather the values of each entry from the tables of all runs."""
    parts = table.sort("number").partition_by("mechanism", "epsilon", "equal_votes", as_dict=True)
    return {
        Entry(str(mechanism), None if epsilon is None else Epsilon(epsilon), bool(equal_votes)): EntryResult(
            part["quality"].to_numpy(), part["squared_error"].to_numpy()
        )
        for (mechanism, epsilon, equal_votes), part in parts.items()
    }


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
