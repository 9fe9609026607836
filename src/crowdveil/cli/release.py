"""crowdveil release: publish the crowd's preference within a privacy budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from crowdveil.cli.inputs import (
    BallotPath,
    ChargedLedger,
    DryRun,
    EngineName,
    EpsilonOrNone,
    ExperimentSeed,
    Master,
    OneRecordEach,
    ParadigmName,
    PublicSelection,
    imported,
    refuse_without,
    watched_ballots,
)
from crowdveil.cli.release_parts import ANYBODY, as_argument, charge_sentence, release_by_group, show_split
from crowdveil.cli.terminal import AsJson, Table, bold, say, say_wrapped, show, tell
from crowdveil.errors import CrowdveilError

if TYPE_CHECKING:
    from crowdveil.ballots.ballots import BallotSource
    from crowdveil.privacy.epsilon import Epsilon
    from crowdveil.privacy.ledger.ledger import Ledger
    from crowdveil.privacy.zcdp import ZcdpBudget
    from crowdveil.publish.request import Preview, Request
    from crowdveil.releases import Release

MECHANISM = "How the noise is added"
PARTS = "Groups and effects"
EFFECTS_SHARE = 0.3


def release(
    ballots: BallotPath,
    paradigm: ParadigmName,
    epsilon: EpsilonOrNone = None,
    epsilons: Annotated[
        Path | None,
        typer.Option(help="Personal epsilons: a CSV with the columns voter and epsilon (vldp, rldp, aldp)."),
    ] = None,
    rho: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="Gaussian noise: a rho, charged to a zCDP ledger, instead of an epsilon (vlcp, rlcp).",
        ),
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(
            help="A mechanism by name, or: paper. Default: the best for the paradigm.", rich_help_panel=MECHANISM
        ),
    ] = None,
    bound: Annotated[
        float | None,
        typer.Option(
            help="Norm bound B of a preference, for mechanisms of the paper's society. Default: the study's.",
            rich_help_panel=MECHANISM,
        ),
    ] = None,
    repair: Annotated[
        bool,
        typer.Option(
            help="Algorithm 3: make the noisy objective solvable. Without it there is no maximum.",
            rich_help_panel=MECHANISM,
        ),
    ] = True,
    sensitivity: Annotated[
        Literal["tight", "paper"],
        typer.Option(
            help="Algorithm 3: how far one record can move it, ours or the paper's.", rich_help_panel=MECHANISM
        ),
    ] = "tight",
    equal_votes: Annotated[
        bool,
        typer.Option(
            "--equal-votes",
            help="Count every report the same, as in the paper, however noisy.",
            rich_help_panel=MECHANISM,
        ),
    ] = False,
    robust: Annotated[
        float,
        typer.Option(
            help="Share of the most extreme reports to pull in at each end, against liars (like 0.02).",
            rich_help_panel=MECHANISM,
        ),
    ] = 0.0,
    design: Annotated[
        str | None,
        typer.Option(
            metavar="BALLOTS",
            help="Dilemmas that are public (ballots, whose choices are not read), or: study, if its own generator drew "
            "the dilemmas that were asked (of devices' reports, only the latter). Default: unknown dilemmas, for which "
            "error bars are wider: of vldp and rldp, two to four times.",
            rich_help_panel=MECHANISM,
        ),
    ] = None,
    along: Annotated[
        str | None,
        typer.Option(
            metavar="<factors|features>",
            help="What to measure: factors only, with less noise, or every direction in which features differ, so that "
            "more dilemmas can be decided. Default: by study, voters and epsilon.",
            rich_help_panel=MECHANISM,
        ),
    ] = None,
    one_record_each: OneRecordEach = False,
    public_selection: PublicSelection = None,
    by: Annotated[
        str | None,
        typer.Option(help="A question about voters (import --about): a release for each group.", rich_help_panel=PARTS),
    ] = None,
    public_groups: Annotated[
        bool,
        typer.Option(
            "--public-groups", help="Declare that everybody may know who is in which group.", rich_help_panel=PARTS
        ),
    ] = False,
    smallest: Annotated[
        int,
        typer.Option(
            help="With secret groups (vlcp, vldp): merge groups of fewer voters than this, by a noisy count.",
            rich_help_panel=PARTS,
        ),
    ] = 0,
    effects_path: Annotated[
        Path | None,
        typer.Option(
            "--effects", help="Release effects, too, from the same epsilon, to this file.", rich_help_panel=PARTS
        ),
    ] = None,
    effects_share: Annotated[
        float, typer.Option(help="The share of epsilon that effects get.", rich_help_panel=PARTS)
    ] = EFFECTS_SHARE,
    ledger: ChargedLedger = None,
    out_path: Annotated[Path | None, typer.Option("--out", help="Where to write the release.")] = None,
    dry_run: DryRun = False,
    experiment_seed: ExperimentSeed = None,
    keep_ballots: Annotated[
        Path | None, typer.Option(help="Where to keep the ballots, if BALLOTS is a file to be imported first.")
    ] = None,
    engine: EngineName = "local",
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Release the crowd's preference under differential privacy, charged to a ledger.

    Example: `crowdveil release mm.parquet --paradigm vlcp --epsilon 1 --ledger study.ledger --out release.json`

    Instead of ballots, a file in the public layout of the Moral Machine may be given: it is imported first.

    For many releases of the same crowd see `crowdveil plan repeat`, then `crowdveil ledger create --delta` and `--rho`.

    With --by, each group is released to its own file, and the differences between groups are shown. If voters are
    protected (vlcp, vldp), so is who is in which group. With --effects, one epsilon pays for preferences and effects,
    and --dry-run shows the split.

    The noise is exact and from the operating system. The ledger is charged before the noise is drawn; a release that
    the budget does not cover is refused.
    """
    from crowdveil.engines.engine import chosen_engine
    from crowdveil.privacy.guarantee import paradigm as find_paradigm
    from crowdveil.privacy.ledger.ledger import Ledger
    from crowdveil.publish.request import Request, preview_allowed, read_personal_epsilons

    # Whatever can be refused is refused before a long import.
    if by is None:
        refuse_without("--by", {"--public-groups": public_groups, "--smallest": smallest != 0})
    if effects_path is None:
        refuse_without("--effects", {"--effects-share": effects_share != EFFECTS_SHARE})
    else:
        _refuse_with_effects(
            {
                "--epsilons": epsilons is not None,
                "--rho": rho is not None,
                "--mechanism": mechanism is not None,
                "--bound": bound is not None,
                "--no-repair": not repair,
                "--sensitivity": sensitivity != "tight",
                "--equal-votes": equal_votes,
                "--robust": robust != 0,
                "--design": design is not None,
                "--along": along is not None,
                "--experiment-seed": experiment_seed is not None,
            }
        )
    protected = find_paradigm(paradigm)
    level = _level(epsilon, epsilons, rho, ledger)
    account = None if ledger is None else Ledger.open(ledger)
    parts = by is not None or effects_path is not None
    make = None if dry_run or parts else _maker(out_path, account, experiment_seed)
    with (
        chosen_engine(engine, master) as workers,
        imported(ballots, keep_ballots, out_path, workers) as path,
        watched_ballots(path, "reading and fitting", walks=1 if dry_run else 2, engine=workers) as source,
    ):
        request = Request(
            paradigm=protected,
            epsilon=read_personal_epsilons(level, source.source) if isinstance(level, Path) else level,
            mechanism=mechanism,
            norm_bound=bound,
            repair=repair,
            sensitivity=sensitivity,
            equal_votes=equal_votes,
            robust=robust,
            design=_design(design),
            along=along,
            one_record_each=one_record_each,
            public_selection=public_selection,
        )
        if by is not None:
            if effects_path is not None:
                raise CrowdveilError("give --by or --effects, not both: effects by group come from crowdveil effects")
            release_by_group(
                source,
                request,
                by,
                public_groups=public_groups,
                smallest=smallest,
                account=account,
                out_path=out_path,
                experiment_seed=experiment_seed,
                dry_run=dry_run,
                as_json=as_json,
            )
            return
        if effects_path is not None:
            _release_together(
                source, request, (out_path, effects_path), effects_share, account, dry_run=dry_run, as_json=as_json
            )
            return
        prepared = preview_allowed(source, request) if make is None else None
        made = None if make is None else make(source, request)
    if prepared is not None:
        _show_dry_run(prepared, account, as_json)
    if made is not None:
        show(made.as_dict(), as_json, lambda: _print_release(made, out_path))
        _tell_if_nobody_is_known(made, account)


def _refuse_with_effects(given: Mapping[str, bool]) -> None:
    """Refuse options that --effects cannot heed."""
    others = [name for name, is_given in given.items() if is_given]
    if others:
        raise CrowdveilError(
            f"--effects splits one --epsilon, for the recommended mechanism as it is: leave out {', '.join(others)}"
        )


def _release_together(
    source: BallotSource,
    request: Request,
    paths: tuple[Path | None, Path],
    effects_share: float,
    account: Ledger | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Release preferences and effects from one epsilon."""
    from crowdveil.privacy.epsilon import Epsilon
    from crowdveil.publish.effects import preview_together, publish_together

    assert isinstance(request.epsilon, Epsilon)  # checked before
    asked = preview_together(
        source,
        request.paradigm,
        epsilon=request.epsilon,
        effects_share=effects_share,
        one_record_each=request.one_record_each,
        public_selection=request.public_selection,
    )
    if dry_run:
        show_split(asked, account, as_json)
        return
    out_path, effects_path = paths
    if account is None or out_path is None:
        raise CrowdveilError("both are charged and written: give --ledger L and --out release.json, or --dry-run")
    made, effects = publish_together(source, asked, account, out_path, effects_path)
    data = {"release": made.as_dict(), "effects": effects.as_dict()}
    show(data, as_json, lambda: _print_release(made, out_path))
    tell(f"Wrote {effects_path}: effects, at epsilon {effects.guarantee.epsilon}.")


def _maker(
    out_path: Path | None, account: Ledger | None, experiment_seed: int | None
) -> Callable[[BallotSource, Request], Release]:
    """Return the function that makes and writes the release."""
    from crowdveil.files import check_writable
    from crowdveil.publish.release import experiment, publish

    if out_path is None:
        raise CrowdveilError("say where to write the release: --out release.json (or look first with --dry-run)")
    check_writable(out_path)
    if experiment_seed is not None:

        def make(source: BallotSource, request: Request) -> Release:
            made = experiment(source, request, experiment_seed)
            made.save(out_path)
            return made

        return make
    if account is None:
        raise CrowdveilError(
            "a release must be charged to a ledger: give --ledger L "
            "(make one with: crowdveil ledger create L --budget 3)"
        )
    return lambda source, request: publish(source, request, account, out_path)


def _design(given: str | None) -> BallotSource | str | None:
    from crowdveil.ballots.ballot_file import open_ballots
    from crowdveil.estimation.dilemmas import GENERATOR

    return given if given is None or given == GENERATOR else open_ballots(Path(given))


def _level(
    epsilon: str | None, epsilons: Path | None, rho: str | None, ledger: Path | None
) -> Epsilon | Path | ZcdpBudget:
    from crowdveil.privacy.epsilon import Epsilon
    from crowdveil.privacy.ledger.ledger import Ledger
    from crowdveil.privacy.zcdp import ZcdpBudget

    if sum(given is not None for given in (epsilon, epsilons, rho)) != 1:
        raise CrowdveilError(
            "give one of --epsilon (for all voters), --epsilons (a CSV of personal ones) and --rho (Gaussian noise)"
        )
    if epsilons is not None:
        return epsilons
    if epsilon is not None:
        return Epsilon(epsilon)
    delta = None if ledger is None else Ledger.open(ledger).delta
    if rho is None or delta is None:
        raise CrowdveilError(
            "--rho needs a zCDP ledger, for whose delta the promise is stated: give --ledger L "
            "(make one with: crowdveil ledger create L --budget 1 --delta 1e-6), or use --epsilon"
        )
    return ZcdpBudget(rho, delta)


def _show_dry_run(prepared: Preview, account: Ledger | None, as_json: bool) -> None:
    from crowdveil.pages.feature_estimates import expected_error_bar_sentence, split_sentences

    data = prepared.as_dict()
    if account is not None:
        fits = account.preview(prepared.charge)
        data["budget"] = fits.as_dict()

    def in_words() -> None:
        say_wrapped(f"Nothing was spent. {charge_sentence(prepared)}")
        for sentence in split_sentences(prepared.split, prepared.guarantee.paradigm.place):
            say_wrapped(sentence)
        if account is not None:
            say_wrapped(str(fits))
            for overlap in fits.overlaps:
                say_wrapped(f"Spent before: {overlap}.")
            if fits.caution:
                say_wrapped(f"{ANYBODY} Why: {fits.caution}.")
        say_wrapped(expected_error_bar_sentence(prepared.expected_noise, prepared.settings.robust))

    show(data, as_json, in_words)


def _tell_if_nobody_is_known(made: Release, account: Ledger | None) -> None:
    """Warn if the ledger had to charge the crowd as if anybody could be in it."""
    if account is None or made.ledger is None:
        return
    charged = next(a for a in account.statement().accounts if made.ledger["entry"] in [e.id for e in a.entries])
    if not charged.named:
        tell(f"{ANYBODY} Why: the ballots have no voters' names, or the ledger's key is missing.")


def _print_release(made: Release, path: Path | None) -> None:
    from crowdveil.pages.feature_estimates import reliability_sentences, third_answer_sentences
    from crowdveil.pages.plain_words import fact_phrases, guarantee_sentences

    say(bold(made.study.title))
    if not made.study.factors_are_features:
        _print_factors(made)
    weights = Table(None, "feature", "weight", "± (95 %)", numbers=2)
    rows = zip(made.study.features, made.parameter, made.error_bars, made.features_known, strict=True)
    for feature, value, bar, known in sorted(rows, key=lambda row: -row[1]):
        weights.add(feature.label, f"{value:+.3f}", f"{bar:.3f}" if known else "not known")
    weights.print()
    apart = "" if made.unknown is None else " The page of the release (crowdveil page) shows these parts of them apart."
    say_wrapped(f"The error bars cover {made.bars_cover}.{apart}")
    for sentence in [*made.remarks, *third_answer_sentences(made), *reliability_sentences(made)]:
        say_wrapped(sentence)
    say()
    for sentence in guarantee_sentences(made):
        say_wrapped(sentence)
    facts = "; ".join(fact_phrases(made.facts))
    say_wrapped(f"Mechanism: {made.mechanism}{facts and f' ({facts})'}.")
    if not made.exact:
        tell("Experiment: made with floating-point noise, this release protects nobody.")
    said = as_argument(path)
    say(f"\nWrote {path}. Next: crowdveil decide {said} DILEMMA, or crowdveil page {said}")


def _print_factors(made: Release) -> None:
    factors = Table(None, "factor", "from -", "to +", "weight", "95 % interval", numbers=2)
    rows = zip(made.study.factors, made.factor_values, made.factor_intervals, made.known, strict=True)
    for factor, value, (low, high), known in sorted(rows, key=lambda row: -abs(row[1])):
        interval = f"{low:+.3f} to {high:+.3f}" if known else "not known"
        factors.add(factor.title, *factor.poles, f"{value:+.3f}", interval)
    factors.print()
    say()
