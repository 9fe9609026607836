"""Estimate the crowd's preference from the mean clipped scores of records, without a prior, and bound its bias.

The chosen side of a dilemma x (along the axes of the public design) is x or -x. If the share P(x) of a crowd prefers x,
its clipped scores z(x) along the axes of records (``record_axes``) have mean z(x) (2 P(x) - 1). The estimand is the
pooled probit: the gamma that maximises the expected likelihood of Phi(gamma . x) under P, over the design. Voters
differ, so P is not a probit itself, but P(x) = Phi(r b . x) with r decreasing in the length of x (``disagreement``).
Clipping reduces the weight of long dilemmas, in which voters agree least, so the probit that fits the clipped scores is
larger than the pooled one. So we fit b to the scores, by Gauss-Newton with the prior of ``prior``, and then gamma to P.

The unshrunk estimate is linear in the scores. It is linearised at a point nearer to zero than the posterior mode, so
that noise does not enter its slope. Its error for a crowd at the mode bounds the linearisation error, and noise is
propagated with the slope at the mode. Two more unknowns are bounded:

- How much voters differ.
- The dilemmas, if the study's generator did not draw them (``tilted_design``): the part of their tilt that the data do
  not determine, and how much of the preference they show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from crowdveil.arrays import FloatArray
from crowdveil.estimation.design import AxisSample, weighted_products, weighted_squares
from crowdveil.estimation.disagreement import DISAGREEMENT, OTHER_DISAGREEMENTS, pooled_probit, reach
from crowdveil.estimation.prior import prior_deviations
from crowdveil.estimation.probit import both_slopes, leanings
from crowdveil.estimation.record_axes import RecordAxes
from crowdveil.estimation.tilted_design import TiltedDesign

TILT_REACH = 2.0
"""Standard deviations of the undetermined part of the dilemmas' tilt that count as doubt."""
_ROUNDS = 50
_SETTLED = 1e-6


@dataclass(frozen=True)
class UnshrunkFit:
    """An estimate of the pooled probit along the axes without a prior, and its errors."""

    center: FloatArray
    """The estimate: linear in the scores, so its noise is symmetric."""
    gain: FloatArray
    """Derivative of the center with respect to the scores."""
    doubt: FloatArray
    """Bound on the bias along each axis."""
    tilt: FloatArray
    """Covariance of the center due to noise in the reports about dilemmas, and to the finite sample of dilemmas."""
    apart: FloatArray
    """Covariance, for one record, of the center of noiseless scores around the crowd's own pooled probit."""
    shown: tuple[float, float] = (1.0, 1.0)
    """Bounds on how much of the preference the dilemmas show, relative to those of the axes."""


def fit_mean_scores(
    axes: RecordAxes, scores: FloatArray, covariance: FloatArray, dilemmas: TiltedDesign | None = None
) -> UnshrunkFit:
    """Fit a preference to mean scores (in units of the clip) whose errors have this covariance.

    ``axes`` are those of the dilemmas that were answered. If the generator did not draw them, ``dilemmas`` is the
    tilted design that models them; if it did, there is no doubt about them.
    """
    crowd = _Crowd(axes, DISAGREEMENT)
    usual = crowd.line(scores, covariance, np.zeros(len(scores)))
    gain, bent = crowd.at_mode(usual)
    others = [_Crowd(axes, tau).line(scores, covariance, usual.common) for tau in OTHER_DISAGREEMENTS]
    apart = np.max([np.abs(other.center - usual.center) for other in others], axis=0)
    shown = axes.scores * leanings(usual.seen)[0][:, None]
    shown -= shown.mean(axis=0)
    # The finite sample of dilemmas adds an error, which dominates in large polls.
    told = gain @ (shown.T @ shown / len(shown) ** 2) @ gain.T
    untold = np.zeros_like(covariance)
    shows = (1.0, 1.0)
    if dilemmas is not None:
        shows = dilemmas.shown(axes.design.along, usual.center)
        moved = gain @ (shown.T @ dilemmas.moments / len(shown))
        told = told + moved @ dilemmas.noise @ moved.T
        untold = moved @ dilemmas.untold @ moved.T
    doubt = apart + bent + TILT_REACH * np.sqrt(np.diag(untold))
    return UnshrunkFit(usual.center, gain, doubt, told, _apart(axes, usual, gain), shows)


def _apart(axes: RecordAxes, line: _Line, gain: FloatArray) -> FloatArray:
    """Return the covariance, for one record, of the distance between two estimates from the same crowd.

    The center and the crowd's own pooled probit estimate the same preference of a population, and weight its records
    differently. So in a crowd of n records they are apart, even without noise: by the mean over records of the
    difference of their influences, G z y for the center and H^-1 x y phi(t) / Phi(y t) for the probit, where y = 1 or
    -1 is the choice, z the scores and H the information. A voter's own preference moves both alike, so that the
    records of one voter count as independent here.
    """
    along, scores = axes.design.along, axes.scores
    margins = along @ line.pooled
    above, below = both_slopes(margins)
    probit = np.linalg.inv(weighted_squares(along, above * below))
    first = ndtr(line.seen)
    second = 1 - first
    mean = gain @ ((first - second) @ scores) - probit @ ((first * above - second * below) @ along)
    mean /= len(along)
    # Products are averaged over the dilemmas first, and then mapped.
    crossed = gain @ weighted_products(scores, first * above + second * below, along) @ probit
    squares = gain @ (scores.T @ scores / len(scores)) @ gain.T - crossed - crossed.T
    squares += probit @ weighted_squares(along, first * above**2 + second * below**2) @ probit
    return np.asarray(squares - np.outer(mean, mean), np.float64)


@dataclass(frozen=True)
class _Line:
    """The unshrunk estimate, which is linear in the scores, and the mode that it was linearised near."""

    common: FloatArray
    """Posterior mode of b."""
    shown: FloatArray
    """Expected scores at the mode."""
    slope: FloatArray
    """Derivative of the expected scores at the mode."""
    center: FloatArray
    derivative: FloatArray
    """Derivative of the center with respect to the scores."""
    seen: FloatArray
    """Margin of each dilemma at the point of linearisation."""
    pooled: FloatArray
    """Pooled probit there."""
    expected: FloatArray
    """Expected scores there."""


class _Crowd:
    """A model of a crowd with disagreement tau, over a design."""

    def __init__(self, axes: RecordAxes, tau: float) -> None:
        design = axes.design
        self._tau = tau
        self._deviations = prior_deviations(design.directions, design.left_out)
        self._along = design.along
        self._scores = axes.scores
        self._seen = AxisSample(self._along * reach(self._along, tau)[:, None])

    def line(self, scores: FloatArray, covariance: FloatArray, common: FloatArray) -> _Line:
        """Fit the scores, starting at ``common``, and linearise the estimate."""
        precision = np.linalg.inv(covariance)
        prior = np.diag(self._deviations**-2)
        for _ in range(_ROUNDS):
            expected, slope = self._seen.instrumented(self._scores, common)
            curvature = slope.T @ precision @ slope + prior
            step = np.linalg.solve(curvature, slope.T @ precision @ (scores - expected) - prior @ common)
            # The prior keeps the mode within a few units, so a longer step is an artefact of linearisation.
            common = common + step / max(1.0, float(np.abs(step / self._deviations).max()))
            if np.abs(step).max() <= _SETTLED:
                break
        shown, slope_there = self._seen.instrumented(self._scores, common)
        spread = np.linalg.inv(slope_there.T @ precision @ slope_there + prior)
        # Linearise the unshrunk estimate at a point that shrinks to zero as the noise grows. At the mode itself, the
        # noise would enter the slope, and the estimate would not be linear.
        point = common - spread @ prior @ common
        pooled, turned = pooled_probit(self._along, point, self._tau)
        expected, slope = self._seen.instrumented(self._scores, point)
        line = np.asarray(np.linalg.solve(slope.T, turned.T).T, np.float64)
        return _Line(
            common=common,
            shown=shown,
            slope=slope_there,
            center=pooled + line @ (scores - expected),
            derivative=line,
            seen=self._seen.along @ point,
            pooled=pooled,
            expected=expected,
        )

    def at_mode(self, line: _Line) -> tuple[FloatArray, FloatArray]:
        """Return the derivative of the estimate at the mode, and the linearisation error there along each axis."""
        pooled, carried = pooled_probit(self._along, line.common, self._tau)
        gain = np.asarray(np.linalg.solve(line.slope.T, carried.T).T, np.float64)
        return gain, np.abs(pooled - line.pooled - line.derivative @ (line.shown - line.expected))
