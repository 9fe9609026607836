"""A crowd's preference as far as some noisy steps have told it, and what is not known of it.

The first step tells mean scores at a preference of zero, from which a guess is fitted, its size included
(``clipped_means`` for voters, ``moments`` for records). Each further step (``scoring_step``) tells how far off it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.estimation.ballot_means import BallotMeans
from crowdveil.estimation.clipped_means import SCORE_DISAGREEMENT, fit_clipped_means, loudness
from crowdveil.estimation.design import AxisSample, Design
from crowdveil.estimation.moments import Belief, fit_scores
from crowdveil.estimation.prior import prior_deviation, rest_deviation
from crowdveil.estimation.scoring_step import Step, clip_in_deviations, doubted, widened

DESIGN_DEVIATION = 0.3
"""How far, relatively, the mean square along an axis may be from the public design's, before anything is known."""
DESIGN_BOUND = 0.5
"""Bars allow for so many of these deviations. Dilemmas that are rarer than that are told by the mean squares, where a
crowd is loud enough to buy them, or by whoever knows which dilemmas were asked."""
_BELIEVED = 0.5
"""A belief takes this part of a bound on an error as its deviation."""
_SHORTEST = 1e-9
_LEAST = 0.01
_STRETCHES = 2.0
"""So many deviations of a center's size over what is not known of the ballots' lengths are a bound."""
_LOOKED_AT = 4000
"""Dilemmas of the public sample that a first guess is fitted on."""


@dataclass(frozen=True)
class Units:
    """The units of a crowd: voters, whose ballots have any length, or records. Public."""

    by_voter: bool
    voters: int
    records: int
    """Only where records are the units: else it is secret, and this is 0."""
    squared_lengths: int
    """Of ballots, added up; in the same way."""

    @property
    def count(self) -> int:
        """The number of units."""
        return self.voters if self.by_voter else self.records

    def sampling(self, variances: FloatArray, inverse_length: float, alike: float) -> FloatArray:
        """Return the variance over the draw of voters of means of scores in [-1, 1], from those of single records.

        ``alike`` is the correlation of two scores of one voter, ``inverse_length`` the mean of 1 / n over ballots.
        """
        if self.by_voter:
            together = variances * (inverse_length + (1 - inverse_length) * alike)
            return np.minimum(together, 1.0) / self.voters
        lengths = self.squared_lengths / self.records
        return np.minimum(variances * (1 + (lengths - 1) * alike), lengths) / self.records


def most_alike(directions: int) -> float:
    """Return the largest correlation of two scores of one voter, if it is the same along all of so many axes.

    The most divided crowd has voters who always choose by the sign of u . x, each with a direction u of her own. Of
    normal dilemmas of unit size, E(y x) = sqrt(2 / pi) u, whose variance over voters is 2 / pi over the axes; that of
    y x is 1. Voters whose directions have the deviation tau of a probit's noise come to tau^2 / (1 / k + tau^2) of it.
    """
    return 2 / (math.pi * directions)


@dataclass(frozen=True)
class Guess:
    """A preference along the axes after some steps, and what later ones need to know."""

    belief: Belief
    center: FloatArray
    """The unshrunk estimate."""
    gain: FloatArray
    """How the center follows the means that were released last."""
    doubt: FloatArray
    """A bound along each axis on what other dilemmas than the public ones do."""
    turn: float
    """A bound on the length of any other error of the center along the axes, but for its size."""
    size: float
    """A bound on the relative error of the center's size."""
    sampling: FloatArray
    """Variance of each of these means over the draw of voters, or a bound on it."""
    sample: AxisSample
    """Public dilemmas, corrected."""
    design: FloatArray
    """How far, relatively, their mean squares may still be off."""
    inverse_length: float | None = None
    """The mean of one over the length of ballots; None where records are the units."""

    @property
    def scatter(self) -> float | None:
        """Variance of a voter's mean score in terms of a record's."""
        return None if self.inverse_length is None else loudness(self.inverse_length)

    def records(self, units: Units) -> int:
        """Return how many records there are; of voters, about, and seldom more: a mean of 1 / n is over 1 / mean n."""
        return units.count if self.inverse_length is None else round(units.voters / max(self.inverse_length, _LEAST))

    def widened(self, design: Design) -> Guess:
        """Look along every direction of a design from here on."""
        left_out = design.rest.shape[1]
        ratios = self.sample.mean_squares / design.sample.mean_squares
        sample = design.whole.sample.stretched(np.concatenate([ratios, np.ones(left_out)]))
        unbought = np.full(left_out, DESIGN_DEVIATION if self.design.any() else 0.0)
        return replace(
            self,
            belief=widened(self.belief, left_out),
            sample=sample,
            design=np.concatenate([self.design, unbought]),
        )

    def step(self, noise: float, rest_noise: float) -> Step:
        """Lay down the next step, which will have noise of these deviations, in units of the clip."""
        left_out = self.sample.left_out
        priors = prior_deviation(len(self.belief.mean) - left_out), rest_deviation(left_out)
        near, rest = (
            clip_in_deviations(each, self.scatter, prior)
            for each, prior in zip((noise, rest_noise), priors, strict=True)
        )
        return Step.at(self.belief.mean, self.sample.head(_LOOKED_AT), self.scatter, near, rest)

    def after(self, step: Step, units: Units, score: FloatArray, noise: FloatArray, told: float | None) -> Guess:
        """Return the guess after a step, of which this is the noisy mean score, with noise of these variances.

        ``told`` is the sampling variance of the mean over all axes, where it was bought; else a public bound takes its
        place.
        """
        inverse_length = 1.0 if self.inverse_length is None else self.inverse_length
        # Voters may differ along the axes of factors only, and as much as they can.
        bound = units.sampling(step.variances, inverse_length, most_alike(len(score) - self.sample.left_out))
        likely = units.sampling(step.variances, inverse_length, SCORE_DISAGREEMENT**2)
        if told is None:
            sampling = bound
        else:
            factors = step.variances[: len(score) - self.sample.left_out]
            sampling = np.minimum(told * step.variances / factors.mean(), bound)
        errors = np.diag(noise + (likely if told is None else sampling))
        fit = fit_scores(step.expected, score, errors, self.belief)
        moved = step.moved(fit, noise)
        turn, size = step.doubt(fit, moved)
        return replace(
            self,
            belief=doubted(Belief(fit.mean, fit.covariance), _BELIEVED * size, _BELIEVED * turn, self.design * moved),
            center=fit.center,
            gain=fit.gain,
            doubt=DESIGN_BOUND * self.design * moved,
            turn=turn,
            size=size,
            sampling=sampling,
        )


@dataclass(frozen=True)
class ClipEffect:
    """What a first step's clip does, on average over simulated populations (tests/statistics/constants.py).

    Where voters differ, or sometimes answer at random, the probit that explains clipped means is larger than the pooled
    one: dilemmas that differ much, in which people agree least with it, are played down.
    """

    inflation: float
    """The preference comes out larger by this part of it; that is corrected."""
    size: float
    """How far its size may be off after that, relatively."""
    turn: float
    """How long any other error may be, relative to it."""

    @classmethod
    def on_voters(cls, clip: float) -> ClipEffect:
        """Return it for means of voters clipped there, in units of an axis: their law is a model's, too."""
        near = 1 / (1 + clip**2)
        return cls(0.1 * near**2, 0.05 + 0.08 * near, 0.06 + 0.08 * near)

    @classmethod
    def on_records(cls, clip: float) -> ClipEffect:
        """Return it for records clipped there, in units of an axis."""
        near = 1 / (1 + clip**2)
        return cls(0.03 * near, 0.04 + 0.05 * near, 0.07 + 0.06 * near)

    def believed(self, fitted: Belief, design: FloatArray) -> Belief:
        """Return a belief that knows of this, and of how far mean squares along the axes may be off."""
        turn = self.turn * float(np.linalg.norm(fitted.mean))
        return doubted(fitted, _BELIEVED * self.size, _BELIEVED * turn, design * fitted.mean)


def voters_guess(
    units: Units,
    clip: float,
    sample: AxisSample,
    design: FloatArray,
    means: FloatArray,
    noise: float,
    inverse_length: tuple[float, float],
    ballot_length: int,
    *,
    last: bool,
) -> Guess:
    """Guess from voters' clipped means with noise of this variance, and the mean of one over lengths with its own.

    Where lengths were not bought, that is infinite. ``last`` says that no further step follows.
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
    return Guess(
        effect.believed(Belief(fit.mean, fit.covariance), design),
        fit.center,
        fit.gain,
        DESIGN_BOUND * design * np.abs(fit.center),
        effect.turn * long,
        effect.size + _STRETCHES * stretched,
        sampling,
        sample,
        design,
        inverse_length=fit.inverse_length,
    )


def records_guess(
    units: Units, clip: float, sample: AxisSample, design: FloatArray, means: FloatArray, noise: float
) -> Guess:
    """Guess from the clipped means of records, with noise of this variance."""
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
    return Guess(
        effect.believed(Belief(fit.mean, fit.covariance), design),
        fit.center,
        fit.gain,
        DESIGN_BOUND * design * np.abs(fit.center),
        effect.turn * float(np.linalg.norm(fit.center)),
        effect.size,
        sampling,
        sample,
        design,
    )
