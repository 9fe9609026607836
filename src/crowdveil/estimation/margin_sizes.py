"""How large margins are in a crowd is not known beforehand: a prior that lets what was seen tell.

Under one prior for all crowds, noise is taken for preference in a crowd that hardly has any, and a preference for noise
in one that is of one mind. So the size of margins is one of MARGINS, each as probable as the next. Of people whose
margins are normal with deviation s, the share 1/2 + arctan(s) / pi agrees in a dilemma: 65 %, 75 % or 85 %.
"""

from __future__ import annotations

import math

import numpy as np

from crowdveil.arrays import FloatArray

MARGINS = (0.5, 1.0, 2.0)
"""In deviations of the probit: chosen as octaves around one, whatever crowds have."""


def deviations(directions: int) -> list[float]:
    """Return the prior deviation along each of so many axes, for each size of margins."""
    return [margin / math.sqrt(max(directions, 1)) for margin in MARGINS]


def normal_posterior(center: FloatArray, errors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean and covariance of a preference, given an estimate with normal errors of this covariance.

    Each size of margins gives a normal law, and counts by how probable it makes the estimate.
    """
    k = len(center)
    logs, means, covariances = [], [], []
    for deviation in deviations(k):
        whole = errors + deviation**2 * np.eye(k)
        kept = deviation**2 * np.linalg.inv(whole)
        logs.append(-0.5 * (float(np.linalg.slogdet(whole)[1]) + float(center @ np.linalg.solve(whole, center))))
        means.append(kept @ center)
        covariances.append(kept @ errors)
    weights = np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    apart = np.array(means) - mean
    covariance = np.tensordot(weights, np.array(covariances), 1) + (apart.T * weights) @ apart
    return np.asarray(mean, np.float64), np.asarray((covariance + covariance.T) / 2, np.float64)
