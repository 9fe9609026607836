"""The guarantee of a release in everyday words: pure functions from numbers to sentences."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence

from crowdveil.pages.reading import Lean, Reading, signed
from crowdveil.privacy.guarantee import Guarantee, Paradigm, Place, Unit
from crowdveil.privacy.noise.distribution import NoiseDistribution, Spread
from crowdveil.privacy.zcdp import epsilon_of
from crowdveil.releases import ERROR_BAR

ALMOST_SURE = 0.95
"""An attacker who may get surer than this of what somebody answered is told of as such."""

_PROTECTED = {
    Unit.VOTER: "Each voter",
    Unit.RECORD: "Each single answer",
    Unit.CHOICE: "Each single choice in a public dilemma",
}
_PROTECTED_BRIEFLY = {
    Unit.VOTER: "all answers of a voter together",
    Unit.RECORD: "each answer by itself",
    Unit.CHOICE: "each choice by itself, in dilemmas that are public",
}
_WHOSE = {
    Unit.VOTER: "one voter's answers",
    Unit.RECORD: "one single answer",
    Unit.CHOICE: "the choice made in one single dilemma",
}
_TRUSTED = {Place.CENTRAL: "the aggregator", Place.DISTRIBUTED: "nobody"}
_MECHANISMS = {
    "algorithm-1": "noise, added once, to the average of all voters' preferences",
    "gaussian-mean": "Gaussian noise, added once, to the average of all voters' preferences",
    "algorithm-2": "noise, added to each voter's preference",
    "algorithm-3": "noise, added to each voter's objective function, from which the preference is then computed",
    "algorithm-3-choices": "noise, added to the part of each voter's objective function that depends on the choices",
    "voter-score": "noise, added once, to the sum of all voters' scores, each of them kept within bounds",
    "pooled-score": "noise, added once, to the sum of the scores of all answers",
    "pooled-choices": "noise, added once, to the sum of the scores of all choices in dilemmas that are public",
    "subset-selection": "random signs, among which each voter's device hides the one that stands for the preference",
    "score": "noise, added to a few numbers in which each voter's answers are summed up",
    "randomised-response": "coin tosses, by which each voter's device turns some choices over",
    "one-choice": "coin tosses, by which each voter's device may turn over the one choice, or the few, that it reports",
}


def likelihood_factor(epsilon: float) -> float:
    """Return e^epsilon: how much likelier or less likely one unit of protection can make anything that is seen."""
    return math.exp(epsilon)


def attacker_odds(epsilon: float) -> float:
    """Return the best guess that epsilon allows: e^epsilon / (1 + e^epsilon).

    By Bayes, odds of 1 : 1 between two data sets become at most e^epsilon : 1, as no output is more than e^epsilon
    times likelier under one of them. The bound is reached by randomised response, so no smaller one holds.
    """
    return 1 / (1 + math.exp(-epsilon))


def factor_text(epsilon: float) -> str:
    """Write e^epsilon so that it reads well, from 1.00010 to 5.2 × 10^21."""
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
    """Write the attacker's odds in per cent, with as many decimals as tell them from 50% and from 100%."""
    gained, doubt = math.tanh(epsilon / 2) / 2, 1 / (1 + math.exp(epsilon))
    if doubt < 1e-8:
        return "practically 100%"
    places = max(1, -1 - math.floor(math.log10(gained)), -2 - math.floor(math.log10(doubt)))
    return f"{attacker_odds(epsilon):.{places}%}"


def guess_text(epsilon: float, delta: float) -> str:
    """Write the attacker's odds; with a delta they are e^epsilon / (1 + e^epsilon) + delta / (1 + e^epsilon) at most."""
    return odds_text(epsilon) + (f" + {delta:g}" if delta else "")


def paradigm_title(paradigm: Paradigm) -> str:
    """Name a paradigm by what it means."""
    return f"{_PROTECTED[paradigm.unit]} protected, {_TRUSTED[paradigm.place]} trusted"


def trusted_words(paradigm: Paradigm, facts: Container[str] = ()) -> str:
    """Say in a word or two who has to be trusted."""
    return "the holder of the ballots" if "reports_made_by" in facts else _TRUSTED[paradigm.place]


def devices_sentences(facts: Container[str]) -> list[str]:
    """Say so where no device made the reports, but somebody who held all answers made them in the devices' place."""
    if "reports_made_by" not in facts:
        return []
    return [
        "In this release no device added noise: the holder of the ballots made the reports, as each voter's device "
        "would have. The holder saw the answers and had to be trusted. Everybody else learns no more than devices would "
        "have told."
    ]


def protected_words(paradigm: Paradigm) -> str:
    """Say in a few words what is protected."""
    return _PROTECTED_BRIEFLY[paradigm.unit]


def mechanism_words(mechanism: str) -> str:
    """Say what a mechanism does; the name itself for one that has no words here."""
    return _MECHANISMS.get(mechanism, mechanism)


def guarantee_sentences(guarantee: Guarantee) -> list[str]:
    """Say who is protected, against whom, and what the epsilon means."""
    return [
        _who(guarantee),
        _against_whom(guarantee),
        *_how_much(guarantee),
        *(_personal(guarantee) if guarantee.personal else ()),
    ]


def _who(guarantee: Guarantee) -> str:
    if guarantee.paradigm.unit is Unit.VOTER:
        return f"Each of the {guarantee.voters:,} voters is protected: all of a voter's answers, taken together."
    if guarantee.paradigm.unit is Unit.CHOICE:
        return (
            f"Each single choice of each of the {guarantee.voters:,} voters is protected: which side a voter took, one "
            "dilemma at a time. Which dilemmas were shown to whom is public."
        )
    return f"Each single answer of each of the {guarantee.voters:,} voters is protected: one answer at a time."


def _against_whom(guarantee: Guarantee) -> str:
    if guarantee.paradigm.place is Place.CENTRAL:
        return (
            "They are protected against everybody who sees this release, even those who know the answers of all other "
            "voters. They are not protected against the aggregator, who holds the exact answers and is trusted to have "
            "added the noise."
        )
    return (
        "They are protected against everybody, even those who collected the voters' reports, and even those who know "
        "the answers of all other voters: each voter's own device added the noise before anything left it. Nothing but "
        "that device has to be trusted."
    )


def _how_much(guarantee: Guarantee) -> list[str]:
    epsilon, whose = guarantee.epsilon, _whose(guarantee)
    seen = "this release" if guarantee.paradigm.place is Place.CENTRAL else "a voter's report or in this release"
    beyond = f", and by delta = {guarantee.delta:g} beyond that" if guarantee.delta else ""
    sentences = [
        f"Whatever anybody sees in {seen} becomes at most e^{epsilon} = {factor_text(epsilon.value)} times more or "
        f"less likely because of {whose}{beyond}.",
        f"Somebody who could only toss a coin between two versions of {whose}, and so was right 50% of the time, "
        f"is right at most {guess_text(epsilon.value, guarantee.delta)} of the time afterwards.",
    ]
    if guarantee.rho is not None:
        sentences.append(
            f"This promise is not pure: with a probability of up to {guarantee.delta:g} it may fail altogether. It follows "
            f"from rho = {float(guarantee.rho):g} of zero-concentrated differential privacy, which Gaussian noise gives."
        )
    if attacker_odds(epsilon.value) > ALMOST_SURE:
        sentences.append("That comes close to certainty: an epsilon this large promises little.")
    return sentences


def _personal(guarantee: Guarantee) -> list[str]:
    least = guarantee.smallest_epsilon
    return [
        f"Voters chose their own epsilon, from {least} to {guarantee.epsilon}. The numbers above are for the largest, "
        f"the weakest promise; a voter who chose {least} has a factor of {factor_text(least.value)} and a best guess "
        f"of {odds_text(least.value)}."
    ]


def _whose(guarantee: Guarantee) -> str:
    return _WHOSE[guarantee.paradigm.unit]


def limit_sentences(guarantee: Guarantee) -> list[str]:
    """Say what the guarantee does not promise, so that nobody relies on it."""
    together = _ten_together(guarantee)
    limits = [
        f"That you took part. The number of voters, {guarantee.voters:,}, is public, and who they are may be known: "
        "what is hidden is what a voter answered, not that there was an answer."
    ]
    if guarantee.paradigm.unit is Unit.CHOICE:
        limits.append(
            "Which dilemmas you were shown. They are public here. If a dilemma was made for you, whatever it says about "
            "you is public with it; the promise covers only the side that you took."
        )
    if guarantee.paradigm.unit is not Unit.VOTER:
        limits.append(
            "All answers of one person together. The promise is for one answer; for ten answers of the same person it "
            f"is an epsilon of {together}."
        )
        limits.append(
            "A group that answers alike, such as a family. The promises for single answers add up over all answers of "
            "all its members."
        )
    else:
        limits.append(
            f"A group that answers alike, such as a family. For ten people together the promise is an epsilon of "
            f"{together}."
        )
    limits.append(
        "What the crowd thinks. Finding that out is the purpose. Whoever knows that you think like most people may "
        "guess your answers, whether or not you took part."
    )
    limits.append(
        f"Everything else that is published from the same answers. The {'epsilons' if guarantee.rho is None else 'rhos'} of "
        "several releases add up; the ledger keeps their sum within a budget."
    )
    return limits


def _ten_together(guarantee: Guarantee) -> str:
    """Say what is promised for ten units of protection at once: ten epsilons, or a hundred rhos (group privacy)."""
    if guarantee.rho is None:
        ten = 10 * guarantee.epsilon.value
        return f"{ten:g}, a factor of {factor_text(ten)}"
    ten = epsilon_of(100 * float(guarantee.rho), guarantee.delta)
    return f"{ten:.3g}, a factor of {factor_text(ten)}, with the same delta"


def error_bar_sentence(noise: NoiseDistribution, features: int) -> str:
    """Say what the error bars cover and what they do not."""
    covered = (
        "the noise and the differences between voters, as far as the spread of the noisy reports shows them; a bias of "
        "the mechanism is not covered"
        if isinstance(noise, Spread)
        else "the noise that privacy added, and nothing else: not how well these voters stand for everybody"
    )
    missing = round((1 - ERROR_BAR) * features)
    expected = f", so expect about {missing} of these {features} to miss" if missing else ""
    return f"An error bar covers {covered}. It misses the truth in {1 - ERROR_BAR:.0%} of cases{expected}."


def finding_sentences(shown: Sequence[Reading], places: int) -> list[str]:
    """Say what stands out in a release, and how much of it could be noise."""
    clear = [r for r in shown if r.lean is not Lean.UNCLEAR]
    if not clear:
        return [
            f"None of the {len(shown)} features can be told from noise: with this many voters and this epsilon, the "
            "release does not show what the crowd prefers."
        ]
    sentences = [f"{len(clear)} of {len(shown)} features can be told from the privacy noise."]
    liked = [r for r in clear if r.lean is Lean.MORE][:3]
    disliked = [r for r in reversed(clear) if r.lean is Lean.LESS][:3]
    if liked:
        sentences.append(f"What speaks most for an alternative: {_listed(liked, places)}.")
    if disliked:
        sentences.append(f"What speaks most against one: {_listed(disliked, places)}.")
    return sentences


def _listed(shown: Sequence[Reading], places: int) -> str:
    return ", ".join(f"“{r.label}” ({signed(r.value, places)})" for r in shown)
