"""The runs of a comparison: one crowd, or one split of a file, under every entry.

A run draws all its random numbers by its name, so the results are the same for any number of workers, and all
mechanisms meet the same crowds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from scipy.special import ndtr

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots
from crowdveil.ballots.file import read_ballots
from crowdveil.evaluation.toolkit.accuracy import share, sides
from crowdveil.evaluation.toolkit.crowds import Groups, fit_crowd, generator, noise
from crowdveil.evaluation.toolkit.scores import forecasts
from crowdveil.evaluation.toolkit.sweep import sweep
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.algorithm1 import Algorithm1
from crowdveil.privacy.mechanisms.algorithm2 import Algorithm2
from crowdveil.privacy.mechanisms.mechanism import Estimate
from crowdveil.privacy.mechanisms.subset_selection import SubsetSelection
from crowdveil.sources.simulated import synthetic_crowd

TEST_PAIRS, TEST_CHOICES = 10_000, 2000
"""Fresh Gaussian pairs that a release from a synthetic crowd is judged on, and how many are put to a fresh voter."""
TRAINED = 0.75
"""Share of a file's voters that a release is made from; the others' choices are to be predicted."""

_CHEAP_DRAWS = dict.fromkeys((Algorithm1.name, Algorithm2.name, SubsetSelection.name), 16)
"""So often a crowd is released with fresh noise where a draw fits nothing anew, at the epsilons that were asked for."""

Watch = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""The work, in how many runs -> something to tell of each finished one."""


@dataclass(frozen=True)
class Entry:
    """A mechanism at an epsilon. It is measured once, whatever paradigms it serves there."""

    mechanism: str
    epsilon: Epsilon | None
    """None where every voter has an epsilon of her own."""
    equal_votes: bool = False

    @property
    def value(self) -> float:
        """Where the entry stands on an axis of epsilons."""
        return 0.0 if self.epsilon is None else self.epsilon.value


SOCIETY, POOLED = Entry("society", None), Entry("pooled", None)
"""Without privacy: the mean of the bounded fits (the paper's), and one fit to everybody's records."""


@dataclass(frozen=True)
class Task:
    """An entry to measure: thoroughly (all scores) or as a point of a curve (its quality only)."""

    entry: Entry
    thorough: bool

    @property
    def draws(self) -> int:
        """The number of times to draw the noise."""
        return _CHEAP_DRAWS.get(self.entry.mechanism, 1) if self.thorough else 1


@dataclass(frozen=True)
class EntryResult:
    """The scores of an entry, each over all draws of its noise: a value a crowd, in the crowds' order.

    Of a point of a curve only the quality is measured; the others are NaN.
    """

    quality: FloatArray
    """Share of test pairs decided as the truth does, or of held-out choices predicted."""
    squared_error: FloatArray
    """Squared distance of the release from what it would be without noise."""
    brier: FloatArray
    """Mean squared distance of the stated probability from what was chosen."""
    overstatement: FloatArray
    """Mean probability stated for the predicted side, less the share that was right."""
    slope: FloatArray
    """Calibration slope, pooled over the draws; NaN too where the choices do not tell it."""
    coverage: FloatArray
    """Share of the factors' 95 % intervals that hold the preference of the crowd itself; NaN too of a society."""


SCORES = tuple(field.name for field in fields(EntryResult))


@dataclass(frozen=True)
class HeldOut:
    """What releases are judged by: pairs (first minus second), which side is right, and which side people chose."""

    pairs: FloatArray
    right: FloatArray
    """A column: 1 for the first side, -1 for the second, 0 for neither."""
    choices: IntArray
    """Of the first so many pairs: 1 or -1."""
    voters: IntArray
    """Whose choice each is."""

    def quality(self, learned: FloatArray) -> float:
        """Return the share of pairs that parameters (rows) decide rightly, on average."""
        return float(share(sides(self.pairs, learned), self.right).mean())

    def scores(self, margins: FloatArray, learned: FloatArray, target: FloatArray) -> dict[str, float | None]:
        """Return the scores of parameters (rows) that estimate the target, and of the margins stated for the pairs."""
        draws = len(learned)
        stated = ndtr(margins[:, : len(self.choices)]).reshape(-1)
        judged = forecasts(stated, np.tile(self.choices, draws), np.tile(self.voters, draws), "choices")
        slope = judged.slope
        return {
            "quality": self.quality(learned),
            "squared_error": float(np.square(learned - target).sum(axis=1).mean()),
            "brier": judged.brier.estimate,
            "overstatement": judged.overstatement.estimate,
            "slope": None if slope is None else slope.estimate,
        }


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
        """Draw the crowd, its test pairs and fresh voters who choose in some of them, and carry out every task."""
        rng = generator(self.name)
        crowd = synthetic_crowd(self.voters, self.records, self.features, rng)
        pairs = np.subtract(*rng.standard_normal((2, TEST_PAIRS, self.features)))
        preferences = rng.normal(crowd.social, 1, (TEST_CHOICES, self.features))
        worth = (preferences * pairs[:TEST_CHOICES]).sum(axis=1) + rng.standard_normal(TEST_CHOICES)
        choices = np.where(worth > 0, 1, -1)
        right = sides(pairs, crowd.social[None])
        return _measure(self, crowd.ballots, HeldOut(pairs, right, choices, np.arange(TEST_CHOICES)))


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
        everyone = read_ballots(self.path)
        rng = generator(self.name)
        order = rng.permutation(everyone.voters)
        cut = round(TRAINED * everyone.voters)
        members = order[:cut] if self.voters is None else rng.choice(order[:cut], self.voters)
        others = everyone.take(order[cut:])
        chosen = np.ones(others.records, np.int64)  # a difference is the chosen side minus the other
        held_out = HeldOut(
            others.differences.astype(np.float64),
            chosen[:, None].astype(np.float64),
            chosen,
            np.repeat(np.arange(others.voters), others.counts),
        )
        return _measure(self, everyone.take(members), held_out)


Run = OnSyntheticCrowd | OnSplit


def _measure(run: Run, ballots: Ballots, held_out: HeldOut) -> pl.DataFrame:
    crowd = fit_crowd(ballots, drawn=isinstance(run, OnSyntheticCrowd))
    personal = Groups().draw(ballots.voters, generator(run.name, "epsilons"))
    exact = {SOCIETY: crowd.society, POOLED: crowd.pooled}
    measured = {
        entry: held_out.scores((held_out.pairs @ beta)[None], beta[None], beta) for entry, beta in exact.items()
    }
    for task in run.tasks:
        entry = task.entry
        epsilons = personal if entry.epsilon is None else Epsilons.same(entry.epsilon, ballots.voters)
        source = noise(run.name, entry.mechanism, entry.epsilon, entry.equal_votes)
        released = crowd.release(entry.mechanism, epsilons, task.draws, source, entry.equal_votes)
        learned = np.array([one.parameter for one in released])
        if task.thorough:
            margins = np.array([_stated_margins(one, held_out.pairs) for one in released])
            scores = held_out.scores(margins, learned, crowd.without_noise(entry.mechanism))
            measured[entry] = scores | {"coverage": crowd.coverage(released)}
        else:
            measured[entry] = {"quality": held_out.quality(learned)}
    return pl.DataFrame(
        [
            {
                "number": run.number,
                "mechanism": entry.mechanism,
                "epsilon": None if entry.epsilon is None else str(entry.epsilon),
                "equal_votes": entry.equal_votes,
                **scores,
            }
            for entry, scores in measured.items()
        ],
        schema_overrides={"epsilon": pl.String, **dict.fromkeys(SCORES, pl.Float64)},
    )


def _stated_margins(estimate: Estimate, pairs: FloatArray) -> FloatArray:
    """Return what a decision would state, as margins; of a society, that of the parameter itself."""
    return pairs @ estimate.parameter if estimate.unknown is None else estimate.unknown.predictive_margins(pairs)


def carry_out(runs: Sequence[Run], workers: int, tell: Callable[[int], None]) -> dict[Entry, EntryResult]:
    """Carry out all runs on this many processes, and collect what each entry gave."""
    with TemporaryDirectory(prefix="crowdveil-compare-") as folder:
        return collect(sweep(runs, 1, workers, Path(folder), tell))


def collect(table: pl.DataFrame) -> dict[Entry, EntryResult]:
    """Gather the values of each entry from the tables of all runs."""
    parts = table.sort("number").partition_by("mechanism", "epsilon", "equal_votes", as_dict=True)
    return {
        Entry(str(mechanism), None if epsilon is None else Epsilon(epsilon), bool(equal_votes)): EntryResult(
            **{name: part[name].fill_null(np.nan).to_numpy() for name in SCORES}
        )
        for (mechanism, epsilon, equal_votes), part in parts.items()
    }
