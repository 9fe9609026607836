"""A release of preferences for each group of voters, and the differences between them.

If everybody may know who is in which group, groups are crowds of different people. A record, or a choice, is in only
one of them, so each group's release may spend the whole epsilon, and nobody loses more than that. This is sound because
group membership is not protected.

If voters are protected, so is group membership, unless groups are declared public. For protected groups, one charge
pays for all of them. The counts and sums of all groups are one noisy vector, which a voter moves wherever she is
(``GroupScores``, ``GroupBits``), and there is a release for each group that remains after merging by noisy counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from crowdveil.ballots.ballots import BallotSource, check_source
from crowdveil.effect_release import GroupDifference
from crowdveil.errors import CrowdveilError, check_flag, path_of
from crowdveil.estimation.ratios import told_apart
from crowdveil.files import check_writable
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.guarantee import Guarantee, Paradigm, Unit
from crowdveil.privacy.ledger.entries import Charge, ChargeableLedger, ChargePreview
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.privacy.mechanisms.group_mechanism import GroupEstimate, Grouping, GroupMechanism, GroupSource
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.registry import check_options, group_mechanism
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments
from crowdveil.privacy.noise.source import Noise
from crowdveil.privacy.uncertainty import ERROR_BAR
from crowdveil.publish.release import REPORTS_MADE_BY, charge_and_draw, charged_release, exact_noise, experiment
from crowdveil.publish.request import (
    LABELS_NOT_PROTECTED,
    LABELS_PROTECTED,
    Preview,
    Request,
    SomeEpsilon,
    check_ledger,
    check_seed,
    check_smallest,
    everybodys,
    find_grouping,
    group_sizes,
    preview_allowed,
)
from crowdveil.releases import Release
from crowdveil.version import VERSION


@dataclass(frozen=True)
class PreferenceDifference(GroupDifference):
    """The preference along a factor in one group minus that in another."""

    both_known: bool
    """Whether anything is known about the factor in both groups."""

    @property
    def known(self) -> bool:
        """Whether anything is known about it."""
        return self.both_known


@dataclass(frozen=True)
class GroupReleases:
    """A release for each group of voters."""

    by: str
    """The question about voters that divides them."""
    releases: Mapping[str, Release]
    deliver: Callable[[str], None] | None = None
    """Called with the digest of all releases together when they are saved, if one charge paid for all."""

    @property
    def differences(self) -> tuple[PreferenceDifference, ...]:
        """Differences between groups, factor by factor, and which of them are significant."""
        return preference_differences(self.releases)

    @property
    def digest(self) -> str:
        """The checksum of all their checksums, which identifies these releases."""
        return hashlib.sha256("".join(sorted(one.digest for one in self.releases.values())).encode()).hexdigest()

    def save(self, path: str | Path) -> dict[str, Path]:
        """Write one file per group beside ``path``, each whole or not at all; then the ledger records the delivery.

        Return the path of each group's release.
        """
        paths = group_paths(path, list(self.releases))
        for label, release in self.releases.items():
            release.save(paths[label])
        if self.deliver is not None:
            self.deliver(self.digest)
        return paths

    def __getitem__(self, label: str) -> Release:
        return self.releases[label]

    def __repr__(self) -> str:
        told = sum(one.told_apart for one in self.differences)
        return f"<releases by {self.by}: {', '.join(self.releases)}; {told} differences told>"


def group_paths(out: str | Path, labels: Sequence[str]) -> dict[str, Path]:
    """Return the path of each group's release: beside ``out``, by name, or by number if names clash."""
    out = path_of(out)
    names = {label: "".join(c if c.isalnum() else "-" for c in label).strip("-").lower() for label in labels}
    paths = {label: out.with_name(f"{out.stem}-{names[label] or 'group'}{out.suffix}") for label in labels}
    if len(set(paths.values())) < len(paths):
        paths = {label: out.with_name(f"{out.stem}-{place}{out.suffix}") for place, label in enumerate(labels, start=1)}
    for path in paths.values():
        check_writable(path)
    return paths


def preference_differences(releases: Mapping[str, Release]) -> tuple[PreferenceDifference, ...]:
    """Compare groups along every factor, the first minus the second, around the unshrunk estimates.

    The errors of releases about different people are independent, so they add in quadrature. Which differences are told
    from noise and chance is judged for all of them together.
    """
    found = []
    p_values = []
    for one, other in combinations(releases, 2):
        for k, factor in enumerate(releases[one].study.factors):
            ends = [releases[label].factor_intervals[k] for label in (one, other)]
            centers = [float(low + high) / 2 for low, high in ends]
            reach = float(np.hypot(*((high - low) / 2 for low, high in ends)))
            known = bool(releases[one].known[k] and releases[other].known[k])
            gap = centers[0] - centers[1]
            quantile = NormalDist().inv_cdf((1 + ERROR_BAR) / 2)
            p_value = 2 * (1 - NormalDist().cdf(abs(gap) / (reach / quantile))) if known and reach > 0 else 1.0
            found.append(
                PreferenceDifference(
                    factor.name, one, other, gap, gap - reach, gap + reach, told_apart=False, both_known=known
                )
            )
            p_values.append(p_value)
    return tuple(replace(one, told_apart=told) for one, told in zip(found, told_apart(p_values), strict=True))


DECLARED = "everybody may know who is in which group: it was declared public"


@dataclass(frozen=True)
class PublicGroup:
    """A group of which everybody may know who is in it, and the request for its release, checked against it."""

    source: GroupSource
    request: Request
    """Of personal epsilons, it has those of the group's voters."""
    preview: Preview

    def named(self, release: Release, label: str) -> Release:
        """Return the group's release, which says whose it is."""
        why = DECLARED if self.request.paradigm.unit is Unit.VOTER else LABELS_NOT_PROTECTED
        return replace(release, facts={**release.facts, "group": label, "groups_not_protected": why})


def groups_of(source: BallotSource, by: str, request: Request) -> dict[str, PublicGroup]:
    """Divide a crowd by a question about voters, and check that each group could be released."""
    check_source(source)
    grouping = find_grouping(next(iter(source.batches())), by, source.voters)
    sizes = group_sizes(source, grouping)
    requests = _requests(source, grouping, request)
    groups = {}
    for code, label in enumerate(grouping.labels):
        group = GroupSource(source, grouping, (code,), sizes[code])
        groups[label] = PublicGroup(group, requests[code], preview_allowed(group, requests[code]))
    return groups


def _requests(source: BallotSource, grouping: Grouping, request: Request) -> list[Request]:
    """Return the request for each group: of personal epsilons, those of its voters, in their order."""
    if not isinstance(request.epsilon, Epsilons):
        return [request] * len(grouping.labels)
    epsilons = everybodys(request.epsilon, source.voters)
    codes = np.concatenate([grouping.codes(batch) for batch in source.batches()])
    return [replace(request, epsilon=epsilons[np.flatnonzero(codes == code)]) for code in range(len(grouping.labels))]


def group_costs(groups: Mapping[str, PublicGroup], ledger: Ledger) -> dict[str, ChargePreview]:
    """Return whether the charge of each group would fit into a ledger, after those of the groups before it."""
    check_ledger(ledger)
    charges: list[Charge] = []
    costs = {}
    for label, group in groups.items():
        costs[label] = ledger.preview(group.preview.charge, charges)
        charges.append(group.preview.charge)
    return costs


def release_groups(groups: Mapping[str, PublicGroup], ledger: Ledger) -> dict[str, Release]:
    """Release the preference of each group with exact noise, charged to the people in the group.

    All charges are checked before the first is made, so that a budget that is too small spends nothing.
    """
    for label, cost in group_costs(groups, ledger).items():
        cost.check(f"the group {label!r}")
    return {
        label: group.named(charged_release(group.source, group.request, ledger), label)
        for label, group in groups.items()
    }


def experiment_groups(groups: Mapping[str, PublicGroup], seed: int) -> dict[str, Release]:
    """Make repeatable releases of groups with seeded floating-point noise. They protect nobody."""
    check_seed(seed)
    return {
        label: group.named(experiment(group.source, group.request, seed + place), label)
        for place, (label, group) in enumerate(groups.items())
    }


@dataclass(frozen=True)
class GroupsPreview:
    """A request for the preferences of secret groups, checked against a crowd: its cost and its accuracy."""

    mechanism: GroupMechanism
    settings: MechanismSettings
    guarantee: Guarantee
    charge: Charge
    public_selection: str | None

    @property
    def grouping(self) -> Grouping:
        """The question by which voters are grouped."""
        return self.mechanism.grouping

    @property
    def fewest(self) -> float:
        """The number of voters from which on a group can be distinguished from an empty one."""
        return self.mechanism.fewest(self.guarantee.voters, self.guarantee.epsilon)

    @property
    def expected_error_bar(self) -> float:
        """The most by which the noise would move a coordinate of a group, if all are of the same size (95 %)."""
        voters = self.guarantee.voters
        epsilon = self.guarantee.epsilon
        noise = self.mechanism.expected_noise(self.settings, voters, epsilon)
        return float(np.max(noise.half_widths(ERROR_BAR)))

    @property
    def what_is_left(self) -> str | None:
        """The information in reports that include the group, in words; None if a trusted aggregator knows groups."""
        return self.mechanism.what_is_left(self.guarantee.epsilon)

    def as_dict(self) -> dict[str, Any]:
        """Return the preview as plain data."""
        return {
            "dry_run": True,
            "guarantee": self.guarantee.as_dict(),
            "mechanism": self.mechanism.name,
            "by": self.grouping.question,
            "groups": list(self.grouping.labels),
            "groups_protected": LABELS_PROTECTED,
            "expected_error_bar": self.expected_error_bar,
            "fewest_voters": round(self.fewest),
            **({} if self.what_is_left is None else {"what_is_left": self.what_is_left}),
        }


def preview_groups(source: BallotSource, by: str, request: Request) -> GroupsPreview:
    """Check a request for the preferences of secret groups. This spends nothing and draws no noise."""
    check_source(source)
    if not isinstance(request.epsilon, Epsilon) or request.mechanism is not None:
        raise CrowdveilError(
            f"groups whose members are secret need one epsilon for all, and have a mechanism of their own: leave the "
            f"others out, or declare with public_groups=True (--public-groups) that everybody may know who is in which "
            f"group of {by!r}"
        )
    if source.study.indifference is not None:
        raise CrowdveilError(
            f"study {source.study.name} allows a third answer, for which groups whose members are secret have no "
            "threshold: use effects --by, or declare groups public (--public-groups)"
        )
    asked = preview_allowed(source, request)
    grouping = find_grouping(next(iter(source.batches())), by, source.voters)
    mechanism = group_mechanism(request.paradigm.place, grouping)
    check_options(mechanism, asked.settings)
    if request.along is not None:
        raise CrowdveilError("groups whose members are secret are compared along factors: leave along out")
    charge = replace(asked.charge, purpose=f"{request.paradigm.name} {mechanism.name} by {by}")
    found = GroupsPreview(mechanism, asked.settings, asked.guarantee, charge, asked.public_selection)
    each = asked.guarantee.voters / len(grouping.labels)
    if each < found.fewest:
        raise CrowdveilError(
            f"the question {by!r} has {len(grouping.labels)} levels for {asked.guarantee.voters:,} voters: at epsilon "
            f"{request.epsilon} a group needs about {found.fewest:.0f} to be told from none; merge some levels in the "
            "mapping, spend more, or declare groups public (--public-groups)"
        )
    return found


def charged_groups(
    source: BallotSource, asked: GroupsPreview, ledger: ChargeableLedger, smallest: int = 0
) -> GroupReleases:
    """Make the releases of secret groups with exact noise, charged before it is drawn."""
    check_ledger(ledger)
    check_smallest(smallest)
    noise = exact_noise(asked.guarantee.paradigm.place)
    draw = asked.mechanism.prepare(source, asked.settings, asked.guarantee.epsilon, noise, smallest)
    drawn = charge_and_draw(ledger, asked.charge, draw)
    releases = _releases(asked, drawn.found, noise, drawn.reference)
    return GroupReleases(asked.grouping.question, releases, drawn.deliver)


def experiment_protected_groups(
    source: BallotSource, asked: GroupsPreview, seed: int, smallest: int = 0
) -> GroupReleases:
    """Make repeatable releases of groups with seeded floating-point noise. They protect nobody."""
    check_seed(seed)
    check_smallest(smallest)
    noise = FloatNoiseForExperiments(seed)
    draw = asked.mechanism.prepare(source, asked.settings, asked.guarantee.epsilon, noise, smallest)
    releases = _releases(asked, draw(), noise, None)
    return GroupReleases(asked.grouping.question, releases)


def _releases(
    asked: GroupsPreview, found: list[GroupEstimate], noise: Noise, ledger: Mapping[str, Any] | None
) -> dict[str, Release]:
    if not found:
        raise CrowdveilError(
            f"by their noisy counts, all groups of {asked.grouping.question!r} are too small to be told from none: "
            "nothing can be released of them, and what was charged stays spent"
        )
    shared: dict[str, Any] = {"grouped_by": asked.grouping.question, "groups_protected": LABELS_PROTECTED}
    if asked.what_is_left is not None:
        shared |= {"what_is_left": asked.what_is_left, "reports_made_by": REPORTS_MADE_BY}
    if asked.public_selection is not None:
        shared["selected_by"] = asked.public_selection
    return {
        one.group.label: Release(
            study=asked.settings.study,
            parameter=one.estimate.parameter,
            guarantee=asked.guarantee,
            mechanism=asked.mechanism.name,
            noise=one.estimate.noise,
            sampler=noise.name,
            exact=noise.exact,
            facts={
                **one.estimate.facts,
                "group": one.group.label,
                "group_voters": max(round(one.group.voters), 0),
                **shared,
            },
            ledger=ledger,
            version=VERSION,
            unknown=one.estimate.unknown,
            indifference=None,
        )
        for one in found
    }


def release_by(
    ballots: BallotSource,
    by: str,
    paradigm: str | Paradigm,
    *,
    epsilon: SomeEpsilon,
    ledger: Ledger,
    public_groups: bool = False,
    smallest: int = 0,
    one_record_each: bool = False,
    public_selection: str | None = None,
) -> GroupReleases:
    """Release the preference of each group of voters with exact noise, charged to a ledger.

    ``by`` names a question that voters answered about themselves (``ballots.about``). If voters are protected, so is
    who is in which group: one charge pays for all groups, and groups of fewer than ``smallest`` voters, by a noisy
    count, are merged. ``public_groups`` declares that everybody may know who is in which group.

    ``epsilon`` is as for ``release``; personal ones are of the whole crowd, and need groups that are not protected.

    Nothing is written until ``releases.save(path)``.
    """
    check_source(ballots)
    check_ledger(ledger)
    check_smallest(smallest)
    check_flag(public_groups, "public_groups")
    request = Request.of(paradigm, epsilon, one_record_each=one_record_each, public_selection=public_selection)
    if secret_groups(request, public_groups=public_groups, smallest=smallest):
        return charged_groups(ballots, preview_groups(ballots, by, request), ledger, smallest)
    return GroupReleases(by, release_groups(groups_of(ballots, by, request), ledger))


def secret_groups(request: Request, *, public_groups: bool, smallest: int) -> bool:
    """Whether group membership is protected."""
    if request.paradigm.unit is Unit.VOTER and not public_groups:
        return True
    if smallest:
        raise CrowdveilError("smallest merges groups by noisy counts: where groups are public, leave it out")
    return False
