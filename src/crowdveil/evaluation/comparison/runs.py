"""The pieces of a comparison: one crowd, or one split of a file, under every entry.

A piece draws all its random numbers by its name, so the results are the same for any number of workers, and all
mechanisms meet the same crowds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from crowdveil.arrays import FloatArray
from crowdveil.ballots import Ballots, open_ballots
from crowdveil.evaluation.comparison.entries import Entry
from crowdveil.evaluation.paper.accuracy import same_side, share, sides
from crowdveil.evaluation.paper.groups import Groups
from crowdveil.evaluation.paper.noised_crowd import noised_crowd
from crowdveil.evaluation.paper.seeds import generator, noise
from crowdveil.evaluation.paper.sweep import sweep
from crowdveil.sources.simulated import synthetic_crowd

TEST_PAIRS = 10_000
"""Fresh Gaussian pairs that a release from a synthetic crowd is judged on."""
TRAINED = 0.75
"""Share of a file's voters that a release is made from; the others' answers are to be predicted."""
SOCIETY, POOLED = Entry("society", None), Entry("pooled", None)
"""Without privacy: the mean of the bounded fits (the paper's), and one fit to everybody's answers."""

_DRAWS = 4
"""How often a crowd is released again with fresh noise at the epsilons that were asked for."""
_CHEAP_DRAWS = {
    **dict.fromkeys(("algorithm-1", "algorithm-2", "subset-selection"), 64),
    **dict.fromkeys(("pooled-choices", "randomised-response", "one-choice"), 16),
}
"""More often where it costs little."""

Judge = Callable[[FloatArray], FloatArray]
"""Parameters (rows) -> how good each is."""
Watch = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""What is going on, in how many pieces -> something to tell of each finished piece."""


@dataclass(frozen=True)
class Task:
    """An entry to measure, thoroughly (many draws of the noise) or as one point of a curve (one draw)."""

    entry: Entry
    thorough: bool

    @property
    def draws(self) -> int:
        """How often to draw the noise."""
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
        """Says which crowd it is, whatever is compared on it."""
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
    """The voters of a file, split at random: releases from the larger part predict the answers of the others."""

    path: Path
    voters: int | None
    """None: the training voters as they are. Else so many, drawn from them with replacement: a crowd of another size."""
    seed: int
    number: int
    tasks: tuple[Task, ...]

    @property
    def name(self) -> str:
        """Says which split it is, whatever is compared on it."""
        size = "" if self.voters is None else f", N={self.voters}"
        return f"compare, file, seed {self.seed}, split {self.number}{size}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Split the voters and carry out every task."""
        everyone, rng = open_ballots(self.path).load(), generator(self.name)
        order = rng.permutation(everyone.voters)
        cut = round(TRAINED * everyone.voters)
        members = order[:cut] if self.voters is None else rng.choice(order[:cut], self.voters)
        answers = everyone.choose(order[cut:]).differences.astype(np.float64)
        return _measure(self, everyone.choose(members), lambda learned: share(sides(answers, learned), 1.0))


Run = OnSyntheticCrowd | OnSplit


def _measure(run: Run, ballots: Ballots, judge: Judge) -> pl.DataFrame:
    crowd, voters = noised_crowd(ballots), ballots.voters
    mechanisms = dict.fromkeys(task.entry.mechanism for task in run.tasks)
    targets = {mechanism: crowd.without_noise(mechanism) for mechanism in mechanisms}
    personal = Groups().draw(voters, generator(run.name, "epsilons"))
    rows = [
        (run.number, SOCIETY, float(judge(crowd.society[None])[0]), 0.0),
        (run.number, POOLED, float(judge(crowd.pooled[None])[0]), 0.0),
    ]
    for task in run.tasks:
        entry = task.entry
        epsilons = personal if entry.micro is None else np.full(voters, entry.micro)
        source = noise(run.name, entry.mechanism, entry.micro, entry.equal_votes)
        learned = crowd.release(entry.mechanism, epsilons, task.draws, source, entry.equal_votes)
        errors = np.square(learned - targets[entry.mechanism]).sum(axis=1)
        rows.append((run.number, entry, float(judge(learned).mean()), float(errors.mean())))
    return pl.DataFrame(
        {
            "number": [number for number, _, _, _ in rows],
            "mechanism": [entry.mechanism for _, entry, _, _ in rows],
            "micro": pl.Series([entry.micro for _, entry, _, _ in rows], dtype=pl.Int64),
            "equal_votes": [entry.equal_votes for _, entry, _, _ in rows],
            "quality": [quality for _, _, quality, _ in rows],
            "squared_error": [error for _, _, _, error in rows],
        }
    )


@dataclass(frozen=True)
class Measured:
    """What an entry gave: a value a crowd, in the crowds' order."""

    quality: FloatArray
    """Share of test pairs decided as the truth does, or of held-out answers predicted."""
    squared_error: FloatArray
    """Squared distance of the release from what it would be without noise."""


def carry_out(runs: Sequence[Run], workers: int, tell: Callable[[int], None]) -> dict[Entry, Measured]:
    """Carry out all runs on this many processes, and collect what each entry gave."""
    with TemporaryDirectory(prefix="crowdveil-compare-") as folder:
        return collect(sweep(runs, 1, workers, Path(folder), tell))


def collect(table: pl.DataFrame) -> dict[Entry, Measured]:
    """Gather the values of each entry from the tables of all runs."""
    parts = table.sort("number").partition_by("mechanism", "micro", "equal_votes", as_dict=True)
    return {
        Entry(str(mechanism), micro, bool(equal_votes)): Measured(
            part["quality"].to_numpy(), part["squared_error"].to_numpy()
        )
        for (mechanism, micro, equal_votes), part in parts.items()
    }
