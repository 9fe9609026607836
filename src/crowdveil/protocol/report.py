"""The report of one voter's device: a mechanism, an epsilon, and integers with noise already in them.

A report is a JSON object (``docs/file-formats.md``). This module defines its envelope; the mechanism's class defines
the content. A report is checked before it is stored: if no honest device in this study could have made it, it is
refused, with a reason from a fixed list. Nothing in this module sees a record.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crowdveil.errors import CrowdveilError, Reason, Refusal, shown
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.mechanism import DistributedMechanism, MechanismSettings
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED, distributed
from crowdveil.study.study import Study

FORMAT = "crowdveil report 1"


@dataclass(frozen=True)
class Terms:
    """The terms that reports must meet: the mechanism, its public settings, and the epsilons on offer."""

    mechanism: str
    settings: MechanismSettings
    epsilons: Collection[Epsilon]


def write_reports(mechanism: str, study: Study, epsilons: Epsilons, reports: Any) -> list[dict[str, Any]]:
    """Return the reports that a mechanism made as JSON objects, one per voter."""
    return [
        {
            "format": FORMAT,
            "study": study.fingerprint,
            "mechanism": mechanism,
            "epsilon_micro": epsilon.micro,
            **fields,
        }
        for epsilon, fields in zip(epsilons, _mechanism(mechanism, study).wire.write(reports), strict=True)
    ]


def check_report(body: Any, terms: Terms) -> None:
    """Refuse a report that no honest device could have made under these terms."""
    (refusal,) = refusals([body], terms)
    if refusal is not None:
        raise refusal


def refusals(bodies: Sequence[Any], terms: Terms) -> list[Refusal | None]:
    """Return a refusal for each report that no honest device could have made under these terms, None for the others."""
    study = terms.settings.study
    mechanism = _mechanism(terms.mechanism, study)
    found: list[Refusal | None] = []
    for body in bodies:
        try:
            _check_form(body, terms)
            found.append(None)
        except Refusal as refusal:
            found.append(refusal)
    formed = [place for place, refusal in enumerate(found) if refusal is None]
    if formed:
        read = mechanism.wire.read([bodies[place] for place in formed], study)
        for place, honest in zip(formed, mechanism.acceptable(read, terms.settings).tolist(), strict=True):
            if not honest:
                told = "no honest device makes such a report: its numbers are out of range"
                found[place] = Refusal(Reason.OUT_OF_RANGE, told)
    return found


def _check_form(body: Any, terms: Terms) -> None:
    """Refuse anything that does not have the form of a report under these terms, whatever its numbers."""
    study = terms.settings.study
    mechanism = _mechanism(terms.mechanism, study)
    known = {"format", "study", "mechanism", "epsilon_micro", *mechanism.wire.fields}
    if not isinstance(body, Mapping) or set(body) != known or body["format"] != FORMAT:
        raise Refusal(Reason.MALFORMED, f"a report is an object with {', '.join(sorted(known))}")
    if body["study"] != study.fingerprint:
        raise Refusal(Reason.WRONG_STUDY, f"the report is about another study than {study.name}: load it again")
    if body["mechanism"] != terms.mechanism:
        raise Refusal(Reason.WRONG_MECHANISM, f"this poll takes reports by {terms.mechanism}")
    offered = sorted(terms.epsilons)
    given = body["epsilon_micro"]
    if type(given) is not int or given not in [epsilon.micro for epsilon in offered]:
        epsilons = " or ".join(map(str, offered))
        millionths = " or ".join(str(epsilon.micro) for epsilon in offered)
        raise Refusal(
            Reason.WRONG_EPSILON,
            f"the report's epsilon is none of this poll's: report with epsilon {epsilons}, which is an epsilon_micro "
            f"(millionths) of {millionths}; got {shown(given)}",
        )
    mechanism.wire.check(body, study)


def read_reports(bodies: Sequence[Mapping[str, Any]], terms: Terms) -> Any:
    """Gather checked reports into the form that their mechanism aggregates."""
    study = terms.settings.study
    return _mechanism(terms.mechanism, study).wire.read(bodies, study)


def _mechanism(name: str, study: Study) -> DistributedMechanism[Any]:
    try:
        return distributed(name, study)
    except KeyError:
        raise CrowdveilError(f"{name!r} is not a mechanism with reports: use {', '.join(DISTRIBUTED)}") from None
