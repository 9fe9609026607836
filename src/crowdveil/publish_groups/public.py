"""A release of preferences for each group of voters, where everybody may know who is in which.

Groups are crowds of different people, so a record, or a choice, is in one of them only: each group's release may spend
the whole epsilon, and nobody loses more than that. What makes this sound is that a voter's group is not among what is
protected. Where voters are protected, it is (``protected``), unless groups are declared public.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from crowdveil.ballots import BallotSource
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.privacy.mechanisms.grouping import GroupOf
from crowdveil.publish import delivered_release, experiment
from crowdveil.publish_effects.publish import LABELS_NOT_PROTECTED
from crowdveil.publish_effects.request import find_grouping
from crowdveil.releases import Release
from crowdveil.request import Request, check_selection, preview_request

DECLARED = "everybody may know who is in which group: it was declared public"


def groups_of(source: BallotSource, by: str, request: Request) -> dict[str, GroupOf]:
    """Divide a crowd by a question about voters, and check that each group could be released."""
    grouping = find_grouping(next(iter(source.batches())), by, source.voters)
    sizes = np.zeros(len(grouping.labels), np.int64)
    for batch in source.batches():
        codes = grouping.codes(batch)
        sizes += np.bincount(codes[codes >= 0], minlength=len(sizes))
    groups = {label: GroupOf(source, grouping, (code,), int(sizes[code])) for code, label in enumerate(grouping.labels)}
    for label, group in groups.items():
        if group.voters < 2:
            raise CrowdveilError(
                f"the group {label!r} of {by!r} has {group.voters} voter{'' if group.voters == 1 else 's'}, and 2 are "
                "the least: join it with another level in the mapping"
            )
        asked = preview_request(group, request)
        check_selection(asked.dataset, asked.public_selection)
    return groups


def release_groups(groups: Mapping[str, GroupOf], request: Request, ledger: Ledger) -> dict[str, Release]:
    """Release the preference of each group with exact noise, charged to the people of the group.

    All charges are tried before the first is made, so that a budget that is too small spends nothing.
    """
    for label, group in groups.items():
        fits = ledger.preview(preview_request(group, request).charge)
        if not fits.fits:
            raise CrowdveilError(f"the budget does not cover the group {label!r}: {fits.missing} are missing")
    return {label: _named(delivered_release(group, request, ledger), label, request) for label, group in groups.items()}


def experiment_groups(groups: Mapping[str, GroupOf], request: Request, seed: int) -> dict[str, Release]:
    """Make repeatable releases of groups with seeded floating-point noise. They protect nobody."""
    return {
        label: _named(experiment(group, request, seed + place), label, request)
        for place, (label, group) in enumerate(groups.items())
    }


def _named(release: Release, label: str, request: Request) -> Release:
    why = DECLARED if request.paradigm.unit is Unit.VOTER else LABELS_NOT_PROTECTED
    return replace(release, facts={**release.facts, "group": label, "groups_not_protected": why})
