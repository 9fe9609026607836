"""Fisher scoring (VLCP, RLCP, ALCP): one to three noisy steps to the preference that explains what the crowd chose.

The first step looks at means along the study's axes and guesses a preference, its size included. Each further step
looks at the scores of the probit likelihood there, which are zero on average exactly at the crowd's preference
(``scoring_step``). How many steps there are, how they share epsilon, where scores are clipped and what else is bought
depends on public numbers only: the study, the number of units (voters or records), and epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.ballots import Ballots, BallotSource
from crowdveil.estimation.ballot_means import BallotMeans
from crowdveil.estimation.clipped_means import fit_clipped_means, voter_clip
from crowdveil.estimation.design import SAMPLE, AxisSample, Design, public_design
from crowdveil.estimation.moments import fit_scores
from crowdveil.estimation.scoring_step import Belief, Step, widened
from crowdveil.privacy.epsilon import LEAST_MICRO, Epsilon, Epsilons
from crowdveil.privacy.mechanisms.mechanism import (
    Estimand,
    Estimate,
    Loss,
    Measurement,
    Settings,
    measured,
    unknown_along,
)
from crowdveil.privacy.mechanisms.randomised_response import oriented
from crowdveil.privacy.mechanisms.score_sums import (
    SCORE_STEPS,
    SENSITIVITY,
    SQUARE_REACH,
    first_sums,
    step_sums,
)
from crowdveil.privacy.mechanisms.scores import cube_variance
from crowdveil.privacy.noise.distribution import CubeNoise
from crowdveil.privacy.noise.source import Noise

_GUESSED = 10_000
"""Dilemmas of the public sample that the first guess is fitted on."""
_FIRST_CLIP = 0.7
"""In the first step, records and voters are clipped at so many of their deviations along each axis."""
_MODEL_DOUBT = 0.3
"""How far the size of a first guess may be off along an axis, against the other axes."""
_STRETCHES = 2.0
"""So many deviations of a center over what is not known of the ballots' lengths are a bound."""
_RATIO_DEVIATION = 0.5
"""How far the mean square along an axis may be from the public design's, before anything is known: a prior."""


_FAINT, _LOUD = 10, 100
_WORTH_ALL = 50
"""From so many units times epsilon for each direction on, noise hides less of the rest than its prior allows."""
_SHARES = ((_LOUD, (0.2, 0.3, 0.5)), (_FAINT, (0.92, 0.08)), (0, (1.0,)))
"""From so many units times epsilon for each direction on, steps share epsilon like this."""


@dataclass(frozen=True)
class Plan:
    """How a budget is spent. Public."""

    epsilons: tuple[Epsilon, ...]
    """Of each step; they add up to the whole."""
    size_only: bool
    """Whether the second step looks at the size of the preference only: one number, where noise on more is too loud."""
    rest: bool
    """Whether later steps look along every direction, and not along those of the factors only."""
    lengths: bool
    """Whether the first step buys the mean of one over a ballot's length, which tells how loud voters are."""
    squares: bool
    """Whether the first step buys the mean squares along the axes, to correct the public design."""
    deviations: float
    """Where the scores of later steps are clipped."""
    spread: bool
    """Whether the last step buys the scatter of scores, to tell the sampling error."""

    @classmethod
    def of(cls, design: Design, units: int, epsilon: Epsilon, *, by_voter: bool, design_known: bool) -> Plan:
        """Choose by how loud the crowd is against the noise: units times epsilon, for each direction.

        The thresholds were settled on one real file of Moral Machine answers (docs/best-accuracy.md).
        """
        directions, left_out = design.directions, design.rest.shape[1]
        loudness = units * epsilon.value / directions
        shares = next(
            shares
            for least, shares in _SHARES
            if loudness >= least and int(epsilon.micro * min(shares)) >= LEAST_MICRO  # no step with less than any may
        )
        parts = [int(epsilon.micro * share) for share in shares[1:]]
        epsilons = tuple(Epsilon.of_millionths(part) for part in [epsilon.micro - sum(parts), *parts])
        loud = loudness >= _LOUD and len(shares) > 1
        size_only = len(shares) > 1 and not loud
        last = epsilons[-1].value
        rest = left_out > 0 and loud and units * epsilon.value >= _WORTH_ALL * (directions + left_out)
        looked = 1 if size_only else directions + left_out if rest else directions
        deviations = _clip_in_deviations(looked, units, last, by_voter=by_voter)
        return cls(
            epsilons,
            size_only,
            rest=rest,
            lengths=by_voter,
            squares=loud and not design_known,
            deviations=deviations,
            spread=loud and _worth_the_spread(looked, units, last, deviations),
        )


def _clip_in_deviations(directions: int, units: int, epsilon: float, *, by_voter: bool) -> float:
    """Return where scores are clipped: as far out as lets the noise be some times the sampling error of a mean.

    Twice for voters, whose scores are means and nearly symmetric; four times for records, where a clip is a bias. Never
    nearer than about three deviations, because those of voters with one record are as skew as a record's.
    """
    times, least = (2.0, 2.7) if by_voter else (4.0, 3.0)
    noise = math.sqrt(cube_variance(2 / (units * epsilon), 1.0, directions))
    return min(max(times / (noise * math.sqrt(units)), least), 8.0)


def _worth_the_spread(directions: int, units: int, epsilon: float, deviations: float) -> bool:
    """Whether bars get narrower by twice as many noisy numbers, against the public bound 1 / N of a mean's variance."""
    bounded = cube_variance(2 / (units * epsilon), 1.0, directions) + 1 / units
    bought = cube_variance(2 / (units * epsilon), 1.0, 2 * directions) + 1 / (units * deviations**2)
    return bought < bounded


@dataclass(frozen=True)
class _Crowd:
    """The units of a crowd, whose steps are taken under noise."""

    source: BallotSource
    design: Design
    by_voter: bool
    voters: int
    records: int
    squared_lengths: int
    """Of ballots, added up. Public where records are protected, and 0 where voters are."""

    @property
    def units(self) -> int:
        return self.voters if self.by_voter else self.records

    @property
    def largest_variance(self) -> float:
        """The largest variance of a mean of units' numbers in [-1, 1], over the draw of voters."""
        return 1 / self.voters if self.by_voter else self.squared_lengths / self.records**2


class _FisherScoring:
    """The steps that all three mechanisms take."""

    papers = ()
    options = ()
    estimates = Estimand.PREFERENCE
    takes = Loss.EPSILON
    by_voter: bool
    design_known: bool

    def measure(self, source: BallotSource, settings: Settings, loss: Epsilon) -> Measurement:
        """Add up what the first step looks at. Later ones look at the crowd again."""
        design = self._design(source, settings)
        units, squared_lengths = source.voters, 0
        if not self.by_voter:
            counted = measured(source, _squared_lengths)
            units, squared_lengths = counted.records, int(counted.total[0])
        plan = self._plan(design, units, loss)
        first = partial(first_sums, design.basis, self._clip(settings), self.by_voter, plan.squares)
        return replace(measured(source, first), source=source, squared_lengths=squared_lengths, design=design)

    def release(self, measurement: Measurement, settings: Settings, loss: Epsilon, noise: Noise) -> Estimate:
        """Guess a preference, and take the steps."""
        assert measurement.source is not None
        assert measurement.design is not None
        crowd = _Crowd(
            measurement.source,
            measurement.design,
            self.by_voter,
            measurement.voters,
            measurement.records,
            measurement.squared_lengths,
        )
        plan = self._plan(crowd.design, crowd.units, loss)
        guess = self._guess(measurement, crowd, settings, plan, noise)
        if plan.rest:
            guess, crowd = _widened(guess, crowd), replace(crowd, design=crowd.design.whole)
        for number, epsilon in enumerate(plan.epsilons[1:], start=1):
            last = number == len(plan.epsilons) - 1
            guess = (
                _sized(guess, crowd, plan, noise)
                if plan.size_only
                else _step(guess, crowd, plan, epsilon, noise, last=last)
            )
        unknown = unknown_along(
            crowd.design,
            mean=guess.belief.mean,
            covariance=guess.belief.covariance,
            center=guess.center,
            sampling=guess.gain @ np.diag(guess.sampling) @ guess.gain.T,
            doubt=guess.doubt,
        )
        return Estimate(
            crowd.design.basis @ guess.belief.mean,
            _carried(guess.scale, crowd.design.basis @ guess.gain, guess.dimension),
            {"steps": len(plan.epsilons), "weighs": "voters equally" if self.by_voter else "records equally"},
            unknown,
        )

    def expected_noise(self, settings: Settings, voters: int, loss: Epsilon) -> CubeNoise:
        """Return the noise as it would be carried through the last step at an indifferent crowd's preference."""
        design = public_design(settings.study)
        units = voters if self.by_voter else voters * settings.study.drawing.dilemmas
        plan = self._plan(design, units, loss)
        scatter = voter_clip(settings.study.drawing.dilemmas) ** 2 if self.by_voter else None
        design = design.whole if plan.rest else design
        zero, last = np.zeros(design.directions), plan.epsilons[0 if plan.size_only else -1].value
        sample = design.sample.head(_GUESSED)
        if len(plan.epsilons) > 1 and not plan.size_only:
            gain = Step.at(zero, sample, scatter, plan.deviations).gain
            dimension = design.directions * (2 if plan.spread else 1)
        else:
            clip = self._clip(settings)
            kept = math.erf(clip / math.sqrt(2 * (scatter or 1.0))) / clip
            gain = np.asarray(np.linalg.inv(sample.expected_means(zero)[1]) / kept, np.float64)
            dimension = design.directions + plan.lengths + (design.directions if plan.squares else 0)
        return _carried(2 / (units * last), design.basis @ gain, dimension)

    def _plan(self, design: Design, units: int, loss: Epsilon) -> Plan:
        return Plan.of(design, units, loss, by_voter=self.by_voter, design_known=self.design_known)

    def _clip(self, settings: Settings) -> float:
        return _FIRST_CLIP * (voter_clip(settings.study.drawing.dilemmas) if self.by_voter else 1.0)

    def _design(self, source: BallotSource, settings: Settings) -> Design:
        return public_design(settings.study)

    def _guess(self, measurement: Measurement, crowd: _Crowd, settings: Settings, plan: Plan, noise: Noise) -> _Guess:
        """Read the first step: a preference, its size, and how loud units are."""
        k, epsilon = crowd.design.directions, plan.epsilons[0]
        dimension, scale = len(measurement.total), 2 / (crowd.units * epsilon.value)
        seen = _noisy_mean(measurement, crowd.units, epsilon, noise)
        variance = cube_variance(scale, 1.0, dimension)
        sample = crowd.design.sample
        if plan.squares:
            sample = sample.stretched(_ratios(sample, (seen[-k:] + 1) / 2, variance / 4))
        observed, errors = seen[:k], (variance + crowd.largest_variance) * np.eye(k)
        if self.by_voter:
            fit = fit_clipped_means(
                BallotMeans(sample.head(_GUESSED).along),
                self._clip(settings),
                observed,
                errors,
                float((seen[k] + 1) / 2),
                variance / 4 + 1 / (4 * crowd.units),
                settings.study.drawing.dilemmas,
            )
            scatter: float | None = fit.loudness
            belief, center, gain = Belief(fit.mean, fit.covariance), fit.center, fit.gain
            stretch = np.sqrt(np.diag(fit.stretch))
        else:
            scores = fit_scores(sample.head(_GUESSED), observed, errors, self._clip(settings))
            scatter, stretch = None, np.zeros(k)
            belief, center, gain = Belief(scores.mean, scores.covariance), scores.center, scores.gain
        doubt = _MODEL_DOUBT * np.abs(center) + _STRETCHES * stretch
        sampling = np.full(k, crowd.largest_variance)
        return _Guess(belief, center, gain, doubt, sampling, scale, dimension, sample, scatter)


@dataclass(frozen=True)
class _Guess:
    """A preference after some steps, and what later ones need to know."""

    belief: Belief
    center: FloatArray
    gain: FloatArray
    doubt: FloatArray
    sampling: FloatArray
    """Variance of each released mean over the draw of voters."""
    scale: float
    dimension: int
    sample: AxisSample
    scatter: float | None
    """Variance of a voter's mean score in terms of a record's."""


def _widened(guess: _Guess, crowd: _Crowd) -> _Guess:
    """Look along every direction from here on."""
    left_out = crowd.design.rest.shape[1]
    ratios = guess.sample.mean_squares / crowd.design.sample.mean_squares
    sample = crowd.design.whole.sample.stretched(np.concatenate([ratios, np.ones(left_out)]))
    return replace(guess, belief=widened(guess.belief, left_out), sample=sample)


def _step(guess: _Guess, crowd: _Crowd, plan: Plan, epsilon: Epsilon, noise: Noise, *, last: bool) -> _Guess:
    """Look at the scores under noise, and move."""
    k, spread = crowd.design.directions, plan.spread and last
    step = Step.at(guess.belief.mean, guess.sample, guess.scatter, plan.deviations)
    tally = partial(step_sums, crowd.design.basis, step, crowd.by_voter, spread)
    measurement = measured(crowd.source, tally)
    seen = _noisy_mean(measurement, crowd.units, epsilon, noise)
    dimension, scale = len(seen), 2 / (crowd.units * epsilon.value)
    variance = cube_variance(scale, 1.0, dimension)
    sampling = np.full(k, crowd.largest_variance)
    if spread:
        sampling = np.minimum(sampling, _sampling(seen[k:], crowd, math.sqrt(variance)))
    # The bound is for bars; a belief does better with the variance that the clip was chosen for.
    likely = sampling if spread else sampling / plan.deviations**2
    return replace(
        guess,
        belief=step.updated(guess.belief, seen[:k], variance + likely),
        center=step.center(seen[:k]),
        gain=step.gain,
        doubt=step.doubt(seen[:k]),
        sampling=sampling,
        scale=scale,
        dimension=dimension,
    )


def _sized(guess: _Guess, crowd: _Crowd, plan: Plan, noise: Noise) -> _Guess:
    """Look at the score along the guess, and make it longer or shorter, with all that is not known of it."""
    epsilon = plan.epsilons[-1]
    step = Step.of_size(guess.belief.mean, guess.sample, guess.scatter, plan.deviations)
    measurement = measured(crowd.source, partial(step_sums, crowd.design.basis, step, crowd.by_voter, False))
    seen = _noisy_mean(measurement, crowd.units, epsilon, noise)
    variance = cube_variance(2 / (crowd.units * epsilon.value), 1.0, 1) + crowd.largest_variance / plan.deviations**2
    belief = step.updated(guess.belief, seen, np.array([variance]))
    before, after = (float(step.directions[:, 0] @ mean) for mean in (step.start, belief.mean))
    ratio = min(max(after / before, 0.2), 5.0) if before > 0 else 1.0
    return replace(
        guess, belief=belief, center=ratio * guess.center, gain=ratio * guess.gain, doubt=ratio * guess.doubt
    )


def _sampling(told: FloatArray, crowd: _Crowd, deviation: float) -> FloatArray:
    """Return the variance of mean scores over the draw of voters, from the noisy scatter that was bought.

    A deviation of the noise is added: bars may be a little too wide, and are seldom too narrow.
    """
    if crowd.by_voter:
        squares = np.maximum((told + 1) / 2, 0.0) + deviation / 2
        return np.asarray(squares / max(crowd.voters - 1, 1), np.float64)
    # told = sum of S^2 / (2 n), over the records; wanted: sum of S^2, over the records squared.
    squares = 2 * (np.maximum(told, 0.0) + deviation)
    return np.asarray(squares * crowd.squared_lengths / crowd.records**2, np.float64)


def _ratios(sample: AxisSample, told: FloatArray, variance: float) -> FloatArray:
    """Return how large squares along each axis are against the public design's, as far as noise lets them be told."""
    public = np.minimum(sample.along**2 / SQUARE_REACH, 1.0).mean(axis=0)
    weight = _RATIO_DEVIATION**2 / (_RATIO_DEVIATION**2 + variance / public**2)
    return np.asarray(np.clip(1 + weight * (told / public - 1), 0.1, 5.0), np.float64)


def _noisy_mean(measurement: Measurement, units: int, epsilon: Epsilon, noise: Noise) -> FloatArray:
    """Add cube noise to a sum, and divide. The only place where noise enters."""
    drawn = noise.cube(SENSITIVITY, Epsilons.same(epsilon, 1), len(measurement.total))[0]
    return np.asarray((measurement.total + drawn) / (SCORE_STEPS * units), np.float64)


def _carried(scale: float, gain: FloatArray, dimension: int) -> CubeNoise:
    """Return the law of cube noise in so many dimensions, of which the parameter follows the first."""
    unused = np.zeros((len(gain), dimension - gain.shape[1]))
    return CubeNoise(scale, tuple(map(tuple, np.hstack([gain, unused]).tolist())))


def _squared_lengths(ballots: Ballots) -> IntArray:
    return np.array([int(ballots.counts.astype(np.int64) @ ballots.counts)], np.int64)


class VoterScore(_FisherScoring):
    """Fisher scoring with voters as units.

    Theorem. If every step t adds noise with density proportional to exp(-epsilon_t |x|_max / (2 SCORE_STEPS)) to its
    sum of voters' integers, and the epsilon_t add up to epsilon, all steps together are epsilon-differentially private
    for VLCP (and so for RLCP).

    Proof. A voter adds an integer of at most SCORE_STEPS in size to each coordinate (``score_sums``), whatever the
    voter's records are and however many; so replacing a voter moves every coordinate by at most 2 SCORE_STEPS, and one
    step is epsilon_t-differentially private (``cube_noise``, Theorem 1). Where a step looks (the preference that it
    starts from, its clips) depends on public numbers and on what earlier steps released; so losses add up
    (adaptive composition: Dwork, McSherry, Nissim and Smith 2006). The number of voters is the same in neighbours. The
    rest is post-processing.
    """

    name = "voter-score"
    title = "Fisher scoring with cube noise on the sums of voters' bounded scores"
    words = "noise, added once at each of a few steps, to sums of all voters' scores, each of them kept within bounds"
    paradigms = ("vlcp", "rlcp")
    by_voter = True
    design_known = False


class PooledScore(_FisherScoring):
    """Fisher scoring with records as units; records weigh equally.

    Theorem. As for voters (``VoterScore``), with records as units: epsilon-differentially private for RLCP.

    Proof. Replacing a record moves every coordinate by at most 2 SCORE_STEPS: those of scores because a record adds at
    most SCORE_STEPS to each, those of the scatter by the count in ``step_sums``. The number of records, and of each
    voter, is the same in neighbours.
    """

    name = "pooled-score"
    title = "Fisher scoring with cube noise on the sums of all records' bounded scores"
    words = "noise, added once at each of a few steps, to sums of the scores of all records"
    paradigms = ("rlcp",)
    by_voter = False
    design_known = False


class PooledChoices(_FisherScoring):
    """Fisher scoring with choices as units, in the dilemmas that were really shown; choices weigh equally.

    Theorem. Where the dilemmas shown are public and only the choices are secret, this is epsilon-differentially
    private for ALCP.

    Proof. To turn a choice over is to replace its record by the opposite one: Theorem of ``PooledScore``. What the
    dilemmas were enters without noise, being public.
    """

    name = "pooled-choices"
    title = "Fisher scoring with cube noise on the sums of scores, with the dilemmas really shown"
    words = "noise, added once at each of a few steps, to sums of the scores of all choices in dilemmas that are public"
    paradigms = ("alcp",)
    by_voter = False
    design_known = True

    def _design(self, source: BallotSource, settings: Settings) -> Design:
        """Take the dilemmas that were shown (some, if they are many) in place of the generator's."""
        shown: list[FloatArray] = []
        kept = 0
        for ballots in source.batches():
            shown.append(oriented(ballots)[0][: SAMPLE - kept].astype(np.float64))
            kept += len(shown[-1])
            if kept == SAMPLE:
                break
        return replace(public_design(settings.study), differences=np.concatenate(shown))
