"""From the mean clipped scores of records to the crowd's preference, with all that they leave open.

The chosen side of a dilemma x (along the axes of the public design) is x or -x. Of its clipped scores z(x) along the
axes of records (``record_axes``), a crowd of which the share P(x) prefers x shows z(x) (2 P(x) - 1) on average. What is
wanted is the pooled probit: the gamma whose Phi(gamma . x) comes nearest to P in likelihood, over the design. Voters
differ, so P is no probit itself, but P(x) = Phi(r b . x) with an r that is less for longer dilemmas (``disagreement``).
Clipping plays long dilemmas down, in which voters are least of one mind: the probit that explains the clipped scores is
larger than the pooled one. So b is fitted to the scores, by Gauss-Newton with the prior of ``prior``, and then gamma
to P. The unshrunk estimate is a line in the scores. Its point is nearer to zero than the most probable preference, so
that noise does not bend it; how far it misses that preference, were that the crowd's, is a bound on what the line does
to it, and noise is carried as far as the scores' slope at that preference does. Two more things are not told by the
scores, and bounded:

- How much voters differ.
- The dilemmas, where they were not drawn by the study's generator (``tilted_design``): what is not known of their tilt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from crowdveil.arrays import FloatArray
from crowdveil.estimation.disagreement import DISAGREEMENT, OTHER_DISAGREEMENTS, pooled_probit, reach
from crowdveil.estimation.prior import prior_deviation
from crowdveil.estimation.record_axes import RecordAxes
from crowdveil.estimation.tilted_design import TiltedDesign

TILT_REACH = 2.0
"""As doubt, so many deviations of what is not told of the dilemmas' tilt."""
_ROUNDS = 50
_SETTLED = 1e-6


@dataclass(frozen=True)
class UnshrunkFit:
    """A preference along the axes without a prior, corrected to the pooled probit, and how far it may be off."""

    center: FloatArray
    """Linear in the scores, so that noise around it is symmetric."""
    gain: FloatArray
    """The derivative of the center in the scores."""
    doubt: FloatArray
    """A bound along each axis."""
    tilt: FloatArray
    """Covariance of the center over the errors of what was told of the dilemmas, and the draw of their sample."""


def fit_mean_scores(
    axes: RecordAxes, scores: FloatArray, covariance: FloatArray, dilemmas: TiltedDesign | None = None
) -> UnshrunkFit:
    """Fit a preference to mean scores (in units of the clip) whose error has the given covariance.

    ``axes`` are those of the dilemmas that were answered, such as ``dilemmas`` where the generator did not draw them;
    where it did, there is no doubt about them.
    """
    usual = _Crowd(axes, DISAGREEMENT).fit(scores, covariance, np.zeros(len(scores)))
    others = [_Crowd(axes, tau).fit(scores, covariance, usual.common) for tau in OTHER_DISAGREEMENTS]
    apart = np.max([np.abs(other.center - usual.center) for other in others], axis=0)
    shown = axes.scores * (2 * ndtr(usual.seen) - 1)[:, None]
    shown -= shown.mean(axis=0)
    # A sample stands for the dilemmas: in loud polls, that is what is least known.
    told = usual.gain @ (shown.T @ shown / len(shown) ** 2) @ usual.gain.T
    untold = np.zeros_like(covariance)
    if dilemmas is not None:
        moved = usual.gain @ (shown.T @ dilemmas.moments / len(shown))
        told, untold = told + moved @ dilemmas.noise @ moved.T, moved @ dilemmas.untold @ moved.T
    doubt = apart + usual.bent + TILT_REACH * np.sqrt(np.diag(untold))
    return UnshrunkFit(usual.center, usual.gain, doubt, told)


@dataclass(frozen=True)
class _Fit:
    common: FloatArray
    """The most probable b."""
    center: FloatArray
    gain: FloatArray
    bent: FloatArray
    """How far the line through the center misses the most probable preference, along each axis."""
    seen: FloatArray
    """The margin of each dilemma at which the line is taken."""


class _Crowd:
    """A crowd of voters who disagree by tau, over a design."""

    def __init__(self, axes: RecordAxes, tau: float) -> None:
        design = axes.design
        self._tau = tau
        self._along = design.along
        self._scores = axes.scores
        self._seen = self._along * reach(self._along, tau)[:, None]

    def fit(self, scores: FloatArray, covariance: FloatArray, common: FloatArray) -> _Fit:
        """Fit, beginning at a b."""
        precision = np.linalg.inv(covariance)
        prior = np.eye(len(scores)) / prior_deviation(len(scores)) ** 2
        for _ in range(_ROUNDS):
            expected, slope = self._expected(common)
            curvature = slope.T @ precision @ slope + prior
            step = np.linalg.solve(curvature, slope.T @ precision @ (scores - expected) - prior @ common)
            # The prior keeps the top within a few units: a longer step follows a slope that does not last.
            common = common + step / max(1.0, float(np.abs(step).max()) / prior_deviation(len(scores)))
            if np.abs(step).max() <= _SETTLED:
                break
        pooled, carried = pooled_probit(self._along, common, self._tau)
        shown, slope = self._expected(common)
        spread = np.linalg.inv(slope.T @ precision @ slope + prior)
        gain = np.asarray(np.linalg.solve(slope.T, carried.T).T, np.float64)
        # The unshrunk estimate is a line through a point that is nearer to zero the more is noise: were it the most
        # probable preference itself, noise would bend the line.
        point = common - spread @ prior @ common
        passed, turned = pooled_probit(self._along, point, self._tau)
        expected, slope = self._expected(point)
        line = np.asarray(np.linalg.solve(slope.T, turned.T).T, np.float64)
        return _Fit(
            common=common,
            center=passed + line @ (scores - expected),
            gain=gain,
            bent=np.abs(pooled - passed - line @ (shown - expected)),
            seen=self._seen @ point,
        )

    def _expected(self, common: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean scores of the crowd, and their derivative."""
        margins = self._seen @ common
        slopes = np.exp(-0.5 * margins**2) * np.sqrt(2 / np.pi)
        return (
            self._scores.T @ (2 * ndtr(margins) - 1) / len(margins),
            (self._scores * slopes[:, None]).T @ self._seen / len(margins),
        )
