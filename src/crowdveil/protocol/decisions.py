"""Questions to the crowd over the network: names and summaries of releases, dilemmas, and decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crowdveil.decision import Decision, RankedAlternative
from crowdveil.errors import CrowdveilError
from crowdveil.releases import Release
from crowdveil.study.study import COIN, LONGEST_NAME, Dilemma, Study

CURRENT = "current"
"""Name for the release that a poll's decisions use: the one that its host has marked, or else the newest."""
LATEST = "latest"
"""Name for the newest release of a poll."""

_FEATURES: dict[str, Any] = {"type": "object", "additionalProperties": {"type": ["number", "string"]}}
_NAMED: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME}, "features": _FEATURES},
    "required": ["features"],
    "additionalProperties": False,
}
MOST_ALTERNATIVES = 100
"""Maximum number of alternatives in a dilemma that is asked over the network."""
ALTERNATIVES_SCHEMA: dict[str, Any] = {
    "description": (
        'Two or more outcomes: a list of their features, as in [{"girl": 1}, {"dog": 2}]; the same with names, as in '
        '{"name": "stay", "features": {"girl": 1}}; or an object that maps names to features. A feature that is left '
        'out counts as 0 if 0 is possible. A category is given by the word for its level, as in {"soup": "pea"}.'
    ),
    "anyOf": [
        {
            "type": "array",
            "items": {"anyOf": [_NAMED, _FEATURES]},
            "minItems": 2,
            "maxItems": MOST_ALTERNATIVES,
        },
        {"type": "object", "additionalProperties": _FEATURES, "minProperties": 2, "maxProperties": MOST_ALTERNATIVES},
    ],
}
"""The forms of a dilemma, as the API and the tools announce them to programs; ``Study.dilemma`` reads them."""


@dataclass(frozen=True, kw_only=True, repr=False)
class RemoteDecision(Decision):
    """A decision that a website made."""

    release: str
    """The checksum of the release that decided: keep it with the decision."""


def read_dilemma(study: Study, alternatives: Any) -> Dilemma:
    """Read a dilemma that came over the network, where its size is limited."""
    dilemma = study.dilemma(alternatives)
    if len(dilemma.alternatives) > MOST_ALTERNATIVES:
        raise CrowdveilError(
            f"the dilemma has {len(dilemma.alternatives)} alternatives: at most {MOST_ALTERNATIVES} are allowed"
        )
    return dilemma


def write_decision(decision: Decision, release: str) -> dict[str, Any]:
    """Return a decision as plain data, with the checksum of its release."""
    return {**decision.as_dict(), "release": release}


def read_decision(data: Mapping[str, Any]) -> RemoteDecision:
    """Read what ``write_decision`` wrote."""
    guarantee = data["guarantee"]
    return RemoteDecision(
        ranking=tuple(RankedAlternative(r["name"], r["score"], r["description"]) for r in data["ranking"]),
        probability=data["probability"],
        certainty=data["certainty"],
        population_certainty=data["population_certainty"],
        threshold=data["threshold"],
        reason=data["reason"],
        epsilon=guarantee["epsilon"],
        paradigm=guarantee["paradigm"],
        delta=guarantee.get("delta", 0.0),
        indifferent=(data.get("probabilities") or {}).get(COIN),
        coin=bool(data.get("toss_a_coin")),
        release=data["release"],
    )


def summarise_release(release: Release) -> dict[str, Any]:
    """Summarise a release for a list of releases."""
    guarantee = release.guarantee
    return {
        "id": release.digest,
        "study": release.study.name,
        "title": release.study.title,
        "paradigm": guarantee.paradigm.name,
        "mechanism": release.mechanism,
        "epsilon": guarantee.epsilon.value,
        "voters": guarantee.voters,
    }
