"""Fisher scoring (VLCP, RLCP, ALCP): one or two noisy steps to the preference that explains what the crowd chose.

The first step looks at means along the study's axes and guesses a preference, its size included. A further step looks
at the scores of the probit likelihood there, which are zero on average exactly at the crowd's preference
(``scoring_step``). How many steps there are and what they look at is public (``score_plan``).
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.ballots import Ballots, BallotSource
from crowdveil.estimation.clipped_means import voter_clip
from crowdveil.estimation.design import AxisSample, Design, public_design
from crowdveil.estimation.guess import DESIGN_DEVIATION, Guess, Units, records_guess, voters_guess
from crowdveil.estimation.scoring_step import Step, clip_in_deviations
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.mechanism import (
    Estimand,
    Estimate,
    Loss,
    Measurement,
    Settings,
    measured,
    unknown_along,
)
from crowdveil.privacy.mechanisms.public_dilemmas import shown_dilemmas
from crowdveil.privacy.mechanisms.score_plan import Plan
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

_UNTOLD = 0.5
"""Where nothing is told of the lengths of ballots: between those of one record and of many."""
_EXPECTED_ON = 10_000
"""Dilemmas of the public sample that expected noise is computed on."""


class _FisherScoring:
    """The steps that all three mechanisms take."""

    papers = ()
    options: tuple[str, ...] = ()
    estimates = Estimand.PREFERENCE
    takes = Loss.EPSILON
    by_voter: bool
    design_known: bool

    def measure(self, source: BallotSource, settings: Settings, loss: Epsilon) -> Measurement:
        """Add up what the first step looks at. Later ones look at the crowd again."""
        design = self._dilemmas(source, settings)
        units = source.voters
        squared_lengths = 0
        if not self.by_voter:
            counted = measured(source, _squared_lengths)
            units = counted.records
            squared_lengths = int(counted.total[0])
        plan = self._plan(design, units, settings, loss)
        first = partial(first_sums, design.basis, plan.first_clip(settings.study), self.by_voter, *plan.bought)
        return replace(measured(source, first), source=source, squared_lengths=squared_lengths, design=design)

    def release(self, measurement: Measurement, settings: Settings, loss: Epsilon, noise: Noise) -> Estimate:
        """Guess a preference, and take the steps."""
        assert measurement.source is not None
        assert measurement.design is not None
        source, design = measurement.source, measurement.design
        records = 0 if self.by_voter else measurement.records
        units = Units(self.by_voter, measurement.voters, records, measurement.squared_lengths)
        plan = self._plan(design, units.count, settings, loss)
        dimension = len(measurement.total)
        scale = _scale(units, plan.epsilons[0])
        seen = _noisy_mean(measurement, units, plan.epsilons[0], noise)
        guess = self._guess(seen, units, design, settings, plan)
        if plan.rest:
            guess, design = guess.widened(design), design.whole
        for number, epsilon in enumerate(plan.epsilons[1:], start=2):
            k = design.directions
            spread = plan.spread and number == len(plan.epsilons)
            dimension = k * (2 if spread else 1)
            scale = _scale(units, epsilon)
            variance = cube_variance(scale, 1.0, dimension)
            step = guess.step(math.sqrt(variance))
            sums = measured(source, partial(step_sums, design.basis, step, self.by_voter, spread))
            seen = _noisy_mean(sums, units, epsilon, noise)
            told = _scatter(seen[k:], units, math.sqrt(variance)) if spread else None
            guess = guess.after(step, units, seen[:k], variance, told)
        unknown = unknown_along(
            design,
            mean=guess.belief.mean,
            covariance=guess.belief.covariance,
            center=guess.center,
            sampling=guess.gain @ np.diag(guess.sampling) @ guess.gain.T,
            doubt=guess.doubt,
        )
        return Estimate(
            design.basis @ guess.belief.mean,
            _carried(scale, design.basis @ guess.gain, dimension),
            {
                "steps": len(plan.epsilons),
                "weighs": "voters equally" if self.by_voter else "records equally",
                **({} if settings.design is None else {"design": settings.design.words}),
            },
            unknown,
        )

    def expected_noise(self, settings: Settings, voters: int, loss: Epsilon) -> CubeNoise:
        """Return the noise as it would be carried through the last step at an indifferent crowd's preference."""
        design = public_design(settings.study)
        units = voters if self.by_voter else voters * settings.study.drawing.dilemmas
        plan = self._plan(design, units, settings, loss)
        scatter = voter_clip(settings.study.drawing.dilemmas) ** 2 if self.by_voter else None
        design = design.whole if plan.rest else design
        zero = np.zeros(design.directions)
        sample = design.sample.head(_EXPECTED_ON)
        if len(plan.epsilons) > 1:
            dimension = design.directions * (2 if plan.spread else 1)
            noise = math.sqrt(cube_variance(2 / (units * plan.epsilons[-1].value), 1.0, dimension))
            step = Step.at(zero, sample, scatter, clip_in_deviations(noise, scatter, design.directions))
            gain = np.asarray(np.linalg.inv(step.expected(zero)[1]), np.float64)
        else:
            clip = plan.first_clip(settings.study)
            kept = math.erf(clip / math.sqrt(2 * (scatter or 1.0))) / clip
            gain = np.asarray(np.linalg.inv(sample.expected_means(zero)[1]) / kept, np.float64)
            dimension = design.directions * (2 if plan.squares else 1) + plan.lengths
        return _carried(2 / (units * plan.epsilons[-1].value), design.basis @ gain, dimension)

    def _plan(self, design: Design, units: int, settings: Settings, loss: Epsilon) -> Plan:
        return Plan.of(design, units, loss, by_voter=self.by_voter, design_known=self._knows(settings))

    def _knows(self, settings: Settings) -> bool:
        """Whether the law of the dilemmas is known."""
        return self.design_known or settings.design is not None

    def _dilemmas(self, source: BallotSource, settings: Settings) -> Design:
        design = public_design(settings.study)
        return design if settings.design is None else settings.design.in_place_of(design)

    def _guess(self, seen: FloatArray, units: Units, design: Design, settings: Settings, plan: Plan) -> Guess:
        """Read the first step: a preference, its size, and how loud units are."""
        k, sample = design.directions, design.sample
        variance = cube_variance(_scale(units, plan.epsilons[0]), 1.0, len(seen))
        doubt = np.full(k, 0.0 if self._knows(settings) else DESIGN_DEVIATION)
        if plan.squares:
            ratios, doubt = _ratios(sample, (seen[-k:] + 1) / 2, variance / 4)
            sample = sample.stretched(ratios)
        clip = plan.first_clip(settings.study)
        if not self.by_voter:
            return records_guess(units, clip, sample, doubt, seen[:k], variance)
        told = (_UNTOLD, math.inf)
        if plan.lengths:
            told = float((seen[k] + 1) / 2), variance / 4 + 1 / (4 * units.voters)
        return voters_guess(units, clip, sample, doubt, seen[:k], variance, told, settings.study.drawing.dilemmas)


def _scatter(told: FloatArray, units: Units, deviation: float) -> FloatArray:
    """Return the variance of mean scores over the draw of voters, from the noisy scatter that was bought.

    A deviation of the noise is added: bars may be a little too wide, and are seldom too narrow.
    """
    if units.by_voter:
        squares = np.maximum((told + 1) / 2, 0.0) + deviation / 2
        return np.asarray(squares / max(units.voters - 1, 1), np.float64)
    # told = sum of S^2 / (2 n), over the records; wanted: sum of S^2, over the records squared.
    squares = 2 * (np.maximum(told, 0.0) + deviation)
    return np.asarray(squares * units.squared_lengths / units.records**2, np.float64)


def _ratios(sample: AxisSample, told: FloatArray, variance: float) -> tuple[FloatArray, FloatArray]:
    """Return how large squares along each axis are against the public design's, and how far that may still be off."""
    public = np.minimum(sample.along**2 / SQUARE_REACH, 1.0).mean(axis=0)
    weight = DESIGN_DEVIATION**2 / (DESIGN_DEVIATION**2 + variance / public**2)
    ratios = np.clip(1 + weight * (told / public - 1), 0.1, 5.0)
    return np.asarray(ratios, np.float64), np.asarray(DESIGN_DEVIATION * np.sqrt(1 - weight) / ratios, np.float64)


def _scale(units: Units, epsilon: Epsilon) -> float:
    """Return the scale of cube noise on a mean of units."""
    return 2 / (units.count * epsilon.value)


def _noisy_mean(measurement: Measurement, units: Units, epsilon: Epsilon, noise: Noise) -> FloatArray:
    """Add cube noise to a sum, and divide. The only place where noise enters."""
    drawn = noise.cube(SENSITIVITY, Epsilons.same(epsilon, 1), len(measurement.total))[0]
    return np.asarray((measurement.total + drawn) / (SCORE_STEPS * units.count), np.float64)


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
    options = ("design",)
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
    options = ("design",)
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

    def _dilemmas(self, source: BallotSource, settings: Settings) -> Design:
        """Take the dilemmas that were shown (some, if they are many) in place of the generator's."""
        return replace(public_design(settings.study), differences=shown_dilemmas(source))
