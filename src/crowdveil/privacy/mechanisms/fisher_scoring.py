"""Fisher scoring (VLCP, RLCP, ALCP): one or two noisy steps to the preference that best fits the crowd's choices.

The first step measures means along the study's axes and estimates a preference, including its size. A second step
measures the scores of the probit likelihood there, whose mean is zero exactly at the crowd's preference
(``scoring_step``), and the mean square of the dilemmas in the direction of the first estimate, with which the first
step is read again. The number of steps and what they measure is public (``fisher_plan``).
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from crowdveil.arrays import BoolArray, FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots, BallotSource
from crowdveil.estimation.clipped_means import SCORE_DISAGREEMENT, loudness, voter_clip
from crowdveil.estimation.design import AxisSample, Design, design_of, public_design
from crowdveil.estimation.dilemma_moments import DESIGN_BOUND, DESIGN_DEVIATION, DilemmaMoments, product_deviation
from crowdveil.estimation.dilemmas import shown_dilemmas
from crowdveil.estimation.prior import prior_deviation, rest_deviation
from crowdveil.estimation.scoring_step import STEP_DOUBT, ScoringStep, clip_doubts, clip_in_deviations
from crowdveil.estimation.step_estimate import (
    ClipEffect,
    StepEstimate,
    UnitCounts,
    estimate_from_records,
    estimate_from_voters,
    most_alike,
)
from crowdveil.privacy.epsilon import Epsilon, Epsilons, PrivacyMeasure
from crowdveil.privacy.mechanisms.expected_errors import ExpectedErrors, clipped_slope, from_features
from crowdveil.privacy.mechanisms.fisher_plan import FisherPlan
from crowdveil.privacy.mechanisms.fisher_sums import (
    SCORE_STEPS,
    SENSITIVITY,
    SQUARE_REACH,
    first_sums,
    square_directions,
    square_sums,
    step_sums,
)
from crowdveil.privacy.mechanisms.integer_scores import cube_variance
from crowdveil.privacy.mechanisms.mechanism import (
    DILEMMAS_PUBLIC,
    Estimand,
    Estimate,
    Measurement,
    MechanismSettings,
    dilemmas_in_doubt,
    dilemmas_measured,
    measured,
    never_asked,
    uncertainty_along,
)
from crowdveil.privacy.noise.distribution import CubeNoise, CubeSum
from crowdveil.privacy.noise.source import Noise
from crowdveil.privacy.uncertainty import REACH

_UNTOLD = 0.5
"""Mean of 1 / n if the lengths of ballots are not measured: between ballots of one record and of many."""
_LEAST_SQUARE, _MOST_SQUARE = 0.1, 5.0
"""Bounds on the mean square of dilemmas in any direction, relative to the public design's."""
_NEXT_TO_NONE = 0.03
"""The same, of dilemmas that are hardly ever about an axis."""
_UNLIKE, _TOLD = 2.0, 1.5
"""Standard deviations beyond which a mean square is unlike those of most files, and is told from next to none."""
_REPORTED = 2.0
"""Standard deviations of its noise that bars allow for in a mean square that is unlike those of most files."""
_AS_PAIRS = 3
"""Weight of the expected deviation of products, as a number of pairs of axes."""
_EXPECTED_ON = 10_000
"""Dilemmas of the public sample on which the expected noise is computed."""


class _FisherScoring:
    """The steps shared by all three mechanisms."""

    papers = ()
    options: tuple[str, ...] = ()
    estimates = Estimand.PREFERENCE
    takes = PrivacyMeasure.EPSILON
    third_answer = True
    fits_once = False
    by_voter: bool
    unit: str
    """The unit that counts once."""
    design_known: bool

    def measure(self, source: BallotSource, settings: MechanismSettings, loss: Epsilon) -> Measurement:
        """Compute the sums of the first step. A second step reads the crowd again."""
        design = self._dilemmas(source, settings)
        units = source.voters
        squared_lengths = 0
        if not self.by_voter:
            counted = measured(source, _squared_lengths)
            units = counted.records
            squared_lengths = int(counted.total[0])
        plan = self._plan(design, units, settings, loss)
        first = partial(_first_look, design, plan, plan.first_clip(settings.study))
        return replace(measured(source, first), source=source, squared_lengths=squared_lengths, design=design)

    def release(self, measurement: Measurement, settings: MechanismSettings, loss: Epsilon, noise: Noise) -> Estimate:
        """Add noise to the first sums, estimate a preference, and take the second step if planned."""
        assert measurement.source is not None
        assert measurement.design is not None
        source, design = measurement.source, measurement.design
        records = 0 if self.by_voter else measurement.records
        units = UnitCounts(self.by_voter, measurement.voters, records, measurement.squared_lengths)
        plan = self._plan(design, units.count, settings, loss)
        k = design.directions
        first = _noisy_mean(measurement.total[: k + plan.lengths], units, plan.first, noise)
        dilemmas = DilemmaMoments.of(k, known=self._knows(settings))
        hardly = np.zeros(k, bool)
        if plan.squares is not None:
            told = _noisy_mean(measurement.total[k + plan.lengths :], units, plan.squares, noise)
            variance = cube_variance(_scale(units, plan.squares), 1.0, len(told)) / 4
            dilemmas = _moments(design.sample, (told + 1) / 2, variance, plan.products)
            hardly = _hardly_asked(design.sample.along, (told[:k] + 1) / 2, variance)
        factors = design
        design = factors if plan.rest is None else factors.whole

        def estimated(dilemmas: DilemmaMoments) -> StepEstimate:
            """Read the first step, for all directions that a second one looks along."""
            estimate = self._first_estimate(first, units, factors, settings, plan, dilemmas)
            return estimate if plan.rest is None else estimate.widened(factors)

        current = estimated(dilemmas)
        if plan.second is not None:
            variances = _second_variances(plan, units.count, k, design.left_out)
            step = current.step(math.sqrt(variances[0]), math.sqrt(variances[-1]))
            ahead = _unit(current.belief.mean, k)
            total = measured(source, partial(_second_look, design, plan, step, ahead)).total
            near = np.concatenate([total[:k], total[design.directions :]])
            rest = total[k : design.directions]
            seen = _noisy_mean(near, units, plan.second, noise)
            spread = _scatter(float(seen[k]), units, math.sqrt(variances[0])) if plan.spread else None
            if plan.ahead:
                ratios, _ = _ratios(current.sample.along @ ahead[:, None], (seen[-1:] + 1) / 2, variances[0] / 4)
                # What the first step saw is read again, with the dilemmas as they now turn out to be.
                current = estimated(dilemmas.stretched(ahead[:k], float(ratios[0])))
                step = current.resumed(step)
            if plan.rest is not None:
                seen = np.concatenate([seen[:k], _noisy_mean(rest, units, plan.rest, noise)])
            current = current.after(step, units, seen[: design.directions], variances, spread)
        unasked = never_asked(design.along)
        basis = design.basis - design.basis @ unasked
        unknown = uncertainty_along(
            design,
            mean=current.belief.mean,
            covariance=current.belief.covariance,
            center=current.center,
            sampling=current.gain @ np.diag(current.sampling) @ current.gain.T,
            divided=current.gain @ np.diag(current.divided) @ current.gain.T,
            doubt=current.doubt + 2 * REACH * np.pad(hardly, (0, design.directions - k)),
            turn=current.turn,
            size=current.size,
            freedom=max(units.voters - 1, 1) if plan.spread else None,
            records=current.records(units) if plan.lengths else units.count,
            unasked=unasked,
        )
        return Estimate(
            basis @ current.belief.mean,
            _carried(plan, units.count, basis @ current.gain, k),
            {
                "steps": plan.steps,
                "weighing": f"every {self.unit} counts once",
                **settings.dilemma_facts(self._dilemmas_said(plan, loss)),
            },
            unknown,
        )

    def expected_noise(self, settings: MechanismSettings, voters: int, loss: Epsilon) -> CubeSum:
        """Return the noise of the estimate for an indifferent crowd, propagated through the last step."""
        design = public_design(settings.study)
        units = voters if self.by_voter else voters * settings.study.drawing.dilemmas
        plan = self._plan(design, units, settings, loss)
        scatter = voter_clip(settings.study.drawing.dilemmas) ** 2 if self.by_voter else None
        k = design.directions
        design = design.whole if plan.rest is not None else design
        zero = np.zeros(design.directions)
        sample = design.sample.head(_EXPECTED_ON)
        if plan.second is not None:
            noise = np.sqrt(_second_variances(plan, units, k, design.left_out))
            near = clip_in_deviations(float(noise[0]), scatter, prior_deviation(k))
            rest = clip_in_deviations(float(noise[-1]), scatter, rest_deviation(design.left_out))
            gain = np.linalg.inv(ScoringStep.at(zero, sample, scatter, near, rest).expected(zero)[1])
        else:
            clip = plan.first_clip(settings.study)
            kept = math.erf(clip / math.sqrt(2 * (scatter or 1.0))) / clip
            gain = np.linalg.inv(sample.mixing.T @ sample.expected_means(zero)[1]) / kept
        return _carried(plan, units, design.basis @ gain, k)

    def expected_errors(
        self, settings: MechanismSettings, voters: int, records: int, epsilon: Epsilon
    ) -> ExpectedErrors:
        """Return the errors of the last step for voters with this many records each, with what an earlier one adds."""
        study = settings.study
        design = public_design(study)
        usual = study.drawing.dilemmas
        units = UnitCounts(self.by_voter, voters, 0 if self.by_voter else voters * records, voters * records**2)
        plan = self._plan(design, units.count, settings, epsilon)
        law = self.expected_noise(settings, voters if self.by_voter else max(units.count // usual, 1), epsilon)
        first_cube = law.parts[0]
        variance = cube_variance(first_cube.scale, 1.0, first_cube.matrix.shape[1])
        first_clip = plan.first_clip(study)
        effect = ClipEffect.on_voters(first_clip) if self.by_voter else ClipEffect.on_records(first_clip)
        known = self._knows(settings) or plan.squares is not None
        unsure = 0.0 if known else DESIGN_BOUND * DESIGN_DEVIATION
        kept = clipped_slope(first_clip, records if self.by_voter else 1)
        # Later steps clip by how loud voters are; the first one by how loud they would be with whole ballots.
        if plan.second is None:
            longer = clipped_slope(first_clip, usual) / kept if self.by_voter else 1.0
            spread = min(1.0, 1 / first_clip**2)
            first_look = None
            step_doubt = 0.0
            turn, size = effect.turn, effect.size
        else:
            scatter = loudness(1 / records) if self.by_voter else None
            longer = voter_clip(records) / voter_clip(usual) if self.by_voter else 1.0
            deviations = clip_in_deviations(math.sqrt(variance), scatter, prior_deviation(design.directions))
            spread = 1 / (deviations**2 * (scatter or 1.0))
            turn, size = clip_doubts(deviations)
            step_doubt = STEP_DOUBT
            if not self._knows(settings):
                # What is not known of products is a bound along each axis: in normal dilemmas these add up to this.
                step_doubt += math.sqrt(2 / math.pi) * DESIGN_BOUND * DESIGN_DEVIATION
            unsure = 0.0
            first_look = math.pi / 2 * (first_clip * plan.first_noise / kept) ** 2
        alike = SCORE_DISAGREEMENT**2 if plan.spread else most_alike(design.directions)
        sampling = float(units.sampling(np.array([spread]), 1 / records, alike)[0])
        along = longer * from_features(design)
        gain = along @ np.hstack([part.matrix for part in law.parts])
        return ExpectedErrors(
            np.asarray(along @ law.covariance @ along.T, np.float64),
            np.asarray(sampling * gain @ gain.T, np.float64),
            unsure,
            rest_known=plan.rest is not None,
            first_look=first_look,
            step_doubt=step_doubt,
            turn=turn,
            size=size,
        )

    def _plan(self, design: Design, units: int, settings: MechanismSettings, loss: Epsilon) -> FisherPlan:
        return FisherPlan.of(
            design,
            units,
            loss,
            by_voter=self.by_voter,
            design_known=self._knows(settings),
            along=settings.study.along,
        )

    def _knows(self, settings: MechanismSettings) -> bool:
        """Whether the distribution of the dilemmas is known."""
        return self.design_known or settings.drawn or settings.design is not None

    def _dilemmas_said(self, plan: FisherPlan, loss: Epsilon) -> str:
        """Return in words how the plan treats dilemmas of which nothing was given."""
        if self.design_known:
            return DILEMMAS_PUBLIC
        if plan.squares is not None:
            return dilemmas_measured(f"{plan.squares.value / loss.value:.2g} of epsilon", together=plan.products)
        share = DESIGN_BOUND * DESIGN_DEVIATION
        return dilemmas_in_doubt(share) if plan.second is None else dilemmas_in_doubt(share, "the second step's change")

    def _dilemmas(self, source: BallotSource, settings: MechanismSettings) -> Design:
        return public_design(settings.study) if settings.design is None else settings.design.design(settings.study)

    def _first_estimate(
        self,
        seen: FloatArray,
        units: UnitCounts,
        design: Design,
        settings: MechanismSettings,
        plan: FisherPlan,
        dilemmas: DilemmaMoments,
    ) -> StepEstimate:
        """Fit a preference and the scatter of units to the first step's noisy means, over such dilemmas."""
        k, sample = design.directions, design.sample.shaped(dilemmas.moments)
        variance = cube_variance(_scale(units, plan.first), 1.0, len(seen))
        clip = plan.first_clip(settings.study)
        last = plan.second is None
        if not self.by_voter:
            return estimate_from_records(units, clip, sample, dilemmas, seen[:k], variance, last=last)
        told = (_UNTOLD, math.inf)
        if plan.lengths:
            told = float((seen[k] + 1) / 2), variance / 4 + 1 / (4 * units.voters)
        return estimate_from_voters(
            units,
            clip,
            sample,
            dilemmas,
            seen[:k],
            variance,
            told,
            settings.study.drawing.dilemmas,
            last=last,
        )


def _first_look(design: Design, plan: FisherPlan, clip: float, ballots: Ballots) -> IntArray:
    """Sum the means, the lengths if planned, and the squares if planned."""
    means = first_sums(design.mixed_basis, clip, plan.by_voter, plan.lengths, ballots)
    if plan.squares is None:
        return means
    measured_along = design.basis @ square_directions(design.directions, plan.products)
    return np.concatenate([means, square_sums(measured_along, plan.by_voter, ballots)])


def _second_look(design: Design, plan: FisherPlan, step: ScoringStep, ahead: FloatArray, ballots: Ballots) -> IntArray:
    """Sum the scores of the second step, their scatter if planned, and the squares in a direction if planned."""
    scores = step_sums(design.mixed_basis, step, plan.by_voter, plan.spread, ballots)
    if not plan.ahead:
        return scores
    return np.concatenate([scores, square_sums(design.basis @ ahead[:, None], plan.by_voter, ballots)])


def _unit(preference: FloatArray, factors: int) -> FloatArray:
    """Return the direction of a preference along the axes of factors."""
    along = np.where(np.arange(len(preference)) < factors, preference, 0.0)
    length = float(np.linalg.norm(along))
    return along / length if length > 0 else np.eye(len(preference))[0]


def _scatter(told: float, units: UnitCounts, deviation: float) -> float:
    """Return the sampling variance of a mean score, averaged over the axes, from its noisy measurement.

    One standard deviation of the noise is added, so that bars may be slightly too wide and are rarely too narrow.
    """
    if units.by_voter:
        squares = max((told + 1) / 2, 0.0) + deviation / 2
        return squares / max(units.voters - 1, 1)
    # told is the sum of S^2 / (2 n), divided by the records; return the sum of S^2, divided by the records squared.
    squares = 2 * (max(told, 0.0) + deviation)
    return squares * units.squared_lengths / units.records**2 * units.voters / max(units.voters - 1, 1)


def _moments(sample: AxisSample, told: FloatArray, variance: float, products: bool) -> DilemmaMoments:
    """Return the moments of dilemmas from noisy mean squares, along the axes or also between any two of them.

    Squares are shrunk toward those of the public design, as they may be expected to differ from it. Products are shrunk
    toward zero by how much they turn out to differ from it, beyond the noise, and to some extent by what to expect.
    """
    k = sample.along.shape[1]
    squares, unsure = _ratios(sample.along, told[:k], variance)
    moments, left = np.diag(squares), product_deviation(k)
    if products:
        pairs = np.triu_indices(k, 1)
        found, errors = _found(sample.along @ square_directions(k, True), told, variance)
        either = np.add(*(found[side] for side in pairs)) / 2
        error = errors[k:] + np.add(*(errors[side] for side in pairs)) / 4
        seen = max(float(np.square(found[k:] - either).sum() - error.sum()), 0.0)
        spread = (seen + _AS_PAIRS * product_deviation(k) ** 2) / (len(error) + _AS_PAIRS)
        kept = spread / (spread + error)
        moments[pairs] = kept * (found[k:] - either)
        moments = moments + np.triu(moments, 1).T
        left = math.sqrt(float(np.mean(kept * error)))
    sizes, vectors = np.linalg.eigh(moments)
    moments = (vectors * np.maximum(sizes, _LEAST_SQUARE)) @ vectors.T
    bound = np.where(_unlike(*_found(sample.along, told[:k], variance)), _REPORTED, DESIGN_BOUND)
    return DilemmaMoments(moments, unsure, left, bound)


def _ratios(along: FloatArray, told: FloatArray, variance: float) -> tuple[FloatArray, FloatArray]:
    """Return the ratios of mean squares to those of public dilemmas along some directions, and what is not known.

    They are shrunk toward 1, unless they are so low that what is usual of files says nothing about them.
    """
    found, errors = _found(along, told, variance)
    usual = np.where(_unlike(found, errors), np.inf, DESIGN_DEVIATION**2)
    weights = 1 / (1 + errors / usual)
    ratios = np.clip(1 + weights * (found - 1), _LEAST_SQUARE, _MOST_SQUARE)
    return np.asarray(ratios, np.float64), np.asarray(np.sqrt(weights * errors) / ratios, np.float64)


def _hardly_asked(along: FloatArray, told: FloatArray, variance: float) -> BoolArray:
    """Whether hardly any dilemma turns out to be about each of some axes, so that nothing is known of it.

    So it is if the mean square is further below the public one than files and noise explain, and below the least that
    a preference is read from, or cannot be told from next to none.
    """
    found, errors = _found(along, told, variance)
    told_from_none = np.maximum(_LEAST_SQUARE, _NEXT_TO_NONE + _TOLD * np.sqrt(errors))
    return np.asarray(_unlike(found, errors) & (found < told_from_none))


def _unlike(found: FloatArray, errors: FloatArray) -> BoolArray:
    """Whether mean squares are lower than files and noise explain."""
    return np.asarray(1 - found > _UNLIKE * np.sqrt(DESIGN_DEVIATION**2 + errors))


def _found(along: FloatArray, told: FloatArray, variance: float) -> tuple[FloatArray, FloatArray]:
    """Return noisy mean squares of this variance relative to those of public dilemmas, and their relative variance."""
    public = np.minimum(np.square(along) / SQUARE_REACH, 1.0).mean(axis=0)
    return told / public, variance / public**2


def _scale(units: UnitCounts, epsilon: Epsilon) -> float:
    """Return the scale of cube noise on a mean over units."""
    return 2 / (units.count * epsilon.value)


def _noisy_mean(total: IntArray, units: UnitCounts, epsilon: Epsilon, noise: Noise) -> FloatArray:
    """Add cube noise to a sum and divide by the number of units. The only place where noise enters."""
    drawn = noise.cube(SENSITIVITY, Epsilons.same(epsilon, 1), len(total))[0]
    return np.asarray((total + drawn) / (SCORE_STEPS * units.count), np.float64)


def _second_variances(plan: FisherPlan, units: int, axes: int, left_out: int) -> FloatArray:
    """Return the variance of the noise on each mean score of the second step: of factors, then of the rest."""
    assert plan.second is not None
    variances = [cube_variance(2 / (units * plan.second.value), 1.0, axes + plan.spread + plan.ahead)] * axes
    if plan.rest is not None:
        variances += [cube_variance(2 / (units * plan.rest.value), 1.0, left_out)] * left_out
    return np.array(variances)


def _carried(plan: FisherPlan, units: int, gain: FloatArray, axes: int) -> CubeSum:
    """Return the noise distribution of the parameter, given its gain: from the factors and, if measured, the rest."""
    epsilon, more = (plan.first, plan.lengths) if plan.second is None else (plan.second, plan.spread + plan.ahead)
    near = np.hstack([gain[:, :axes], np.zeros((len(gain), int(more)))])
    parts = [CubeNoise.of(2 / (units * epsilon.value), near)]
    if plan.rest is not None:
        parts.append(CubeNoise.of(2 / (units * plan.rest.value), gain[:, axes:]))
    return CubeSum(tuple(parts))


def _squared_lengths(ballots: Ballots) -> IntArray:
    return np.array([int(ballots.counts.astype(np.int64) @ ballots.counts)], np.int64)


class VoterScore(_FisherScoring):
    """Fisher scoring with voters as units.

    Theorem. If every sum t of voters' integers (means, mean squares, scores) receives noise with density
    proportional to exp(-epsilon_t |x|_max / (2 SCORE_STEPS)), and the epsilon_t add up to epsilon, all noisy sums
    together are epsilon-differentially private for VLCP (and so for RLCP).

    Proof. A voter adds to each coordinate an integer of at most SCORE_STEPS in absolute value (``fisher_sums``),
    whatever the voter's records are and however many. So replacing a voter moves every coordinate by at most 2
    SCORE_STEPS, and one noisy sum is epsilon_t-differentially private (``cube_noise``, Theorem 1). The parameters of a
    step (its starting point, its clips, the directions of its squares) depend only on public numbers and on the output
    of earlier steps, so losses add up (adaptive composition: Dwork, McSherry, Nissim and Smith 2006). The number of
    voters is the same in neighbours. The rest is post-processing.
    """

    name = "voter-score"
    options = ("design",)
    title = "Fisher scoring with cube noise on the sums of voters' bounded scores"
    words = "noise, added once at each of a few steps, to sums of all voters' scores, each of them kept within bounds"
    paradigms = ("vlcp", "rlcp")
    by_voter = True
    unit = "voter"
    design_known = False


class PooledScore(_FisherScoring):
    """Fisher scoring with records as units; records weigh equally.

    Theorem. As for voters (``VoterScore``), with records as units: epsilon-differentially private for RLCP.

    Proof. Replacing a record moves every coordinate by at most 2 SCORE_STEPS: those of scores because a record adds at
    most SCORE_STEPS to each, that of the scatter by the argument in ``step_sums``. The number of records of each voter
    is the same in neighbours.
    """

    name = "pooled-score"
    options = ("design",)
    title = "Fisher scoring with cube noise on the sums of all records' bounded scores"
    words = "noise, added once at each of a few steps, to sums of the scores of all records"
    paradigms = ("rlcp",)
    by_voter = False
    unit = "record"
    design_known = False


class PooledChoices(_FisherScoring):
    """Fisher scoring with choices as units, on the dilemmas that were actually shown; choices weigh equally.

    Theorem. If the dilemmas shown are public and only the choices are secret, this is epsilon-differentially private
    for ALCP.

    Proof. Changing a choice replaces its record by the opposite one, which the theorem of ``PooledScore`` covers. The
    dilemmas are public, so they enter without noise.
    """

    name = "pooled-choices"
    title = "Fisher scoring with cube noise on the sums of scores, with the dilemmas really shown"
    words = "noise, added once at each of a few steps, to sums of the scores of all choices in dilemmas that are public"
    paradigms = ("alcp",)
    by_voter = False
    unit = "choice"
    design_known = True

    def _dilemmas(self, source: BallotSource, settings: MechanismSettings) -> Design:
        """Return the design of the dilemmas that were shown, or of a sample if they are many."""
        return design_of(settings.study, shown_dilemmas(source))
