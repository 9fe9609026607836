"""The experiments: the paper's algorithms on many crowds at once, and the recommended mechanisms on the same crowds.

Each algorithm returns learned social parameters (crowds, points, d): fitted once, with noise added once per epsilon.
``levels`` contains the epsilons of all voters of all crowds for each point of the curve.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np
import polars as pl

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.estimation.society import fit_voters, fit_voters_unbounded
from crowdveil.evaluation.toolkit.crowds import NORM_BOUND, Crowds, CrowdSource, Groups, fit_crowd, generator, noise
from crowdveil.evaluation.toolkit.scores import on_all_gaussian_pairs
from crowdveil.evaluation.toolkit.sweep import NO_PRIVACY_AT, rows
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.grid import from_steps, to_steps
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.privacy.mechanisms.algorithm1 import Algorithm1
from crowdveil.privacy.mechanisms.algorithm2 import Algorithm2
from crowdveil.privacy.mechanisms.algorithm3 import Algorithm3, objective_coefficients, solve
from crowdveil.privacy.mechanisms.mechanism import Measurement, MechanismSettings, Sensitivity
from crowdveil.privacy.mechanisms.registry import recommended
from crowdveil.privacy.mechanisms.reports import Reports
from crowdveil.privacy.noise.source import Noise
from crowdveil.privacy.planning.accuracy import error_bound
from crowdveil.study.study import Study


def papers_settings(study: Study, norm_bound: float) -> MechanismSettings:
    """Return settings in which every voter counts the same, as in the paper."""
    return MechanismSettings(study, norm_bound, equal_votes=True)


def same_for_all(epsilons: tuple[float, ...], crowds: Crowds) -> list[Epsilons]:
    """Give every voter of every crowd the same epsilon at each point of the curve."""
    return [Epsilons.same(epsilon, crowds.ballots.voters) for epsilon in epsilons]


def algorithm1(
    crowds: Crowds, preferences: FloatArray, settings: MechanismSettings, epsilons: tuple[float, ...], noise: Noise
) -> FloatArray:
    """Add noise to each crowd's mean preference."""
    totals = crowds.by_crowd(to_steps(preferences, settings.norm_bound)).sum(axis=1)
    measured = [Measurement(total, crowds.voters, crowds.ballots.records // crowds.crowds) for total in totals]
    mechanism = Algorithm1()
    levels = [Epsilon(epsilon) for epsilon in epsilons]
    return np.array([[mechanism.release(m, settings, e, noise).parameter for e in levels] for m in measured])


def algorithm2(
    crowds: Crowds, preferences: FloatArray, settings: MechanismSettings, levels: Sequence[Epsilons], noise: Noise
) -> FloatArray:
    """Add noise to each voter's preference, then take the mean."""
    mechanism = Algorithm2()
    points = []
    for epsilons in levels:
        reports = mechanism.perturb_fits(preferences, settings, epsilons, noise)
        own = (epsilons[voters] for voters in crowds.by_crowd(np.arange(len(epsilons))))
        batches = [Reports(own, values) for own, values in zip(own, crowds.by_crowd(reports.values), strict=True)]
        points.append([mechanism.aggregate([batch], settings).parameter for batch in batches])
    return np.array(points).swapaxes(0, 1)


@dataclass(frozen=True)
class Variant:
    """One reading of Algorithm 3."""

    name: str
    repair: bool
    """Regularise, trim and project (Zhang et al. 2012); without it the stationary point is taken."""
    sensitivity: Sensitivity
    """The tighter of the two proved ones, or the paper's."""
    cut_to: float | None = None
    """Public bound to which longer records are shortened; None for the study's bound, which few records reach."""
    private: bool = True
    """If False, records are not scaled to length 1, as the sensitivity requires: the noise hides nothing."""


PRINTED = Variant("algorithm 3, as printed", repair=False, sensitivity="paper")
REPAIRED = Variant("algorithm 3, repaired", repair=True, sensitivity="tight")
CUT = Variant("algorithm 3, repaired, each record cut to length 1", repair=True, sensitivity="tight", cut_to=1.0)
RAW_PRINTED = Variant("algorithm 3, as printed, records not scaled: NOT PRIVATE", False, "paper", private=False)
RAW_REPAIRED = Variant("algorithm 3, repaired, records not scaled: NOT PRIVATE", True, "paper", private=False)
VARIANTS = (PRINTED, REPAIRED, CUT, RAW_PRINTED, RAW_REPAIRED)


def algorithm3(
    crowds: Crowds, variant: Variant, settings: MechanismSettings, levels: Sequence[Epsilons], noise: Noise
) -> tuple[FloatArray, FloatArray]:
    """Add noise to each voter's objective, then average; also return the share of voters without a maximum."""
    settings = replace(settings, repair=variant.repair, sensitivity=variant.sensitivity)
    if variant.cut_to is not None:
        settings = replace(settings, study=replace(settings.study, record_norm=variant.cut_to))
    if variant.private:
        coefficients = objective_coefficients(
            crowds.ballots.differences, crowds.ballots.offsets, settings.study.record_bound
        )
    else:
        coefficients = unscaled_coefficients(crowds)
        settings = replace(settings, study=replace(settings.study, record_norm=1.0))
    mechanism = Algorithm3()
    learned = []
    without = []
    for epsilons in levels:
        reports = mechanism.perturb(coefficients, settings, epsilons, noise)
        solved, exists = solve(reports, settings)
        learned.append(crowds.by_crowd(solved).mean(axis=1))
        without.append(1 - crowds.by_crowd(exists).mean(axis=1))
    return np.stack(learned, axis=1), np.stack(without, axis=1)


def unscaled_coefficients(crowds: Crowds) -> IntArray:
    """Return the coefficients of records that are not scaled to length 1, on the grid of scaled ones. Not private.

    The library scales by a bound r that no record here exceeds, which divides linear coefficients by r and quadratic
    ones by r^2; this is undone here.
    """
    d = crowds.study.dimension
    longest = float(np.sqrt(np.square(crowds.ballots.differences, dtype=np.float64).sum(axis=1).max()))
    scaled = objective_coefficients(crowds.ballots.differences, crowds.ballots.offsets, longest)
    powers = np.where(np.arange(scaled.shape[1]) < d, longest, longest**2)
    return np.rint(scaled * powers).astype(np.int64)


ALGORITHM_1, ALGORITHM_2 = "algorithm 1", "algorithm 2"
NO_PRIVACY = "no privacy, B = 2"
WITHOUT_MAXIMUM = "voters whose objective has no maximum"


@dataclass(frozen=True)
class _FittedCrowds:
    """Crowds with a fit for every voter, and the judge of what is learned from them."""

    numbers: range
    crowds: Crowds
    settings: MechanismSettings
    preferences: FloatArray

    @property
    def own(self) -> FloatArray:
        """Each crowd's society without privacy."""
        return np.asarray(self.crowds.by_crowd(self.preferences).mean(axis=1))

    def judged(self, series: str, points: tuple[float, ...], learned: FloatArray) -> list[pl.DataFrame]:
        """Judge learned parameters (crowds, points, d)."""
        return rows(self.numbers, series, points, self.crowds.judge(learned, self.own))

    def no_privacy(self, point: float) -> list[pl.DataFrame]:
        """Judge the crowds' own societies."""
        return self.judged(NO_PRIVACY, (point,), self.own[:, None])

    def algorithms_1_and_2(
        self, points: tuple[float, ...], epsilons: tuple[float, ...], *name: object
    ) -> list[pl.DataFrame]:
        """Judge both algorithms at these epsilons; ``name`` seeds their noise."""
        levels = same_for_all(epsilons, self.crowds)
        central, distributed = noise(*name, ALGORITHM_1), noise(*name, ALGORITHM_2)
        first = algorithm1(self.crowds, self.preferences, self.settings, epsilons, central)
        second = algorithm2(self.crowds, self.preferences, self.settings, levels, distributed)
        return [*self.judged(ALGORITHM_1, points, first), *self.judged(ALGORITHM_2, points, second)]


def _fit(crowds: Crowds, numbers: range, bound: float = NORM_BOUND) -> _FittedCrowds:
    preferences = fit_voters(crowds.ballots, bound, threads=1).values
    return _FittedCrowds(numbers, crowds, papers_settings(crowds.study, bound), preferences)


@dataclass(frozen=True)
class EpsilonSweep:
    """One source, one crowd size, every algorithm at every epsilon of the paper."""

    source: CrowdSource
    voters: int
    epsilons: tuple[float, ...]

    @property
    def name(self) -> str:
        """Source, N, and the grid."""
        return f"epsilons {self.epsilons}, {self.source.name} N={self.voters}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Fit everybody once, then add noise for each epsilon."""
        fitted = _fit(self.source.draw(self.voters, crowds), crowds)
        levels = same_for_all(self.epsilons, fitted.crowds)
        tables = fitted.no_privacy(NO_PRIVACY_AT)
        tables += fitted.algorithms_1_and_2(self.epsilons, self.epsilons, self.name, crowds)
        for variant in VARIANTS:
            source = noise(self.name, crowds, variant.name)
            learned, without = algorithm3(fitted.crowds, variant, fitted.settings, levels, source)
            tables += fitted.judged(variant.name, self.epsilons, learned)
            tables += rows(crowds, variant.name, self.epsilons, {WITHOUT_MAXIMUM: without})
        return pl.concat(tables)


@dataclass(frozen=True)
class BoundSweep:
    """One source, one crowd size, one epsilon, the algorithms with different public bounds.

    For bounds on a preference's norm: Algorithms 1 and 2, with a new fit of everybody for each B. For bounds on a
    record: Algorithm 3, repaired, with records scaled by a smaller bound, and longer ones shortened to it.
    """

    source: CrowdSource
    voters: int
    of: Literal["norm", "record"]
    bounds: tuple[float, ...]
    epsilon: float

    @property
    def name(self) -> str:
        """Source, N, epsilon and the grid."""
        return f"{self.of} bounds {self.bounds}, {self.source.name} N={self.voters} epsilon={self.epsilon}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Add noise and judge at each bound."""
        drawn = self.source.draw(self.voters, crowds)
        measured = self._norms if self.of == "norm" else self._records
        return pl.concat(measured(drawn, crowds))

    def _norms(self, drawn: Crowds, crowds: range) -> Iterator[pl.DataFrame]:
        for bound in self.bounds:
            fitted = _fit(drawn, crowds, bound)
            yield from fitted.no_privacy(bound)
            yield from fitted.algorithms_1_and_2((bound,), (self.epsilon,), self.name, crowds, bound)

    def _records(self, drawn: Crowds, crowds: range) -> Iterator[pl.DataFrame]:
        fitted = _fit(drawn, crowds)
        levels = same_for_all((self.epsilon,), drawn)
        for bound in self.bounds:
            settings = papers_settings(replace(drawn.study, record_norm=bound), NORM_BOUND)
            learned, _ = algorithm3(drawn, REPAIRED, settings, levels, noise(self.name, crowds, bound))
            yield from fitted.judged(REPAIRED.name, (bound,), learned)


PERSONAL_VARIANTS = (PRINTED, REPAIRED, CUT, RAW_REPAIRED)


@dataclass(frozen=True)
class PersonalEpsilonSweep:
    """One panel: the same crowds under each setting of the voters' groups."""

    source: CrowdSource
    voters: int
    panel: str
    settings: tuple[tuple[float, Groups], ...]

    @property
    def name(self) -> str:
        """Source, N, and every setting in full."""
        return f"personal epsilons, {self.panel}, {self.source.name} N={self.voters} {self.settings}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Draw new epsilons of the voters for every setting and crowd."""
        fitted = _fit(self.source.draw(self.voters, crowds), crowds)
        points = tuple(point for point, _ in self.settings)
        levels = [
            Epsilons.joined(groups.draw(self.voters, generator(self.name, point, crowd)) for crowd in crowds)
            for point, groups in self.settings
        ]
        tables = []
        for variant in PERSONAL_VARIANTS:
            source = noise(self.name, crowds, variant.name)
            learned, _ = algorithm3(fitted.crowds, variant, fitted.settings, levels, source)
            tables += fitted.judged(variant.name, points, learned)
        return pl.concat(tables)


@dataclass(frozen=True)
class ParadigmSweep:
    """One source, one crowd size, every paradigm at every epsilon: one series per paradigm, named after it.

    The crowds are those of ``EpsilonSweep`` with the same source and size, so that curves can be compared crowd by
    crowd. The recommended mechanism may change along a curve.
    """

    source: CrowdSource
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
            fit_crowd(drawn.ballots[first : first + self.voters], drawn=drawn.own_preferences is not None)
            for first in range(0, drawn.ballots.voters, self.voters)
        ]
        own = np.array([crowd.society for crowd in released])
        levels = [Epsilons.same(epsilon, self.voters) for epsilon in self.epsilons]

        @cache  # one release serves every paradigm that recommends its mechanism
        def learned(mechanism: str, point: int) -> FloatArray:
            source = noise(self.name, str(crowds), mechanism, self.epsilons[point])
            return np.array([crowd.release(mechanism, levels[point], 1, source)[0].parameter for crowd in released])

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
    """The same crowds as in ``EpsilonSweep``, judged without privacy."""

    source: CrowdSource
    voters: int

    @property
    def name(self) -> str:
        """Source and N."""
        return f"no privacy, {self.source.name} N={self.voters}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Fit with and without a bound. Unbounded estimates are averaged over the voters who have one (NaN: nobody)."""
        drawn = self.source.draw(self.voters, crowds)
        fitted = _fit(drawn, crowds)
        free = fit_voters_unbounded(drawn.ballots)
        exists = drawn.by_crowd(free.exists)
        unbounded = np.where(free.exists[:, None], free.values, 0.0)
        having = np.where(exists.any(axis=1), exists.sum(axis=1), np.nan)[:, None]
        society = drawn.by_crowd(unbounded).sum(axis=1) / having
        at = (NO_PRIVACY_AT,)
        tables = fitted.no_privacy(NO_PRIVACY_AT)
        tables += fitted.judged(UNBOUNDED, at, society[:, None])
        tables += rows(crowds, UNBOUNDED, at, {SEPARABLE: 1 - exists.mean(axis=1, keepdims=True)})
        if drawn.own_preferences is not None:
            close = drawn.by_crowd(on_all_gaussian_pairs(drawn.own_preferences, fitted.preferences))
            tables += rows(crowds, NO_PRIVACY, at, {OWN: close.mean(axis=1, keepdims=True)})
            close = np.where(exists, drawn.by_crowd(on_all_gaussian_pairs(drawn.own_preferences, unbounded)), 0.0)
            tables += rows(crowds, UNBOUNDED, at, {OWN: close.sum(axis=1, keepdims=True) / having})
        return pl.concat(tables)


WITHIN = "within the stated error"
GAMMAS = (0.5, 0.2, 0.1)
RELEASES = 2000
"""Releases per crowd, and approximate number of reports."""


@dataclass(frozen=True)
class UtilityTheorems:
    """Algorithms 1 and 2, run again and again on the same crowds."""

    source: CrowdSource
    voters: int
    epsilon: float

    @property
    def name(self) -> str:
        """Source, N and epsilon."""
        return f"theorems 2 and 4, {self.source.name} N={self.voters} epsilon={self.epsilon}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Count, for each gamma, how many errors stay within the theorem's alpha."""
        drawn = self.source.draw(self.voters, crowds)
        fitted = _fit(drawn, crowds)
        level = Epsilon(self.epsilon)
        everyone = to_steps(fitted.preferences, NORM_BOUND)
        central, distributed = noise(self.name, crowds, ALGORITHM_1), noise(self.name, crowds, ALGORITHM_2)
        errors1, errors2 = [], []
        for preferences in from_steps(drawn.by_crowd(everyone), NORM_BOUND):
            total = to_steps(preferences, NORM_BOUND).sum(axis=0)
            measured = Measurement(total, self.voters, drawn.ballots.records // len(crowds))
            exact = preferences.mean(axis=0)
            releases = [Algorithm1().release(measured, fitted.settings, level, central) for _ in range(RELEASES)]
            errors1.append(np.abs(np.array([made.parameter for made in releases]) - exact).max(axis=1))
            repeated = np.tile(preferences, (RELEASES // self.voters, 1))
            levels = Epsilons.same(level, len(repeated))
            reports = Algorithm2().perturb_fits(repeated, fitted.settings, levels, distributed)
            errors2.append(np.abs(from_steps(reports.values, NORM_BOUND) - repeated).max(axis=1))
        tables = []
        for series, voters, errors in ((ALGORITHM_1, self.voters, errors1), (ALGORITHM_2, 1, errors2)):
            alphas = [
                error_bound(voters, drawn.study.dimension, NORM_BOUND, self.epsilon, 1 - gamma) for gamma in GAMMAS
            ]
            within = np.array([[np.mean(crowd <= alpha) for alpha in alphas] for crowd in errors])
            tables += rows(crowds, series, GAMMAS, {WITHIN: within})
        return pl.concat(tables)
