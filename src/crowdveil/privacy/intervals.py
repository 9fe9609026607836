"""95 % intervals for a crowd's preference, from the law of the noise and all else that is not known."""

from __future__ import annotations

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.privacy.noise.distribution import NoiseDistribution
from crowdveil.privacy.unknown import Unknown

ERROR_BAR = 0.95


def intervals(unknown: Unknown, noise: NoiseDistribution, directions: FloatArray, *, left_out: bool) -> FloatArray:
    """Return the ends of the interval along each direction (rows), cut off where no crowd could be.

    The directions that factors leave out count where all features are asked about (``left_out``).
    """
    rows = []
    for direction in directions:
        width = unknown.half_width(direction, noise.half_width(direction, ERROR_BAR), ERROR_BAR, left_out=left_out)
        center = unknown.margin(direction)
        range_ = unknown.whole_range(direction)
        range_ += unknown.rest_width(direction, ERROR_BAR) if left_out else 0.0
        low, high = np.clip([center - width, center + width], -range_, range_)
        rows.append([low, high] if low < high else [-range_, range_])
    return np.array(rows)
