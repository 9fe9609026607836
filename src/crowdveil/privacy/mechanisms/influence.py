"""How much each voter's report counts when voters chose different epsilons.

A report made with a small epsilon is mostly noise. The mean that counts all the same (the paper's) is as noisy as its
noisiest reports; weights inversely proportional to each report's known variance give the least noisy mean. Epsilons
are public and chosen before answering, so the weights cost no privacy.
"""

from __future__ import annotations

import numpy as np

from crowdveil.arrays import FloatArray

MOST_INFLUENCE = 10.0
"""No voter counts more than this many times the average: influence cannot be bought with a huge epsilon."""


def influence(variances: FloatArray, equal_votes: bool) -> FloatArray:
    """Return weights that sum to 1: equal, or inverse to the variances but capped.

    The capped weights min(cap, c / variance) minimise the variance of the mean under the cap (water-filling).
    """
    voters = len(variances)
    if equal_votes or voters == 0:
        return np.full(voters, 1 / max(voters, 1))
    cap = min(1.0, MOST_INFLUENCE / voters)
    weights = 1 / variances
    capped = np.zeros(voters, bool)
    while True:
        free = 1 - cap * capped.sum()
        share = np.where(capped, cap, weights * (free / weights[~capped].sum() if not capped.all() else 0.0))
        over = (share > cap * (1 + 1e-12)) & ~capped
        if not over.any():
            return share
        capped |= over
