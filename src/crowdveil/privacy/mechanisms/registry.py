"""Every mechanism by name, the paper's for each paradigm, and the recommended one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from crowdveil.errors import CrowdveilError
from crowdveil.estimation.design import leaves_out, public_design
from crowdveil.estimation.record_axes import record_axes
from crowdveil.privacy.epsilon import Epsilon, Epsilons, PrivacyMeasure
from crowdveil.privacy.guarantee import PARADIGMS, Paradigm, Place, Unit
from crowdveil.privacy.mechanisms.about_you import AboutYou
from crowdveil.privacy.mechanisms.algorithm1 import Algorithm1, GaussianMean
from crowdveil.privacy.mechanisms.algorithm2 import Algorithm2
from crowdveil.privacy.mechanisms.algorithm3 import Algorithm3, Algorithm3Choices
from crowdveil.privacy.mechanisms.effect_counts import EffectCounts
from crowdveil.privacy.mechanisms.effect_reports import FactorAnswer, FactorCounts
from crowdveil.privacy.mechanisms.fisher_scoring import PooledChoices, PooledScore, VoterScore
from crowdveil.privacy.mechanisms.group_bits import GroupBits
from crowdveil.privacy.mechanisms.group_mechanism import Grouping, GroupMechanism
from crowdveil.privacy.mechanisms.group_scores import GroupScores
from crowdveil.privacy.mechanisms.indifference import (
    REPORTS_ONE_IN,
    central_indifference,
    distributed_indifference,
    threshold_split,
)
from crowdveil.privacy.mechanisms.mechanism import (
    CentralMechanism,
    CrowdMechanism,
    DistributedMechanism,
    Estimand,
    Mechanism,
    MechanismSettings,
    neutral_options,
)
from crowdveil.privacy.mechanisms.one_bit import OneBit
from crowdveil.privacy.mechanisms.randomised_response import OneChoice, RandomisedResponse, ThreeWayResponse
from crowdveil.privacy.mechanisms.reliability import central_reliability, distributed_reliability, reliability_split
from crowdveil.privacy.mechanisms.score_release import ScoreRelease, tells_more_than_choices
from crowdveil.privacy.mechanisms.shares import split_budget
from crowdveil.privacy.mechanisms.subset_selection import SubsetSelection
from crowdveil.study.study import ALONG, Study

_CENTRAL: list[CentralMechanism[Any, Any]] = [
    Algorithm1(),
    VoterScore(),
    PooledScore(),
    PooledChoices(),
    GaussianMean(),
]
_DISTRIBUTED: list[DistributedMechanism[Any]] = [
    Algorithm2(),
    Algorithm3(),
    OneBit(),
    SubsetSelection(),
    ScoreRelease(),
    Algorithm3Choices(),
    RandomisedResponse(),
    OneChoice(),
]

CENTRAL = {mechanism.name: mechanism for mechanism in _CENTRAL}
DISTRIBUTED = {mechanism.name: mechanism for mechanism in _DISTRIBUTED}
MECHANISMS: Mapping[str, CrowdMechanism] = {**CENTRAL, **DISTRIBUTED}
"""Mechanisms that release one estimate for the whole crowd."""
PURE: Mapping[str, CrowdMechanism] = {
    name: mechanism
    for name, mechanism in MECHANISMS.items()
    if name in DISTRIBUTED or CENTRAL[name].takes is PrivacyMeasure.EPSILON
}
"""Those of ``MECHANISMS`` whose privacy loss is an epsilon."""
_GROUPS: Mapping[Place, Callable[[Grouping], GroupMechanism]] = {
    Place.CENTRAL: GroupScores,
    Place.DISTRIBUTED: GroupBits,
}
GROUPS: Mapping[str, GroupMechanism] = {one.name: one for one in (of(Grouping("", ())) for of in _GROUPS.values())}
"""Mechanisms that release the preferences of groups whose membership is secret."""
EFFECTS: Mapping[str, Mechanism] = {
    one.name: one for one in (EffectCounts(Unit.VOTER, ()), FactorAnswer(), FactorCounts())
}
"""Mechanisms that release effects; with randomised response, effects are computed from its reports."""
ALL: Mapping[str, Mechanism] = {**MECHANISMS, **GROUPS, **EFFECTS, AboutYou.name: AboutYou()}
"""Every mechanism that makes a promise to voters."""

THREE_ANSWERS = tuple(name for name, mechanism in MECHANISMS.items() if mechanism.third_answer)
"""Mechanisms that support a third answer."""
_AMONG_THREE: Mapping[str, DistributedMechanism[Any]] = {one.name: one for one in (ThreeWayResponse(),)}
"""Those of them whose reports carry the third answer themselves. With the others, some reports are about it alone."""
RELAYABLE = tuple(name for name, mechanism in DISTRIBUTED.items() if mechanism.relayable)
"""Mechanisms whose reports a relay carries."""
RELAYED = OneBit.name
"""The recommended one of these."""

PAPERS_MECHANISM: Mapping[str, str] = {
    paradigm: name for name, mechanism in MECHANISMS.items() for paradigm in mechanism.papers
}


def recommended(paradigm: Paradigm, study: Study, epsilons: Epsilons) -> str:
    """Return the best mechanism for a paradigm, given public data only: the study, and everybody's epsilon."""
    match paradigm.name:
        case "vlcp":
            return VoterScore.name
        case "rlcp":
            return PooledScore.name
        case "vldp":
            return OneBit.name
        case "rldp":
            return ScoreRelease.name
        case "alcp":
            return PooledChoices.name
        case _ if study.indifference is not None:
            return RandomisedResponse.name
        case _:
            better = tells_more_than_choices(record_axes(study), study.drawing.dilemmas, epsilons)
            return ScoreRelease.name if better else RandomisedResponse.name


def recommended_along(name: str, settings: MechanismSettings, voters: int, epsilon: Epsilon) -> str | None:
    """Return what a mechanism had best measure (one of ``ALONG``), given public data only; None if it chooses itself.

    A central mechanism chooses by its own plan, and randomised response by the number of choices. Other devices report
    along factors, unless the study's generator drew the dilemmas: else how these correlate between factors and the rest
    would have to be reported, too. Then, of voters with whole ballots, whichever leaves the smaller error of a
    dilemma's margin is measured.
    """
    study = settings.study
    design = public_design(study)
    if study.along is not None or name not in DISTRIBUTED or not settings.drawn or not leaves_out(study):
        return study.along
    errors = {}
    for along in ALONG:
        supposed = replace(settings, study=replace(study, along=along))
        found = DISTRIBUTED[name].expected_errors(supposed, voters, study.drawing.dilemmas, epsilon)
        if found is None or not DISTRIBUTED[name].scoring(study):
            return None
        errors[along] = found.margin_error(design)
    return min(errors, key=errors.__getitem__)


def can_measure(name: str, study: Study) -> bool:
    """Whether a mechanism can be told what to measure of a study: its factors, or every direction."""
    return MECHANISMS[name].estimates is Estimand.PREFERENCE and leaves_out(study)


def check_along_known(name: str) -> None:
    """Refuse a mechanism that cannot be told what to measure."""
    if MECHANISMS[name].estimates is not Estimand.PREFERENCE:
        raise CrowdveilError(f"{name} estimates the paper's society, over all features: leave along out")


def reported_along(name: str, study: Study) -> str | None:
    """Return what devices or releases of a poll measure (one of ``ALONG``); None if each release chooses."""
    scored = name in DISTRIBUTED and DISTRIBUTED[name].scoring(study) is not None
    return study.along or ("factors" if scored else None)


def mechanism_name(
    paradigm: Paradigm,
    wanted: str | None,
    study: Study,
    epsilons: Epsilons,
    measure: PrivacyMeasure = PrivacyMeasure.EPSILON,
) -> str:
    """Check that a mechanism serves a paradigm in a measure; None is the recommended one, "paper" the paper's."""
    if measure is PrivacyMeasure.EPSILON and wanted is None:
        return recommended(paradigm, study, epsilons)
    if measure is PrivacyMeasure.RHO and study.indifference is not None:
        raise CrowdveilError(
            f"study {study.name} allows a third answer, which no mechanism with a rho can carry: give an epsilon"
        )
    if measure is PrivacyMeasure.RHO and study.repeat:
        raise CrowdveilError(
            f"study {study.name} asks one dilemma twice, and no mechanism with a rho tells who answered it alike: "
            "give an epsilon"
        )
    taking = [name for name in MECHANISMS if (name in PURE) is (measure is PrivacyMeasure.EPSILON)]
    name = PAPERS_MECHANISM.get(paradigm.name, wanted) if wanted == "paper" else wanted or taking[0]
    if not _serving(paradigm, taking):
        served = [known for known in PARADIGMS if any(known in MECHANISMS[one].paradigms for one in taking)]
        raise CrowdveilError(f"Gaussian noise (--rho) serves {' and '.join(served)} only, and not {paradigm.name}")
    if name in MECHANISMS and name not in taking:
        raise CrowdveilError(
            f"{name} does not take {_an(measure)}: with {_an(measure)} choose {_or(_serving(paradigm, taking))}"
        )
    if name not in _serving(paradigm, taking):
        raise CrowdveilError(
            f"mechanism {name!r} does not serve {paradigm.name}: choose {_or(_serving(paradigm, taking))}"
        )
    check_answers(name, study)
    return name


def central(name: str, study: Study) -> CentralMechanism[Any, Any]:
    """Return a central mechanism for a study, with a threshold if the study allows a third answer.

    If the study asks one dilemma twice, the mechanism also estimates the reliability of the crowd.
    """
    mechanism = CENTRAL[name] if study.indifference is None else central_indifference(CENTRAL[name])
    return central_reliability(mechanism) if study.repeat else mechanism


def distributed(name: str, study: Study) -> DistributedMechanism[Any]:
    """Return a distributed mechanism for a study, with a threshold if the study allows a third answer.

    If the study asks one dilemma twice, some reports are about the reliability of the crowd.
    """
    mechanism: DistributedMechanism[Any] = DISTRIBUTED[name]
    if study.indifference is not None:
        mechanism = _AMONG_THREE.get(name) or distributed_indifference(mechanism)
    return distributed_reliability(mechanism) if study.repeat else mechanism


def group_mechanism(place: Place, grouping: Grouping) -> GroupMechanism:
    """Return the mechanism for groups whose membership is secret, given where the noise is added."""
    return _GROUPS[place](grouping)


def budget_parts(name: str, study: Study, loss: Epsilon | None) -> dict[str, float]:
    """Return the shares of a central epsilon, or (without one) of the devices' reports, by what they are spent on.

    >>> from dataclasses import replace
    >>> from crowdveil.study.bundled import load_study
    >>> study = replace(load_study("kidney"), indifference="Toss a coin", repeat=True)
    >>> budget_parts("voter-score", study, Epsilon(1))
    {'preference': 0.81, 'threshold': 0.09, 'reliability': 0.1}
    >>> budget_parts("one-bit", study, None)
    {'preference': 0.72, 'threshold': 0.18, 'reliability': 0.1}
    """
    whole = Epsilon(1) if loss is None else loss
    aside = study.indifference is not None and name not in _AMONG_THREE
    left, reliability = reliability_split(whole) if study.repeat else (whole, None)
    threshold = None
    if aside:
        left, threshold = threshold_split(left) if loss is not None else split_budget(left, REPORTS_ONE_IN, "both")
    parts = {"preference": left, "threshold": threshold, "reliability": reliability}
    return {thing: part.value for thing, part in parts.items() if part is not None}


def check_answers(name: str, study: Study) -> None:
    """Refuse a mechanism that does not support a study's third answer."""
    if study.indifference is not None and name not in THREE_ANSWERS:
        raise CrowdveilError(
            f"study {study.name} allows a third answer, which {name} cannot carry: use {', '.join(THREE_ANSWERS)}"
        )


def check_options(mechanism: Mechanism, settings: MechanismSettings) -> None:
    """Refuse a setting that the mechanism does not support, as it would have no effect."""
    for option, neutral in neutral_options(settings.study).items():
        if getattr(settings, option) != neutral and option not in mechanism.options:
            known = f"only {' and '.join(mechanism.options)}" if mechanism.options else "and has no other options"
            raise CrowdveilError(f"{mechanism.name} has no option {option}, {known}: leave it out")


def _serving(paradigm: Paradigm, names: list[str]) -> list[str]:
    return [name for name in names if paradigm.name in MECHANISMS[name].paradigms]


def _an(measure: PrivacyMeasure) -> str:
    return f"an {measure}" if measure is PrivacyMeasure.EPSILON else f"a {measure}"


def _or(names: list[str]) -> str:
    return " or ".join(names)
