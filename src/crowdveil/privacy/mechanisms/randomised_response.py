"""Randomised response (choice level, distributed): the dilemmas are public, and each choice may be flipped.

If people may answer "neither", each of the three answers may be replaced by another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from crowdveil.arrays import BoolArray, FloatArray, IntArray, ValueArray
from crowdveil.ballots.ballots import Ballots
from crowdveil.errors import Reason, Refusal, is_number
from crowdveil.estimation.design import Design, public_design
from crowdveil.estimation.dilemmas import oriented
from crowdveil.estimation.disagreement import DISAGREEMENT
from crowdveil.estimation.flipped_choices import (
    TELLING,
    ChoiceFit,
    FlippedChoices,
    effective_number,
    fit_flipped_choices,
    not_drawn,
)
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.about_you import AboutYou
from crowdveil.privacy.mechanisms.expected_errors import ExpectedErrors, among_all
from crowdveil.privacy.mechanisms.indifference import with_threshold
from crowdveil.privacy.mechanisms.mechanism import (
    DILEMMAS_PUBLIC,
    Estimand,
    Estimate,
    MechanismSettings,
    never_asked,
    uncertainty_along,
)
from crowdveil.privacy.mechanisms.reports import (
    LevelSums,
    check_integers,
    epsilons_of,
    influence,
    random_orders,
    unsummed,
)
from crowdveil.privacy.mechanisms.shares import NoisyShare
from crowdveil.privacy.noise.coins import Odds
from crowdveil.privacy.noise.distribution import EmpiricalNormal
from crowdveil.privacy.noise.source import Noise
from crowdveil.study.study import Study

FLIP = Odds(0, 1, 1, 1)
"""Odds of a flip: probability 1 / (1 + e^epsilon)."""
_USUAL_DOUBT = 0.02
"""Approximate doubt along an axis, relative to the preference there, in simulated polls of 500 to 5,000 voters at
epsilon 1 and 10. It is for forecasts of polls, whose dilemmas the study's generator draws."""


@dataclass(frozen=True)
class ChoiceReports:
    """Reports of devices: a possibly flipped choice (+1 or -1) for each public dilemma."""

    epsilons: Epsilons
    """Epsilon of each single choice, one per voter."""
    offsets: IntArray
    dilemmas: ValueArray
    """Public: the difference of the two alternatives, signed so that its first non-zero entry is positive."""
    choices: IntArray

    def rows(self) -> IntArray:
        """Return all that leaves the devices, one row per voter: public columns, the dilemmas, then the choices.

        All voters must have equally many. Floats are given by their bits, since even the sign of a zero could leak.
        """
        voters = len(self.epsilons)
        dilemmas = self.dilemmas
        bits = dilemmas.view(np.int64) if dilemmas.dtype == np.float64 else dilemmas.astype(np.int64)
        public = [self.epsilons.micro, np.diff(self.offsets), bits.reshape(voters, -1)]
        return np.column_stack([*public, self.choices.reshape(voters, -1)])


@dataclass(frozen=True)
class ChoiceFormat:
    """The wire format of ``ChoiceReports``: the public dilemmas, and a choice for each."""

    size: Callable[[Study, Epsilon], int]
    """The number of choices in a report."""
    split: bool
    """Whether all choices of a voter share the epsilon."""

    fields = frozenset({"dilemmas", "choices"})

    def write(self, reports: ChoiceReports) -> Iterable[dict[str, Any]]:
        """Return the fields of each voter's report."""
        for start, stop in pairwise(reports.offsets.tolist()):
            yield {
                "dilemmas": reports.dilemmas[start:stop].tolist(),
                "choices": reports.choices[start:stop].tolist(),
            }

    def check(self, body: Mapping[str, Any], study: Study) -> None:
        """Refuse a wrong number of choices, and dilemmas that the study does not have."""
        expected = self.size(study, Epsilon.of_millionths(body["epsilon_micro"]))
        check_integers("choices", body["choices"], expected, 1)
        if not isinstance(body["dilemmas"], list) or len(body["dilemmas"]) != expected:
            raise Refusal(Reason.WRONG_SIZE, f"a report of this study has {expected} dilemmas")
        for dilemma in body["dilemmas"]:
            _check_dilemma(dilemma, study)

    def read(self, bodies: Sequence[Mapping[str, Any]], study: Study) -> ChoiceReports:
        """Gather the choices into arrays."""
        counts = np.array([len(body["choices"]) for body in bodies], np.int64)
        epsilons = epsilons_of(bodies)
        return ChoiceReports(
            epsilons.split(counts) if self.split else epsilons,
            np.concatenate([[0], np.cumsum(counts)]),
            np.array([dilemma for body in bodies for dilemma in body["dilemmas"]], np.float64),
            np.array([choice for body in bodies for choice in body["choices"]], np.int64),
        )


def _check_dilemma(dilemma: Any, study: Study) -> None:
    if not isinstance(dilemma, list) or len(dilemma) != study.dimension:
        raise Refusal(Reason.WRONG_SIZE, f"a dilemma of this study has {study.dimension} numbers")
    for value, reach in zip(dilemma, study.reach.tolist(), strict=True):
        if not is_number(value) or not math.isfinite(value):
            raise Refusal(Reason.MALFORMED, "a dilemma is a list of numbers")
        if abs(value) > reach:
            raise Refusal(Reason.OUT_OF_RANGE, f"the study has no such dilemma: {value:g} is beyond {reach:g}")
    if next((value for value in dilemma if value), 1) < 0:
        raise Refusal(Reason.MALFORMED, "the first number of a dilemma that is not 0 must be positive")


def choices_to_report(counts: IntArray, epsilons: Epsilons) -> IntArray:
    """Return for each voter the number k of choices that maximises k tanh(epsilon / 2k)^2."""
    best = np.ones(len(counts), np.int64)
    for k in range(2, int(counts.max()) + 1):
        better = k * np.tanh(epsilons.values / 2 / k) ** 2 > best * np.tanh(epsilons.values / 2 / best) ** 2
        best = np.where(better & (counts >= k), k, best)
    return best


@lru_cache(maxsize=256)
def _choices_to_report(dilemmas: int, epsilon: Epsilon) -> int:
    return int(choices_to_report(np.array([dilemmas]), Epsilons.same(epsilon, 1))[0])


class RandomisedResponse:
    """Flip each choice with probability 1 / (1 + e^epsilon), and fit an estimating equation that corrects for it.

    Theorem. If the dilemmas shown are public and only the choices are secret, each voter's report is
    epsilon-differentially private for ALDP.

    Proof. Neighbours differ in one choice. The probabilities of its report under the two differ by a factor of
    e^epsilon; all other reported choices have the same distribution.
    """

    name = "randomised-response"
    title = "Randomised response on every choice, and a probit corrected for the flips"
    words = "coin tosses, by which each voter's device turns some choices over"
    paradigms = ("aldp",)
    papers = ()
    options = ("equal_votes",)
    estimates = Estimand.PREFERENCE
    wire = ChoiceFormat(lambda study, epsilon: study.drawing.dilemmas, split=False)
    tosses_coins = True
    third_answer = True
    fits_once = False
    relayable = False
    by_group = False
    counts_effects = True

    facts: Mapping[str, str] = {}

    def scoring(self, study: Study) -> None:
        """Return None: nothing is scored."""
        return

    def report_size(self, study: Study, epsilon: Epsilon) -> int | None:
        """Return None: every choice of a ballot is reported."""
        return None

    def report(self, ballots: Ballots, settings: MechanismSettings, epsilons: Epsilons, noise: Noise) -> ChoiceReports:
        """Flip each choice at random."""
        return _flip(ballots, epsilons, noise)

    def acceptable(self, reports: ChoiceReports, settings: MechanismSettings) -> BoolArray:
        """Accept reports whose choices are all +1 or -1."""
        return _all_choices(reports)

    def condense(self, reports: ChoiceReports, settings: MechanismSettings) -> ChoiceReports:
        """Return the reports unchanged: the fit needs every one."""
        return reports

    def aggregate(self, reports: Iterable[ChoiceReports | LevelSums], settings: MechanismSettings) -> Estimate:
        """Fit one preference to everybody's choices."""
        return _pooled(unsummed(reports), settings, self.facts)

    def expected_noise(self, settings: MechanismSettings, epsilons: Epsilons) -> None:
        """Return None: the noise has no simple form after the fit."""
        return

    def expected_errors(
        self, settings: MechanismSettings, voters: int, records: int, epsilon: Epsilon
    ) -> ExpectedErrors | None:
        """Return the errors at indifference, where a choice tells 2 / pi along each axis, less by what flips leave."""
        design = public_design(settings.study)
        told = voters * records * self._left(epsilon) ** 2
        rest_known = _measures_rest(settings.study, told)
        sampling = np.eye(design.directions) * DISAGREEMENT**2 / voters
        noise = np.eye((design.whole if rest_known else design).directions) * math.pi / (2 * told)
        return ExpectedErrors(
            noise if rest_known else among_all(noise, design),
            among_all(sampling, design),
            _USUAL_DOUBT,
            rest_known=rest_known,
            records=voters * records,
        )

    def _left(self, epsilon: Epsilon) -> float:
        """Return the factor by which a report attenuates the truth."""
        return math.tanh(epsilon.value / 2)


class OneChoice(RandomisedResponse):
    """Randomised response on k preselected dilemmas of each voter, with epsilon split among them.

    Theorem. If the dilemmas shown are public, each report is epsilon-differentially private for ALL choices of a
    voter together, and so for ALDP.

    Proof. The k dilemmas are selected independently of the choices. Changing all choices of a voter changes the
    probability of each of the k reported choices by a factor of at most e^(epsilon / k). The product is at most
    e^epsilon.

    The information in a choice flipped with epsilon / k is proportional to tanh(epsilon / 2k)^2, so k maximises
    k tanh(epsilon / 2k)^2; below an epsilon of about 2.9 it is 1.
    """

    name = "one-choice"
    title = "Randomised response on one preselected choice a voter (or a few)"
    words = "coin tosses, by which each voter's device may turn over the one choice, or the few, that it reports"
    wire = ChoiceFormat(lambda study, epsilon: _choices_to_report(study.drawing.dilemmas, epsilon), split=True)
    third_answer = False
    counts_effects = False

    facts: Mapping[str, str] = {
        "also_protects": "all choices of a voter together, with the same epsilon, the dilemmas being public"
    }

    def report_size(self, study: Study, epsilon: Epsilon) -> int | None:
        """Return the number k of choices."""
        return _choices_to_report(study.drawing.dilemmas, epsilon)

    def report(self, ballots: Ballots, settings: MechanismSettings, epsilons: Epsilons, noise: Noise) -> ChoiceReports:
        """Select the dilemmas, then flip each of their choices at random."""
        sizes = choices_to_report(ballots.counts, epsilons)
        most = int(ballots.counts.max())
        keys = np.argsort(random_orders(ballots.voters, most, noise), axis=1)
        keys = np.where(np.arange(most) < ballots.counts[:, None], keys, most)
        rank = np.argsort(np.argsort(keys, axis=1), axis=1)
        position = np.arange(ballots.records) - np.repeat(ballots.offsets[:-1], ballots.counts)
        voter = np.repeat(np.arange(ballots.voters), ballots.counts)
        kept = rank[voter, position] < sizes[voter]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        chosen = Ballots.from_differences(ballots.study, offsets, ballots.differences[kept])
        # Rounded down, so that k choices together spend at most the voter's epsilon.
        return _flip(chosen, epsilons.split(sizes), noise)

    def expected_errors(self, settings: MechanismSettings, voters: int, records: int, epsilon: Epsilon) -> None:
        """Return None: how far its model errs was never measured."""
        return


def _all_choices(reports: ChoiceReports) -> BoolArray:
    return np.asarray(np.logical_and.reduceat(np.abs(reports.choices) == 1, reports.offsets[:-1]))


def _flip(ballots: Ballots, epsilons: Epsilons, noise: Noise) -> ChoiceReports:
    dilemmas, choices = oriented(ballots)
    turned = noise.tosses(FLIP, epsilons.repeat(ballots.counts), 1)[:, 0]
    return ChoiceReports(epsilons, ballots.offsets, dilemmas, np.where(turned, -choices, choices))


def _pooled(batches: list[ChoiceReports], settings: MechanismSettings, facts: Mapping[str, str]) -> Estimate:
    """Fit all choices together, weighting each by the precision that its voter's epsilon allows.

    The fit is along the axes of factors, and along the remaining axes, too, if the choices are more informative about
    them than the prior, or the study says so. The number of choices and their epsilons are public here.
    """
    factors = public_design(settings.study)
    epsilons = Epsilons.joined(batch.epsilons for batch in batches).values
    told = float(np.concatenate([np.diff(batch.offsets) for batch in batches]) @ np.tanh(epsilons / 2) ** 2)
    design = factors.whole if _measures_rest(settings.study, told) else factors
    weights = influence(1 / np.tanh(epsilons / 2) ** 2, settings.equal_votes)
    groups = []
    start = 0
    for batch in batches:
        stop = start + len(batch.epsilons)
        counts = np.diff(batch.offsets)
        groups.append(
            FlippedChoices(
                chosen=(batch.dilemmas @ design.basis) * batch.choices[:, None],
                offsets=batch.offsets,
                flip=np.repeat(1 / (1 + np.exp(epsilons[start:stop])), counts),
                weight=np.repeat(weights[start:stop], counts),
            )
        )
        start = stop
    fit = fit_flipped_choices(groups, factors.directions)
    return _estimate(fit, design, batches, facts)


def _measures_rest(study: Study, told: float) -> bool:
    """Whether so many choices, less by what flips leave, are fitted along the directions that factors leave out."""
    if study.along is not None:
        return study.along == "features"
    return told >= TELLING * public_design(study).whole.directions


def _estimate(fit: ChoiceFit, design: Design, batches: list[ChoiceReports], facts: Mapping[str, str]) -> Estimate:
    """Carry a fit along the axes of a design to the features."""
    unasked = never_asked(*(batch.dilemmas @ design.basis for batch in batches))
    basis = design.basis - design.basis @ unasked
    carried = basis @ fit.noise @ basis.T
    return Estimate(
        basis @ fit.mean,
        EmpiricalNormal(tuple(map(tuple, carried.tolist()))),
        {**facts, "weighing": "every choice counts once", "dilemmas": DILEMMAS_PUBLIC},
        uncertainty_along(
            design,
            mean=fit.mean,
            covariance=fit.covariance,
            center=fit.center,
            sampling=fit.sampling,
            doubt=fit.doubt,
            freedom=fit.freedom,
            records=sum(len(batch.choices) for batch in batches),
            unasked=unasked,
        ),
    )


ANSWERS = 3


class ThreeWayResponse(RandomisedResponse):
    """Replace each answer (one side, the other, neither) by one of the other two with probability 2 / (e^epsilon + 2).

    Theorem. If the dilemmas shown are public and only the answers are secret, each voter's report is
    epsilon-differentially private for ALDP.

    Proof. Neighbours differ in one answer. The true answer is reported with probability e^epsilon / (e^epsilon + 2),
    each other one with probability 1 / (e^epsilon + 2). So for any two answers, the probabilities of a report differ by
    a factor of at most e^epsilon. All other reported answers have the same distribution.

    With q = 1 / (e^epsilon + 2), a report is "neither" with probability q + (1 - 3 q) s, where s is the share of
    indifferent answers. Replace "neither" by the toss of a fair coin. Then the report is the one side with probability
    1/2 + (1 - 3 q)(g - 1/2), where g is the same probability for the true answer: it is a choice flipped with
    probability 3 q / 2. Instead of tossing the coin, a report of "neither" counts half for either side.
    """

    title = "Randomised response among three answers to every dilemma, and a threshold beside the probit"
    words = "coin tosses, by which each voter's device replaces some answers by another of the three"

    def report(self, ballots: Ballots, settings: MechanismSettings, epsilons: Epsilons, noise: Noise) -> ChoiceReports:
        """Sign the dilemmas so that their first non-zero entry is positive, and replace some answers."""
        first = (ballots.dilemmas != 0).argmax(axis=1)
        signs = np.where(ballots.dilemmas[np.arange(ballots.records), first] < 0, -1, 1)
        dilemmas = ballots.dilemmas * signs[:, None].astype(ballots.dilemmas.dtype) + 0
        truths = ballots.choices.astype(np.int64) * signs + 1
        said = AboutYou().report(truths, ANSWERS, epsilons.repeat(ballots.counts), noise) - 1
        return ChoiceReports(epsilons, ballots.offsets, dilemmas, said)

    def acceptable(self, reports: ChoiceReports, settings: MechanismSettings) -> BoolArray:
        """Accept reports whose answers are all +1, 0 or -1."""
        return np.asarray(np.logical_and.reduceat(np.abs(reports.choices) <= 1, reports.offsets[:-1]))

    def aggregate(self, reports: Iterable[ChoiceReports | LevelSums], settings: MechanismSettings) -> Estimate:
        """Fit one preference to all completed answers, and the threshold to the share of "neither"."""
        factors = public_design(settings.study)
        batches = unsummed(reports)
        epsilons = Epsilons.joined(batch.epsilons for batch in batches).values
        told = float(np.concatenate([np.diff(batch.offsets) for batch in batches]) @ _right(epsilons) ** 2)
        design = factors.whole if _measures_rest(settings.study, told) else factors
        weights = influence(1 / _right(epsilons) ** 2, settings.equal_votes)
        groups = []
        shares = []
        start = 0
        for batch in batches:
            voters = slice(start, start + len(batch.epsilons))
            groups.append(_completed(batch, design.basis, epsilons[voters], weights[voters]))
            shares.append(_neither(batch, epsilons[voters], weights[voters]))
            start = voters.stop
        estimate = _estimate(fit_flipped_choices(groups, factors.directions), design, batches, self.facts)
        return with_threshold(estimate, settings, _share(np.concatenate(shares)))

    def _left(self, epsilon: Epsilon) -> float:
        """Return 1 - 3 q."""
        return 1 - 3 / (math.exp(epsilon.value) + 2)


def _right(epsilons: FloatArray) -> FloatArray:
    """Return 1 - 3 q, the factor by which a report attenuates the truth."""
    return np.asarray(1 - 3 / (np.exp(epsilons) + 2), np.float64)


def _completed(batch: ChoiceReports, basis: FloatArray, epsilons: FloatArray, weights: FloatArray) -> FlippedChoices:
    """Replace each report of "neither" by two rows of half the weight, one for either side."""
    neither = batch.choices == 0
    times = np.where(neither, 2, 1)
    place = np.repeat(np.arange(len(times)), times)
    second = np.concatenate([[False], place[1:] == place[:-1]])
    sides = np.where(second, -1, np.where(neither, 1, batch.choices)[place])
    counts = np.array([times[start:stop].sum() for start, stop in pairwise(batch.offsets.tolist())], np.int64)
    return FlippedChoices(
        chosen=(batch.dilemmas @ basis)[place] * sides[:, None],
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        flip=np.repeat((1 - _right(epsilons)) / 2, counts),
        weight=np.repeat(weights, counts) / times[place],
    )


def _neither(batch: ChoiceReports, epsilons: FloatArray, weights: FloatArray) -> FloatArray:
    """Return for each voter the weighted sum of her reports' estimates of s, and the sum of their weights."""
    counts = np.diff(batch.offsets)
    said = np.add.reduceat(batch.choices == 0, batch.offsets[:-1], dtype=np.int64)
    right = _right(epsilons)
    told = (said - counts * (1 - right) / 3) / right
    return np.stack([weights * told, weights * counts], axis=1)


def _share(voters: FloatArray) -> NoisyShare:
    """Return the ratio of the sums, with its error estimated from the voters' residuals.

    A voter who holds a part h of the weight draws the ratio to herself: her squared residual is too small by 1 - h.
    """
    told, counted = voters.sum(axis=0)
    value = float(told / counted)
    residuals = voters[:, 0] - value * voters[:, 1]
    parts = voters[:, 1] / counted
    spread = float(residuals**2 @ (1 / not_drawn(parts))) / counted**2
    # The residuals of a handful of voters underestimate how they differ.
    return NoisyShare(value, float(np.sqrt(spread + 1 / (4 * effective_number(parts) ** 2))))
