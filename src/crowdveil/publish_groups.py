"""A release of preferences for each group of voters, and what differs between them.

Groups are crowds of different people, so a record, or a choice, is in one of them only: each group's release may spend
the whole epsilon, and nobody loses more than that. What makes this sound is that a voter's group is not among what is
protected. Where voters are protected, it would be: there, groups are released if they are declared public, and effects
by group protect them (``publish_effects``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import NormalDist

import numpy as np

from crowdveil.ballots import Ballots, BallotSource
from crowdveil.effect_release import GroupDifference
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.ratios import told_apart
from crowdveil.files import check_writable
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.intervals import ERROR_BAR
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.privacy.mechanisms.effect_counts import Grouping
from crowdveil.publish import delivered_release, experiment
from crowdveil.publish_effects.publish import LABELS_NOT_PROTECTED
from crowdveil.publish_effects.request import find_grouping
from crowdveil.releases import Release
from crowdveil.request import Request, check_selection, preview_request
from crowdveil.study.study import Study

DECLARED = "everybody may know who is in which group: it was declared public"


@dataclass(frozen=True)
class GroupOf:
    """The voters of one group, as a crowd."""

    source: BallotSource
    grouping: Grouping
    code: int
    voters: int

    @property
    def study(self) -> Study:
        """The study that was asked."""
        return self.source.study

    def batches(self) -> Iterator[Ballots]:
        """Walk the group."""
        for batch in self.source.batches():
            kept = batch.filter(self.grouping.codes(batch) == self.code)
            if kept.voters:
                yield replace(kept, selection=batch.selection)


def groups_of(source: BallotSource, by: str, request: Request, *, public_groups: bool) -> dict[str, GroupOf]:
    """Divide a crowd by a question about voters, and check that each group could be released."""
    if request.paradigm.unit is Unit.VOTER and not public_groups:
        raise CrowdveilError(
            f"{request.paradigm.name} protects all of a voter, what she said of herself included: effects --by {by} "
            "keep that; if everybody may know who is in which group, declare it with public_groups=True "
            "(--public-groups)"
        )
    grouping = find_grouping(next(iter(source.batches())), by, source.voters)
    sizes = np.zeros(len(grouping.labels), np.int64)
    for batch in source.batches():
        codes = grouping.codes(batch)
        sizes += np.bincount(codes[codes >= 0], minlength=len(sizes))
    groups = {label: GroupOf(source, grouping, code, int(sizes[code])) for code, label in enumerate(grouping.labels)}
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


def group_paths(out: str | Path, labels: Sequence[str]) -> dict[str, Path]:
    """Return where the release of each group is written: beside ``out``, by number and name."""
    out = Path(out)
    names = {label: "".join(c if c.isalnum() else "-" for c in label).strip("-").lower() for label in labels}
    paths = {label: out.with_name(f"{out.stem}-{names[label] or 'group'}{out.suffix}") for label in labels}
    if len(set(paths.values())) < len(paths):
        paths = {label: out.with_name(f"{out.stem}-{place}{out.suffix}") for place, label in enumerate(labels, start=1)}
    for path in paths.values():
        check_writable(path)
    return paths


def preference_differences(releases: Mapping[str, Release]) -> tuple[GroupDifference, ...]:
    """Compare groups along every factor, the first less the second, around the unshrunk estimates.

    Errors of different people's releases are independent: they add up by their squares. Which differences are told from
    noise and chance is judged of all together.
    """
    found, p_values = [], []
    for one, other in combinations(releases, 2):
        for k, factor in enumerate(releases[one].study.factors):
            ends = [releases[label].factor_intervals[k] for label in (one, other)]
            centers = [float(low + high) / 2 for low, high in ends]
            reach = float(np.hypot(*((high - low) / 2 for low, high in ends)))
            known = bool(releases[one].known[k] and releases[other].known[k])
            gap = centers[0] - centers[1]
            quantile = NormalDist().inv_cdf((1 + ERROR_BAR) / 2)
            p_value = 2 * (1 - NormalDist().cdf(abs(gap) / (reach / quantile))) if known and reach > 0 else 1.0
            found.append(GroupDifference(factor.name, one, other, gap, gap - reach, gap + reach, told_apart=False))
            p_values.append(p_value)
    return tuple(replace(one, told_apart=told) for one, told in zip(found, told_apart(p_values), strict=True))


def _named(release: Release, label: str, request: Request) -> Release:
    why = DECLARED if request.paradigm.unit is Unit.VOTER else LABELS_NOT_PROTECTED
    return replace(release, facts={**release.facts, "group": label, "groups_not_protected": why})
