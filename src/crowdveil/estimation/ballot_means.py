"""Model the clipped means of voters' mean scores along the mixed axes, for ballots of any length.

The scores of short ballots are far from normal over voters. So we take ballots of n dilemmas from the public sample. If
the choice in dilemma j changes from a coin toss to one side, the voter's expected clipped mean changes by half of
E clip((R + x_j) / n) - E clip((R - x_j) / n). Here R, the sum of the voter's other scores, is taken as normal with mean
0 and variance

    sum over i != j of x_i^2 + n^2 SCORE_DISAGREEMENT^2 (mean of x_i^2).

As E clip is odd in x_j, this half is E clip((R + x_j) / n) itself (``ClippedNormal``), and it is exact for ballots of
one dilemma. So dilemma j has the weight n E clip((R + x_j) / n), and the mean of these weights times the expected
choice, 2 Phi(gamma . x_j) - 1, is the clipped mean of a crowd with a weak preference gamma. For a strong preference
clipping removes more: as much as from a normal mean score that loses the same share when the preference is weak.

Only the mean of 1 / n over voters is known. Between two lengths, we assume a mixture of voters with either.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import erfinv

from crowdveil.arrays import FloatArray
from crowdveil.estimation.clipped_means import LONGEST, SCORE_DISAGREEMENT, ClippedNormal
from crowdveil.estimation.design import AxisSample
from crowdveil.estimation.probit import leanings

_LENGTHS = (1, 2, 3, 4, 6, 9, 13, 20, 40, LONGEST)
_LEAST_VARIANCE = 1e-12
_LEAST_KEPT = 1e-3
_MOST_KEPT = 1 - 1e-9


@dataclass(frozen=True)
class BallotMeans:
    """A model of clipped mean scores of voters whose ballots come from a public sample."""

    dilemmas: AxisSample
    clip: float
    inflation: float = 0.0
    """Relative inflation of the preference that fits clipped means (``step_estimate.ClipEffect``)."""

    def expected(self, inverse_length: float, preference: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the means along the mixed axes for a crowd with this preference, and their derivative."""
        weights, law = self._law(inverse_length)
        inflated = 1 + self.inflation
        faint, derivative = self.dilemmas.instrumented(weights, inflated * preference)
        bent = ClippedNormal(faint / law.kept * self.clip, law.variance, self.clip)
        return bent.mean, (inflated * bent.kept / law.kept)[:, None] * derivative

    def shown(self, inverse_length: float, preferences: FloatArray) -> FloatArray:
        """Return the means for many preferences (rows)."""
        weights, law = self._law(inverse_length)
        leaning, _ = leanings((1 + self.inflation) * preferences @ self.dilemmas.along.T)
        faint = leaning @ weights / len(weights)
        return ClippedNormal(faint / law.kept * self.clip, law.variance, self.clip).mean

    def _law(self, inverse_length: float) -> tuple[FloatArray, ClippedNormal]:
        """Return the weight of each dilemma in ballots of such lengths, and the distribution of indifferent means."""
        told = min(max(inverse_length, 1 / LONGEST), 1.0)
        if told not in self._known:
            weights = self._weights(told)
            self._known[told] = weights, self._normal(weights)
        return self._known[told]

    @cached_property
    def _known(self) -> dict[float, tuple[FloatArray, ClippedNormal]]:
        """Cached weights and distributions, by mean of 1 / n."""
        return {}

    def _weights(self, told: float) -> FloatArray:
        """Return the weight of each dilemma in ballots with this mean of 1 / n."""
        longer = next(place for place, length in enumerate(_LENGTHS) if told >= 1 / length)
        ends = [_LENGTHS[max(longer - 1, 0)], _LENGTHS[longer]]
        share = (told - 1 / ends[1]) / (1 / ends[0] - 1 / ends[1]) if ends[0] < ends[1] else 1.0
        return share * self._weigh(ends[0]) + (1 - share) * self._weigh(ends[1])

    def _normal(self, weights: FloatArray) -> ClippedNormal:
        """Return the normal with mean 0 of which clipping keeps the share that it keeps of a weak preference."""
        mixed = self.dilemmas.mixed
        kept = (weights * mixed).sum(axis=0) / np.maximum((mixed * mixed).sum(axis=0), _LEAST_VARIANCE) * self.clip
        kept = np.clip(kept, _LEAST_KEPT, _MOST_KEPT)
        deviation = self.clip / (np.sqrt(2) * erfinv(kept))
        return ClippedNormal(np.zeros(len(kept)), deviation**2, self.clip)

    @cached_property
    def _weighed(self) -> dict[int, FloatArray]:
        return {}

    def _weigh(self, n: int) -> FloatArray:
        """Return the weight of each dilemma in ballots of n. Leftover dilemmas at the end get an average ballot."""
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
