"""Trials of single answers: about the voter herself, "neither", and the second answer to a dilemma asked twice.

An answer leaves the device as an option drawn by coin tosses, as a bit instead of a report, or as one answer among
three; or it leaves the server in the noisy count or share of a crowd.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.audit.trial import PureEpsilonSubject, Rows, Score
from crowdveil.ballots.ballots import Ballots, resampled
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.mechanisms.about_you import AboutYou
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.randomised_response import RandomisedResponse, ThreeWayResponse
from crowdveil.privacy.mechanisms.reliability import alike_bits, answered_alike, distributed_reliability
from crowdveil.privacy.mechanisms.shares import indifference_bits, indifferent_by_voter, noisy_totals
from crowdveil.privacy.mechanisms.side_bits import BitMixture
from crowdveil.privacy.noise.source import Noise
from crowdveil.study.study import Study


@dataclass(frozen=True)
class AboutYouPromise(PureEpsilonSubject):
    """A voter's answer about herself: the first of several options, or the second."""

    options: int
    noise: Noise

    name = AboutYou.name
    paradigm = ""
    neighbours = "two options: all pairs are alike"

    @property
    def remark(self) -> str:
        """The number of options."""
        return f"{self.options} options"

    def sample(self, left: bool, draws: int) -> Rows:
        """Report the option again and again."""
        truths = np.full(draws, 0 if left else 1)
        reported = AboutYou().report(truths, self.options, Epsilons.same(self.epsilon, draws), self.noise)
        return reported[:, None]

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Return none: the frequencies of the options are all there is, and they are learned."""
        return []


@dataclass(frozen=True)
class SeveralPromise(PureEpsilonSubject):
    """A voter's ticks at several options: only the first one, or all the others."""

    options: int
    noise: Noise
    careless: bool = False
    """Whether the device draws its option among the ticked ones, which it must not."""

    name = AboutYou.name
    paradigm = ""
    neighbours = "one set of ticks, and its opposite: they differ in whatever option is drawn"

    @property
    def remark(self) -> str:
        """The number of options."""
        return f"{self.options} options to tick"

    def sample(self, left: bool, draws: int) -> Rows:
        """Report the ticks again and again."""
        ticked = np.zeros((draws, self.options), np.bool_)
        ticked[:, 0] = True
        if not left:
            ticked = ~ticked
        asked, said = AboutYou().report_several(ticked, Epsilons.same(self.epsilon, draws), self.noise)
        if self.careless:
            asked = np.argmax(ticked, axis=1)
        return np.column_stack([asked * 2 + said])

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Return none: the frequencies of the reports are all there is, and they are learned."""
        return []


@dataclass(frozen=True)
class SideAnswerPromise(PureEpsilonSubject):
    """Two ballots of one voter that differ in a single answer."""

    name: str
    paradigm: str
    remark: str
    neighbours: str
    settings: MechanismSettings
    noise: Noise
    ballot: Callable[[Study, bool], Ballots]
    """Returns one ballot or the other."""
    report: Callable[[Ballots, SideAnswerPromise, int], Rows]
    """Returns this many outputs for a ballot, one per row."""

    def sample(self, left: bool, draws: int) -> Rows:
        """Report again and again."""
        return self.report(self.ballot(self.settings.study, left), self, draws)

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Return the size of the output: the larger it is, the likelier is one side. Single answers are learned."""
        return [lambda rows: rows[:, 0].astype(np.float64)]


def neither_or_a_side(study: Study, neither: bool) -> Ballots:
    """Return a ballot whose answers are all "neither", or all one side."""
    records = study.drawing.dilemmas
    choices = np.full(records, 0 if neither else 1, np.int8)
    return Ballots(study, np.array([0, records]), _shown(study), choices)


def alike_or_not(study: Study, alike: bool) -> Ballots:
    """Return a ballot whose voter gave the same answer twice, or did not."""
    records = study.drawing.dilemmas
    told = np.array([1 if alike else -1], np.int8)
    return Ballots(study, np.array([0, records]), _shown(study), np.ones(records, np.int8), alike=told)


def _shown(study: Study) -> FloatArray:
    return np.random.default_rng(0).normal(0.0, 1.0, (study.drawing.dilemmas, study.dimension))


def indifference_bit(ballots: Ballots, promise: SideAnswerPromise, draws: int) -> Rows:
    """Report whether neither side was chosen in one of the records."""
    epsilons = Epsilons.same(promise.epsilon, draws)
    return indifference_bits(_copies(ballots, draws), epsilons, promise.noise).reshape(-1, 1)


def answer_among_three(ballots: Ballots, promise: SideAnswerPromise, draws: int) -> Rows:
    """Report one of three answers."""
    one = Ballots(ballots.study, np.array([0, 1]), ballots.dilemmas[:1], ballots.choices[:1])
    epsilons = Epsilons.same(promise.epsilon, draws)
    said = ThreeWayResponse().report(_copies(one, draws), promise.settings, epsilons, promise.noise).choices
    rows: Rows = np.asarray(said, np.int64)
    return rows.reshape(-1, 1)


def indifferent_share(ballots: Ballots, promise: SideAnswerPromise, draws: int) -> Rows:
    """Release the share of indifferent voters in a crowd in which all others chose a side, in steps."""
    total = int(indifferent_by_voter(ballots)[0])
    return noisy_totals(total, promise.epsilon, promise.noise, draws).reshape(-1, 1)


def alike_bit(ballots: Ballots, promise: SideAnswerPromise, draws: int) -> Rows:
    """Report whether the voter gave the same answer twice."""
    return alike_bits(_copies(ballots, draws), Epsilons.same(promise.epsilon, draws), promise.noise).reshape(-1, 1)


def alike_count(ballots: Ballots, promise: SideAnswerPromise, draws: int) -> Rows:
    """Release how many voters gave the same answer twice, in a crowd in which no other did, in steps."""
    return noisy_totals(int(answered_alike(ballots)[0]), promise.epsilon, promise.noise, draws).reshape(-1, 1)


def report_on_a_repeat(ballots: Ballots, promise: SideAnswerPromise, draws: int) -> Rows:
    """Report by randomised response, or report the bit; the rows show whether it is the bit, and its value."""
    return _side_rows(distributed_reliability(RandomisedResponse()), ballots, promise, draws)


def bit_where_answers_differ(ballots: Ballots, promise: SideAnswerPromise, draws: int) -> Rows:
    """Make a mistake on purpose: a voter whose two answers differ reports the bit more often."""
    rows = _side_rows(distributed_reliability(RandomisedResponse()), ballots, promise, draws)
    other = _side_rows(distributed_reliability(RandomisedResponse()), ballots, promise, draws)
    return np.where((rows[:, :1] == 0) & (answered_alike(ballots)[0] == 0), other, rows)


def _side_rows(mechanism: BitMixture, ballots: Ballots, promise: SideAnswerPromise, draws: int) -> Rows:
    epsilons = Epsilons.same(promise.epsilon, draws)
    made = mechanism.report(_copies(ballots, draws), promise.settings, epsilons, promise.noise)
    rows: Rows = np.column_stack([made.bits != 0, made.bits]).astype(np.int64)
    return rows


def _copies(ballots: Ballots, draws: int) -> Ballots:
    return resampled(ballots, np.zeros(draws, np.int64))
