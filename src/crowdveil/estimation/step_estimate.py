"""The current estimate of a crowd's preference after some noisy steps, and its uncertainty.

The first step measures mean scores at a preference of zero and fits a preference to them, including its size
(``clipped_means`` for voters, ``moments`` for records). Each further step (``scoring_step``) measures its error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.estimation.ballot_means import BallotMeans
from crowdveil.estimation.clipped_means import SCORE_DISAGREEMENT, fit_clipped_means, loudness
from crowdveil.estimation.design import AxisSample, Design
from crowdveil.estimation.dilemma_moments import DilemmaMoments
from crowdveil.estimation.moments import Belief, fit_scores
from crowdveil.estimation.prior import prior_deviation, rest_deviation
from crowdveil.estimation.scoring_step import ScoringStep, clip_in_deviations, doubted, widened

_BELIEVED = 0.5
"""Standard deviation that a belief assigns to an error, as a fraction of the bound on it."""
_SHORTEST = 1e-9
_LEAST = 0.01
_STRETCHES = 2.0
"""Standard deviations of the center's size due to unknown ballot lengths that count as a bound."""
_LOOKED_AT = 4000
"""Dilemmas of the public sample used in the fits."""


@dataclass(frozen=True)
class UnitCounts:
    """The units of a crowd: voters, whose ballots may have any length, or records. Public."""

    by_voter: bool
    voters: int
    records: int
    """Number of records if records are the units; otherwise it is secret, and this is 0."""
    squared_lengths: int
    """Sum of the squared lengths of ballots if records are the units; otherwise 0."""

    @property
    def count(self) -> int:
        """The number of units."""
        return self.voters if self.by_voter else self.records

    def sampling(self, variances: FloatArray, inverse_length: float, alike: float) -> FloatArray:
        """Return the sampling variance of means of scores in [-1, 1], given the variances of single records.

        ``alike`` is the correlation of two scores of one voter; ``inverse_length`` is the mean of 1 / n over ballots.
        """
        if self.by_voter:
            together = variances * (inverse_length + (1 - inverse_length) * alike)
            return np.minimum(together, 1.0) / self.voters
        lengths = self.squared_lengths / self.records
        return np.minimum(variances * (1 + (lengths - 1) * alike), lengths) / self.records

    def divided(self, variances: FloatArray) -> FloatArray:
        """Return these variances for a population that is divided along a single direction, whichever it is.

        ``sampling`` spreads what voters have in common evenly over all axes: it is too small along a direction that
        divides a population by itself, and so is a scatter that was measured as an average over the axes.

        Theorem. Let s be the scores of a voter's records along k axes, uncorrelated and with these variances. Along any
        direction v, their mean m has a variance of at most v' diag(variances) v, however alike the choices of a voter
        are. If a population consists of two camps, each of one mind against the other, then m clipped to [-1, 1] along
        each axis has a variance of at most |v|^2 times the largest of these variances, and times k.

        Proof. The square of a mean is at most the mean of the squares, so E (v . m)^2 <= E (v . s)^2. In two camps, m
        is w or -w, so that w w' <= diag(variances), and |w|^2 is at most the largest. A clip shortens w, and leaves no
        more than 1 along each axis: (v . clip(w))^2 <= |v|^2 |clip(w)|^2 <= |v|^2 min(|w|^2, k). Of N means with
        weights p_i that add up to 1, the variance is sum p_i^2 times that of one; records weigh alike, so p_i is in
        proportion to the length of a ballot.
        """
        if self.by_voter:
            return np.full(len(variances), min(float(variances.max()), len(variances)) / self.voters)
        return np.asarray(variances * self.squared_lengths / self.records**2, np.float64)


def most_alike(directions: int) -> float:
    """Return the largest possible correlation of two scores of one voter, if it is the same along all k axes.

    In the most divided crowd, each voter always chooses by the sign of u . x, with a direction u of her own. For normal
    dilemmas of unit size, E(y x) = sqrt(2 / pi) u, whose variance over voters is 2 / (pi k) along each axis; that of
    y x is 1. If voters' preferences have standard deviation tau along each axis, in units of the probit's noise, the
    correlation is tau^2 / (1 / k + tau^2) of this.
    """
    return 2 / (math.pi * directions)


@dataclass(frozen=True)
class StepEstimate:
    """A preference along the axes after some steps, with all that later steps need."""

    belief: Belief
    center: FloatArray
    """The unshrunk estimate."""
    gain: FloatArray
    """Derivative of the center with respect to the means released last."""
    doubt: FloatArray
    """Bound along each axis on the bias from dilemmas that differ from the public ones."""
    turn: float
    """Bound on the length of any other error of the center, its size aside."""
    size: float
    """Bound on the relative error of the center's size."""
    sampling: FloatArray
    """Sampling variance of each of these means, or a bound on it."""
    divided: FloatArray
    """Bound on it along any one direction, if voters differ in that direction alone."""
    sample: AxisSample
    """Public dilemmas, corrected."""
    dilemmas: DilemmaMoments
    """Mean products of the dilemmas that were asked, and what is not known of them."""
    inverse_length: float | None = None
    """Mean of one over the length of ballots; None if records are the units."""

    @property
    def scatter(self) -> float | None:
        """Variance of a voter's mean score relative to that of a record's score."""
        return None if self.inverse_length is None else loudness(self.inverse_length)

    def records(self, units: UnitCounts) -> int:
        """Return the number of records; for voters an estimate, rarely too high, as mean(1 / n) >= 1 / mean(n)."""
        return units.count if self.inverse_length is None else round(units.voters / max(self.inverse_length, _LEAST))

    def widened(self, design: Design) -> StepEstimate:
        """Return the estimate extended to every direction of a design."""
        left_out = design.rest.shape[1]
        dilemmas = self.dilemmas.widened(left_out)
        sample = design.whole.sample.shaped(dilemmas.moments)
        return replace(self, belief=widened(self.belief, left_out), sample=sample, dilemmas=dilemmas)

    def resumed(self, step: ScoringStep) -> ScoringStep:
        """Return a step that began from another estimate, with its clips, over the dilemmas of this one."""
        return replace(step, sample=self.sample.head(_LOOKED_AT))

    def step(self, noise: float, rest_noise: float) -> ScoringStep:
        """Plan the next step, whose noise will have these standard deviations, in units of the clip."""
        left_out = self.sample.left_out
        priors = prior_deviation(len(self.belief.mean) - left_out), rest_deviation(left_out)
        near, rest = (
            clip_in_deviations(each, self.scatter, prior)
            for each, prior in zip((noise, rest_noise), priors, strict=True)
        )
        return ScoringStep.at(self.belief.mean, self.sample.head(_LOOKED_AT), self.scatter, near, rest)

    def after(
        self, step: ScoringStep, units: UnitCounts, score: FloatArray, noise: FloatArray, told: float | None
    ) -> StepEstimate:
        """Return the estimate after a step, given its noisy mean score and the variances of the noise.

        ``told`` is the released sampling variance of the mean score, averaged over the axes. If it was not released,
        a public bound takes its place.
        """
        inverse_length = 1.0 if self.inverse_length is None else self.inverse_length
        factors = step.variances[: len(score) - self.sample.left_out]
        # Assume the largest disagreement, along the axes of factors only.
        bound = units.sampling(step.variances, inverse_length, most_alike(len(factors)))
        likely = units.sampling(step.variances, inverse_length, SCORE_DISAGREEMENT**2)
        if told is None or not factors.any():  # a scatter of scores that are all zero tells nothing of the others
            sampling = bound
            errors = np.diag(noise + likely)
        else:
            sampling = np.minimum(told * step.variances / factors.mean(), bound)
            errors = np.diag(noise + sampling)
        fit = fit_scores(step.expected, score, errors, self.belief)
        moved = step.moved(fit, noise)
        turn, size = step.doubt(fit, moved)
        other = self.dilemmas.deviations(moved, step.distance(fit, noise))
        return replace(
            self,
            belief=doubted(Belief(fit.mean, fit.covariance), _BELIEVED * size, _BELIEVED * turn, other),
            center=fit.center,
            gain=fit.gain,
            doubt=self.dilemmas.bound * other,
            turn=turn,
            size=size,
            sampling=sampling,
            divided=units.divided(step.variances),
        )


@dataclass(frozen=True)
class ClipEffect:
    """Bias from a first step's clip, estimated on simulated populations (tests/statistics/constants.py).

    If voters differ, or sometimes answer at random, the probit that fits clipped means is larger than the pooled one:
    clipping reduces the weight of dilemmas with large differences, which fit the pooled probit worst.
    """

    inflation: float
    """Average relative inflation of the preference, which is corrected."""
    size: float
    """Bound on the remaining relative error of its size."""
    turn: float
    """Bound on the length of any other error, relative to the preference."""

    @classmethod
    def on_voters(cls, clip: float) -> ClipEffect:
        """Return the bias for voters' means clipped there, in units of an axis. It covers the model of voters, too."""
        near = 1 / (1 + clip**2)
        return cls(0.1 * near**2, 0.05 + 0.08 * near, 0.06 + 0.08 * near)

    @classmethod
    def on_records(cls, clip: float) -> ClipEffect:
        """Return the bias for records clipped there, in units of an axis."""
        near = 1 / (1 + clip**2)
        return cls(0.03 * near, 0.04 + 0.05 * near, 0.07 + 0.06 * near)

    def believed(self, fitted: Belief, dilemmas: DilemmaMoments, *, last: bool) -> Belief:
        """Return a belief widened by this bias and by what is not known of the dilemmas.

        Of their products that counts if a further step follows. Without one, there is far more noise than that.
        """
        length = float(np.linalg.norm(fitted.mean))
        other = dilemmas.squares * fitted.mean if last else dilemmas.deviations(fitted.mean, length)
        return doubted(fitted, _BELIEVED * self.size, _BELIEVED * self.turn * length, other)


def estimate_from_voters(
    units: UnitCounts,
    clip: float,
    sample: AxisSample,
    dilemmas: DilemmaMoments,
    means: FloatArray,
    noise: float,
    inverse_length: tuple[float, float],
    ballot_length: int,
    *,
    last: bool,
) -> StepEstimate:
    """Estimate from voters' clipped means with noise of this variance, and from the mean of 1 / n with its variance.

    That variance is infinite if the lengths were not released. ``last`` means that no further step follows.
    """
    looked_at = sample.head(_LOOKED_AT)
    variances = np.square(looked_at.mixed / clip).mean(axis=0)
    told, most = (min(max(inverse_length[0] + extra, 0.0), 1.0) for extra in (0.0, math.sqrt(inverse_length[1])))
    sampling = units.sampling(variances, most, most_alike(len(means)))
    errors = np.diag(noise + units.sampling(variances, told, SCORE_DISAGREEMENT**2))
    effect = ClipEffect.on_voters(clip)
    voters = BallotMeans(looked_at, clip, effect.inflation)
    fit = fit_clipped_means(voters, means, errors, inverse_length, ballot_length, last=last)
    long = float(np.linalg.norm(fit.center))
    stretched = math.sqrt(float(np.trace(fit.stretch))) / max(long, _SHORTEST)
    return StepEstimate(
        effect.believed(Belief(fit.mean, fit.covariance), dilemmas, last=last),
        fit.center,
        fit.gain,
        dilemmas.bound * dilemmas.squares * np.abs(fit.center),
        effect.turn * long,
        effect.size + _STRETCHES * stretched,
        sampling,
        units.divided(variances),
        sample,
        dilemmas,
        inverse_length=fit.inverse_length,
    )


def estimate_from_records(
    units: UnitCounts,
    clip: float,
    sample: AxisSample,
    dilemmas: DilemmaMoments,
    means: FloatArray,
    noise: float,
    *,
    last: bool,
) -> StepEstimate:
    """Estimate from the clipped means of records with noise of this variance. ``last``: no further step follows."""
    looked_at = sample.head(_LOOKED_AT)
    variances = np.square(np.clip(looked_at.mixed / clip, -1.0, 1.0)).mean(axis=0)
    sampling = units.sampling(variances, 1.0, most_alike(len(means)))
    likely = units.sampling(variances, 1.0, SCORE_DISAGREEMENT**2)
    effect = ClipEffect.on_records(clip)
    inflated = 1 + effect.inflation

    def expected(preference: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, derivative = looked_at.expected_scores(inflated * preference, clip)
        return mean, inflated * derivative

    fit = fit_scores(expected, means, np.diag(noise + likely), Belief.before(len(means)))
    return StepEstimate(
        effect.believed(Belief(fit.mean, fit.covariance), dilemmas, last=last),
        fit.center,
        fit.gain,
        dilemmas.bound * dilemmas.squares * np.abs(fit.center),
        effect.turn * float(np.linalg.norm(fit.center)),
        effect.size,
        sampling,
        units.divided(variances),
        sample,
        dilemmas,
    )
