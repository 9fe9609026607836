"""What is believed of a crowd's preference before anything is seen of it."""

from __future__ import annotations

import math
from statistics import NormalDist

MARGIN = 1.5
"""A priori, the margin of a dilemma (gamma . x) has about this size: four of five people agree in a choice."""
MARGINS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Sizes of margins, where what was seen may tell which it is. Of people whose margins are normal with deviation s, the
share 1/2 + arctan(s) / pi agrees in a dilemma: 58, 65, 75, 85 or 92 %. They are octaves around one, from a crowd whose
preference one hardly notices to one that is nearly of one mind: as a size is not known by a factor, its logarithm is
spread evenly."""
LIKELY_MARGINS = tuple(NormalDist().inv_cdf((1 + quantile) / 2) for quantile in (1 / 8, 3 / 8, 5 / 8, 7 / 8))
"""Sizes of margins, where records are scored one by one. The natural unit of a margin is the scatter of one choice,
which is 1 in a probit: so a size is taken to be half-normal with deviation 1, and these are quantiles of that law. In
such crowds 55, 64, 73 or 82 % agree in a dilemma."""
REST = 0.1
"""A priori, the directions that factors leave out move a margin by this part of it: that is what factors are for."""


def prior_deviation(directions: int) -> float:
    """Return the prior standard deviation of gamma along each axis: margins have the size MARGIN in all."""
    return MARGIN / math.sqrt(max(directions, 1))


def rest_deviation(left_out: int) -> float:
    """Return the prior standard deviation of the preference along each direction that factors leave out."""
    return REST * MARGIN / math.sqrt(max(left_out, 1))


def margin_deviations(directions: int) -> list[float]:
    """Return the prior deviation along each of so many axes, for each of MARGINS: each is as probable as the next.

    Under one prior for all crowds, noise is taken for preference in a crowd that hardly has any, and a preference for
    noise in one that is of one mind. So what was seen tells the size.
    """
    return [margin / math.sqrt(max(directions, 1)) for margin in MARGINS]


def likely_deviations(directions: int) -> list[float]:
    """Return the prior deviation along each of so many axes, for each of LIKELY_MARGINS, each as probable."""
    return [margin / math.sqrt(max(directions, 1)) for margin in LIKELY_MARGINS]
