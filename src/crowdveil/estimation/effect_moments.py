"""Effects read from how a crowd's answers scatter: exact ones, and those that devices report with noise in them."""

from __future__ import annotations

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation.effects import counts_of_voters
from crowdveil.estimation.ratios import Ratio

DIFFERENCE, PAIRS, NOISE, REPORTS, SQUARES, PRODUCTS, PAIR_SQUARES = range(7)
"""S, n, the variance of the noise in S, 1 for each voter who has anything to say, and S^2, S n and n^2."""
MOMENTS = 7


def moments(difference: FloatArray, pairs: FloatArray, noise: FloatArray) -> FloatArray:
    """Return S, n, the variance of the noise in S, 1, S^2, S n and n^2 of each voter, along a new last axis."""
    heard = (pairs != 0).astype(np.float64)
    return np.stack([difference, pairs, noise, heard, difference**2, difference * pairs, pairs**2], axis=-1)


def exact_moments(ballots: Ballots) -> FloatArray:
    """Return the moments of each voter along each factor, without any noise."""
    plus, minus = (counts.astype(np.float64) for counts in counts_of_voters(ballots))
    return moments(plus - minus, plus + minus, np.zeros_like(plus))


def added_by_group(found: FloatArray, codes: IntArray, groups: int) -> FloatArray:
    """Add up what voters (rows) say, by the code of their group; those whose group is not known have the code -1."""
    return np.stack([found[codes == g].sum(axis=0) for g in range(groups)])


def ratio_of(added: FloatArray, difference_noise: float = 0.0, pairs_noise: float = 0.0) -> Ratio:
    """Read an effect from moments that were added up over voters.

    How much voters scatter beyond the noise tells how alike one person's choices are. That they are less alike than
    different people's is not believed.
    """
    total, pairs, _, reports, squares, products, pair_squares = added.tolist()
    found = Ratio(total, pairs, difference_noise, pairs_noise, 0.0, 1.0)
    if not (found.known and reports > 1):
        return found
    e = found.estimate
    scatter = (squares - 2 * e * products + e * e * pair_squares) * reports / (reports - 1)
    scatter -= difference_noise + e * e * pairs_noise
    clustering = max(scatter / (pairs * (1 - e * e)), 1.0) if e * e < 1 else 1.0
    return Ratio(total, pairs, difference_noise, pairs_noise, 0.0, clustering)
