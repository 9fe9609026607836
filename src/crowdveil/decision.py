"""decide(release, dilemma): what the crowd would choose, how many would agree, and how certain that is.

A decision reads only a release; no ballot, preference or report can be passed in.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crowdveil.arrays import FloatArray
from crowdveil.errors import check_certainty
from crowdveil.privacy.uncertainty import Uncertainty
from crowdveil.releases import Release, check_release
from crowdveil.study.study import COIN, Dilemma

DEFAULT_CERTAINTY = 0.9
FEWEST_FREEDOM = 10
"""Degrees of freedom of the error estimate below which no certainty is stated."""
FEWEST_VOTERS = FEWEST_FREEDOM + 1
"""Voters below which nothing is stated about their population. Of one that is split into two camps, N voters are all of
the same camp in 2 of 2^N crowds, which no law of their scatter tells (tests/statistics/few_voters.py)."""

Alternatives: TypeAlias = Sequence[Mapping[str, Any]] | Mapping[str, Mapping[str, float]]
"""A dilemma as plain data."""


@dataclass(frozen=True)
class RankedAlternative:
    """One alternative, ranked by its score beta . x."""

    name: str
    score: float
    description: str


@dataclass(frozen=True)
class Decision:
    """The choice that the crowd would make.

    ``certainty`` is about the crowd itself: whatever the crowd prefers, a wrong choice has a certainty of c or more
    with probability at most 1 - c, over the noise and the devices' coins. ``population_certainty`` is about the
    population from which the crowd was drawn.
    """

    ranking: tuple[RankedAlternative, ...]
    probability: float | None
    """For two alternatives: the predictive share of voters who choose the first-ranked one."""
    certainty: float
    population_certainty: float | None
    """None for the paper's society, which says nothing about a population."""
    threshold: float
    reason: str
    epsilon: float
    paradigm: str
    delta: float = 0.0
    """0 for a purely private release."""
    indifferent: float | None = None
    """For two alternatives, in a study that allows this answer: the share of voters who would toss a coin."""
    coin: bool = False
    """Whether more voters would toss a coin than choose either alternative. The certainty is then about this answer."""

    @property
    def choice(self) -> str | None:
        """The name of the chosen alternative, "toss a coin", or None if it is too close to call."""
        if self.certainty < self.threshold:
            return None
        return COIN if self.coin else self.ranking[0].name

    @property
    def probabilities(self) -> dict[str, float] | None:
        """The shares who choose each alternative and who would toss a coin; None if the study has no such answer."""
        if self.indifferent is None or self.probability is None:
            return None
        first, second = (one.name for one in self.ranking)
        rest = max(1 - self.probability - self.indifferent, 0.0)
        return {first: self.probability, second: rest, COIN: self.indifferent}

    @property
    def sentences(self) -> list[str]:
        """The probability and the certainties, each with its meaning."""
        said = f"Certainty: {certainty_text(self.certainty)} ({self.threshold:.0%} was asked for), "
        if self.population_certainty is None:
            return [f"{said}that privacy noise did not change the choice of this society."]
        told = [
            f"{said}that {self._claim}. Noise, and all that clipping and the model may be off by, are counted in.",
            f"Population certainty: {certainty_text(self.population_certainty)}, that the people whom these voters "
            "were drawn from do, if they were drawn at random.",
        ]
        if self.probability is None:
            return told
        first, second = self.ranking
        if self.probabilities is not None:
            shares = ", ".join(f"{share:.0%} “{name}”" for name, share in self.probabilities.items())
            return [f"Probabilities: {shares}, the shares of voters who would answer so, as far as is known.", *told]
        return [
            f"Probability: {self.probability:.0%}, the share of voters who would choose “{first.name}” over "
            f"“{second.name}”, as far as is known.",
            *told,
        ]

    @property
    def _claim(self) -> str:
        if self.coin:
            return "more voters of this release would toss a coin than choose either"
        if self.indifferent is not None:
            return "more voters of this release choose it than the other, and than would toss a coin"
        return "the voters of this release prefer it on the whole"

    def __repr__(self) -> str:
        return f"<decision: {self._verdict()}; {self.reason}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{place}.</td><td>{html.escape(one.name)}</td><td>{html.escape(one.description)}</td>"
            f"<td>{one.score:+.3f}</td></tr>"
            for place, one in enumerate(self.ranking, start=1)
        )
        return (
            f"<table><caption>{html.escape(self._verdict())}: {html.escape(self.reason)}</caption>"
            f"<tr><th></th><th>alternative</th><th></th><th>score</th></tr>{rows}</table>"
        )

    def _verdict(self) -> str:
        if self.choice is None:
            return "too close to call"
        return "the crowd would toss a coin" if self.coin else f"the crowd chooses {self.choice}"

    def as_dict(self) -> dict[str, Any]:
        """Return the decision as plain data."""
        return {
            "choice": self.choice,
            "too_close_to_call": self.choice is None,
            "reason": self.reason,
            "probability": self.probability,
            **({} if self.probabilities is None else {"probabilities": self.probabilities, "toss_a_coin": self.coin}),
            "certainty": self.certainty,
            "population_certainty": self.population_certainty,
            "threshold": self.threshold,
            "ranking": [{"name": r.name, "score": r.score, "description": r.description} for r in self.ranking],
            "guarantee": {
                "paradigm": self.paradigm,
                "epsilon": self.epsilon,
                **({"delta": self.delta} if self.delta else {}),
            },
        }


def decide(release: Release, dilemma: Dilemma | Alternatives, certainty: float = DEFAULT_CERTAINTY) -> Decision:
    """Rank the alternatives by beta . x and compute how certain the choice is.

    A dilemma is a list of two or more alternatives, each given by its features (``[{"girl": 1}, {"dog": 2}]``, then
    called A and B) or with a name (``{"name": "stay", "features": {"girl": 1}}``), or a mapping of names to features.

    Theorem. For a fixed crowd and dilemma, the probability of a wrong choice with a certainty of c or more is at most
    1 - c.

    Proof. Let s be the crowd's margin of the choice over another alternative, t its unshrunk estimate, and R the noise
    along their difference. Then t = s + R + b, where |b| is at most B: the bound on doubt and on the directions that no
    factor covers (``Uncertainty.bias_bound``, which states the assumptions). The certainty is c = P(R < t - B). R is
    symmetric and does not depend on s. So if s < 0 in truth, then R > t - B, which has probability at most 1 - c. The
    same holds if the size of the preference is wrong, that is if t = g s + R + b with any g > 0. If the unshrunk
    estimate contradicts the ranking, the certainty is 0, and also if the alternatives differ in a feature in which the
    study's dilemmas never do, as nothing bounds its weight. With more than two alternatives, the probabilities of error
    against each of the others are added (union bound). For a paper's society, B is 0 and s is the margin without noise.

    If the study allows a third answer, a dilemma of two alternatives has three possible answers. The choice is the one
    that most voters would give, which may be "toss a coin". This is the case between the margins -m and m at which a
    side is chosen as often as neither (``Indifference.even_margin``). So the margin is compared with m instead of 0,
    and with both ends for a coin; uncertainty about the threshold adds to the noise. Here the size of the preference
    matters: if the dilemmas show f times as much of it as is supposed, t estimates f s, and is compared with f m. Of
    all f between the bounds (``Uncertainty.shown``), the certainty is that of the worst: the least for a coin, the most
    for a side. People were asked about two alternatives at a time, so among three or more, the first is chosen as if
    everybody had to choose.
    """
    check_release(release)
    check_certainty(certainty)
    dilemma = release.study.dilemma(dilemma)
    points = np.array([a.values for a in dilemma.alternatives]) / release.study.units
    scores = points @ release.parameter
    order = np.argsort(-scores, kind="stable")
    best = order[0]
    sides = [points[best] - points[other] for other in order[1:]]
    doubts = [1 - crowd_certainty(release, side) for side in sides]
    population = [1 - population_certainty(release, side) for side in sides] if release.unknown is not None else None
    runner_up = order[1]
    identical = bool((points[best] == points[runner_up]).all())
    if release.indifference is not None and release.unknown is not None and len(order) == 2:
        return _of_three(release, dilemma, order.tolist(), scores, sides[0], certainty)
    sure = 0.0 if identical else max(0.0, 1 - sum(doubts))
    return Decision(
        ranking=_ranking(release, dilemma, order.tolist(), scores),
        probability=NormalDist().cdf(float(stated_margins(release, sides[0])))
        if len(order) == 2 and release.unknown is not None
        else None,
        certainty=sure,
        population_certainty=None if population is None else 0.0 if identical else max(0.0, 1 - sum(population)),
        threshold=certainty,
        reason=_reason(release, sides, sure, certainty, identical),
        epsilon=release.guarantee.epsilon.value,
        paradigm=release.guarantee.paradigm.name,
        delta=release.guarantee.delta,
    )


def _ranking(
    release: Release, dilemma: Dilemma, order: Sequence[int], scores: FloatArray
) -> tuple[RankedAlternative, ...]:
    ranked = [dilemma.alternatives[i] for i in order]
    return tuple(
        RankedAlternative(one.name, float(scores[i]), release.study.describe(one))
        for i, one in zip(order, ranked, strict=True)
    )


def _of_three(
    release: Release, dilemma: Dilemma, order: Sequence[int], scores: FloatArray, side: FloatArray, asked: float
) -> Decision:
    """Decide between two alternatives and a coin: what most voters would answer."""
    assert release.indifference is not None
    shares = three_shares(release, side)
    coin = shares[2] > max(shares[:2])
    sure, population = _third_certainties(release, side, coin=coin)
    if sure >= asked:
        reason = (
            f"so clear an answer would be wrong in at most {max(1 - sure, 1e-4):.2%} of cases, whatever the crowd's is"
            f"{_FEW if _too_few_for_population(release) else ''}"
        )
    else:
        reason = _reason(release, [side], sure, asked, identical=not side.any())
    return Decision(
        ranking=_ranking(release, dilemma, order, scores),
        probability=shares[0],
        certainty=sure,
        population_certainty=population,
        threshold=asked,
        reason=reason,
        epsilon=release.guarantee.epsilon.value,
        paradigm=release.guarantee.paradigm.name,
        delta=release.guarantee.delta,
        indifferent=shares[2],
        coin=coin,
    )


def three_shares(release: Release, difference: FloatArray) -> tuple[float, float, float]:
    """Return the shares who choose x, who choose z, and who would toss a coin, given x - z."""
    assert release.indifference is not None
    assert release.unknown is not None
    mean, variance = release.unknown.predictive(difference)
    return release.indifference.shares(float(mean), float(variance))


def _third_certainties(release: Release, difference: FloatArray, *, coin: bool) -> tuple[float, float]:
    """Return the certainty of the most common of three answers, for the crowd and for its population."""
    third = release.indifference
    unknown = release.unknown
    assert third is not None
    assert unknown is not None
    if _too_few(unknown) or _unasked(release, difference):
        return 0.0, 0.0
    margin = unknown.margin(difference)
    least, most = unknown.shown
    shows = least if coin else most
    even = shows * third.even_margin
    bound = unknown.bias_bound(difference) + unknown.size_bound(difference)
    slack = shows * third.even_slope * third.deviation
    wider = math.hypot(slack, unknown.divided_deviation(difference))

    def sure(distance: float, deviation: float) -> float:
        return _less_sure(release, difference, distance - bound, deviation) if distance > bound else 0.0

    if coin:
        crowd, population = (sure(even - margin, each) + sure(even + margin, each) - 1 for each in (slack, wider))
    else:
        crowd, population = sure(margin - even, slack), sure(margin - even, wider)
    return max(crowd, 0.0), 0.0 if _too_few_for_population(release) else max(population, 0.0)


def _less_sure(release: Release, difference: FloatArray, margin: float, deviation: float) -> float:
    """Return P(noise < margin) with an independent error of this standard deviation added to the noise."""
    certainty = release.noise.below(difference, margin)
    if certainty <= 0.5 or deviation == 0:
        return certainty
    # Express the noise as a normal deviation that gives the same certainty; the other error adds to its variance.
    noise = margin / NormalDist().inv_cdf(min(certainty, 1 - 1e-12))
    return min(certainty, NormalDist().cdf(margin / math.hypot(noise, deviation)))


def certainty_text(certainty: float) -> str:
    """Format a certainty in per cent. Below one half it says nothing for the choice and nothing against it."""
    if certainty < 0.5:
        return "less than 50%"
    return "more than 99.9%" if certainty > 0.999 else f"{certainty:.1%}"


def stated_margins(release: Release, differences: NDArray[Any]) -> Any:
    """Return m for each difference of two alternatives (rows, in model units): Phi(m) prefer the first of the two.

    That share is the probability that a decision states. For a paper's society, m is the margin itself, and no decision
    states a probability: nothing was done to make it true.
    """
    if release.unknown is None:
        return differences @ release.parameter
    return release.unknown.predictive_margins(differences)


def crowd_certainty(release: Release, difference: FloatArray) -> float:
    """Return the certainty that the crowd prefers x to z, given x - z."""
    unknown = release.unknown
    if unknown is None:
        return release.noise.below(difference, float(difference @ release.parameter))
    if _too_few(unknown) or _unasked(release, difference):
        return 0.0
    margin = unknown.margin(difference)
    return release.noise.below(difference, margin - unknown.bias_bound(difference)) if margin > 0 else 0.0


def population_certainty(release: Release, difference: FloatArray) -> float:
    """Return the certainty that the crowd's population prefers x to z: the sampling of voters counts, too."""
    assert release.unknown is not None
    if _too_few_for_population(release):
        return 0.0
    certainty = crowd_certainty(release, difference)
    if certainty <= 0.5:
        return certainty
    margin = release.unknown.margin(difference) - release.unknown.bias_bound(difference)
    return _less_sure(release, difference, margin, release.unknown.divided_deviation(difference))


def _reason(release: Release, sides: Sequence[FloatArray], sure: float, asked: float, identical: bool) -> str:
    unknown = release.unknown
    if identical:
        return "the two best alternatives are the same in every feature of the study"
    if sure >= asked:
        whose = "the crowd prefers" if unknown is not None else "the society would choose without noise"
        few = _FEW if unknown is not None and _too_few_for_population(release) else ""
        return f"so clear a choice would be wrong in at most {max(1 - sure, 1e-4):.2%} of cases, whatever {whose}{few}"
    if unknown is not None and _too_few(unknown):
        return (
            f"so few reports do not tell how far off they are: at least {FEWEST_VOTERS} voters with ballots of about "
            "the same length are needed for a certainty"
        )
    if unasked := dict.fromkeys(f"“{label}”" for side in sides for label in _unasked(release, side)):
        return (
            f"the alternatives differ in {' and '.join(unasked)}, in which the study's dilemmas never do: nothing is "
            "known about that"
        )
    if unknown is not None and any(unknown.margin(side) <= 0 for side in sides):
        other = "the other side" if len(sides) == 1 else "another alternative"
        return f"what was measured points to {other}; only the assumption about usual crowds points to this one"
    if unknown is not None and any(unknown.rest_bound(side) >= unknown.margin(side) for side in sides):
        return (
            "the alternatives also differ in ways that this release did not measure, which may outweigh the margin; "
            "a release along features, which measures them all, could tell"
        )
    how_sure = "less than 50%" if sure < 0.5 else f"{sure:.0%}"
    return (
        f"too much is not known for this margin: the choice is certain to {how_sure}, and {asked:.0%} was asked for; a "
        "release with more voters or a larger epsilon could tell"
    )


def _unasked(release: Release, difference: FloatArray) -> list[str]:
    """Return the labels of the features in which two alternatives differ, and the study's dilemmas never do."""
    return [release.study.features[k].label for k in np.flatnonzero(~release.features_known & (difference != 0))]


_FEW = f"; fewer than {FEWEST_VOTERS} voters say nothing about the people whom they were drawn from"


def _too_few_for_population(release: Release) -> bool:
    return int(release.facts.get("group_voters", release.guarantee.voters)) < FEWEST_VOTERS


def _too_few(unknown: Uncertainty) -> bool:
    return unknown.freedom is not None and unknown.freedom < FEWEST_FREEDOM
