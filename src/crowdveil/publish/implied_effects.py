"""The effects that a release of preferences implies: what its crowd would prefer in given dilemmas.

They are computed at the unshrunk estimate, around which errors are symmetric. A mean of shares is smooth in the
preference, so its error is the product of its gradient and the error of the release. The gradient is one direction, and
the release knows the uncertainty along it. Nothing private is read or spent.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from crowdveil.arrays import FloatArray, SmallIntArray
from crowdveil.effect_release import Effect, Effects, GroupEffects
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.effects import DRAWN, contrasts, public_pairs
from crowdveil.privacy.uncertainty import ERROR_BAR, Uncertainty
from crowdveil.releases import Release, check_release

_NORMAL = 1.96


def implied_effects(release: Release) -> Effects:
    """Return the effects of a release on the dilemmas that its study draws, with intervals for all of its uncertainty.

    They are what ``effects`` would find in a crowd with exactly this preference. The pairs are those of the study's own
    generator, and a file may have others.
    """
    check_release(release)
    if release.unknown is None:
        raise CrowdveilError(
            f"the release is of the paper's society ({release.mechanism}), which states no probabilities: effects "
            "follow from a release of the recommended mechanism, or come from crowdveil effects"
        )
    dilemmas, signs = public_pairs(release.study, typed=True)
    named = contrasts(release.study, typed=release.study.drawing.method == "moral-machine")
    found = []
    for k, (factor, contrast) in enumerate(zip(release.study.factors, named, strict=True)):
        shown = signs[:, k] != 0
        kept = dilemmas[shown]
        sides = signs[shown, k]
        estimate = float((sides * preferred(release, kept)).mean()) if shown.any() else 0.0
        reach = mean_reach(release, kept, sides) if shown.any() else 2.0
        low = max(estimate - reach, -1.0)
        high = min(estimate + reach, 1.0)
        known = (low, high) != (-1.0, 1.0)
        error = reach / _NORMAL if known else None
        words = DRAWN + contrast
        found.append(
            Effect(factor.name, words, estimate if known else 0.0, error, low, high, float(shown.sum()), known)
        )
    return Effects(release.study, None, (GroupEffects("", float(release.guarantee.voters), tuple(found)),))


def preferred(release: Release, dilemmas: FloatArray) -> FloatArray:
    """Return, for each dilemma (rows), the share who prefer its first side minus the share who prefer its second."""
    margins = dilemmas @ _center(release)
    tau = _threshold(release)[0]
    return np.asarray(ndtr(margins - tau) - ndtr(-margins - tau), np.float64)


def mean_reach(release: Release, dilemmas: FloatArray, sides: FloatArray | SmallIntArray) -> float:
    """Return the largest error, at 95 %, of the mean of sides times ``preferred``, from all uncertainty."""
    unknown = _unknown(release)
    margins = dilemmas @ _center(release)
    tau, deviation = _threshold(release)
    near, far = _density(margins - tau), _density(margins + tau)
    gradient = (sides * (near + far)) @ dilemmas / len(sides)
    low, high = unknown.interval(gradient, release.noise.half_width(gradient, ERROR_BAR), ERROR_BAR, left_out=True)
    middle = unknown.margin(gradient)
    reach = max(high - middle, middle - low)
    return math.hypot(reach, _NORMAL * deviation * float((sides * (far - near)).mean()))


def _density(margins: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-(margins**2) / 2) / math.sqrt(2 * math.pi), np.float64)


def _unknown(release: Release) -> Uncertainty:
    assert release.unknown is not None  # checked where a release is passed in
    return release.unknown


def _center(release: Release) -> FloatArray:
    unknown = _unknown(release)
    return unknown.basis @ unknown.center


def _threshold(release: Release) -> tuple[float, float]:
    """Return the threshold of a third answer and its deviation; 0 if people have to choose."""
    return (0.0, 0.0) if release.indifference is None else (release.indifference.tau, release.indifference.deviation)
