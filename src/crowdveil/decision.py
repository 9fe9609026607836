"""decide(release, dilemma): what the crowd would choose, how likely, and how sure despite the noise.

A decision reads a release and nothing else; no ballot, preference or report can be passed in.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import CrowdveilError
from crowdveil.releases import Release
from crowdveil.study.study import Dilemma

DEFAULT_CERTAINTY = 0.9

Alternatives: TypeAlias = Sequence[Mapping[str, Any]] | Mapping[str, Mapping[str, float]]
"""A dilemma as plain data."""


@dataclass(frozen=True)
class Ranked:
    """One alternative, its place in the ranking decided by its score beta . x."""

    name: str
    score: float
    description: str


@dataclass(frozen=True)
class Decision:
    """The choice that the released society would make.

    ``certainty`` bounds how often the noise, and not the crowd, made the choice: whatever the noiseless society
    prefers, a different choice with a certainty of at least c comes out with probability at most 1 - c.
    """

    ranking: tuple[Ranked, ...]
    probability: float | None
    """For two alternatives: the share Phi(beta . (x - z)) of times the society picks the first-ranked."""
    certainty: float
    threshold: float
    reason: str
    epsilon: float
    paradigm: str
    delta: float = 0.0
    """0 for a purely private release."""

    @property
    def choice(self) -> str | None:
        """The name of the chosen alternative, or None where it is too close to call."""
        return self.ranking[0].name if self.certainty >= self.threshold else None

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
        return "too close to call" if self.choice is None else f"the crowd chooses {self.choice}"

    def as_dict(self) -> dict[str, Any]:
        """Return the decision in plain words."""
        return {
            "choice": self.choice,
            "too_close_to_call": self.choice is None,
            "reason": self.reason,
            "probability": self.probability,
            "certainty": self.certainty,
            "threshold": self.threshold,
            "ranking": [{"name": r.name, "score": r.score, "description": r.description} for r in self.ranking],
            "guarantee": {
                "paradigm": self.paradigm,
                "epsilon": self.epsilon,
                **({"delta": self.delta} if self.delta else {}),
            },
        }


def decide(release: Release, dilemma: Dilemma | Alternatives, certainty: float = DEFAULT_CERTAINTY) -> Decision:
    """Rank the alternatives by beta . x and tell how sure the choice is.

    A dilemma is a list of two or more alternatives, each given by its features (``[{"girl": 1}, {"dog": 2}]``, then
    called A and B) or with a name (``{"name": "stay", "features": {"girl": 1}}``), or a mapping of names to features.

    Let s be the noiseless society's margin of the choice over another alternative and R the noise along their
    difference, so that the release shows s + R. The certainty is c = P(R < margin shown). R is symmetric and
    does not depend on s, so if in truth s < 0, a shown margin with certainty c or more has probability
    P(R >= t - s) <= P(R >= t) = 1 - c. With more than two alternatives, the chances of error against each of
    the others are added up (union bound).
    """
    if not isinstance(release, Release):
        raise CrowdveilError(f"the release is {release!r:.80}: read it first, with read_release(path)")
    if not (isinstance(certainty, int | float) and 0.5 <= certainty < 1):
        raise CrowdveilError(f"the certainty asked for must be at least 0.5 and below 1, got {certainty}")
    if not isinstance(dilemma, Dilemma):
        dilemma = release.study.dilemma(dilemma)
    points = np.array([a.values for a in dilemma.alternatives]) / release.study.units
    scores = points @ release.parameter
    order = np.argsort(-scores, kind="stable")
    best = order[0]
    doubts = [
        1 - release.noise.below(points[best] - points[other], float(scores[best] - scores[other]))
        for other in order[1:]
    ]
    runner_up = order[1]
    identical = bool((points[best] == points[runner_up]).all())
    sure = 0.0 if identical else max(0.0, 1 - sum(doubts))
    return Decision(
        ranking=tuple(
            Ranked(dilemma.alternatives[i].name, float(scores[i]), release.study.describe(dilemma.alternatives[i]))
            for i in order
        ),
        probability=NormalDist().cdf(stated_margins(release, points[best] - points[runner_up]))
        if len(order) == 2
        else None,
        certainty=sure,
        threshold=certainty,
        reason=_reason(sure, certainty, identical),
        epsilon=release.guarantee.epsilon.value,
        paradigm=release.guarantee.paradigm.name,
        delta=release.guarantee.delta,
    )


def stated_margins(release: Release, differences: NDArray[Any]) -> Any:
    """Return m for each difference of two alternatives (rows, in model units): Phi(m) prefer the first of the two.

    That share is the probability that a decision states.
    """
    return differences @ release.parameter


def _reason(sure: float, asked: float, identical: bool) -> str:
    if identical:
        return "the two best alternatives are the same in every feature of the study"
    if sure >= asked:
        doubt = max(1 - sure, 1e-4)
        return f"privacy noise would produce so clear a choice by itself in at most {doubt:.2%} of cases"
    return (
        f"the privacy noise is too large for this margin: the choice is certain to {sure:.0%}, and {asked:.0%} was "
        "asked for; a release with more voters or a larger epsilon could tell"
    )
