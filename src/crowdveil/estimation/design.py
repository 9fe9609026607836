"""A study as public numbers: the law of its dilemmas, and axes along which to look at a record.

Which dilemmas a study draws is public (its generator is in the study file). So whatever is computed here costs no
privacy: the covariance of the differences, axes in which they are uncorrelated and of unit size, and what a
crowd of a given preference would choose on average.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import ndtr

from crowdveil.arrays import FloatArray, ValueArray
from crowdveil.study.drawing import draw_dilemmas
from crowdveil.study.study import Study

SAMPLE = 40_000
CLIP = 0.7
"""Scores are kept within this many standard deviations of the design along each axis."""
_SEED = 20_190_606
_DECIMALS = 9
_ROWS = 1024
"""Dilemmas multiplied at once: what a processor keeps close. All at once takes longer."""


@dataclass(frozen=True)
class Design:
    """A public sample of a study's dilemmas, and the axes (columns) on which records are scored."""

    differences: FloatArray
    axes: FloatArray

    @property
    def directions(self) -> int:
        """The number of axes: one for each feature, less those that the study never varies."""
        return len(self.axes.T)

    def scores(self, differences: ValueArray) -> FloatArray:
        """Look at records along the axes: one number in [-1, 1] per record and axis."""
        return np.clip(differences @ (self.axes / CLIP), -1.0, 1.0)

    def expected_scores(self, preference: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean score of a record in a crowd of this preference, and its derivative.

        Of a dilemma with difference v the chosen side is v or -v, so its score is z(v) or -z(v), and on average
        z(v) (2 Phi(beta . v) - 1). Averaged over the design this corrects for clipping, for the curvature of
        the probit and for features that vary together, all at once.
        """
        margins = self.differences @ preference
        scores = self._sample_scores
        slopes = np.exp(-0.5 * margins**2) * np.sqrt(2 / np.pi)
        mean = scores.T @ (2 * ndtr(margins) - 1) / len(margins)
        derivative = np.zeros((self.directions, len(preference)))
        for start in range(0, len(margins), _ROWS):
            rows = slice(start, start + _ROWS)
            derivative += (scores[rows] * slopes[rows, None]).T @ self.differences[rows]
        return mean, derivative / len(margins)

    @cached_property
    def score_size(self) -> float:
        """The mean square of a score, over records and axes."""
        return float(np.mean(self._sample_scores**2))

    @cached_property
    def score_signal(self) -> float:
        """The part of a small preference along an axis that shows in its score; 1 without clipping."""
        return float(np.mean(self._sample_scores * (self.differences @ self.axes)))

    @cached_property
    def _sample_scores(self) -> FloatArray:
        return self.scores(self.differences)


@lru_cache(maxsize=32)
def public_design(study: Study) -> Design:
    """Draw the study's own dilemmas, always the same, and take the principal axes of their differences.

    The axes are rounded and their signs fixed, so that everybody who computes them gets the same ones.
    """
    ballots = -(-SAMPLE // study.drawing.dilemmas)
    left, right = draw_dilemmas(study, ballots, np.random.default_rng(_SEED))
    differences = (left - right).astype(np.float64) / study.units
    sizes, vectors = np.linalg.eigh(differences.T @ differences / len(differences))
    kept = sizes > 1e-6 * sizes[-1]
    axes = (vectors[:, kept] / np.sqrt(sizes[kept]))[:, ::-1]
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    return Design(differences, np.round(axes * np.sign(largest), _DECIMALS))
