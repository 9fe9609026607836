"""One bit (VLDP): each voter reports a bit about an axis that her device drew without looking, or a few such bits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from crowdveil.arrays import BoolArray, FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots
from crowdveil.errors import Reason, Refusal
from crowdveil.estimation.ballot_fit import BallotFit, fit_ballots, fit_whole
from crowdveil.estimation.clipped_ballots import ClippedBallots, clipped_ballots, told_length
from crowdveil.estimation.clipped_means import voter_clip
from crowdveil.estimation.design import GRID, Design, public_design
from crowdveil.estimation.disagreement import at_least
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.mechanism import Estimand, Estimate, Settings, unknown_along
from crowdveil.privacy.mechanisms.reports import LevelSums, all_sums, check_integers, epsilons_of, random_orders
from crowdveil.privacy.mechanisms.scores import Scoring, voter_scores
from crowdveil.privacy.noise.coins import Odds
from crowdveil.privacy.noise.distribution import Coins
from crowdveil.privacy.noise.source import Noise
from crowdveil.privacy.unknown import REACH
from crowdveil.study.study import Study

FLIP = Odds(0, 1, 1, 1)
"""Turned over with probability 1 / (1 + e^epsilon)."""
LENGTH_ONE_IN = 20
"""One report in so many is about the length of the ballot, by a draw that does not look at the answers."""
CLIPS = 4
"""So many clips are the deviation of a whole ballot's mean score.

There the clipped mean of many records has 99 % of the slope of its sign, 4 (2 Phi(1/4) - 1) / 2 phi(0), which tells
most of a faint preference; and that a bit follows how far a mean near zero is from it keeps what crowds show smooth.
"""

UNHEARD = 1e6
"""Variance of a mean in [-1, 1] along an axis that nobody reported."""
_SIZE_DOUBT, _LONG_DOUBT = 0.04, 0.03
"""How far the size of a preference may be off, relatively, because mean scores are not quite normal: more by so much
for each unit of its length."""
_TURN_DOUBT = 0.05
"""How long any other error may be for the same reason, relative to the preference. Both are from simulation without
noise (``tests/statistics/one_bit_constants.py errors``)."""
_DESIGN_DOUBT = 0.15
"""How far it may be off along an axis, where another than the study's generator drew the dilemmas."""
_STRETCH_REACH = 2.0
"""As doubt, so many deviations of what unknown lengths do to the direction."""


class Kind(StrEnum):
    """The question that a report's bits are about."""

    DIRECTION = "direction"
    """On which side the voter's mean score along the axis is, and how far."""
    LENGTH = "length"
    """How many records the voter has."""


_KINDS = tuple(Kind)


@dataclass(frozen=True)
class BitReports:
    """Reports of devices: a kind, and along the axes drawn a bit +1 or -1, perhaps turned over."""

    epsilons: Epsilons
    kinds: IntArray
    """The place of each report's kind among the kinds."""
    bits: IntArray
    """A column an axis: 0 where nothing is said."""

    def rows(self) -> IntArray:
        """Lay out all that leaves, bit for bit, a row a voter: the epsilon, the kind, a mask of the bits, the bits."""
        return np.column_stack([self.epsilons.micro, self.kinds, np.abs(self.bits), self.bits])


class Bits:
    """The wire format of ``BitReports``: the kind, the axes, and a bit for each."""

    fields = frozenset({"kind", "axes", "bits"})

    def write(self, reports: BitReports) -> Iterable[dict[str, Any]]:
        """Return what each voter reports."""
        for kind, bits in zip(reports.kinds.tolist(), reports.bits, strict=True):
            axes = np.flatnonzero(bits)
            yield {"kind": _KINDS[kind].value, "axes": axes.tolist(), "bits": bits[axes].tolist()}

    def check(self, body: Mapping[str, Any], study: Study) -> None:
        """Refuse another kind, axes that the study's design does not have, and anything but a bit for each."""
        if body["kind"] not in list(Kind):
            raise Refusal(Reason.MALFORMED, f"kind must be {' or '.join(Kind)}")
        directions = public_design(study).directions
        size = bits_to_report(directions, Epsilon.of_millionths(body["epsilon_micro"]))
        check_integers("axes", body["axes"], size, directions - 1, least=0)
        if any(a >= b for a, b in pairwise(body["axes"])):
            raise Refusal(Reason.MALFORMED, "axes must increase")
        check_integers("bits", body["bits"], size, 1)
        if 0 in body["bits"]:
            raise Refusal(Reason.OUT_OF_RANGE, "a bit is 1 or -1")

    def read(self, bodies: Sequence[Mapping[str, Any]], study: Study) -> BitReports:
        """Gather the bits."""
        bits = np.zeros((len(bodies), public_design(study).directions), np.int64)
        for row, body in enumerate(bodies):
            bits[row, body["axes"]] = body["bits"]
        kinds = np.array([_KINDS.index(body["kind"]) for body in bodies], np.int64)
        return BitReports(epsilons_of(bodies), kinds, bits)


class OneBit:
    """Say one bit of a voter's mean score along an axis drawn at random, turned over with probability 1/(1+e^epsilon).

    The device draws a kind (length once in twenty) and m of the study's k axes, uniformly and without looking at the
    answers. Let S be the sum of the voter's n integer scores along an axis, and c the study's public clip. A direction
    bit is +1 with probability (1 + clip(S / (n c), -1, 1)) / 2, so that its mean is the voter's clipped mean score; a
    length bit is +1 with probability 22 (n - 1) / (15 (n + 6)), or 1 from 16 records on, whatever the axis. Then each
    bit is turned over with probability 1 / (1 + e^(epsilon / m)).

    Theorem. The report is epsilon-differentially private for VLDP (and so for RLDP): for everything that a voter
    answered, and for how many dilemmas she answered, all of it together.

    Proof. Take any two ballots. The law of the kind and the axes is the same for both. Given them, the m bits are
    independent. Whatever the probability p that a bit was +1 before it may be turned over, it is +1 afterwards with
    probability (p e^t + 1 - p) / (1 + e^t), t = epsilon / m, which lies between 1 / (1 + e^t) and e^t / (1 + e^t); and
    so for -1. So the probabilities of a bit under the two ballots differ by a factor of e^t at most, and those of m
    bits by e^(m t) = e^epsilon.

    Nothing in the proof asks how scores are computed: whatever axes, clips and numbers of bits a server may name, the
    promise holds. A report is a kind, m axes and m bits, and nothing in it is unbounded: a liar moves the estimate by
    as much as an honest voter who feels strongly, and no further.

    Corrected for the flips, b / tanh(t / 2) is an unbiased estimate of the voter's clipped mean score along the axis,
    of variance at most 1 / tanh(t / 2)^2. A voter tells in proportion to m tanh(epsilon / 2m)^2, which m maximises;
    below an epsilon of about 3.3 it is 1.
    """

    name = "one-bit"
    title = "One bit of each voter's mean score along a random axis, by randomised response"
    words = "coin tosses, by which each voter's device may turn over the one bit, or the few, that it reports"
    paradigms = ("vldp", "rldp")
    papers = ()
    options = ("equal_votes",)
    estimates = Estimand.PREFERENCE
    wire = Bits()
    tosses_coins = False

    def scoring(self, study: Study) -> Scoring:
        """Return the rotated axes of the public design, and the clip c of a voter's mean score."""
        design = public_design(study).rotated
        return Scoring(design.axes, design.units, public_clip(study))

    def report_size(self, study: Study, epsilon: Epsilon) -> int:
        """Return the number m of bits."""
        return bits_to_report(public_design(study).directions, epsilon)

    def report(self, ballots: Ballots, settings: Settings, epsilons: Epsilons, noise: Noise) -> BitReports:
        """Draw kinds and axes, then toss the bits and turn some of them over."""
        directions = public_design(settings.study).directions
        of_length = noise.uniform(LENGTH_ONE_IN, ballots.voters, 1)[:, 0] == 0
        orders = random_orders(ballots.voters, directions, noise)
        sizes = _sizes(directions, epsilons)
        scores = voter_scores(ballots)
        clip = public_clip(settings.study)
        bits = np.zeros_like(scores)
        for size in np.unique(sizes).tolist():
            rows = np.flatnonzero(sizes == size)
            chosen = (rows[:, None], orders[rows, :size])
            counts = ballots.counts[rows]
            drawn = uniform_below(2 * clip * counts, size, noise)
            exact = exact_bits(scores[chosen], counts, clip, of_length[rows], drawn)
            turned = noise.tosses(FLIP, epsilons[rows].split(sizes[rows]), size)
            bits[chosen] = np.where(turned, -exact, exact)
        return BitReports(epsilons, of_length.astype(np.int64), bits)

    def acceptable(self, reports: BitReports, settings: Settings) -> BoolArray:
        """Refuse what is not m bits and zeros, of a kind."""
        sizes = _sizes(reports.bits.shape[1], reports.epsilons)
        known = (reports.kinds >= 0) & (reports.kinds < len(_KINDS))
        said = np.abs(reports.bits)
        return np.asarray(known & (said <= 1).all(axis=1) & (said.sum(axis=1) == sizes))

    def condense(self, reports: BitReports, settings: Settings) -> LevelSums:
        """Add the reports up."""
        return _sums(reports)

    def aggregate(self, reports: Iterable[BitReports | LevelSums], settings: Settings) -> Estimate:
        """Average the bits of each kind along each axis, and find the preference behind them."""
        design = public_design(settings.study).rotated
        return estimate_from_means(_axis_means(all_sums(reports, _sums), design, settings), design, settings)

    def expected_noise(self, settings: Settings, epsilons: Epsilons) -> Coins:
        """Return the noise around the estimate of an indifferent crowd of whole ballots, heard alike on all axes."""
        design = public_design(settings.study).rotated
        k = design.directions
        sizes = _sizes(k, epsilons)
        told = float((sizes * np.tanh(epsilons.values / (2 * sizes)) ** 2).sum()) * (1 - 1 / LENGTH_ONE_IN) / k
        errors = np.eye(k) / told
        fit = fit_whole(whole_ballots(settings.study), np.zeros(k), errors)
        return carried_coins(design, fit, errors)


def public_clip(study: Study) -> int:
    """Return c: half of the deviation of a voter's mean score over a whole ballot, in integer steps of an axis."""
    return round(voter_clip(study.drawing.dilemmas) * GRID / CLIPS)


@lru_cache(maxsize=1024)
def bits_to_report(directions: int, epsilon: Epsilon) -> int:
    """Return the number m of bits, at most one for each axis, that maximises m tanh(epsilon / 2m)^2."""
    return max(range(1, directions + 1), key=lambda m: m * np.tanh(epsilon.value / (2 * m)) ** 2)


def exact_bits(scores: IntArray, counts: IntArray, clip: int, of_length: BoolArray, drawn: IntArray) -> IntArray:
    """Return the bits for sums S of n records' scores, a row a voter. Private: not to leave before the flip.

    A uniform integer below 2 n c is less than S + n c with probability (1 + S / (n c)) / 2, kept within 0 and 1:
    exactly, and without a tie. For lengths, it is below their part of 2 n c.
    """
    reach = (counts * clip)[:, None]
    above, below = told_length(counts)
    direction, length = drawn < scores + reach, drawn * below[:, None] < above[:, None] * (2 * reach)
    return np.where(np.where(of_length[:, None], length, direction), 1, -1)


def uniform_below(bounds: IntArray, columns: int, noise: Noise) -> IntArray:
    """Draw uniform integers below each row's bound."""
    drawn = np.empty((len(bounds), columns), np.int64)
    for bound in np.unique(bounds).tolist():
        rows = np.flatnonzero(bounds == bound)
        drawn[rows] = noise.uniform(bound, len(rows), columns)
    return drawn


def _sizes(directions: int, epsilons: Epsilons) -> IntArray:
    levels, at = np.unique(epsilons.micro, return_inverse=True)
    return np.array([bits_to_report(directions, Epsilon.of_millionths(level)) for level in levels.tolist()], np.int64)[
        at
    ]


def _sums(reports: BitReports) -> LevelSums:
    """Add up the bits and the numbers of bits along each axis, by kind and epsilon."""
    levels = np.stack([reports.kinds, reports.epsilons.micro], axis=1)
    return LevelSums.of(levels, np.hstack([reports.bits, np.abs(reports.bits)]).astype(np.float64))


@dataclass(frozen=True)
class AxisMeans:
    """Means of the reports along the axes, corrected for the flips."""

    means: FloatArray
    """Of the clipped mean scores, along each axis."""
    variances: FloatArray
    """Of the means, over the coins and over which voters speak about which axis, at most."""
    together: FloatArray
    """Covariance of the means because voters speak about several axes at once: what their bits have in common."""
    told: float
    """The mean of what stands for the lengths of ballots."""
    told_variance: float
    voters: int
    sizes: list[int]


def _axis_means(sums: LevelSums, design: Design, settings: Settings) -> AxisMeans:
    """Take weighted means of the bits: those of a voter count by what her epsilon makes them worth."""
    k = design.directions
    kinds = sums.levels[:, 0]
    epsilons = Epsilons(np.ascontiguousarray(sums.levels[:, 1]))
    sizes = _sizes(k, epsilons)
    tanh = np.tanh(epsilons.split(sizes).values / 2)
    weights = sums.weights(k / (sizes * tanh**2), settings.equal_votes) / sizes
    direction, length = (np.where(kinds == _KINDS.index(kind), weights, 0.0) for kind in Kind)

    said, spoken = sums.mean(direction / tanh)[:k], sums.mean(direction)[k:]
    heard = spoken > 0
    spoken = np.where(heard, spoken, 1.0)
    means = np.where(heard, said / spoken, 0.0)
    variances = np.where(heard, sums.mean(direction**2 / tanh**2)[k:] / spoken**2, UNHEARD)
    if sums.is_mixed:  # Others than the voters in question may differ from them by up to twice their mean.
        variances += np.where(heard, sums.mean(direction**2)[k:] / spoken**2, 0.0) * 3 * np.minimum(means**2, 1.0)
    both = sums.squares(direction / tanh)[:k, :k] - np.outer(means, means) * sums.squares(direction)[k:, k:]
    together = at_least((both - np.diag(np.diag(both))) / np.outer(spoken, spoken), np.zeros((k, k)))

    told = 0.5
    told_variance = UNHEARD
    counted = float(sums.mean(length)[k:].sum())
    if counted > 0:
        told = (1 + float(sums.mean(length / tanh)[:k].sum()) / counted) / 2
        # A voter's bits have coins of their own, and may otherwise say all the same.
        told_variance = float(sums.mean(length**2 * (1 / tanh**2 + sizes - 1))[k:].sum()) / (4 * counted**2)
    return AxisMeans(means, variances, together, told, told_variance, sums.voters, sorted(set(sizes.tolist())))


def estimate_from_means(means: AxisMeans, design: Design, settings: Settings) -> Estimate:
    """Fit the preference, and tell apart what is not known of it."""
    errors = np.diag(means.variances)
    fit = fit_ballots(whole_ballots(settings.study), means.means, errors, means.told, means.told_variance)
    # Which voters were drawn is in the variance of their bits already, but for what bits of one voter have in common.
    sampling = fit.gain @ means.together @ fit.gain.T + fit.stretch
    length = float(np.linalg.norm(fit.center))
    asked_otherwise = 0.0 if settings.drawn else _DESIGN_DOUBT
    return Estimate(
        design.basis @ fit.mean,
        carried_coins(design, fit, errors),
        {"bits_per_report": means.sizes, "of": design.directions},
        unknown_along(
            design,
            mean=fit.mean,
            covariance=fit.covariance,
            center=fit.center,
            sampling=sampling,
            doubt=fit.doubt + asked_otherwise * np.abs(fit.center) + _STRETCH_REACH * _aside(fit),
            turn=_TURN_DOUBT * length,
            size=_SIZE_DOUBT + _LONG_DOUBT * min(length, REACH) + fit.size,
            # How many records voters have is secret: at least one each.
            records=means.voters,
        ),
    )


def whole_ballots(study: Study) -> ClippedBallots:
    """Return how clipped mean scores follow a preference in this study."""
    return clipped_ballots(study, public_clip(study) / GRID)


def _aside(fit: BallotFit) -> FloatArray:
    """Return how far unknown lengths move the center along each axis, other than by stretching all of it."""
    length = float(fit.center @ fit.center)
    if length == 0:
        return np.sqrt(np.diag(fit.stretch))
    across = np.eye(len(fit.center)) - np.outer(fit.center, fit.center) / length
    return np.asarray(np.sqrt(np.maximum(np.diag(across @ fit.stretch @ across), 0.0)), np.float64)


def carried_coins(design: Design, fit: BallotFit, errors: FloatArray) -> Coins:
    """Carry the coins' variances from the clipped means to the features."""
    carried = design.basis @ fit.gain
    return Coins(tuple(map(tuple, (carried @ errors @ carried.T).tolist())))
