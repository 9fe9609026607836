"""Everything that is put on trial: each mechanism, and each mistake beside the mechanism that it would break."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from crowdveil.arrays import IntArray
from crowdveil.audit.answer_promises import (
    AboutYouPromise,
    SeveralPromise,
    SideAnswerPromise,
    alike_bit,
    alike_count,
    alike_or_not,
    answer_among_three,
    bit_where_answers_differ,
    indifference_bit,
    indifferent_share,
    neither_or_a_side,
    report_on_a_repeat,
)
from crowdveil.audit.group_promises import (
    crowd_counts,
    group_bits,
    group_scores,
    moves_group,
    moves_scenario,
    report_group_as_it_is,
)
from crowdveil.audit.laws import LastBits
from crowdveil.audit.mutants import (
    LoudestAxis,
    NarrowGaussian,
    NoisePerCoordinate,
    SeededBytes,
    SharedDraw,
    SignedZeros,
    TooLittleNoise,
    UnclippedVoterScore,
    WholeBudgetPerChoice,
    WholeBudgetPerStep,
    WrongOdds,
)
from crowdveil.audit.neighbours import Effort, Neighbours, on_two_axes, turned, worst_neighbours
from crowdveil.audit.promises import (
    GaussianPromise,
    HostView,
    PurePromise,
    RelayView,
    ShuffledPromise,
    keep_order,
    without_padding,
)
from crowdveil.audit.setups import CentralSetup, DistributedSetup, ForkedSetup, LaterStepSetup, Setup, can_fork
from crowdveil.audit.trial import Subject
from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation.society import fit_voters
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.grid import to_steps
from crowdveil.privacy.guarantee import paradigm
from crowdveil.privacy.mechanisms.about_you import AboutYou, keep_odds
from crowdveil.privacy.mechanisms.algorithm1 import Algorithm1, GaussianMean
from crowdveil.privacy.mechanisms.algorithm2 import Algorithm2
from crowdveil.privacy.mechanisms.algorithm3 import Algorithm3, Algorithm3Choices
from crowdveil.privacy.mechanisms.effect_counts import STEPS
from crowdveil.privacy.mechanisms.effect_reports import FactorAnswer, FactorCounts
from crowdveil.privacy.mechanisms.fisher_scoring import PooledChoices, PooledScore, VoterScore
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings, Sensitivity
from crowdveil.privacy.mechanisms.one_bit import OneBit
from crowdveil.privacy.mechanisms.randomised_response import FLIP, OneChoice, RandomisedResponse
from crowdveil.privacy.mechanisms.score_release import ScoreRelease
from crowdveil.privacy.mechanisms.subset_selection import SubsetSelection, among_odds, subset_size
from crowdveil.privacy.noise.coins import Odds
from crowdveil.privacy.noise.exact_noise import BulkNoise, GaussianNoise, OpenDPGaussian
from crowdveil.privacy.noise.source import Noise
from crowdveil.privacy.zcdp import rho_of
from crowdveil.study.bundled import synthetic_study
from crowdveil.study.features import Factor

SOME_SIGNS = Epsilon("1.6")
"""Epsilon at which subset selection keeps 2 of 4 signs; at smaller epsilons it sends all of them."""
TWO_CHOICES = Epsilon("4")
"""Epsilon that voter-level randomised response splits between two choices, and one-bit between two bits."""
LITTLE = Epsilon("0.1")
"""Epsilon at which the wrong flip probability e^-epsilon reveals choices: it flips nearly all of them."""
GAUSSIAN_DELTA = 0.01
"""Delta at which the Gaussian mean's rho promises the audited epsilon."""
SHUFFLED = Epsilon("1")
"""Epsilon of each shuffled report of one sign."""
SHUFFLED_SIGNS = Epsilon("2")
"""Epsilon of each shuffled report of one sign out of two features."""
SHUFFLED_VOTERS = 10
RELAYED_VOTERS = 20
"""Voters in a batch: so few that an attack sees nearly all that the bound allows."""
OPTIONS = 3

_DILEMMAS = 4
_SIGNS = 4
_KNOWN_VOTER = ((1.0, 1.0, 0.0),)
_RECORDS = np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 1.0], [2.0, 1.0, 0.0]])
"""Dilemmas whose alternatives agree in a feature: such a zero must not reveal which side was chosen."""


@dataclass(frozen=True)
class Target:
    """A subject that is created when its trial begins, and the mistake in it, if any."""

    mechanism: str
    subject: Callable[[Effort], Subject]
    """Takes the effort of the search for neighbours."""
    bug: str | None = None
    slow: bool = False
    """Whether outputs are drawn or put in order one at a time, so that there are fewer of them."""


def promises(epsilon: Epsilon) -> list[Target]:
    """List all mechanisms at this epsilon, and some again at an epsilon at which they work differently."""
    return [
        _pure(CentralSetup(Algorithm1(), paradigm("vlcp"), _small(3), epsilon)),
        _pure(CentralSetup(VoterScore(), paradigm("vlcp"), _small(3), epsilon)),
        _pure(CentralSetup(PooledScore(), paradigm("rlcp"), _small(3), epsilon)),
        _pure(CentralSetup(PooledChoices(), paradigm("alcp"), _small(3), epsilon)),
        _pure(_later_step(VoterScore(), "vlcp", epsilon)),
        _pure(_later_step(PooledScore(), "rlcp", epsilon)),
        _pure(_algorithm_2(epsilon)),
        *([_pure(_in_workers(epsilon))] if can_fork() else []),
        _pure(_algorithm_3(epsilon, 1)),
        _pure(_algorithm_3(epsilon, 5)),
        _pure(_algorithm_3(epsilon, 5, "paper")),
        _pure(_one_bit(epsilon, "one bit"), neighbours=_opposed),
        _pure(_one_bit(TWO_CHOICES, "two bits"), neighbours=_opposed),
        _pure(_one_bit(epsilon, "another axis"), neighbours=_loud_elsewhere),
        _pure(_along_features(OneBit(), "vldp", epsilon), neighbours=_opposed),
        _pure(_subset_selection(epsilon)),
        _pure(_subset_selection(SOME_SIGNS)),
        _pure(_subset_selection(SOME_SIGNS, ", two axes"), neighbours=on_two_axes),
        _pure(DistributedSetup(ScoreRelease(), paradigm("rldp"), _small(3), epsilon)),
        _pure(_along_features(ScoreRelease(), "rldp", epsilon)),
        _pure(_linear_part(epsilon, 1)),
        _pure(_linear_part(epsilon, 3)),
        _pure(_randomised_response(epsilon), neighbours=_one_turned),
        _pure(_one_choice(epsilon, "all choices"), neighbours=_all_turned),
        _pure(_one_choice(TWO_CHOICES, "all choices, two sent"), neighbours=_all_turned),
        _about_you(epsilon),
        _several(epsilon),
        *(_pure(_effect_counts(name, epsilon)) for name in ("vlcp", "rlcp", "alcp")),
        _promise(moves_group(epsilon)),
        _promise(moves_scenario(epsilon)),
        _promise(group_scores(epsilon)),
        _promise(group_bits(epsilon)),
        _pure(DistributedSetup(FactorAnswer(), paradigm("vldp"), _small(3), epsilon), neighbours=_opposed),
        _pure(DistributedSetup(FactorCounts(), paradigm("rldp"), _small(3), epsilon)),
        *(_third_answer(kind, epsilon) for kind in _THIRD),
        *(_repeat(kind, epsilon) for kind in _REPEAT),
        _gaussian(epsilon),
        _promise(_one_sign()),
        _promise(ShuffledPromise(_small(2), SHUFFLED_SIGNS, SHUFFLED_VOTERS, others=(0, -1))),
        _promise(_hosts_view(), slow=True),
        _promise(RelayView(_small(2), SHUFFLED_SIGNS)),
        _promise(LastBits(epsilon, on_the_grid=True)),
    ]


def mistakes(epsilon: Epsilon) -> list[Target]:
    """List the mistakes that must be caught, at this epsilon or at one where they do harm."""
    algorithm_1 = CentralSetup(Algorithm1(), paradigm("vlcp"), _small(3), epsilon)
    voter_score = CentralSetup(VoterScore(), paradigm("vlcp"), _small(3), epsilon)
    pooled_score = CentralSetup(PooledScore(), paradigm("rlcp"), _small(3), epsilon)
    size = subset_size(_SIGNS, SOME_SIGNS.value)
    too_often = WrongOdds(among_odds(_SIGNS, size), Odds(size, size, size, _SIGNS))
    two_sent = _one_choice(TWO_CHOICES, "all choices, two sent")
    loudest_axis = replace(_one_bit(epsilon, "another axis"), mechanism=LoudestAxis())
    factor_answer = DistributedSetup(FactorAnswer(), paradigm("vldp"), _small(3), epsilon)
    factor_counts = DistributedSetup(FactorCounts(), paradigm("rldp"), _small(3), epsilon)
    signed_zeros = replace(_randomised_response(epsilon), mechanism=SignedZeros())
    return [
        _pure(algorithm_1, lambda: TooLittleNoise(2), bug="factor 2 missing"),
        _pure(algorithm_1, SharedDraw, bug="one draw for two coordinates"),
        _pure(voter_score, lambda: TooLittleNoise(math.sqrt(2)), bug="scale too small by sqrt 2"),
        _pure(replace(voter_score, mechanism=UnclippedVoterScore()), bug="clipping left out"),
        _pure(replace(_later_step(VoterScore(), "vlcp", epsilon), by_voter=False), bug="clip of a step left out"),
        _pure(_later_step(VoterScore(), "vlcp", epsilon), WholeBudgetPerStep, bug="whole epsilon at every step"),
        _pure(pooled_score, NoisePerCoordinate, bug="sensitivity per coordinate"),
        *([_pure(_in_workers(epsilon), _seeded_once, bug="same noise after a fork")] if can_fork() else []),
        _pure(_algorithm_3(epsilon, 5), lambda: TooLittleNoise(2), bug="Delta halved"),
        _pure(_linear_part(epsilon, 1), lambda: TooLittleNoise(2), bug="one side of a choice forgotten"),
        _pure(_one_bit(TWO_CHOICES, "two bits"), WholeBudgetPerChoice, _opposed, "epsilon not split"),
        _pure(_one_bit(epsilon, "one bit"), lambda: WrongOdds(FLIP, Odds(0, 0, 1, 0)), _opposed, "never turned over"),
        _pure(loudest_axis, neighbours=_loud_elsewhere, bug="axis chosen by the answers"),
        _pure(_subset_selection(SOME_SIGNS, ", two axes"), lambda: too_often, on_two_axes, "wrong odds of k"),
        _pure(
            _randomised_response(LITTLE),
            lambda: WrongOdds(FLIP, Odds(0, 1, 1, 0)),
            _one_turned,
            "flips with e^-epsilon",
        ),
        _pure(signed_zeros, neighbours=_one_turned, bug="a zero keeps its sign"),
        _pure(two_sent, WholeBudgetPerChoice, _all_turned, "epsilon not split"),
        _about_you(epsilon, lambda: WrongOdds(keep_odds(OPTIONS), keep_odds(2)), "odds of two options for three"),
        _several(epsilon, careless=True, bug="an option drawn among those that were ticked"),
        _pure(_effect_counts("rlcp", epsilon), NoisePerCoordinate, bug="sensitivity per coordinate"),
        _promise(moves_group(epsilon).with_sensitivity(STEPS), "the group that is entered forgotten"),
        _promise(moves_scenario(epsilon).with_sensitivity(STEPS), "the scenario that is entered forgotten"),
        _promise(replace(group_scores(epsilon), noise=TooLittleNoise(2)), "the group that is entered forgotten"),
        _promise(replace(group_scores(epsilon), counts_hidden=False), "exact numbers of voters"),
        _promise(replace(group_bits(epsilon), report=report_group_as_it_is), "the group is sent as it is"),
        _pure(
            factor_answer,
            lambda: WrongOdds(keep_odds(3), keep_odds(2)),
            _opposed,
            "odds of two options for three",
        ),
        _pure(factor_counts, lambda: TooLittleNoise(2), bug="factor 2 missing"),
        _third_answer("bit", epsilon, lambda: WrongOdds(FLIP, Odds(0, 0, 1, 0)), "indifference never turned over"),
        _third_answer(
            "answer", epsilon, lambda: WrongOdds(keep_odds(3), keep_odds(2)), "odds of two answers for three"
        ),
        _third_answer("share", epsilon, lambda: TooLittleNoise(2), "half the noise of a share"),
        _repeat("bit", epsilon, lambda: WrongOdds(FLIP, Odds(0, 0, 1, 0)), "a second answer never turned over"),
        _repeat("telling kind", epsilon, bug="said where answers differ"),
        _repeat("count", epsilon, lambda: TooLittleNoise(2), "half the noise of a count"),
        _gaussian(epsilon, NarrowGaussian, "deviation halved"),
        _promise(replace(_one_sign(), claimed_voters=10 * SHUFFLED_VOTERS), "bound of a larger crowd"),
        _promise(replace(_one_sign(), forget_delta=True), "delta forgotten"),
        _promise(replace(_one_sign(), shuffle=False), "not shuffled"),
        _promise(replace(_hosts_view(), order=keep_order), "order of arrival kept", slow=True),
        _promise(replace(_hosts_view(), voters=2), "batch too small", slow=True),
        _promise(RelayView(_small(2), SHUFFLED_SIGNS, without_padding), "length varies"),
        _promise(LastBits(epsilon, on_the_grid=False), "floating-point noise"),
    ]


def _pure(
    setup: Setup,
    noise: Callable[[], Noise] = BulkNoise,
    neighbours: Callable[[Setup, Effort], Neighbours] = worst_neighbours,
    bug: str | None = None,
) -> Target:
    return Target(setup.name, lambda effort: PurePromise(setup, neighbours(setup, effort), noise()), bug)


def _promise(subject: Subject, bug: str | None = None, slow: bool = False) -> Target:
    return Target(subject.name, lambda effort: subject, bug, slow)


def _effect_counts(name: str, epsilon: Epsilon) -> CentralSetup:
    protected = paradigm(name)
    settings = _small(3)
    return CentralSetup(crowd_counts(protected.unit, settings.study, epsilon), protected, settings, epsilon)


def _gaussian(epsilon: Epsilon, noise: Callable[[], GaussianNoise] = OpenDPGaussian, bug: str | None = None) -> Target:
    crowd = CentralSetup(Algorithm1(), paradigm("vlcp"), _small(2), epsilon)
    rho = Fraction(rho_of(epsilon.value, GAUSSIAN_DELTA)).limit_denominator(10**6)

    def subject(effort: Effort) -> Subject:
        return GaussianPromise(crowd, worst_neighbours(crowd, effort), rho, noise())

    return Target(GaussianMean.name, subject, bug, slow=True)


def _hosts_view() -> HostView:
    return HostView(_small(2), SHUFFLED_SIGNS, RELAYED_VOTERS, RELAYED_VOTERS)


def _several(epsilon: Epsilon, *, careless: bool = False, bug: str | None = None) -> Target:
    return Target(AboutYou.name, lambda effort: SeveralPromise(epsilon, OPTIONS, BulkNoise(), careless), bug)


def _about_you(epsilon: Epsilon, noise: Callable[[], Noise] = BulkNoise, bug: str | None = None) -> Target:
    return Target(AboutYou.name, lambda effort: AboutYouPromise(epsilon, OPTIONS, noise()), bug)


_THIRD = {
    "bit": (OneBit.name, "vldp", indifference_bit),
    "answer": (RandomisedResponse.name, "aldp", answer_among_three),
    "share": (VoterScore.name, "vlcp", indifferent_share),
}
_REPEAT = {
    "bit": (OneBit.name, "vldp", alike_bit),
    "report": (RandomisedResponse.name, "aldp", report_on_a_repeat),
    "count": (VoterScore.name, "vlcp", alike_count),
}


def _third_answer(
    kind: str, epsilon: Epsilon, noise: Callable[[], Noise] = BulkNoise, bug: str | None = None
) -> Target:
    name, protects, report = _THIRD[kind]
    settings = replace(_small(2), study=replace(_small(2).study, indifference="Toss a coin"))
    remark = f"third answer, {kind}"

    def subject(effort: Effort) -> Subject:
        apart = "neither against a side: nothing is further apart"
        return SideAnswerPromise(epsilon, name, protects, remark, apart, settings, noise(), neither_or_a_side, report)

    return Target(name, subject, bug)


def _repeat(kind: str, epsilon: Epsilon, noise: Callable[[], Noise] = BulkNoise, bug: str | None = None) -> Target:
    telling = RandomisedResponse.name, "aldp", bit_where_answers_differ
    name, protects, report = _REPEAT.get(kind, telling)
    settings = replace(_small(2), study=replace(_small(2).study, repeat=True))
    remark = f"asked twice, {kind}"

    def subject(effort: Effort) -> Subject:
        apart = "alike against not: there is nothing else"
        return SideAnswerPromise(epsilon, name, protects, remark, apart, settings, noise(), alike_or_not, report)

    return Target(name, subject, bug)


def _small(features: int, sensitivity: Sensitivity = "tight") -> MechanismSettings:
    study = synthetic_study(features, _DILEMMAS)
    return MechanismSettings(study, study.norm_bound, sensitivity=sensitivity)


def _later_step(mechanism: VoterScore | PooledScore, protects: str, epsilon: Epsilon) -> LaterStepSetup:
    return LaterStepSetup(CentralSetup(mechanism, paradigm(protects), _small(3), epsilon), mechanism.by_voter)


def _algorithm_2(epsilon: Epsilon) -> DistributedSetup:
    return DistributedSetup(Algorithm2(), paradigm("vldp"), _small(3), epsilon)


def _in_workers(epsilon: Epsilon) -> ForkedSetup:
    return ForkedSetup(_algorithm_2(epsilon), _KNOWN_VOTER)


def _algorithm_3(epsilon: Epsilon, features: int, sensitivity: Sensitivity = "tight") -> DistributedSetup:
    remark = f"d = {features}" + ("" if sensitivity == "tight" else ", the paper's Delta")
    return DistributedSetup(Algorithm3(), paradigm("rldp"), _small(features, sensitivity), epsilon, remark=remark)


def _linear_part(epsilon: Epsilon, features: int) -> DistributedSetup:
    return DistributedSetup(Algorithm3Choices(), paradigm("aldp"), _small(features), epsilon, remark=f"d = {features}")


def _subset_selection(epsilon: Epsilon, remark: str = "") -> DistributedSetup:
    remark = f"{subset_size(_SIGNS, epsilon.value)} of {_SIGNS} signs{remark}"
    return DistributedSetup(SubsetSelection(), paradigm("vldp"), _small(_SIGNS), epsilon, _grid_preferences, remark)


def _randomised_response(epsilon: Epsilon) -> DistributedSetup:
    return DistributedSetup(RandomisedResponse(), paradigm("aldp"), _small(3), epsilon)


def _one_choice(epsilon: Epsilon, remark: str) -> DistributedSetup:
    return DistributedSetup(OneChoice(), paradigm("aldp"), _small(3), epsilon, remark=remark)


def _one_bit(epsilon: Epsilon, remark: str) -> DistributedSetup:
    return DistributedSetup(OneBit(), paradigm("vldp"), _small(3), epsilon, remark=remark)


def _along_features(mechanism: OneBit | ScoreRelease, protects: str, epsilon: Epsilon) -> DistributedSetup:
    """Return reports along all three features of a study that names one factor only."""
    settings = _small(3)
    study = settings.study
    study = replace(study, named_factors=(Factor.of_feature(study.features[0]),), along="features")
    return DistributedSetup(
        mechanism, paradigm(protects), replace(settings, study=study), epsilon, remark="along features"
    )


def _one_sign() -> ShuffledPromise:
    return ShuffledPromise(_small(1), SHUFFLED, SHUFFLED_VOTERS, others=(0, -1))


def _grid_preferences(ballots: Ballots, settings: MechanismSettings) -> IntArray:
    return to_steps(fit_voters(ballots, settings.norm_bound).values, settings.norm_bound)


def _seeded_once() -> Noise:
    return BulkNoise(SeededBytes())


def _one_turned(setup: Setup, effort: Effort) -> Neighbours:
    right = np.concatenate([turned(_RECORDS[:1]), _RECORDS[1:]])
    return Neighbours(_RECORDS, right, "one choice turned over: all pairs are alike")


def _all_turned(setup: Setup, effort: Effort) -> Neighbours:
    return Neighbours(_RECORDS, turned(_RECORDS), "all choices turned over: all pairs are alike")


def _opposed(setup: Setup, effort: Effort) -> Neighbours:
    loud = np.full((2, setup.settings.study.dimension), 3.0)
    return Neighbours(loud, turned(loud), "all mean scores beyond the clip, and their opposites: nothing is louder")


def _loud_elsewhere(setup: Setup, effort: Effort) -> Neighbours:
    left = 3.0 * np.eye(setup.settings.study.dimension)
    return Neighbours(left[:1], left[1:2], "voters who are loud along one axis each")
