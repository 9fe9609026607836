"""Pooled scores (RLCP, ALCP, VLCP): all voters' scores are added up and noised once."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.special import ndtr

from crowdveil.arrays import FloatArray
from crowdveil.ballots import BallotSource
from crowdveil.estimation.design import SAMPLE, Design, public_design
from crowdveil.estimation.moments import preference_from_scores
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.mechanism import Estimand, Estimate, Loss, Measurement, Settings, measured
from crowdveil.privacy.mechanisms.randomised_response import oriented
from crowdveil.privacy.mechanisms.scores import (
    RECORD_SENSITIVITY,
    SCORE_STEPS,
    cube_variance,
    expected_square,
    sum_of_scores,
)
from crowdveil.privacy.noise.distribution import CubeNoise
from crowdveil.privacy.noise.source import Noise


class PooledScore:
    """Noise on the sum of all records' scores.

    Theorem. Adding noise with density proportional to exp(-epsilon |x|_max / (2 SCORE_STEPS)) to the sum of all
    integer scores is epsilon-differentially private for RLCP.

    Proof. Replacing one record moves every coordinate of the sum by at most 2 SCORE_STEPS (``scores``), so two
    neighbours' probabilities differ by at most e^epsilon at every point (``cube_noise``, Theorem 1). The number of
    records is the same in neighbours (bounded), so dividing by it is post-processing, as is the rest.
    """

    name = "pooled-score"
    title = "Pooled score: cube noise on the sum of all records' scores"
    words = "noise, added once, to the sum of the scores of all records"
    paradigms = ("rlcp",)
    papers = ()
    options = ()
    estimates = Estimand.PREFERENCE
    takes = Loss.EPSILON

    def measure(self, source: BallotSource, settings: Settings, loss: Epsilon) -> Measurement:
        """Add up every voter's scores (integers: the order cannot matter)."""
        return measured(source, partial(sum_of_scores, public_design(settings.study).basis, None))

    def release(self, measurement: Measurement, settings: Settings, loss: Epsilon, noise: Noise) -> Estimate:
        """Add the noise and find the preference that explains the mean score."""
        return estimate_from_pool(measurement, public_design(settings.study), loss, noise)

    def expected_noise(self, settings: Settings, voters: int, loss: Epsilon) -> CubeNoise:
        """Return the noise as it would be carried through the estimate of an indifferent crowd."""
        design = public_design(settings.study)
        records = voters * settings.study.drawing.dilemmas
        return _noise_when_indifferent(design, 2 / (records * loss.value), design.score_size / records)


class PooledChoices:
    """The pooled score, with the dilemmas that were really shown in place of the study's generator.

    Theorem. Where the dilemmas shown are public and only the choices are secret, this is epsilon-differentially
    private for ALCP.

    Proof. Turning one choice over replaces a record by its negative, which moves every coordinate of the sum of scores
    by at most 2 SCORE_STEPS: Theorem of the pooled score. What the dilemmas were enters without noise, being public.
    """

    name = "pooled-choices"
    title = "Pooled choices: cube noise on the sum of scores, with the dilemmas really shown"
    words = "noise, added once, to the sum of the scores of all choices in dilemmas that are public"
    paradigms = ("alcp",)
    papers = ()
    options = ()
    estimates = Estimand.PREFERENCE
    takes = Loss.EPSILON

    def measure(self, source: BallotSource, settings: Settings, loss: Epsilon) -> Measurement:
        """Add up all scores; keep the dilemmas (some, if they are many), which are public."""
        measurement = measured(source, partial(sum_of_scores, public_design(settings.study).basis, None))
        shown: list[FloatArray] = []
        kept = 0
        for ballots in source.batches():
            shown.append(oriented(ballots)[0][: SAMPLE - kept].astype(np.float64))
            kept += len(shown[-1])
            if kept == SAMPLE:
                break
        return replace(measurement, shown=np.concatenate(shown))

    def release(self, measurement: Measurement, settings: Settings, loss: Epsilon, noise: Noise) -> Estimate:
        """Add the noise and find the preference that explains the mean score on these dilemmas."""
        assert measurement.shown is not None
        design = replace(public_design(settings.study), differences=measurement.shown)
        return estimate_from_pool(measurement, design, loss, noise)

    def expected_noise(self, settings: Settings, voters: int, loss: Epsilon) -> CubeNoise:
        """Return what the pooled score would have."""
        return PooledScore().expected_noise(settings, voters, loss)


class VoterScore:
    """Noise on the sum of all voters' scores, each voter's kept within a cube.

    Theorem. With every voter's summed score clipped to [-C, C] in each coordinate, adding noise with density
    proportional to exp(-epsilon |x|_max / (2C)) to the sum over voters is epsilon-differentially private for VLCP
    (and so for RLCP).

    Proof. Replacing one voter moves every coordinate of the sum by at most 2C; the rest is as for the pooled score. C
    and the divisor depend on the study, on epsilon and on the number of voters, which neighbours share, and on
    nothing else: not even on how many records a voter has, which voter-neighbours need not share.

    C balances the noise against what clipping cuts off (``voter_clip``). A clipped score keeps its sign and shrinks on
    average by the probability of not being clipped, for which the estimate makes up.
    """

    name = "voter-score"
    title = "Voter score: cube noise on the sum of voters' clipped scores"
    words = "noise, added once, to the sum of all voters' scores, each of them kept within bounds"
    paradigms = ("vlcp", "rlcp")
    papers = ()
    options = ()
    estimates = Estimand.PREFERENCE
    takes = Loss.EPSILON

    def measure(self, source: BallotSource, settings: Settings, loss: Epsilon) -> Measurement:
        """Clip every voter's score and add up."""
        clip, _ = voter_clip(settings, source.voters, loss.value)
        return measured(source, partial(sum_of_scores, public_design(settings.study).basis, clip))

    def release(self, measurement: Measurement, settings: Settings, loss: Epsilon, noise: Noise) -> Estimate:
        """Add the noise and find the preference that explains the mean score."""
        design, voters = public_design(settings.study), measurement.voters
        clip, kept = voter_clip(settings, voters, loss.value)
        drawn = noise.cube(2 * clip, Epsilons.same(loss, 1), design.directions)[0]
        # What a whole crowd of one mind and without clipping would add up to for each point of mean score.
        weight = SCORE_STEPS * voters * settings.study.drawing.dilemmas * kept
        scale, sampling = _voter_noise(settings, voters, loss.value)
        return _estimate(design, (measurement.total + drawn) / weight, scale, sampling)

    def expected_noise(self, settings: Settings, voters: int, loss: Epsilon) -> CubeNoise:
        """Return the noise as it would be carried through the estimate of an indifferent crowd."""
        scale, sampling = _voter_noise(settings, voters, loss.value)
        return _noise_when_indifferent(public_design(settings.study), scale, sampling)


def estimate_from_pool(measurement: Measurement, design: Design, epsilon: Epsilon, noise: Noise) -> Estimate:
    """Add the noise of the pooled score and find the preference that explains the mean score on this design."""
    drawn = noise.cube(RECORD_SENSITIVITY, Epsilons.same(epsilon, 1), design.directions)[0]
    records = measurement.records
    mean = (measurement.total + drawn) / (SCORE_STEPS * records)
    return _estimate(design, mean, 2 / (records * epsilon.value), design.score_size / records)


def voter_clip(settings: Settings, voters: int, epsilon: float) -> tuple[int, float]:
    """Choose C in steps, and return with it the share of a score that clipping lets through.

    A voter's score along an axis is modelled as normal (``scores.expected_square``). Clipping at C lets the share
    p = P(|score| < C) of a small common mean through (Stein's lemma), and leaves the mean with the variance
    (noise(C) + N E clip^2) / (N p)^2, which is minimised over C.
    """
    design = public_design(settings.study)
    deviation = math.sqrt(expected_square(design, float(settings.study.drawing.dilemmas)))
    multiples = np.geomspace(0.05, 4.0, 200)
    share = 2 * ndtr(multiples) - 1
    # E clip(Z, -c, c)^2 of a standard normal Z
    square = share - 2 * multiples * np.exp(-(multiples**2) / 2) / math.sqrt(2 * math.pi) + multiples**2 * (1 - share)
    noise = cube_variance(2 * multiples, epsilon, design.directions)
    best = int(np.argmin((noise + voters * square) / share**2))
    return max(1, math.floor(multiples[best] * deviation * SCORE_STEPS)), float(share[best])


def _voter_noise(settings: Settings, voters: int, epsilon: float) -> tuple[float, float]:
    """Return the scale of the noise on the mean score, and the variance that a crowd of this size has anyway."""
    clip, kept = voter_clip(settings, voters, epsilon)
    reach = clip / SCORE_STEPS / (settings.study.drawing.dilemmas * kept)
    return 2 * reach / (voters * epsilon), reach**2 / voters


def _estimate(design: Design, mean: FloatArray, scale: float, sampling: float) -> Estimate:
    """Fit the preference to a mean score with cube noise of this scale and this variance of sampling."""
    variance = cube_variance(scale, 1.0, design.directions) + sampling
    fit = preference_from_scores(design, mean, variance * np.eye(design.directions))
    return Estimate(fit.preference, CubeNoise(scale, tuple(map(tuple, fit.gain.tolist()))))


def _noise_when_indifferent(design: Design, scale: float, sampling: float) -> CubeNoise:
    noise = _estimate(design, np.zeros(design.directions), scale, sampling).noise
    assert isinstance(noise, CubeNoise)
    return noise
