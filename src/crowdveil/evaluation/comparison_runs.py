"""Runs of a comparison: a crowd from a population, the mechanisms that release it, and their scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl
from scipy.special import ndtr

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.ballots.ballot_file import read_ballots
from crowdveil.ballots.ballots import Ballots, resampled
from crowdveil.errors import CrowdveilError, check_whole, plural
from crowdveil.evaluation.toolkit.crowds import Groups, fit_crowd, generator, noise
from crowdveil.evaluation.toolkit.scores import forecasts, share, sides
from crowdveil.evaluation.toolkit.sweep import in_processes
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.mechanism import Estimate
from crowdveil.privacy.mechanisms.registry import MECHANISMS
from crowdveil.sources.simulated import synthetic_crowd
from crowdveil.study.bundled import synthetic_study
from crowdveil.study.study import Study

TEST_PAIRS = 10_000
"""Fresh Gaussian pairs that judge a release of a synthetic crowd."""
TEST_CHOICES = 2000
"""Number of these pairs that a fresh voter answers."""
TRAINED = 0.75
"""Share of a file's voters from which a release is made; it has to predict the choices of the others."""

_MOST_COMPARED = 10_000_000
"""Most voters of a synthetic crowd that is compared in memory."""
_FEWEST = 8
"""Fewest voters of a file that can be held out."""
_CHEAP_DRAWS = 16
"""Draws of noise per crowd, at the requested epsilons, for mechanisms that need no new fit for a draw."""

RunProgress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Takes the name of the work and its number of runs; yields a function to call after each run."""


@dataclass(frozen=True)
class ComparisonEntry:
    """A mechanism at an epsilon. It is measured once, whatever paradigms it serves."""

    mechanism: str
    epsilon: Epsilon | None
    """None if every voter has her own epsilon."""
    equal_votes: bool = False

    @property
    def value(self) -> float:
        """The position of the entry on an axis of epsilons."""
        return 0.0 if self.epsilon is None else self.epsilon.value


SOCIETY, POOLED = ComparisonEntry("society", None), ComparisonEntry("pooled", None)
"""Without privacy: the mean of the bounded fits (the paper's), and one fit to everybody's records."""


@dataclass(frozen=True)
class ComparisonTask:
    """An entry to measure: thoroughly (all scores) or as a point of a curve (only its quality)."""

    entry: ComparisonEntry
    thorough: bool

    @property
    def draws(self) -> int:
        """The number of times to draw the noise."""
        mechanism = MECHANISMS.get(self.entry.mechanism)
        return _CHEAP_DRAWS if self.thorough and mechanism is not None and mechanism.fits_once else 1


@dataclass(frozen=True)
class EntryResult:
    """The scores of an entry, each over all draws of its noise: one value per crowd, in the order of the crowds.

    For a point of a curve only the quality is measured; the other scores are NaN.
    """

    quality: FloatArray
    """Share of test pairs decided as the truth decides them, or of held-out choices predicted."""
    squared_error: FloatArray
    """Squared distance of the release from its value without noise."""
    brier: FloatArray
    """Mean squared distance of the stated probability from what was chosen."""
    overstatement: FloatArray
    """Mean probability stated for the predicted side, minus the share that was right."""
    slope: FloatArray
    """Calibration slope, pooled over the draws; also NaN if the choices do not determine it."""
    coverage: FloatArray
    """Share of the factors' 95 % intervals that contain the preference of the crowd itself; also NaN for a society."""


SCORES = tuple(one.name for one in fields(EntryResult))


@dataclass(frozen=True)
class HeldOutChoices:
    """Pairs that judge releases (first minus second), which side is right, and which side people chose."""

    pairs: FloatArray
    right: FloatArray
    """One column: 1 for the first side, -1 for the second, 0 for neither."""
    choices: IntArray
    """For the first pairs, one choice each: 1 or -1."""
    voters: IntArray
    """The voter of each choice."""

    def quality(self, learned: FloatArray) -> float:
        """Return the share of pairs that parameters (rows) decide correctly, on average."""
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


class Population(Protocol):
    """The people from whom crowds are drawn to compare mechanisms."""

    @property
    def study(self) -> Study:
        """The study that is asked."""

    @property
    def voters(self) -> int:
        """The number of voters from whom a release is made."""

    @property
    def records(self) -> float:
        """The mean number of records of a voter."""

    @property
    def quality(self) -> str:
        """The name of the measured quality: accuracy or predicted."""

    @property
    def baselines(self) -> tuple[ComparisonEntry, ComparisonEntry]:
        """The two estimates without privacy; ratios refer to the first."""

    @property
    def generated(self) -> bool:
        """Whether the study's own generator drew the dilemmas."""

    def crowd_name(self, voters: int | None, seed: int, number: int) -> str:
        """Return the name that seeds a crowd, whatever is compared on it."""

    def draw(self, voters: int | None, rng: np.random.Generator) -> tuple[Ballots, HeldOutChoices]:
        """Draw a crowd (of another size if ``voters`` is given), and what judges its releases."""

    def describe(self, number: int) -> str:
        """Describe in words what a comparison on this many crowds or splits is made from."""

    def as_dict(self) -> dict[str, Any]:
        """Return the population as plain data."""


@dataclass(frozen=True)
class SyntheticPopulation:
    """Crowds of the paper's Section 5.1, each judged against the social parameter m that generated it."""

    voters: int
    records_each: int
    features: int

    quality = "accuracy"
    baselines = (SOCIETY, POOLED)
    generated = True

    @property
    def study(self) -> Study:
        """The synthetic study with this many features."""
        return synthetic_study(self.features, self.records_each)

    @property
    def records(self) -> float:
        """The number of records of a voter."""
        return self.records_each

    def crowd_name(self, voters: int | None, seed: int, number: int) -> str:
        """Return the size of the crowd, its seed and its number."""
        size = f"N={self.voters if voters is None else voters} n={self.records_each} d={self.features}"
        return f"compare, synthetic {size}, seed {seed}, crowd {number}"

    def draw(self, voters: int | None, rng: np.random.Generator) -> tuple[Ballots, HeldOutChoices]:
        """Draw a crowd, its test pairs, and fresh voters who choose in some of them."""
        crowd = synthetic_crowd(self.voters if voters is None else voters, self.records_each, self.features, rng)
        pairs = np.subtract(*rng.standard_normal((2, TEST_PAIRS, self.features)))
        preferences = rng.normal(crowd.social, 1, (TEST_CHOICES, self.features))
        worth = (preferences * pairs[:TEST_CHOICES]).sum(axis=1) + rng.standard_normal(TEST_CHOICES)
        choices = np.where(worth > 0, 1, -1)
        return crowd.ballots, HeldOutChoices(pairs, sides(pairs, crowd.social[None]), choices, np.arange(TEST_CHOICES))

    def describe(self, number: int) -> str:
        """Describe the size of the crowds."""
        size = f"{self.voters} voters, {self.records_each} records each, {self.features} features"
        return f"{number} synthetic crowds of {size}"

    def as_dict(self) -> dict[str, Any]:
        """Return the paper's N, n and d."""
        return {"voters": self.voters, "records": self.records_each, "features": self.features}


@dataclass(frozen=True)
class FilePopulation:
    """The voters of a ballot file, split at random: releases from the larger part predict the choices of the others."""

    path: Path
    study: Study = field(compare=False)
    voters: int
    records: float

    quality = "predicted"
    baselines = (POOLED, SOCIETY)
    generated = False

    def crowd_name(self, voters: int | None, seed: int, number: int) -> str:
        """Return the seed and the number of the split, and the size of the crowd if it is not that of the split."""
        return f"compare, file, seed {seed}, split {number}{'' if voters is None else f', N={voters}'}"

    def draw(self, voters: int | None, rng: np.random.Generator) -> tuple[Ballots, HeldOutChoices]:
        """Split the voters; if ``voters`` is given, draw that many with replacement from the larger part."""
        everyone = read_ballots(self.path)
        order = rng.permutation(everyone.voters)
        cut = round(TRAINED * everyone.voters)
        members = order[:cut] if voters is None else rng.choice(order[:cut], voters)
        others = everyone.take(order[cut:])
        chosen = np.ones(others.records, np.int64)  # a difference is the chosen side minus the other
        return resampled(everyone, members), HeldOutChoices(
            others.differences.astype(np.float64),
            chosen[:, None].astype(np.float64),
            chosen,
            np.repeat(np.arange(others.voters), others.counts),
        )

    def describe(self, number: int) -> str:
        """Name the file, the number of splits, and the number of voters in a release."""
        return f"{self.path}, {number} random splits, releases from {self.voters} voters"

    def as_dict(self) -> dict[str, Any]:
        """Return the file and its counts as plain data."""
        return {
            "ballots": str(self.path),
            "study": self.study.name,
            "private": False,
            "voters": self.voters,
            "records": self.records,
        }


def synthetic(voters: int, records: int, features: int) -> SyntheticPopulation:
    """Check the size of a synthetic crowd."""
    check_whole(voters, "--voters", 2, _MOST_COMPARED)
    population = SyntheticPopulation(voters, records, features)
    _ = population.study  # refuses invalid sizes
    return population


def of_file(path: Path) -> FilePopulation:
    """Open a ballot file and count the voters from whom releases will be made."""
    everyone = read_ballots(path)
    everyone.check_decided()  # before splits are, which have only a part of the records
    trained = round(TRAINED * everyone.voters)
    if everyone.voters - trained < _FEWEST:
        raise CrowdveilError(
            f"{path} has {everyone.voters} {plural(everyone.voters, 'voter')}: holding some out to predict needs "
            f"{4 * _FEWEST} or more"
        )
    return FilePopulation(path, everyone.study, trained, everyone.records / everyone.voters)


@dataclass(frozen=True)
class ComparisonRun:
    """One crowd of a population, and what to measure on it."""

    population: Population
    seed: int
    number: int
    tasks: tuple[ComparisonTask, ...]
    voters: int | None = None
    """None for the usual size of crowds in this population."""

    @property
    def name(self) -> str:
        """The name of the crowd, whatever is compared on it."""
        return self.population.crowd_name(self.voters, self.seed, self.number)

    def measure(self, crowds: range) -> pl.DataFrame:
        """Draw the crowd, and perform every task."""
        ballots, held_out = self.population.draw(self.voters, generator(self.name))
        crowd = fit_crowd(ballots, drawn=self.population.generated)
        personal = Groups().draw(ballots.voters, generator(self.name, "epsilons"))
        exact = {SOCIETY: crowd.society, POOLED: crowd.pooled}
        measured = {
            entry: held_out.scores((held_out.pairs @ beta)[None], beta[None], beta) for entry, beta in exact.items()
        }
        for task in self.tasks:
            entry = task.entry
            epsilons = personal if entry.epsilon is None else Epsilons.same(entry.epsilon, ballots.voters)
            source = noise(self.name, entry.mechanism, entry.epsilon, entry.equal_votes)
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
                    "number": self.number,
                    "mechanism": entry.mechanism,
                    "epsilon": None if entry.epsilon is None else str(entry.epsilon),
                    "equal_votes": entry.equal_votes,
                    **scores,
                }
                for entry, scores in measured.items()
            ],
            schema_overrides={"epsilon": pl.String, **dict.fromkeys(SCORES, pl.Float64)},
        )


def runs_of(
    population: Population, number: int, seed: int, tasks: Sequence[ComparisonTask], voters: int | None = None
) -> list[ComparisonRun]:
    """Return the runs of a comparison on this many crowds, of another size if ``voters`` is given."""
    return [ComparisonRun(population, seed, k, tuple(tasks), voters) for k in range(number)]


def _stated_margins(estimate: Estimate, pairs: FloatArray) -> FloatArray:
    """Return the margins that a decision would state; for a society, those of the parameter itself."""
    return pairs @ estimate.parameter if estimate.unknown is None else estimate.unknown.predictive_margins(pairs)


def carry_out(
    runs: Sequence[ComparisonRun], workers: int, tell: Callable[[int], None]
) -> dict[ComparisonEntry, EntryResult]:
    """Perform all runs on this many processes, and collect the results of each entry."""
    try:
        tables = in_processes(ComparisonRun.measure, [(run, range(1)) for run in runs], workers, tell)
    except BrokenProcessPool:
        raise CrowdveilError(
            "a worker process was ended from outside (out of memory?): "
            "run the same command again, perhaps with --workers 1"
        ) from None
    return collect(pl.concat(tables))


def collect(table: pl.DataFrame) -> dict[ComparisonEntry, EntryResult]:
    """Collect the values of each entry from the tables of all runs."""
    parts = table.sort("number").partition_by("mechanism", "epsilon", "equal_votes", as_dict=True)
    return {
        ComparisonEntry(str(mechanism), None if epsilon is None else Epsilon(epsilon), bool(equal_votes)): EntryResult(
            **{name: part[name].fill_null(np.nan).to_numpy() for name in SCORES}
        )
        for (mechanism, epsilon, equal_votes), part in parts.items()
    }
