"""The paper's algorithms on many crowds at once, for one or many epsilons: fitted once, noised once per epsilon.

Each function returns learned social parameters (crowds, points, d). ``levels`` holds the epsilons of all voters of
all crowds for each point of the curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.evaluation.toolkit.crowds import Crowds
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.grid import to_steps
from crowdveil.privacy.mechanisms.algorithm1 import Algorithm1
from crowdveil.privacy.mechanisms.algorithm2 import Algorithm2
from crowdveil.privacy.mechanisms.algorithm3 import Algorithm3, objective_coefficients, solve
from crowdveil.privacy.mechanisms.mechanism import Measurement, Sensitivity, Settings
from crowdveil.privacy.mechanisms.reports import Reports
from crowdveil.privacy.noise.source import Noise
from crowdveil.study.study import Study


def papers_settings(study: Study, norm_bound: float) -> Settings:
    """Return settings in which every voter counts the same, as in the paper."""
    return Settings(study, norm_bound, equal_votes=True)


def same_for_all(epsilons: tuple[float, ...], crowds: Crowds) -> list[Epsilons]:
    """Give every voter of every crowd the same epsilon at each curve point."""
    return [Epsilons.same(epsilon, crowds.ballots.voters) for epsilon in epsilons]


def algorithm1(
    crowds: Crowds, preferences: FloatArray, settings: Settings, epsilons: tuple[float, ...], noise: Noise
) -> FloatArray:
    """Noise on each crowd's mean preference."""
    totals = crowds.by_crowd(to_steps(preferences, settings.norm_bound)).sum(axis=1)
    measured = [Measurement(total, crowds.voters, crowds.ballots.records // crowds.crowds) for total in totals]
    mechanism = Algorithm1()
    levels = [Epsilon(epsilon) for epsilon in epsilons]
    return np.array([[mechanism.release(m, settings, e, noise).parameter for e in levels] for m in measured])


def algorithm2(
    crowds: Crowds, preferences: FloatArray, settings: Settings, levels: Sequence[Epsilons], noise: Noise
) -> FloatArray:
    """Noise on each voter's preference, then the mean."""
    mechanism = Algorithm2()
    points = []
    for epsilons in levels:
        reports = mechanism.perturb(preferences, settings, epsilons, noise)
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
    """Public bound on a record's length that longer ones are cut to; None: the study's, which few records reach."""
    private: bool = True
    """Without it the records are not scaled to length 1, as the sensitivity needs: the noise hides nothing."""


PRINTED = Variant("algorithm 3, as printed", repair=False, sensitivity="paper")
REPAIRED = Variant("algorithm 3, repaired", repair=True, sensitivity="tight")
CUT = Variant("algorithm 3, repaired, each record cut to length 1", repair=True, sensitivity="tight", cut_to=1.0)
RAW_PRINTED = Variant("algorithm 3, as printed, records not scaled: NOT PRIVATE", False, "paper", private=False)
RAW_REPAIRED = Variant("algorithm 3, repaired, records not scaled: NOT PRIVATE", True, "paper", private=False)
VARIANTS = (PRINTED, REPAIRED, CUT, RAW_PRINTED, RAW_REPAIRED)


def algorithm3(
    crowds: Crowds, variant: Variant, settings: Settings, levels: Sequence[Epsilons], noise: Noise
) -> tuple[FloatArray, FloatArray]:
    """Noise on each voter's objective, then the mean; also the share of voters whose noisy objective has no maximum."""
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
    """The coefficients of records that are not scaled to length 1, on the same grid as those that are. Not private.

    The library scales by a bound r that no record here exceeds, which divides linear coefficients by r and
    quadratic ones by r^2; here that is undone.
    """
    d = crowds.study.dimension
    longest = float(np.sqrt(np.square(crowds.ballots.differences, dtype=np.float64).sum(axis=1).max()))
    scaled = objective_coefficients(crowds.ballots.differences, crowds.ballots.offsets, longest)
    powers = np.where(np.arange(scaled.shape[1]) < d, longest, longest**2)
    return np.rint(scaled * powers).astype(np.int64)
