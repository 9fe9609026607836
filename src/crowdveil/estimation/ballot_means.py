"""The clipped means of voters' mean scores along the mixed axes, for ballots of any length of the public design.

The score of a short ballot is nothing like normal over voters. So ballots of n dilemmas are taken from the public
sample. What dilemma j of a ballot adds to the voter's clipped mean, when its choice turns from a coin's toss to one
side, is half of E clip((R + x_j) / n) - E clip((R - x_j) / n), where R, what the voter's other choices add up to, is
taken as normal with mean 0 and variance

    sum over i != j of x_i^2 + n^2 SCORE_DISAGREEMENT^2 (mean of x_i^2).

As that is odd in x_j, it is E clip((R + x_j) / n) itself (``ClippedNormal``), and exact for ballots of one dilemma. So
dilemma j weighs n E clip((R + x_j) / n), and the mean of these weights times what is chosen, 2 Phi(gamma . x_j) - 1, is
what a crowd of a faint preference gamma shows. Where all choices lean to one side, clipping takes more: as it does of
a normal mean score of which it keeps the same share when the preference is faint.

Of lengths, the mean of 1 / n over voters is known; where it is between two lengths, some voters have one and some the
other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import erfinv, ndtr

from crowdveil.arrays import FloatArray
from crowdveil.estimation.clipped_means import LONGEST, SCORE_DISAGREEMENT, ClippedNormal
from crowdveil.estimation.design import AxisSample

_LENGTHS = (1, 2, 3, 4, 6, 9, 13, 20, 40, LONGEST)
_LEAST_VARIANCE = 1e-12
_LEAST_KEPT = 1e-3
_MOST_KEPT = 1 - 1e-9


@dataclass(frozen=True)
class BallotMeans:
    """What is expected of voters whose ballots are drawn from a public sample, and whose mean scores are clipped."""

    dilemmas: AxisSample
    clip: float
    inflation: float = 0.0
    """Clipped means are those of a preference that is larger by this part of it (``guess``)."""

    def expected(self, inverse_length: float, preference: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the means along the mixed axes in a crowd of this preference, and their derivative by it."""
        weights, law = self._law(inverse_length)
        inflated = 1 + self.inflation
        faint, derivative = self.dilemmas.instrumented(weights, inflated * preference)
        bent = ClippedNormal(faint / law.kept * self.clip, law.variance, self.clip)
        return bent.mean, (inflated * bent.kept / law.kept)[:, None] * derivative

    def shown(self, inverse_length: float, preferences: FloatArray) -> FloatArray:
        """Return the means in crowds of many preferences, a row each."""
        weights, law = self._law(inverse_length)
        chosen = 2 * ndtr((1 + self.inflation) * preferences @ self.dilemmas.along.T) - 1
        faint = chosen @ weights / len(weights)
        return ClippedNormal(faint / law.kept * self.clip, law.variance, self.clip).mean

    def _law(self, inverse_length: float) -> tuple[FloatArray, ClippedNormal]:
        """Return what each dilemma weighs in ballots of such lengths, and the law of faint means."""
        told = min(max(inverse_length, 1 / LONGEST), 1.0)
        if told not in self._known:
            weights = self._weights(told)
            self._known[told] = weights, self._normal(weights)
        return self._known[told]

    @cached_property
    def _known(self) -> dict[float, tuple[FloatArray, ClippedNormal]]:
        """Weights and laws of the lengths that were asked about."""
        return {}

    def _weights(self, told: float) -> FloatArray:
        """Return what each dilemma weighs in ballots of which the mean of 1 / n is known."""
        longer = next(place for place, length in enumerate(_LENGTHS) if told >= 1 / length)
        ends = [_LENGTHS[max(longer - 1, 0)], _LENGTHS[longer]]
        share = (told - 1 / ends[1]) / (1 / ends[0] - 1 / ends[1]) if ends[0] < ends[1] else 1.0
        return share * self._weigh(ends[0]) + (1 - share) * self._weigh(ends[1])

    def _normal(self, weights: FloatArray) -> ClippedNormal:
        """Return the law with mean 0 of which clipping keeps the share that it keeps here of a faint preference."""
        mixed = self.dilemmas.mixed
        kept = (weights * mixed).sum(axis=0) / np.maximum((mixed * mixed).sum(axis=0), _LEAST_VARIANCE) * self.clip
        kept = np.clip(kept, _LEAST_KEPT, _MOST_KEPT)
        deviation = self.clip / (np.sqrt(2) * erfinv(kept))
        return ClippedNormal(np.zeros(len(kept)), deviation**2, self.clip)

    @cached_property
    def _weighed(self) -> dict[int, FloatArray]:
        return {}

    def _weigh(self, n: int) -> FloatArray:
        """Return what each dilemma weighs in ballots of n; the last, too few for a ballot, in one of usual size."""
        if n in self._weighed:
            return self._weighed[n]
        x = self.dilemmas.mixed
        squares = np.square(x)
        whole = len(x) // n * n
        sums = np.repeat(squares[:whole].reshape(-1, n, x.shape[1]).sum(axis=1), n, axis=0)
        if whole < len(x):
            sums = np.concatenate([sums, squares[whole:] + (n - 1) * squares.mean(axis=0)])
        variance = (sums - squares) / n**2 + SCORE_DISAGREEMENT**2 * sums / n
        self._weighed[n] = n * ClippedNormal(x / n, np.maximum(variance, _LEAST_VARIANCE), self.clip).mean
        return self._weighed[n]
