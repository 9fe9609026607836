"""Asking the crowd: which release is meant, what a list of releases says of it, and a decision on its way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crowdveil.decision import Decision, Ranked
from crowdveil.releases import Release

CURRENT = "current"
"""Stands for the release that a poll's decisions use: the one that its host has marked, or else the newest."""
LATEST = "latest"
"""Stands for the newest release of a poll."""


@dataclass(frozen=True, kw_only=True)
class RemoteDecision(Decision):
    """A decision that a website made."""

    release: str
    """The checksum of the release that decided: keep it with the decision."""


def write_decision(decision: Decision, release: str) -> dict[str, Any]:
    """Write a decision with the checksum of the release that it came from."""
    return {**decision.as_dict(), "release": release}


def read_decision(data: Mapping[str, Any]) -> RemoteDecision:
    """Read what ``write_decision`` wrote."""
    guarantee = data["guarantee"]
    return RemoteDecision(
        ranking=tuple(Ranked(r["name"], r["score"], r["description"]) for r in data["ranking"]),
        probability=data["probability"],
        certainty=data["certainty"],
        threshold=data["threshold"],
        reason=data["reason"],
        epsilon=guarantee["epsilon"],
        paradigm=guarantee["paradigm"],
        delta=guarantee.get("delta", 0.0),
        release=data["release"],
    )


def summarise_release(release: Release) -> dict[str, Any]:
    """Summarise a release for a list of them."""
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
