"""The guarantee of a release in everyday words. Every sentence is true of the release for which it is made."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from crowdveil.errors import plural
from crowdveil.privacy.guarantee import Guarantee, Paradigm, Place, Unit
from crowdveil.privacy.mechanisms.registry import ALL
from crowdveil.privacy.shuffling import RelayedPromise
from crowdveil.privacy.zcdp import epsilon_of
from crowdveil.releases import Publication

ALMOST_SURE = 0.95
"""Probability of an attacker's best guess above which the page says that the epsilon promises little."""


class NoiseParty(StrEnum):
    """The party that added the noise to a release, which determines who has to be trusted."""

    AGGREGATOR = "the aggregator"
    HOLDER = "the holder of the ballots"
    DEVICES = "nobody"


_PROTECTED = {
    Unit.VOTER: "Each voter",
    Unit.RECORD: "Each single record",
    Unit.CHOICE: "Each single choice in a public dilemma",
}
_PROTECTED_BRIEFLY = {
    Unit.VOTER: "all records of a voter together",
    Unit.RECORD: "each record by itself",
    Unit.CHOICE: "each choice by itself, in dilemmas that are public",
}
_WHOSE = {
    Unit.VOTER: "one voter's records",
    Unit.RECORD: "one single record",
    Unit.CHOICE: "the choice made in one single dilemma",
}
_TRUSTED = {Place.CENTRAL: NoiseParty.AGGREGATOR, Place.DISTRIBUTED: NoiseParty.DEVICES}


def likelihood_factor(epsilon: float) -> float:
    """Return e^epsilon: how much likelier or less likely one unit of protection can make anything that is seen."""
    return math.exp(epsilon)


def attacker_odds(epsilon: float) -> float:
    """Return the probability of the best guess that epsilon allows: e^epsilon / (1 + e^epsilon).

    By Bayes, odds of 1 : 1 between two data sets become at most e^epsilon : 1, as no output is more than e^epsilon
    times likelier under one of them. Randomised response reaches the bound, so no smaller one holds.
    """
    return 1 / (1 + math.exp(-epsilon))


def factor_text(epsilon: float) -> str:
    """Format e^epsilon readably, from 1.00010 to 5.2 × 10^21."""
    factor = likelihood_factor(epsilon)
    if factor < 1.1:
        return f"{factor:.{1 - math.floor(math.log10(math.expm1(epsilon)))}f}"
    if factor < 100:
        return f"{factor:.3g}"
    if factor < 1e6:
        return f"{factor:,.0f}"
    mantissa, exponent = f"{factor:.1e}".split("e")
    return f"{mantissa} × 10^{int(exponent)}"


def odds_text(epsilon: float) -> str:
    """Format the attacker's odds in per cent, with enough decimals to distinguish them from 50% and from 100%."""
    gained, doubt = math.tanh(epsilon / 2) / 2, 1 / (1 + math.exp(epsilon))
    if doubt < 1e-8:
        return "practically 100%"
    places = max(1, -1 - math.floor(math.log10(gained)), -2 - math.floor(math.log10(doubt)))
    return f"{attacker_odds(epsilon):.{places}%}"


def guess_text(epsilon: float, delta: float) -> str:
    """Format the attacker's odds; with a delta they are at most (e^epsilon + delta) / (1 + e^epsilon)."""
    return odds_text(epsilon) + (f" + {delta:g}" if delta else "")


def paradigm_title(paradigm: Paradigm) -> str:
    """Name a paradigm by its meaning."""
    return f"{_PROTECTED[paradigm.unit]} protected, {trusted_words(paradigm)} trusted"


def trusted_words(paradigm: Paradigm) -> str:
    """Name in a word or two who has to be trusted under a paradigm."""
    return _TRUSTED[paradigm.place].value


def noise_party(release: Publication) -> NoiseParty:
    """Return who added the noise: under a distributed paradigm it may have been the holder of the ballots."""
    if "reports_made_by" in release.facts:
        return NoiseParty.HOLDER
    return _TRUSTED[release.guarantee.paradigm.place]


def release_title(release: Publication) -> str:
    """Name a release by what it protects and who is trusted."""
    if not release.exact:
        return f"Experiment with {release.guarantee.paradigm.name.upper()}, nobody protected"
    return f"{_PROTECTED[release.guarantee.paradigm.unit]} protected, {noise_party(release).value} trusted"


def protected_words(paradigm: Paradigm) -> str:
    """Name in a few words what is protected."""
    return _PROTECTED_BRIEFLY[paradigm.unit]


def mechanism_words(mechanism: str) -> str:
    """Describe what a mechanism does; return its name if there is no description."""
    return ALL[mechanism].words if mechanism in ALL else mechanism


def guarantee_sentences(release: Publication) -> list[str]:
    """Explain who is protected, against whom, and what the epsilon means; for an experiment, that nobody is."""
    guarantee = release.guarantee
    if not release.exact:
        return [_experiment(guarantee)]
    return [
        _who(guarantee),
        _against_whom(noise_party(release)),
        *_how_much(guarantee, noise_party(release)),
        *(_personal(guarantee) if guarantee.personal else ()),
        *(_relayed(release.facts["relayed"]) if "relayed" in release.facts else ()),
        *(_selected(release.facts["selected_by"]) if "selected_by" in release.facts else ()),
        *(_grouped(release.facts["groups_not_protected"]) if "groups_not_protected" in release.facts else ()),
        *(_secret_groups(release.facts) if "groups_protected" in release.facts else ()),
    ]


def _relayed(said: Mapping[str, Any]) -> Iterator[str]:
    """Explain what a relay adds, against whom, in its three lines."""
    yield "The reports came through a relay, shuffled and without their senders, which protects the voters further:"
    yield from RelayedPromise.from_dict(said).lines


def _selected(label: str) -> Iterator[str]:
    yield (
        f"These voters were selected from a larger crowd by “{label}”, which was declared public: who is among them is "
        "not protected."
    )


def _grouped(why: str) -> Iterator[str]:
    yield f"Who belongs to which group is not protected: {why}."


def _secret_groups(facts: Mapping[str, Any]) -> Iterator[str]:
    yield "Who belongs to which group is protected, too, as a part of what a voter said."
    if "group_voters" in facts:
        voters = facts["group_voters"]
        yield f"This group, “{facts['group']}”, has about {voters:,} {plural(voters, 'voter')}, by a noisy count."
    if "what_is_left" in facts:
        yield f"That leaves little: {facts['what_is_left']}."


def _experiment(guarantee: Guarantee) -> str:
    epsilon = guarantee.epsilon.value
    return (
        "This release protects nobody: it was made with floating-point noise, which is for experiments. Exact noise of "
        f"the same size would have kept the influence of {_whose(guarantee)} to a factor of e^{guarantee.epsilon} = "
        f"{factor_text(epsilon)}, and an outsider's best guess to {guess_text(epsilon, guarantee.delta)}."
    )


def _who(guarantee: Guarantee) -> str:
    if guarantee.paradigm.unit is Unit.VOTER:
        return f"Each of the {guarantee.voters:,} voters is protected: all records of a voter, taken together."
    if guarantee.paradigm.unit is Unit.CHOICE:
        return (
            f"Each single choice of each of the {guarantee.voters:,} voters is protected: which side a voter took, one "
            "dilemma at a time. Which dilemmas were shown to whom is public."
        )
    return (
        f"Each single record of each of the {guarantee.voters:,} voters is protected, one at a time: a dilemma and the "
        "side that was taken in it."
    )


def _against_whom(noise_by: NoiseParty) -> str:
    outsiders = "everybody who sees this release, even those who know what all other voters chose"
    match noise_by:
        case NoiseParty.AGGREGATOR:
            return (
                f"They are protected against {outsiders}. They are not protected against the aggregator, who holds all "
                "records and is trusted to have added the noise."
            )
        case NoiseParty.HOLDER:
            return (
                f"They are protected against {outsiders}. They are not protected against the holder of the ballots: no "
                "device added noise to this release. The holder made the reports as each voter's device would have, "
                "and is trusted with all records."
            )
        case NoiseParty.DEVICES:
            return (
                "They are protected against everybody, even those who collected the voters' reports, and even those "
                "who know what all other voters chose: each voter's own device added the noise before anything left "
                "it. Nothing but that device has to be trusted."
            )


def _how_much(guarantee: Guarantee, noise_by: NoiseParty) -> list[str]:
    epsilon = guarantee.epsilon
    whose = _whose(guarantee)
    seen = "a voter's report or in this release" if noise_by is NoiseParty.DEVICES else "this release"
    beyond = f", and by delta = {guarantee.delta:g} beyond that" if guarantee.delta else ""
    sentences = [
        f"Whatever anybody sees in {seen} becomes at most e^{epsilon} = {factor_text(epsilon.value)} times more or "
        f"less likely because of {whose}{beyond}.",
        f"Somebody who could only toss a coin between two versions of {whose}, and so was right 50% of the time, "
        f"is right at most {guess_text(epsilon.value, guarantee.delta)} of the time afterwards.",
    ]
    if guarantee.rho is not None:
        sentences.append(
            f"This promise is not pure: with a probability of up to {guarantee.delta:g} it may fail altogether. It "
            f"follows from rho = {guarantee.rho.value:g} of zero-concentrated differential privacy, which Gaussian "
            "noise gives."
        )
    if attacker_odds(epsilon.value) > ALMOST_SURE:
        sentences.append("That comes close to certainty: an epsilon this large promises little.")
    return sentences


def _personal(guarantee: Guarantee) -> list[str]:
    least = guarantee.smallest_epsilon
    return [
        f"Voters have epsilons of their own, from {least} to {guarantee.epsilon}. The numbers above are for the "
        f"largest, the weakest promise; a voter whose epsilon is {least} has a factor of {factor_text(least.value)} "
        f"and a best guess of {odds_text(least.value)}."
    ]


def _whose(guarantee: Guarantee) -> str:
    return _WHOSE[guarantee.paradigm.unit]


def limit_sentences(release: Publication) -> list[str]:
    """List what the guarantee does not promise, so that nobody relies on it."""
    guarantee = release.guarantee
    together = _ten_together(guarantee)
    limits = [
        f"That you took part. The number of voters, {guarantee.voters:,}, is public, and who they are may be known: "
        "what is hidden is what a voter chose, not that the voter took part."
    ]
    if guarantee.paradigm.unit is Unit.CHOICE:
        limits.append(
            "Which dilemmas you were shown. They are public here. If a dilemma was made for you, whatever it says "
            "about you is public with it; the promise covers only the side that you took."
        )
    if guarantee.paradigm.unit is Unit.VOTER:
        limits.append(
            "A group that chooses alike, such as a family. For ten people together the promise is an epsilon of "
            f"{together}."
        )
    else:
        unit = guarantee.paradigm.unit.value
        limits.append(
            f"All {unit}s of one person together. The promise is for one {unit}; for ten {unit}s of the same person it "
            f"is an epsilon of {together}."
        )
        limits.append(
            f"A group that chooses alike, such as a family. The promises for single {unit}s add up over all {unit}s of "
            "all its members."
        )
    limits.append(
        "What the crowd thinks. Finding that out is the purpose. Whoever knows that you think like most people may "
        "guess your choices, whether or not you took part."
    )
    limits.append(_what_else(release))
    return limits


def _what_else(release: Publication) -> str:
    """Explain what adds up: releases, if somebody holds the records, or reports, if devices made them."""
    if noise_party(release) is NoiseParty.DEVICES:
        return (
            "Everything else that your device sends. This release and any other from the same reports cost you nothing "
            "more; but the epsilons of several reports on the same choices, as to several polls, add up."
        )
    added = "epsilons" if release.guarantee.rho is None else "rhos"
    kept = "" if release.ledger is None else "; the ledger keeps their sum within a budget"
    return f"Everything else that is published from the same records. The {added} of several releases add up{kept}."


def account_sentence(release: Publication) -> str:
    """State where the release was charged, or why it was not."""
    if release.ledger is not None:
        entry = ", ".join(f"{key} {plain(value)}" for key, value in release.ledger.items())
        return f"It was charged to a privacy ledger: {entry}."
    if not release.exact:
        return "An experiment is charged to no ledger."
    if noise_party(release) is NoiseParty.DEVICES:
        return (
            "There was nothing to charge to a ledger: the noise was in the reports before they were sent, and whatever "
            "is computed from them alone tells no more than they do."
        )
    return (
        "This release was not charged to a ledger, so nobody kept account of what else was released from the same "
        "records."
    )


_TOLD = {
    *("dilemmas", "reports_about_dilemmas", "reports_made_by", "relayed", "selected_by"),
    *("group", "group_voters", "groups_protected", "groups_not_protected", "what_is_left"),
}
"""Facts that sentences tell: among the remarks of a release, or with its guarantee."""
_REPORTED = {"bits_per_report": "bit", "coordinates_per_report": "number", "signs_per_report": "sign"}


def fact_phrases(facts: Mapping[str, Any]) -> list[str]:
    """Return in a few words each what else a mechanism says of a release."""
    return [_phrase(name, value, facts) for name, value in facts.items() if name not in {*_TOLD, "axes"}]


def _phrase(name: str, value: Any, facts: Mapping[str, Any]) -> str:
    if name == "steps":
        return f"{value} {plural(value, 'step')}"
    if name == "weighing":
        return str(value)
    if name == "robust":
        return f"the most extreme {value:.2%} of reports at each end pulled in"
    if name in _REPORTED:
        sizes = " or ".join(map(str, value))
        along = f", along {'one' if value == [1] else sizes} of {facts['axes']} axes" if "axes" in facts else ""
        return f"{sizes} {plural(max(value), _REPORTED[name])} a report{along}"
    return f"{name.replace('_', ' ')}: {plain(value)}"


def plain(value: Any) -> str:
    """Format any value of a release file."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _ten_together(guarantee: Guarantee) -> str:
    """Return the promise for ten units of protection at once: ten epsilons, or a hundred rhos (group privacy)."""
    if guarantee.rho is None:
        ten = 10 * guarantee.epsilon.value
        return f"{ten:g}, a factor of {factor_text(ten)}"
    ten = epsilon_of(100 * guarantee.rho.value, guarantee.delta)
    return f"{ten:.3g}, a factor of {factor_text(ten)}, with the same delta"
