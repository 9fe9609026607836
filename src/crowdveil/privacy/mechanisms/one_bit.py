"""One bit (VLDP): each voter reports one bit, or a few, about axes drawn independently of her answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from crowdveil.arrays import BoolArray, FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots
from crowdveil.errors import Reason, Refusal
from crowdveil.estimation.ballot_fit import NoiselessFits, UnshrunkFit, fit_ballots, gain_of_whole
from crowdveil.estimation.clipped_ballots import ClippedBallots, clipped_ballots, told_length
from crowdveil.estimation.clipped_means import voter_clip
from crowdveil.estimation.design import GRID, Design, measured_design
from crowdveil.estimation.dilemma_moments import shown_range, shown_size
from crowdveil.estimation.disagreement import at_least
from crowdveil.estimation.prior import rest_deviation
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.expected_errors import (
    ExpectedErrors,
    clipped_slope,
    from_features,
    noise_of_reports,
)
from crowdveil.privacy.mechanisms.integer_scores import ScoringParameters, voter_scores
from crowdveil.privacy.mechanisms.mechanism import (
    Estimand,
    Estimate,
    MechanismSettings,
    dilemmas_in_doubt,
    uncertainty_along,
)
from crowdveil.privacy.mechanisms.reports import LevelSums, all_sums, check_integers, epsilons_of, random_orders
from crowdveil.privacy.noise.coins import Odds
from crowdveil.privacy.noise.distribution import CoinSum
from crowdveil.privacy.noise.source import Noise
from crowdveil.privacy.uncertainty import REACH
from crowdveil.study.study import Study

FLIP = Odds(0, 1, 1, 1)
"""Odds of a flip: probability 1 / (1 + e^epsilon)."""
LENGTH_ONE_IN = 20
"""One report in this many is about the length of the ballot, drawn independently of the answers."""
CLIPS = 4
"""Ratio of the standard deviation of a whole ballot's mean score to the clip.

At this clip the clipped mean of many records has 99 % of the slope of its sign, 4 (2 Phi(1/4) - 1) / 2 phi(0). The sign
is the most informative about a weak preference. Near zero the bit's mean follows the score linearly, so the crowd's
clipped mean is smooth in its preference.
"""

UNHEARD = 1e6
"""Variance assigned to a mean in [-1, 1] along an axis that nobody reported."""
_SIZE_DOUBT, _LONG_DOUBT = 0.04, 0.03
"""Bound on the relative error of the preference's size, because mean scores are not exactly normal: a constant, and
the addition per unit of the preference's length."""
_TURN_DOUBT = 0.05
"""Bound on the length of any other error for the same reason, relative to the preference. Both come from simulation
without noise (``tests/statistics/one_bit_constants.py errors``)."""
_DESIGN_DOUBT = 0.15
"""Relative error of the clipped means, and so along an axis, if the study's generator did not draw the dilemmas: a
bound for bars, a standard deviation for probabilities. Designs tilted as ``tilted_design`` supposes of files have a
median of 0.17 to 0.30 (``tests/statistics/one_bit_constants.py design``); docs/knowledge.md says why this is less."""
_FEW_AXES = 3
"""Number of axes up to which long ballots are not scored whole."""
_CROWDS, _SEED = 6, 20_261_119
"""Crowds that a forecast draws."""
_STRETCH_REACH = 2.0
"""Standard deviations of the effect of unknown lengths on the direction that count as doubt."""


class BitKind(StrEnum):
    """The quantity that a report's bits are about."""

    DIRECTION = "direction"
    """The voter's mean score along the axis."""
    LENGTH = "length"
    """The number of the voter's records."""


_KINDS = tuple(BitKind)


@dataclass(frozen=True)
class BitReports:
    """Reports of devices: a kind, and a possibly flipped bit (+1 or -1) for each axis drawn."""

    epsilons: Epsilons
    kinds: IntArray
    """Index of each report's kind."""
    bits: IntArray
    """One column per axis; 0 for axes that are not reported."""

    def rows(self) -> IntArray:
        """Return all that leaves the devices, one row per voter: the epsilon, the kind, a mask of bits, the bits."""
        return np.column_stack([self.epsilons.micro, self.kinds, np.abs(self.bits), self.bits])


class BitFormat:
    """The wire format of ``BitReports``: the kind, the axes, and a bit for each."""

    fields = frozenset({"kind", "axes", "bits"})

    def write(self, reports: BitReports) -> Iterable[dict[str, Any]]:
        """Return the fields of each voter's report."""
        for kind, bits in zip(reports.kinds.tolist(), reports.bits, strict=True):
            axes = np.flatnonzero(bits)
            yield {"kind": _KINDS[kind].value, "axes": axes.tolist(), "bits": bits[axes].tolist()}

    def check(self, body: Mapping[str, Any], study: Study) -> None:
        """Refuse unknown kinds, axes that the study's design does not have, and anything but one bit per axis."""
        if body["kind"] not in list(BitKind):
            raise Refusal(Reason.MALFORMED, f"kind must be {' or '.join(BitKind)}")
        directions = measured_design(study).directions
        size = bits_to_report(directions, Epsilon.of_millionths(body["epsilon_micro"]))
        check_integers("axes", body["axes"], size, directions - 1, least=0)
        if any(a >= b for a, b in pairwise(body["axes"])):
            raise Refusal(Reason.MALFORMED, "axes must increase")
        check_integers("bits", body["bits"], size, 1)
        if 0 in body["bits"]:
            raise Refusal(Reason.OUT_OF_RANGE, "a bit is 1 or -1")

    def read(self, bodies: Sequence[Mapping[str, Any]], study: Study) -> BitReports:
        """Gather the bits into arrays."""
        bits = np.zeros((len(bodies), measured_design(study).directions), np.int64)
        for row, body in enumerate(bodies):
            bits[row, body["axes"]] = body["bits"]
        kinds = np.array([_KINDS.index(body["kind"]) for body in bodies], np.int64)
        return BitReports(epsilons_of(bodies), kinds, bits)


class OneBit:
    """One bit of a voter's mean score along a random axis, flipped with probability 1 / (1 + e^epsilon).

    The device draws a kind (length once in twenty) and m of the study's k axes, uniformly and independently of the
    answers. Where k is at most 3 and the voter has more than 2k records, it draws 2k of them at random, and leaves out
    the others (``most_records``). Let S be the sum of the n integer scores along an axis, and c the study's public
    clip. A direction bit is +1 with probability (1 + clip(S / (n c), -1, 1)) / 2, so its mean is the voter's clipped
    mean score. A length bit is +1 with probability 22 (n - 1) / (15 (n + 6)), rounded up to a multiple of 1 / (2 n c),
    or 1 from 16 records on, whatever the axis. Then each bit is flipped with probability 1 / (1 + e^(epsilon / m)).

    Theorem. The report is epsilon-differentially private for VLDP (and so for RLDP): it protects all of a voter's
    answers and their number, taken together.

    Proof. Take any two ballots. The kind and the axes have the same distribution for both. Given them and the records
    that are scored, the m bits are independent. If a bit is +1 with probability p before the flip, it is +1 afterwards
    with probability (p e^t + 1 - p) / (1 + e^t), t = epsilon / m. For any p this lies between 1 / (1 + e^t) and
    e^t / (1 + e^t), and so does the probability of -1. So the probability of m bits lies between (1 + e^t)^-m and
    e^(m t) / (1 + e^t)^m, whichever records are scored, and therefore on average over them, for either ballot. These
    bounds differ by a factor of e^(m t) = e^epsilon.

    The proof does not depend on how scores are computed: it holds for any axes, clips and numbers of bits and records
    that a server may request. A report is a kind, m axes and m bits, all bounded: a liar can move the estimate no
    further than an honest voter with a strong preference.

    Corrected for the flips, b / tanh(t / 2) is an unbiased estimate of the voter's clipped mean score along the axis,
    with variance at most 1 / tanh(t / 2)^2. A voter's information is proportional to m tanh(epsilon / 2m)^2, which m
    maximises; below an epsilon of about 3.3, m is 1.
    """

    name = "one-bit"
    title = "One bit of each voter's mean score along a random axis, by randomised response"
    words = "coin tosses, by which each voter's device may turn over the one bit, or the few, that it reports"
    paradigms = ("vldp", "rldp")
    papers = ()
    options = ("equal_votes", "design")
    estimates = Estimand.PREFERENCE
    wire = BitFormat()
    tosses_coins = False
    third_answer = True
    fits_once = False
    relayable = True
    by_group = True
    counts_effects = False

    def scoring(self, study: Study) -> ScoringParameters:
        """Return the rotated axes of the public design, the clip c of a voter's mean score, and the most records."""
        design = measured_design(study).rotated
        return ScoringParameters(design.axes, design.units, public_clip(study), most_records(study))

    def report_size(self, study: Study, epsilon: Epsilon) -> int:
        """Return the number m of bits."""
        return bits_to_report(measured_design(study).directions, epsilon)

    def report(self, ballots: Ballots, settings: MechanismSettings, epsilons: Epsilons, noise: Noise) -> BitReports:
        """Draw records, kinds and axes, then draw the bits and flip some of them."""
        ballots = scored_ballots(ballots, settings.study, noise)
        directions = measured_design(settings.study).directions
        of_length = noise.uniform(LENGTH_ONE_IN, ballots.voters, 1)[:, 0] == 0
        orders = random_orders(ballots.voters, directions, noise)
        sizes = _sizes(directions, epsilons)
        scores = voter_scores(ballots, settings.study)
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

    def acceptable(self, reports: BitReports, settings: MechanismSettings) -> BoolArray:
        """Accept reports of a known kind with exactly m bits."""
        sizes = _sizes(reports.bits.shape[1], reports.epsilons)
        known = (reports.kinds >= 0) & (reports.kinds < len(_KINDS))
        said = np.abs(reports.bits)
        return np.asarray(known & (said <= 1).all(axis=1) & (said.sum(axis=1) == sizes))

    def condense(self, reports: BitReports, settings: MechanismSettings) -> LevelSums:
        """Sum the reports."""
        return _sums(reports)

    def aggregate(self, reports: Iterable[BitReports | LevelSums], settings: MechanismSettings) -> Estimate:
        """Average the bits of each kind along each axis, and fit the preference to the means."""
        design = measured_design(settings.study).rotated
        return estimate_from_means(_axis_means(all_sums(reports, _sums), design, settings), design, settings)

    def expected_noise(self, settings: MechanismSettings, epsilons: Epsilons) -> CoinSum:
        """Return the noise for an indifferent crowd with whole ballots whose reports cover all axes equally."""
        design = measured_design(settings.study).rotated
        k = design.directions
        sizes = _sizes(k, epsilons)
        told = float((sizes * np.tanh(epsilons.values / (2 * sizes)) ** 2).sum()) * (1 - 1 / LENGTH_ONE_IN) / k
        errors = np.eye(k) / told
        return carried_coins(design, gain_of_whole(whole_ballots(settings.study)), errors)

    def expected_errors(
        self, settings: MechanismSettings, voters: int, records: int, epsilon: Epsilon
    ) -> ExpectedErrors:
        """Return the errors for voters with this many records each; with fewer, the clip leaves less of a score.

        Bits about long ballots saturate as a preference grows, so the errors of crowds that have one are those of the
        fit to what a few such crowds would report.
        """
        study = settings.study
        usual, scored = _scored(study, study.drawing.dilemmas), _scored(study, records)
        noise = noise_of_reports(partial(self.expected_noise, settings), measured_design(study), voters, epsilon)
        noise *= (clipped_slope(voter_clip(usual), usual) / clipped_slope(voter_clip(usual), scored)) ** 2
        return ExpectedErrors(
            noise,
            np.zeros_like(noise),
            0.0 if settings.drawn else _DESIGN_DOUBT,
            size=0.0 if settings.drawn else shown_size(measured_design(study).directions),
            rest_known=study.along == "features",
            hoeffding=True,
            records=voters,
            of_crowds=partial(_errors_of_crowds, settings, voters, records, epsilon),
        )


def most_records(study: Study) -> int | None:
    """Return the largest number of records of a voter that are scored, or None if all are.

    A sum over many records says which side of an axis a voter is on, and no longer how strongly: her bit saturates, and
    the size of a preference that few axes share is lost. A sum over fewer records says less of the side. One of n
    records moves by about b sqrt(2n / pi k) deviations if margins have the size b. The slope of the mean of its sign is
    largest if that is 1: with 2k records for b = 0.9, as in crowds of real people. Simulated, that loses about the
    least with one, two and three axes; with five, little is gained, and for few voters something lost
    (``tests/statistics/one_bit_constants.py records``).
    """
    axes = measured_design(study).directions
    return 2 * axes if axes <= _FEW_AXES else None


def scored_ballots(ballots: Ballots, study: Study, noise: Noise) -> Ballots:
    """Return the ballots with at most ``most_records`` records of each voter, drawn at random where she has more."""
    most, counts = most_records(study), ballots.counts
    if most is None or not (counts > most).any():
        return ballots
    offsets = np.concatenate([[0], np.cumsum(np.minimum(counts, most))])
    kept = np.empty(offsets[-1], np.int64)
    for count in np.unique(counts).tolist():
        voters = np.flatnonzero(counts == count)
        size = min(count, most)
        places = random_orders(len(voters), count, noise)[:, :size] if count > most else np.arange(count)
        kept[offsets[voters, None] + np.arange(size)] = ballots.offsets[voters, None] + places
    return Ballots.from_differences(study, offsets, ballots.differences[kept])


def public_clip(study: Study) -> int:
    """Return c: the standard deviation of a whole ballot's mean score over CLIPS, in integer steps of an axis."""
    return round(voter_clip(_scored(study, study.drawing.dilemmas)) * GRID / CLIPS)


def _scored(study: Study, records: int) -> int:
    """Return how many of a voter's records are scored."""
    return min(records, most_records(study) or records)


@lru_cache(maxsize=1024)
def bits_to_report(directions: int, epsilon: Epsilon) -> int:
    """Return the number m of bits, at most one per axis, that maximises m tanh(epsilon / 2m)^2."""
    return max(range(1, directions + 1), key=lambda m: m * np.tanh(epsilon.value / (2 * m)) ** 2)


def exact_bits(scores: IntArray, counts: IntArray, clip: int, of_length: BoolArray, drawn: IntArray) -> IntArray:
    """Return the bits for sums S of n records' scores, one row per voter. Private: they must not leave unflipped.

    A uniform integer below 2 n c is less than S + n c with probability exactly (1 + S / (n c)) / 2, clipped to [0, 1].
    A length bit compares it with the encoded fraction of 2 n c.
    """
    reach = (counts * clip)[:, None]
    above, below = told_length(counts)
    direction = drawn < scores + reach
    length = drawn * below[:, None] < above[:, None] * (2 * reach)
    return np.where(np.where(of_length[:, None], length, direction), 1, -1)


def uniform_below(bounds: IntArray, columns: int, noise: Noise) -> IntArray:
    """Draw uniform non-negative integers below each row's bound."""
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
    """Mean of the clipped mean scores along each axis."""
    variances: FloatArray
    """Upper bounds on the variances of the means over the flips and the voters' choice of axes."""
    surer: FloatArray
    """A mean m has a variance less than the bound by this times m^2, as a bit of mean m has the variance 1 - m^2."""
    together: FloatArray
    """Covariance of the means because the bits of one voter about several axes are correlated."""
    told: float
    """Mean of the encoded lengths of ballots."""
    told_variance: float
    voters: int
    sizes: list[int]


def _axis_means(sums: LevelSums, design: Design, settings: MechanismSettings) -> AxisMeans:
    """Return weighted means of the bits, with weights by the information that a voter's epsilon allows."""
    k = design.directions
    kinds = sums.levels[:, 0]
    epsilons = Epsilons.of_millionths(np.ascontiguousarray(sums.levels[:, 1]))
    sizes = _sizes(k, epsilons)
    tanh = np.tanh(epsilons.split(sizes).values / 2)
    weights = sums.weights(k / (sizes * tanh**2), settings.equal_votes) / sizes
    direction, length = (np.where(kinds == _KINDS.index(kind), weights, 0.0) for kind in BitKind)

    said, spoken = sums.mean(direction / tanh)[:k], sums.mean(direction)[k:]
    heard = spoken > 0
    spoken = np.where(heard, spoken, 1.0)
    means = np.where(heard, said / spoken, 0.0)
    variances = np.where(heard, sums.mean(direction**2 / tanh**2)[k:] / spoken**2, UNHEARD)
    surer = np.where(heard, sums.mean(direction**2)[k:] / spoken**2, 0.0)
    if sums.is_mixed:  # Voters outside the group may differ from it by up to twice its mean.
        variances += surer * 3 * np.minimum(means**2, 1.0)
        surer = np.zeros(k)
    both = sums.squares(direction / tanh)[:k, :k] - np.outer(means, means) * sums.squares(direction)[k:, k:]
    together = at_least((both - np.diag(np.diag(both))) / np.outer(spoken, spoken), np.zeros((k, k)))

    told = 0.5
    told_variance = UNHEARD
    counted = float(sums.mean(length)[k:].sum())
    if counted > 0:
        told = (1 + float(sums.mean(length / tanh)[:k].sum()) / counted) / 2
        # The bits of one voter have independent flips, and may otherwise be perfectly correlated.
        told_variance = float(sums.mean(length**2 * (1 / tanh**2 + sizes - 1))[k:].sum()) / (4 * counted**2)
    return AxisMeans(means, variances, surer, together, told, told_variance, sums.voters, sorted(set(sizes.tolist())))


def estimate_from_means(means: AxisMeans, design: Design, settings: MechanismSettings) -> Estimate:
    """Fit the preference, and separate its errors by cause."""
    errors = np.diag(means.variances)
    other_dilemmas = 0.0 if settings.drawn else _DESIGN_DOUBT
    fitted = fit_ballots(
        whole_ballots(settings.study),
        means.means,
        errors,
        means.told,
        means.told_variance,
        other_dilemmas,
        means.surer,
    )
    fit = fitted.unshrunk
    # The variance of the bits covers the sampling of voters, except for the correlation between bits of one voter.
    sampling = fit.gain @ means.together @ fit.gain.T + fit.stretch
    shown = (1.0, 1.0) if settings.drawn else shown_range(design.directions)
    return Estimate(
        design.basis @ fitted.mean,
        carried_coins(design, fit.gain, errors),
        {
            "bits_per_report": means.sizes,
            "axes": design.directions,
            "weighing": "every voter counts once",
            **settings.dilemma_facts(dilemmas_in_doubt(_DESIGN_DOUBT, shown=shown)),
        },
        uncertainty_along(
            design,
            mean=fitted.mean,
            covariance=fitted.covariance,
            center=fit.center,
            sampling=sampling,
            doubt=_doubt(fit, other_dilemmas),
            turn=_TURN_DOUBT * float(np.linalg.norm(fit.center)),
            size=_size_doubt(fit),
            # The number of records is secret: assume one per voter.
            records=means.voters,
            shown=shown,
        ),
    )


def whole_ballots(study: Study) -> ClippedBallots:
    """Return the model of clipped mean scores for this study."""
    return clipped_ballots(study, public_clip(study) / GRID, most_records(study))


@lru_cache(maxsize=8)
def _drawn_crowds(study: Study, records: int, deviation: float) -> list[NoiselessFits]:
    """Return the fits to a few crowds, drawn by the deviation of the preference along each axis of a factor."""
    rotated = measured_design(study).rotated
    ballots = whole_ballots(study)
    factors = rotated.directions - rotated.left_out
    deviations = np.repeat([deviation, rest_deviation(rotated.left_out)], [factors, rotated.left_out])
    rng = np.random.default_rng(_SEED)
    drawn = deviations * rng.standard_normal((_CROWDS, len(deviations)))
    return [NoiselessFits.of(ballots, preference, ballots.told(records)) for preference in drawn]


def _errors_of_crowds(
    settings: MechanismSettings, voters: int, records: int, epsilon: Epsilon, deviation: float
) -> list[ExpectedErrors]:
    """Return the errors of a few crowds, whose preferences have this standard deviation along each axis of a factor."""
    study = settings.study
    rotated = measured_design(study).rotated
    k = rotated.directions
    size = bits_to_report(k, epsilon)
    toss = 1 / np.tanh(epsilon.value / (2 * size)) ** 2
    of_length = voters / LENGTH_ONE_IN
    variance = k * toss / (size * (voters - of_length))
    told_variance = float((toss + size - 1) / (4 * size * of_length))
    along_all = from_features(measured_design(study)) @ rotated.basis
    other_dilemmas = 0.0 if settings.drawn else _DESIGN_DOUBT
    found = []
    for noiseless in _drawn_crowds(study, records, deviation):
        fit = noiseless.unshrunk(told_variance)
        carried = along_all @ fit.gain
        sampling = along_all @ fit.stretch @ along_all.T
        found.append(
            ExpectedErrors(
                variance * carried @ carried.T,
                sampling,
                float(_doubt(fit, other_dilemmas).sum() / np.abs(fit.center).sum()),
                turn=_TURN_DOUBT,
                size=_size_doubt(fit) + (0.0 if settings.drawn else shown_size(k)),
                rest_known=study.along == "features",
                hoeffding=True,
                records=voters,
            )
        )
    return found


def _doubt(fit: UnshrunkFit, other_dilemmas: float) -> FloatArray:
    """Return the bound on the bias along each axis."""
    return fit.doubt + other_dilemmas * np.abs(fit.center) + _STRETCH_REACH * _aside(fit)


def _size_doubt(fit: UnshrunkFit) -> float:
    """Return the bound on the relative error of the size."""
    return _SIZE_DOUBT + _LONG_DOUBT * min(float(np.linalg.norm(fit.center)), REACH) + fit.size


def _aside(fit: UnshrunkFit) -> FloatArray:
    """Return the standard deviation of the center along each axis due to unknown lengths, its size aside."""
    length = float(fit.center @ fit.center)
    if length == 0:
        return np.sqrt(np.diag(fit.stretch))
    across = np.eye(len(fit.center)) - np.outer(fit.center, fit.center) / length
    return np.asarray(np.sqrt(np.maximum(np.diag(across @ fit.stretch @ across), 0.0)), np.float64)


def carried_coins(design: Design, gain: FloatArray, errors: FloatArray) -> CoinSum:
    """Propagate the variances of the flips from the clipped means to the features."""
    carried = design.basis @ gain
    return CoinSum(tuple(map(tuple, (carried @ errors @ carried.T).tolist())))
