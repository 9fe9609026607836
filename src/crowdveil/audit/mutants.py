"""Deliberate mistakes in copies of our own parts: an audit that misses one of them is worth nothing.

Most are a noise source that does not quite do what was requested, under an unchanged mechanism.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from crowdveil.arrays import BoolArray, ByteArray, IntArray
from crowdveil.ballots.ballots import Ballots, BallotSource
from crowdveil.estimation.design import measured_design
from crowdveil.estimation.dilemmas import oriented
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.fisher_scoring import PooledScore, VoterScore
from crowdveil.privacy.mechanisms.integer_scores import voter_scores
from crowdveil.privacy.mechanisms.mechanism import Measurement, MechanismSettings
from crowdveil.privacy.mechanisms.one_bit import BitReports, OneBit
from crowdveil.privacy.mechanisms.randomised_response import ChoiceReports, RandomisedResponse
from crowdveil.privacy.noise.coins import Odds
from crowdveil.privacy.noise.exact_noise import BulkNoise, OpenDPGaussian
from crowdveil.privacy.noise.source import Noise


class TooLittleNoise(BulkNoise):
    """Noise whose scale is too small by a factor: 2 (one side of the ball forgotten), sqrt 2 (a wrong norm)."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self._factor = factor

    def laplace(self, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
        """Draw with too small a sensitivity."""
        return super().laplace(math.floor(sensitivity / self._factor), epsilons, columns)

    def cube(self, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
        """Draw with too small a sensitivity."""
        return super().cube(math.floor(sensitivity / self._factor), epsilons, columns)


class NoisePerCoordinate(BulkNoise):
    """Laplace noise on each coordinate for its own sensitivity, as if the other coordinates did not move too."""

    def cube(self, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
        """Draw independent coordinates."""
        return super().laplace(sensitivity, epsilons, columns)


class SharedDraw(BulkNoise):
    """Noise whose first two coordinates share one draw."""

    def laplace(self, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
        """Draw, and use the first column twice."""
        noise = super().laplace(sensitivity, epsilons, columns)
        noise[:, 1] = noise[:, 0]
        return noise


class NarrowGaussian(OpenDPGaussian):
    """Gaussian noise with half the requested standard deviation."""

    def gaussian(self, sensitivity: int, rho: Fraction, columns: int) -> IntArray:
        """Draw for four times the rho."""
        return super().gaussian(sensitivity, 4 * rho, columns)


class WrongOdds(BulkNoise):
    """Noise in which one kind of coin is tossed with other odds."""

    def __init__(self, right: Odds, wrong: Odds) -> None:
        super().__init__()
        self._right, self._wrong = right, wrong

    def tosses(self, odds: Odds, epsilons: Epsilons, columns: int) -> BoolArray:
        """Toss with the wrong odds if the right ones were requested."""
        return super().tosses(self._wrong if odds == self._right else odds, epsilons, columns)


class WholeBudgetPerChoice(BulkNoise):
    """Noise in which each of two choices is flipped as if it were the only one."""

    def tosses(self, odds: Odds, epsilons: Epsilons, columns: int) -> BoolArray:
        """Toss with twice the epsilon."""
        return super().tosses(odds, Epsilons(2 * epsilons.values), columns)


class WholeBudgetPerStep(BulkNoise):
    """Noise in which each of two steps spends the budget of both."""

    def cube(self, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
        """Draw with twice the epsilon."""
        return super().cube(sensitivity, Epsilons(2 * epsilons.values), columns)


class SeededBytes:
    """Random bytes from a generator that keeps its state, which a fork copies."""

    def __init__(self) -> None:
        self._generator = np.random.default_rng()

    def take(self, count: int) -> ByteArray:
        """Return the next bytes."""
        return np.frombuffer(self._generator.bytes(count), np.uint8)


class SignedZeros(RandomisedResponse):
    """Randomised response that reports the record or its negative as the dilemma: a zero's sign reveals the choice."""

    def report(self, ballots: Ballots, settings: MechanismSettings, epsilons: Epsilons, noise: Noise) -> ChoiceReports:
        """Report as usual, but let zeros keep their sign."""
        honest = super().report(ballots, settings, epsilons, noise)
        choices = oriented(ballots)[1]
        zeros = np.copysign(0.0, choices)[:, None]
        return replace(honest, dilemmas=np.where(honest.dilemmas == 0, zeros, honest.dilemmas))


class LoudestAxis(OneBit):
    """One-bit reports whose axis is not drawn: a device takes the axis with its voter's largest score."""

    def report(self, ballots: Ballots, settings: MechanismSettings, epsilons: Epsilons, noise: Noise) -> BitReports:
        """Report as usual, but move the bit to the axis with the largest score."""
        honest = super().report(ballots, settings, epsilons, noise)
        loudest = np.abs(voter_scores(ballots, settings.study)).argmax(axis=1)
        bits = np.where(np.arange(honest.bits.shape[1]) == loudest[:, None], honest.bits.sum(axis=1)[:, None], 0)
        return replace(honest, bits=bits)


class UnclippedVoterScore(VoterScore):
    """The sum of voters' scores without clipping."""

    def measure(self, source: BallotSource, settings: MechanismSettings, loss: Epsilon) -> Measurement:
        """Sum without clipping: along the axes, a voter adds all of her records."""
        honest = super().measure(source, settings, loss)
        unclipped = PooledScore().measure(source, settings, loss)
        axes = measured_design(settings.study).directions
        return replace(honest, total=np.concatenate([unclipped.total[:axes], honest.total[axes:]]))
