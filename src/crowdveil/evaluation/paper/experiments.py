"""The experiments: all of the paper's, and the recommended mechanisms on the same crowds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import polars as pl

from crowdveil.arrays import FloatArray
from crowdveil.estimation.society import fit_voters, fit_voters_unbounded
from crowdveil.evaluation.paper.algorithms import (
    CUT,
    PRINTED,
    RAW_REPAIRED,
    REPAIRED,
    VARIANTS,
    algorithm1,
    algorithm2,
    algorithm3,
    papers_settings,
    same_for_all,
)
from crowdveil.evaluation.toolkit.accuracy import on_all_gaussian_pairs
from crowdveil.evaluation.toolkit.crowds import NORM_BOUND, Groups, Source
from crowdveil.evaluation.toolkit.fitted_crowd import fit_crowd
from crowdveil.evaluation.toolkit.results import NO_PRIVACY_AT, rows
from crowdveil.evaluation.toolkit.seeds import generator, noise
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.grid import from_steps, to_steps
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.privacy.mechanisms.algorithm1 import Algorithm1
from crowdveil.privacy.mechanisms.algorithm2 import Algorithm2
from crowdveil.privacy.mechanisms.mechanism import Measurement
from crowdveil.privacy.mechanisms.registry import recommended
from crowdveil.privacy.planning.accuracy import error_bound

ALGORITHM_1, ALGORITHM_2 = "algorithm 1", "algorithm 2"
NO_PRIVACY = "no privacy, B = 2"
WITHOUT_MAXIMUM = "voters whose objective has no maximum"


@dataclass(frozen=True)
class AcrossEpsilons:
    """One source, one crowd size, every algorithm at every epsilon of the paper."""

    source: Source
    voters: int
    epsilons: tuple[float, ...]

    @property
    def name(self) -> str:
        """Source, N, and the grid."""
        return f"epsilons {self.epsilons}, {self.source.name} N={self.voters}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Fit everybody once, then noise each epsilon."""
        drawn = self.source.draw(self.voters, crowds)
        settings = papers_settings(drawn.study, NORM_BOUND)
        preferences = fit_voters(drawn.ballots, NORM_BOUND, threads=1).values
        own = drawn.by_crowd(preferences).mean(axis=1)
        levels = same_for_all(self.epsilons, drawn)

        def seeded(series: str) -> tuple[str, str, str]:
            return self.name, str(crowds), series

        tables = rows(crowds, NO_PRIVACY, (NO_PRIVACY_AT,), drawn.judge(own[:, None], own))
        learned = algorithm1(drawn, preferences, settings, self.epsilons, noise(*seeded(ALGORITHM_1)))
        tables += rows(crowds, ALGORITHM_1, self.epsilons, drawn.judge(learned, own))
        learned = algorithm2(drawn, preferences, settings, levels, noise(*seeded(ALGORITHM_2)))
        tables += rows(crowds, ALGORITHM_2, self.epsilons, drawn.judge(learned, own))
        for variant in VARIANTS:
            learned, without = algorithm3(drawn, variant, settings, levels, noise(*seeded(variant.name)))
            tables += rows(crowds, variant.name, self.epsilons, drawn.judge(learned, own))
            tables += rows(crowds, variant.name, self.epsilons, {WITHOUT_MAXIMUM: without})
        return pl.concat(tables)


@dataclass(frozen=True)
class AcrossNormBounds:
    """Algorithms 1 and 2 on the same crowds, fitted anew for each B."""

    source: Source
    voters: int
    bounds: tuple[float, ...]
    epsilon: float

    @property
    def name(self) -> str:
        """Source, N, epsilon and the grid."""
        return f"norm bounds {self.bounds}, {self.source.name} N={self.voters} epsilon={self.epsilon}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Fit, noise and judge at each bound."""
        drawn = self.source.draw(self.voters, crowds)
        one = (self.epsilon,)
        levels = same_for_all(one, drawn)
        tables = []
        for bound in self.bounds:
            settings = papers_settings(drawn.study, bound)
            preferences = fit_voters(drawn.ballots, bound, threads=1).values
            own = drawn.by_crowd(preferences).mean(axis=1)
            named = (self.name, crowds, bound)
            learned = {
                NO_PRIVACY: own[:, None],
                ALGORITHM_1: algorithm1(drawn, preferences, settings, one, noise(*named, ALGORITHM_1)),
                ALGORITHM_2: algorithm2(drawn, preferences, settings, levels, noise(*named, ALGORITHM_2)),
            }
            for series, parameters in learned.items():
                tables += rows(crowds, series, (bound,), drawn.judge(parameters, own))
        return pl.concat(tables)


@dataclass(frozen=True)
class AcrossRecordBounds:
    """Algorithm 3, repaired, with records scaled by a smaller public bound, and cut off at it where longer."""

    source: Source
    voters: int
    bounds: tuple[float, ...]
    epsilon: float

    @property
    def name(self) -> str:
        """Source, N, epsilon and the grid."""
        return f"record bounds {self.bounds}, {self.source.name} N={self.voters} epsilon={self.epsilon}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Noise and judge at each bound."""
        drawn = self.source.draw(self.voters, crowds)
        own = drawn.by_crowd(fit_voters(drawn.ballots, NORM_BOUND, threads=1).values).mean(axis=1)
        levels = same_for_all((self.epsilon,), drawn)
        tables = []
        for bound in self.bounds:
            settings = papers_settings(replace(drawn.study, record_norm=bound), NORM_BOUND)
            learned, _ = algorithm3(drawn, REPAIRED, settings, levels, noise(self.name, crowds, bound))
            tables += rows(crowds, REPAIRED.name, (bound,), drawn.judge(learned, own))
        return pl.concat(tables)


PERSONAL_VARIANTS = (PRINTED, REPAIRED, CUT, RAW_REPAIRED)


@dataclass(frozen=True)
class AcrossPersonalEpsilons:
    """One panel: the same crowds under each setting of the voters' groups."""

    source: Source
    voters: int
    panel: str
    settings: tuple[tuple[float, Groups], ...]

    @property
    def name(self) -> str:
        """Source, N, and every setting in full."""
        return f"personal epsilons, {self.panel}, {self.source.name} N={self.voters} {self.settings}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Draw the voters' epsilons anew for every setting and crowd."""
        drawn = self.source.draw(self.voters, crowds)
        public = papers_settings(drawn.study, NORM_BOUND)
        own = drawn.by_crowd(fit_voters(drawn.ballots, NORM_BOUND, threads=1).values).mean(axis=1)
        points = tuple(point for point, _ in self.settings)
        levels = [
            Epsilons.joined(groups.draw(self.voters, generator(self.name, point, crowd)) for crowd in crowds)
            for point, groups in self.settings
        ]
        tables = []
        for variant in PERSONAL_VARIANTS:
            learned, _ = algorithm3(drawn, variant, public, levels, noise(self.name, crowds, variant.name))
            tables += rows(crowds, variant.name, points, drawn.judge(learned, own))
        return pl.concat(tables)


@dataclass(frozen=True)
class AcrossParadigms:
    """One source, one crowd size, every paradigm at every epsilon: a series a paradigm, by its name.

    The crowds are those of ``AcrossEpsilons`` with the same source and size, so that curves can be compared crowd by
    crowd. Which mechanism is recommended may change along a curve.
    """

    source: Source
    voters: int
    epsilons: tuple[float, ...]

    @property
    def name(self) -> str:
        """Source, N, and the grid."""
        return f"paradigms {self.epsilons}, {self.source.name} N={self.voters}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Fit everybody once, then release each crowd under every promise."""
        drawn = self.source.draw(self.voters, crowds)
        released = [
            fit_crowd(drawn.ballots[first : first + self.voters])
            for first in range(0, drawn.ballots.voters, self.voters)
        ]
        own = np.array([crowd.society for crowd in released])
        levels = [Epsilons.same(epsilon, self.voters) for epsilon in self.epsilons]

        @cache  # one release serves every paradigm that recommends its mechanism
        def learned(mechanism: str, point: int) -> FloatArray:
            source = noise(self.name, str(crowds), mechanism, self.epsilons[point])
            return np.array([crowd.release(mechanism, levels[point], 1, source)[0] for crowd in released])

        tables = []
        for paradigm in PARADIGMS.values():
            best = [learned(recommended(paradigm, drawn.study, level), i) for i, level in enumerate(levels)]
            tables += rows(crowds, paradigm.name, self.epsilons, drawn.judge(np.stack(best, axis=1), own))
        return pl.concat(tables)


UNBOUNDED = "no privacy, no bound"
SEPARABLE = "voters without an unbounded estimate"
OWN = "each voter's estimate against the voter's own preference"


@dataclass(frozen=True)
class Baselines:
    """The same crowds as ``AcrossEpsilons`` has, judged without privacy."""

    source: Source
    voters: int

    @property
    def name(self) -> str:
        """Source and N."""
        return f"no privacy, {self.source.name} N={self.voters}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Fit with and without a bound; a mean of unbounded estimates is over the voters who have one (NaN: nobody)."""
        drawn = self.source.draw(self.voters, crowds)
        bounded = fit_voters(drawn.ballots, NORM_BOUND, threads=1).values
        free = fit_voters_unbounded(drawn.ballots)
        exists, unbounded = drawn.by_crowd(free.exists), np.where(free.exists[:, None], free.values, 0.0)
        having = np.where(exists.any(axis=1), exists.sum(axis=1), np.nan)[:, None]
        own = drawn.by_crowd(bounded).mean(axis=1)
        society = drawn.by_crowd(unbounded).sum(axis=1) / having
        at = (NO_PRIVACY_AT,)
        tables = rows(crowds, NO_PRIVACY, at, drawn.judge(own[:, None], own))
        tables += rows(crowds, UNBOUNDED, at, drawn.judge(society[:, None], own))
        tables += rows(crowds, UNBOUNDED, at, {SEPARABLE: 1 - exists.mean(axis=1, keepdims=True)})
        if drawn.own_preferences is not None:
            close = drawn.by_crowd(on_all_gaussian_pairs(drawn.own_preferences, bounded))
            tables += rows(crowds, NO_PRIVACY, at, {OWN: close.mean(axis=1, keepdims=True)})
            close = np.where(exists, drawn.by_crowd(on_all_gaussian_pairs(drawn.own_preferences, unbounded)), 0.0)
            tables += rows(crowds, UNBOUNDED, at, {OWN: close.sum(axis=1, keepdims=True) / having})
        return pl.concat(tables)


WITHIN = "within the stated error"
GAMMAS = (0.5, 0.2, 0.1)
RELEASES = 2000
"""Releases per crowd, and (about) as many reports."""


@dataclass(frozen=True)
class UtilityTheorems:
    """Algorithms 1 and 2, run again and again on the same crowds."""

    source: Source
    voters: int
    epsilon: float

    @property
    def name(self) -> str:
        """Source, N and epsilon."""
        return f"theorems 2 and 4, {self.source.name} N={self.voters} epsilon={self.epsilon}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Count, for each gamma, how many errors stay within the theorem's alpha."""
        drawn = self.source.draw(self.voters, crowds)
        settings, level = papers_settings(drawn.study, NORM_BOUND), Epsilon(self.epsilon)
        d = drawn.study.dimension
        everyone = to_steps(fit_voters(drawn.ballots, NORM_BOUND, threads=1).values, NORM_BOUND)
        central, distributed = noise(self.name, crowds, ALGORITHM_1), noise(self.name, crowds, ALGORITHM_2)
        errors1, errors2 = [], []
        for preferences in from_steps(drawn.by_crowd(everyone), NORM_BOUND):
            total = to_steps(preferences, NORM_BOUND).sum(axis=0)
            measured = Measurement(total, self.voters, drawn.ballots.records // len(crowds))
            exact = preferences.mean(axis=0)
            releases = [Algorithm1().release(measured, settings, level, central).parameter for _ in range(RELEASES)]
            errors1.append(np.abs(np.array(releases) - exact).max(axis=1))
            repeated = np.tile(preferences, (RELEASES // self.voters, 1))
            levels = Epsilons.same(level, len(repeated))
            reports = Algorithm2().perturb(repeated, settings, levels, distributed)
            errors2.append(np.abs(from_steps(reports.values, NORM_BOUND) - repeated).max(axis=1))
        tables = []
        for series, voters, errors in ((ALGORITHM_1, self.voters, errors1), (ALGORITHM_2, 1, errors2)):
            alphas = [error_bound(voters, d, NORM_BOUND, self.epsilon, 1 - gamma) for gamma in GAMMAS]
            within = np.array([[np.mean(crowd <= alpha) for alpha in alphas] for crowd in errors])
            tables += rows(crowds, series, GAMMAS, {WITHIN: within})
        return pl.concat(tables)
