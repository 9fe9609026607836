"""Words for a host about what a poll measures: the study's factors, or every direction in which features differ."""

from __future__ import annotations

from dataclasses import replace

from crowdveil.errors import plural
from crowdveil.privacy.mechanisms.registry import can_measure, recommended_along, reported_along
from crowdveil.service.poll import HostedPoll

MEASURED = {"factors": "the study’s factors only", "features": "every direction in which features differ"}
"""The choices of what to measure, in the order in which a form offers them."""
_LATER = "factors, and the rest where the numbers of voters and answers are large enough when you release"


def measured_words(poll: HostedPoll) -> str | None:
    """Return what a poll measures; None where there is no choice."""
    if not can_measure(poll.mechanism, poll.study):
        return None
    measured = reported_along(poll.mechanism, poll.study)
    return _LATER if measured is None else MEASURED[measured]


def measured_advice(poll: HostedPoll) -> str | None:
    """Advise which leaves the smaller error if as many people vote as the poll takes, at its strongest level."""
    if poll.quota is None:
        return None
    settings = replace(poll.settings, study=replace(poll.study, along=None))
    epsilon = poll.levels[0].epsilon
    better = recommended_along(poll.mechanism, settings, poll.quota, epsilon)
    if better is None:
        return None
    voters = f"{poll.quota:,} {plural(poll.quota, 'voter')} at ε = {epsilon}"
    if better == reported_along(poll.mechanism, poll.study):
        return f"That leaves the least error with {voters}."
    return f"With {voters}, less error would be left by measuring {MEASURED[better]}."
