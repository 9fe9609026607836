"""What is believed of a crowd's preference before anything is seen of it."""

from __future__ import annotations

import math

MARGIN = 1.5
"""A priori, the margin of a dilemma (gamma . x) has about this size: four of five people agree in a choice."""
REST = 0.1
"""A priori, the directions that factors leave out move a margin by this part of it: that is what factors are for."""


def prior_deviation(directions: int) -> float:
    """Return the prior standard deviation of gamma along each axis: margins have the size MARGIN in all."""
    return MARGIN / math.sqrt(max(directions, 1))


def rest_deviation(left_out: int) -> float:
    """Return the prior standard deviation of the preference along each direction that factors leave out."""
    return REST * MARGIN / math.sqrt(max(left_out, 1))
