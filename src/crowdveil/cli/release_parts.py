"""crowdveil release --by and --effects: one release per group, or preferences and effects from one budget."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from crowdveil.cli.help import RELEASE, check_replaced
from crowdveil.cli.terminal import Table, say, say_wrapped, show, tell
from crowdveil.errors import CrowdveilError, plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crowdveil.ballots.ballots import BallotSource
    from crowdveil.privacy.ledger.entries import ChargePreview
    from crowdveil.privacy.ledger.ledger import Ledger
    from crowdveil.publish.effects import JointPreview
    from crowdveil.publish.groups import GroupReleases, GroupsPreview, PublicGroup
    from crowdveil.publish.request import Preview, Request

ANYBODY = "The ledger cannot tell who these voters are, and charges as if anybody of this study could be among them."


def release_by_group(
    source: BallotSource,
    request: Request,
    by: str,
    *,
    public_groups: bool,
    smallest: int,
    account: Ledger | None,
    out_path: Path | None,
    experiment_seed: int | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make and write a release for each group, and show the differences between them."""
    from crowdveil.publish.groups import secret_groups

    if not dry_run and out_path is None:
        raise CrowdveilError("say where to write the releases: --out release.json (or look first with --dry-run)")
    if not dry_run and experiment_seed is None and account is None:
        raise CrowdveilError("releases must be charged to a ledger: give --ledger L")
    if secret_groups(request, public_groups=public_groups, smallest=smallest):
        made = _secret_groups(source, request, by, smallest, account, out_path, experiment_seed, dry_run, as_json)
    else:
        made = _public_groups(source, request, by, account, out_path, experiment_seed, dry_run, as_json)
    if made is None or out_path is None:
        return
    paths = made.save(out_path)
    show(_plain(made, paths), as_json, lambda: _print_groups(made, paths))
    if experiment_seed is not None:
        tell("Experiment: made with floating-point noise, these releases protect nobody.")


def _secret_groups(
    source: BallotSource,
    request: Request,
    by: str,
    smallest: int,
    account: Ledger | None,
    out_path: Path | None,
    experiment_seed: int | None,
    dry_run: bool,
    as_json: bool,
) -> GroupReleases | None:
    from crowdveil.privacy.mechanisms.group_mechanism import OTHERS
    from crowdveil.publish.groups import charged_groups, experiment_protected_groups, preview_groups

    asked = preview_groups(source, by, request)
    if dry_run:
        data = asked.as_dict()
        if account is not None:
            data["budget"] = account.preview(asked.charge).as_dict()
        show(data, as_json, lambda: _say_secret_dry_run(asked, account))
        return None
    if out_path is not None:
        _check_paths(out_path, [*asked.grouping.labels, OTHERS])  # refused before anything is spent
    if experiment_seed is not None:
        return experiment_protected_groups(source, asked, experiment_seed, smallest)
    assert account is not None  # checked before
    return charged_groups(source, asked, account, smallest)


def _say_secret_dry_run(asked: GroupsPreview, account: Ledger | None) -> None:
    say_wrapped(
        f"Nothing was spent. {asked.mechanism.name} would charge epsilon {asked.guarantee.epsilon}, once for all."
    )
    if account is not None:
        say_wrapped(str(account.preview(asked.charge)))
    say_wrapped(
        f"Groups by {asked.grouping.question}: {', '.join(asked.grouping.labels)}. Who is in which stays secret."
    )
    if asked.what_is_left is not None:
        say_wrapped(f"As everybody's device hides the group, too, {asked.what_is_left}.")
    say_wrapped(
        f"Noise would move a preference of a group by up to {asked.expected_error_bar:.3f} (95 %), if all are equal."
    )


def _public_groups(
    source: BallotSource,
    request: Request,
    by: str,
    account: Ledger | None,
    out_path: Path | None,
    experiment_seed: int | None,
    dry_run: bool,
    as_json: bool,
) -> GroupReleases | None:
    from crowdveil.publish.groups import (
        GroupReleases,
        experiment_groups,
        group_costs,
        groups_of,
        release_groups,
    )

    groups = groups_of(source, by, request)
    if dry_run:
        costs = {} if account is None else group_costs(groups, account)
        data = {
            "dry_run": True,
            "by": by,
            "groups": {label: group.source.voters for label, group in groups.items()},
            "releases": {label: _plain_preview(group.preview, costs.get(label)) for label, group in groups.items()},
        }
        show(data, as_json, lambda: _say_dry_run(by, groups, costs))
        return None
    if out_path is not None:
        _check_paths(out_path, list(groups))  # refused before anything is spent
    if experiment_seed is not None:
        return GroupReleases(by, experiment_groups(groups, experiment_seed))
    assert account is not None  # checked before
    return GroupReleases(by, release_groups(groups, account))


def _check_paths(out_path: Path, labels: Sequence[str]) -> None:
    """Refuse releases that could not be written beside a path, or would replace something else."""
    from crowdveil.publish.groups import group_paths

    for path in group_paths(out_path, labels).values():
        check_replaced("--out", path, RELEASE)


def _plain_preview(asked: Preview, fits: ChargePreview | None) -> dict[str, object]:
    return asked.as_dict() if fits is None else {**asked.as_dict(), "budget": fits.as_dict()}


def _say_dry_run(by: str, groups: Mapping[str, PublicGroup], costs: Mapping[str, ChargePreview]) -> None:
    say_wrapped(f"Nothing was spent. Each group by {by} would be charged for its own people.")
    for label, group in groups.items():
        voters = group.source.voters
        bar = group.preview.expected_error_bar
        budget = f"{costs[label]} " if costs else ""
        reach = f"Noise would move a preference by up to {bar:.3f} (95 %)."
        say_wrapped(
            f"{label}, {voters:,} {plural(voters, 'voter')}: {charge_sentence(group.preview)} {budget}"
            f"{'How far noise reaches is known only afterwards.' if bar is None else reach}"
        )
    for caution in dict.fromkeys(fits.caution for fits in costs.values() if fits.caution):
        say_wrapped(f"{ANYBODY} Why: {caution}.")


def charge_sentence(asked: Preview) -> str:
    """Return what a release would be charged, and by which mechanism it would be made."""
    delta = f" and delta {asked.guarantee.delta:g}" if asked.guarantee.delta else ""
    return f"{asked.mechanism} would charge epsilon {asked.guarantee.epsilon}{delta}."


def _plain(made: GroupReleases, paths: Mapping[str, Path]) -> dict[str, object]:
    from dataclasses import asdict

    return {
        "releases": {label: str(path) for label, path in paths.items()},
        "digests": {label: release.digest for label, release in made.releases.items()},
        "differences": [asdict(one) for one in made.differences],
    }


def _print_groups(made: GroupReleases, paths: Mapping[str, Path]) -> None:
    releases = made.releases
    first = next(iter(releases.values()))
    rows = Table(f"Preferences by {made.by}", "factor", "from -", "to +", *releases, numbers=len(releases))
    for k, factor in enumerate(first.study.factors):
        values = (f"{one.factor_values[k]:+.3f}" if one.known[k] else "not known" for one in releases.values())
        rows.add(factor.title, *factor.poles, *values)
    rows.print()
    differences = Table("\nDifferences", "factor", "groups", "difference", "95 % interval", "told", numbers=3)
    titles = {factor.name: factor.title for factor in first.study.factors}
    for one in made.differences:
        told = "yes" if one.told_apart else "no"
        differences.add(titles[one.factor], f"{one.group} less {one.other}", *one.in_words(), told)
    differences.print()
    say_wrapped("Told: beyond noise and chance, all differences judged together (at most 5 % of those told are false).")
    if "groups_not_protected" in first.facts:
        say_wrapped(f"Who belongs to which group is not protected: {first.facts['groups_not_protected']}.")
    else:
        sizes = ", ".join(f"{label} about {release.facts['group_voters']:,}" for label, release in releases.items())
        say_wrapped(f"Who belongs to which group is protected, too. Voters, by noisy counts: {sizes}.")
        if "what_is_left" in first.facts:
            say_wrapped(f"That leaves little: {first.facts['what_is_left']}.")
    said = " ".join(map(as_argument, paths.values()))
    say(f"\nWrote {', '.join(map(str, paths.values()))}. Next: crowdveil page {said}")


def as_argument(path: Path | None) -> str:
    """Return a path as it is typed in a shell."""
    said = str(path)
    return shlex.quote(f"./{said}" if said.startswith("-") else said)


def show_split(asked: JointPreview, account: Ledger | None, as_json: bool) -> None:
    """Show what preferences and effects would cost, and what remains of the budget."""
    data = asked.as_dict()
    if account is not None:
        fits = asked.cost(account)
        data["budget"] = fits.as_dict()

    def in_words() -> None:
        parts = asked.preferences.guarantee.epsilon, asked.effects.guarantee.epsilon
        say_wrapped(f"Nothing was spent. Preferences would be charged epsilon {parts[0]}, effects {parts[1]}.")
        if account is not None:
            say_wrapped(str(fits))
        bar = asked.preferences.expected_error_bar
        say_wrapped("" if bar is None else f"Noise would move a preference by up to {bar:.3f} (95 %).")
        width = float(asked.effects.expected_half_widths.max())
        say_wrapped(f"An effect may be off by up to {width:.3f} (95 %), where the study draws the dilemmas.")

    show(data, as_json, in_words)
