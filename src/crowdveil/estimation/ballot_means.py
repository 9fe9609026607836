"""The clipped means of voters' mean scores, ballot by ballot of the public design.

Along an axis most dilemmas of a study may not differ at all, and a short ballot may hold none that does: then a
voter's mean score is next to zero, and over voters it is nothing like normal. So ballots of n dilemmas are taken from
the public sample, and only given its dilemmas x_1, ..., x_n is a ballot's mean score taken as normal, with

    centre      mean of x_j (2 Phi(gamma . x_j) - 1),
    variance    mean of 4 x_j^2 Phi (1 - Phi) / n + SCORE_DISAGREEMENT^2 mean of x_j^2.

What is expected of a voter is the average over ballots. The loudness v = 1 / n + SCORE_DISAGREEMENT^2 stands for the
length n, of which the mean of 1 / n over voters tells; where that is between two lengths, some voters have one and some
the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from crowdveil.arrays import FloatArray
from crowdveil.estimation.clipped_means import SCORE_DISAGREEMENT, ClippedMeans, ClippedNormal

_LEAST_VARIANCE = 1e-12
_BALLOTS = 2000
"""Ballots averaged over: their scatter moves what is expected by less than a tenth of it."""
_ALIKE = 4
"""From this length on, ballots of one dilemma more or less are much alike."""
_LONGEST = 100


@dataclass(frozen=True)
class BallotMeans:
    """What is expected of voters whose ballots are drawn from a public sample."""

    along: FloatArray
    """Dilemmas along the axes, a row each; those of a session follow one another."""

    def clipped(self, preference: FloatArray, loudness: float, clips: tuple[float, float]) -> ClippedMeans:
        """Average over ballots of the length, or of the two whole lengths, that such voters' have."""
        told = min(max(loudness - SCORE_DISAGREEMENT**2, 1 / _LONGEST), 1.0)
        length = 1 / told
        if length >= _ALIKE or length == 1:
            return ClippedMeans(*self._of_length(round(length), preference, clips[0]), told)
        short, long = (self._of_length(n, preference, clips[0]) for n in (int(length), int(length) + 1))
        share = (told - 1 / (int(length) + 1)) * int(length) * (int(length) + 1)
        mean, derivative = (share * one + (1 - share) * other for one, other in zip(short, long, strict=True))
        return ClippedMeans(mean, derivative, told)

    def _of_length(self, n: int, preference: FloatArray, clip: float) -> tuple[FloatArray, FloatArray]:
        """Return the mean over ballots of n dilemmas, and its derivative."""
        x = self.along[: min(len(self.along) // n, _BALLOTS) * n]
        margins = x @ preference
        leaning = 2 * ndtr(margins)[:, None] - 1
        slopes = (np.exp(-0.5 * margins**2) * np.sqrt(2 / np.pi))[:, None]
        squares = x * x
        variance = _means(squares * ((1 - leaning**2) / n + SCORE_DISAGREEMENT**2), n) + _LEAST_VARIANCE
        law = ClippedNormal(_means(x * leaning, n), variance, clip)
        # By the chain rule, for each record's part in the centre and in the variance.
        parts = np.repeat(law.slope, n, axis=0) * x - np.repeat(law.bend, n, axis=0) * squares * leaning * (2 / n)
        return law.mean.mean(axis=0), (parts * slopes).T @ x / len(x)


def _means(values: FloatArray, n: int) -> FloatArray:
    """Return the means of n rows each."""
    return np.asarray(values.reshape(-1, n, values.shape[1]).mean(axis=1), np.float64)
