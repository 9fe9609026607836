"""crowdveil effects: how often each side was preferred, factor by factor and group by group."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdveil.cli.decide import AllowExperiment
from crowdveil.cli.inputs import (
    ChargedLedger,
    DryRun,
    EngineName,
    EpsilonOrNone,
    ExperimentSeed,
    Master,
    OneRecordEach,
    ParadigmOrNone,
    PublicSelection,
    refuse_without,
    watched_ballots,
)
from crowdveil.cli.release_parts import as_argument
from crowdveil.cli.terminal import AsJson, Table, say, say_wrapped, show, tell
from crowdveil.errors import CrowdveilError

if TYPE_CHECKING:
    from crowdveil.effect_release import Effects, EffectsRelease
    from crowdveil.privacy.ledger.ledger import Ledger
    from crowdveil.publish.effects_request import EffectsPreview

GROUPS = "Groups and weights"


def effects(
    ballots: Annotated[
        Path, typer.Argument(metavar="BALLOTS|RELEASE", help="A ballot file; or a release, for what it implies.")
    ],
    paradigm: ParadigmOrNone = None,
    epsilon: EpsilonOrNone = None,
    by: Annotated[
        str | None,
        typer.Option(help="A question about voters (import --about): effects of groups.", rich_help_panel=GROUPS),
    ] = None,
    smallest: Annotated[
        int, typer.Option(help="Merge groups of fewer voters than this, by a noisy count.", rich_help_panel=GROUPS)
    ] = 0,
    weights: Annotated[
        Path | None,
        typer.Option(help="Public survey weights: a CSV with the columns voter and weight.", rich_help_panel=GROUPS),
    ] = None,
    weight_bound: Annotated[
        float | None, typer.Option(help="The largest weight there may be, stated beforehand.", rich_help_panel=GROUPS)
    ] = None,
    ledger: ChargedLedger = None,
    out_path: Annotated[Path | None, typer.Option("--out", help="Where to write the effects (JSON).")] = None,
    table: Annotated[Path | None, typer.Option(help="Write a tidy table too: .csv or .parquet.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw them too: .png or .svg.")] = None,
    dry_run: DryRun = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="Without privacy, to compare: shown only, and not for publishing.")
    ] = False,
    one_record_each: OneRecordEach = False,
    public_selection: PublicSelection = None,
    experiment_seed: ExperimentSeed = None,
    allow_experiment: AllowExperiment = False,
    engine: EngineName = "local",
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Release effects: how often the side with more of a factor was preferred, minus how often the other was.

    Only the pairs that differ in the factor count.

    Example: `crowdveil effects mm.parquet --paradigm rlcp --epsilon 1 --by gender --ledger study.ledger --out
    effects.json --table effects.csv`

    If the study designates a type of scenario as a factor's contrast, and the ballots include the types, only pairs of
    that type count; the table says which. Intervals cover noise and the sampling of voters. If the number of pairs
    cannot be distinguished from zero, the effect is not known.

    With --by, all groups get their effects from one noisy vector, and the differences between them are tested against
    noise and chance. If voters are protected, so are their groups; if records or choices are, groups are not.

    For a release of preferences (JSON), the effects that it implies are shown; nothing is spent.
    """
    from crowdveil.effect_release import check_table
    from crowdveil.engines.engine import chosen_engine
    from crowdveil.files import check_picture, check_writable
    from crowdveil.privacy.ledger.ledger import Ledger
    from crowdveil.publish.effects import exact_effects, experimental_effects, publish_effects
    from crowdveil.publish.effects_request import preview_effects, read_weights

    if by is None:
        refuse_without("--by", {"--smallest": smallest != 0})
    if table is not None:
        check_table(table)
    if plot is not None:
        check_picture(plot)
    if ballots.suffix == ".json":
        given = {"paradigm": paradigm, "epsilon": epsilon, "by": by, "ledger": ledger, "out": out_path}
        _show_implied(ballots, given, table, plot, allow_experiment=allow_experiment, as_json=as_json)
        return
    if exact:
        _refuse_with_exact(paradigm=paradigm, epsilon=epsilon, ledger=ledger, out=out_path, table=table)
        with watched_ballots(ballots, "counting") as source:
            found = exact_effects(source, by)
        if plot is not None:
            found.plot(plot)
        show({"exact": True, **found.as_dict()}, as_json, lambda: _print_effects(found))
        tell("Exact: these effects protect nobody, and are not for publishing.")
        return
    if paradigm is None or epsilon is None:
        raise CrowdveilError("say who is protected and how much: --paradigm rlcp --epsilon 1 (or --exact, to compare)")
    if (weights is None) != (weight_bound is None):
        raise CrowdveilError("--weights and --weight-bound go together: the bound is stated before weights are read")
    account = None if ledger is None else Ledger.open(ledger)
    spending = not dry_run and experiment_seed is None
    if not dry_run and out_path is None:
        raise CrowdveilError("say where to write the effects: --out effects.json (or look first with --dry-run)")
    if spending and account is None:
        raise CrowdveilError(
            "effects must be charged to a ledger: give --ledger L (make one with: crowdveil ledger create L --budget 3)"
        )
    if out_path is not None:
        check_writable(out_path)
    with (
        chosen_engine(engine, master) as workers,
        watched_ballots(ballots, "reading and counting", walks=1 if dry_run else 2, engine=workers) as source,
    ):
        asked = preview_effects(
            source,
            paradigm,
            epsilon=epsilon,
            by=by,
            weights=None if weights is None or weight_bound is None else read_weights(weights, weight_bound),
            one_record_each=one_record_each or experiment_seed is not None,
            public_selection=public_selection,
        )
        made = None
        if spending and account is not None and out_path is not None:
            made = publish_effects(source, asked, account, out_path, smallest)
        elif experiment_seed is not None and not dry_run:
            made = experimental_effects(source, asked, experiment_seed, smallest)
    if made is None:
        _show_dry_run(asked, account, as_json)
        return
    if made.on_save is None and out_path is not None:
        made.save(out_path)
    if table is not None:
        made.effects.write_table(table)
    if plot is not None:
        made.plot(plot)
    show(made.as_dict(), as_json, lambda: _print_release(made, out_path))


def _show_implied(
    path: Path,
    given: Mapping[str, object],
    table: Path | None,
    plot: Path | None,
    *,
    allow_experiment: bool,
    as_json: bool,
) -> None:
    """Show the effects that a release of preferences implies."""
    from crowdveil.publish.implied_effects import implied_effects
    from crowdveil.releases import read_release

    for name, value in given.items():
        if value is not None:
            raise CrowdveilError(f"{path} is a release: its effects are there already, so leave out --{name}")
    found = implied_effects(read_release(path, allow_experiment=allow_experiment))
    if table is not None:
        found.write_table(table)
    if plot is not None:
        found.plot(plot)
    show({"implied": True, **found.as_dict()}, as_json, lambda: _print_effects(found))


def _refuse_with_exact(**given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise CrowdveilError(f"--exact shows effects without privacy and writes none of them: leave out --{name}")


def _show_dry_run(asked: EffectsPreview, account: Ledger | None, as_json: bool) -> None:
    data = asked.as_dict()
    if account is not None:
        fits = account.preview(asked.charge)
        data["budget"] = fits.as_dict()

    def in_words() -> None:
        say_wrapped(f"Nothing was spent. {asked.mechanism.name} would charge epsilon {asked.guarantee.epsilon}.")
        if account is not None:
            say_wrapped(str(fits))
            for overlap in fits.overlaps:
                say_wrapped(f"Spent before: {overlap}.")
        by = "" if asked.grouping is None else f", in each of {asked.groups} groups if they are equal"
        expected = Table(f"How far an effect may be off (95 %){by}", "factor", "read from", "±", numbers=1)
        widths = asked.expected_half_widths.tolist()
        for factor, width, contrast in zip(asked.settings.study.factors, widths, asked.contrasts, strict=True):
            expected.add(factor.title, contrast, f"{width:.3f}" if width < 1 else "not known")
        expected.print()

    show(data, as_json, in_words)


def _print_release(made: EffectsRelease, path: Path | None) -> None:
    from crowdveil.pages.plain_words import guarantee_sentences

    _print_effects(made.effects)
    say()
    for sentence in guarantee_sentences(made):
        say_wrapped(sentence)
    if not made.exact:
        tell("Experiment: made with floating-point noise, these effects protect nobody.")
    say(f"\nWrote {path}. Next: crowdveil page {as_argument(path)}")


def _print_effects(found: Effects) -> None:
    from crowdveil.estimation.effects import DRAWN, OF_SCENARIO

    for group in found.groups:
        size = "" if group.voters is None else f", {group.size}"
        title = f"{found.study.title}{size}" if found.question is None else f"{found.question}: {group.label}{size}"
        rows = Table(title, "factor", "from -", "to +", "scenario", "effect", "95 % interval", numbers=2)
        for effect in sorted(group.effects, key=lambda one: -abs(one.estimate)):
            factor = found.factor(effect.factor)
            interval = f"{effect.low:+.3f} to {effect.high:+.3f}" if effect.known else "not known"
            estimate = f"{effect.estimate:+.3f}" if effect.known else ""
            rows.add(
                factor.title, *factor.poles, effect.contrast.partition(OF_SCENARIO)[2] or "any", estimate, interval
            )
        rows.print()
        say()
    drawn = any(effect.contrast.startswith(DRAWN) for group in found.groups for effect in group.effects)
    say_wrapped(
        f"Scenario: the type of the {DRAWN if drawn else ''}pairs that an effect is read from; any: all that differ in "
        "the factor."
    )
    if found.differences:
        _print_differences(found)


def _print_differences(found: Effects) -> None:
    rows = Table("Differences between groups", "factor", "groups", "difference", "95 % interval", "told", numbers=3)
    for one in found.differences:
        names = f"{one.group} less {one.other}"
        told = "yes" if one.told_apart else "no"
        rows.add(found.factor(one.factor).title, names, *one.in_words(), told)
    rows.print()
    say_wrapped("Told: beyond noise and chance, all differences judged together (at most 5 % of those told are false).")
    for factor, verdict in found.verdicts():
        say_wrapped(f"{factor.title}: {verdict}.")
