"""Priors on a crowd's preference."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from crowdveil.arrays import FloatArray

MARGIN = 1.5
"""Prior standard deviation of the margin of a dilemma (gamma . x): four of five people agree on a choice."""
FAINTEST, LOUDEST = 0.25, 4.0
"""Prior sizes of margins, from a nearly indifferent crowd to a nearly unanimous one. If margins are normal with
standard deviation s, the share 1/2 + arctan(s) / pi of people agrees on a dilemma: 58 % and 92 %. Where the data tell
fainter crowds from indifferent ones, the sizes begin there."""
_SIZES = 7
_QUANTILES = 16
LIKELY_MARGINS = tuple(NormalDist().inv_cdf(0.5 + (place + 0.5) / (2 * _QUANTILES)) for place in range(_QUANTILES))
"""Prior sizes of voters' mean margins, where records are scored one by one. The natural unit of a person's margin is
the noise of her own choice, which has standard deviation 1 in a probit. So the prior on the size is half-normal with
scale 1, and these are its quantiles. In crowds who all think alike, 51 to 86 % agree on a dilemma; the more voters
differ, the fewer."""
REST = 0.1
"""Prior size of a margin in the directions that factors leave out, relative to MARGIN. Factors are chosen to make it
small."""


def prior_deviation(directions: int) -> float:
    """Return the prior standard deviation of gamma along each axis, at which margins have the size MARGIN."""
    return MARGIN / math.sqrt(max(directions, 1))


def rest_deviation(left_out: int) -> float:
    """Return the prior standard deviation of the preference along each direction that factors leave out."""
    return REST * MARGIN / math.sqrt(max(left_out, 1))


def axis_scales(directions: int, left_out: int) -> FloatArray:
    """Return the prior standard deviation along each axis, relative to that along the axis of a factor.

    The last ``left_out`` axes are those of directions that no factor covers. Together they move the margin of a dilemma
    by REST times what the factors move it by.
    """
    factors = directions - left_out
    scales = np.ones(directions)
    if left_out:
        scales[factors:] = REST * math.sqrt(max(factors, 1) / left_out)
    return scales


def prior_deviations(directions: int, left_out: int) -> FloatArray:
    """Return the prior standard deviation along each axis, the last ``left_out`` of which no factor covers."""
    return prior_deviation(directions - left_out) * axis_scales(directions, left_out)


def margin_sizes(faintest: float) -> FloatArray:
    """Return equally probable sizes of margins, from ``faintest`` to LOUDEST.

    A scale parameter has a prior that is uniform in its logarithm: the sizes are equally spaced in it.
    """
    return np.geomspace(faintest, LOUDEST, _SIZES)


def margin_deviations(directions: int, faintest: float, left_out: int = 0) -> FloatArray:
    """Return the prior standard deviation along each axis (columns) for each of ``margin_sizes`` (rows).

    A single prior would mistake noise for preference in a nearly indifferent crowd, and preference for noise in a
    nearly unanimous one. So the data weight the sizes.
    """
    scales = axis_scales(directions, left_out) / math.sqrt(max(directions - left_out, 1))
    return np.outer(margin_sizes(faintest), scales)


def likely_deviations(directions: int, tau: float, left_out: int = 0) -> FloatArray:
    """Return the prior standard deviation along each axis (columns) for each of LIKELY_MARGINS, equally likely (rows).

    In a crowd with disagreement tau, a share Phi(b . x) prefers a dilemma x of the usual length if the mean margin of
    voters is sqrt(1 + k tau^2) b . x (``disagreement``); this is the prior of b.
    """
    fainter = math.sqrt(max(directions - left_out, 1) * (1 + directions * tau**2))
    return np.outer(LIKELY_MARGINS, axis_scales(directions, left_out)) / fainter
