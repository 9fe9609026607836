"""crowdveil audit: attacks on crowdveil's own promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdveil.cli.terminal import AsJson, Table, bold, progress, say, show
from crowdveil.errors import CrowdveilError, check_whole, missing_extra

if TYPE_CHECKING:
    from crowdveil.audit.attacks import Attack, AttackResult
    from crowdveil.audit.audit import Audit

NOT_CLEAN = 1


def audit(
    epsilon: Annotated[str, typer.Option(metavar="NUMBER", help="The promise to attack.")] = "1",
    draws: Annotated[
        int | None, typer.Option(help="Outputs of each side, at least 20000: more prove more. Default: 200000.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Half a minute: fewer draws, a shorter search.")] = False,
    mechanism: Annotated[str | None, typer.Option(help="Audit one mechanism only.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the result here (.svg, .png or .pdf).")] = None,
    surroundings: Annotated[
        bool,
        typer.Option("--surroundings", help="Attack the ledger, the import and the client instead of the mechanisms."),
    ] = False,
    browser: Annotated[
        bool, typer.Option("--browser", help="With --surroundings: lie to the voter's page in a real browser, too.")
    ] = False,
    seed: Annotated[int, typer.Option(help="With --surroundings: another seed tries other cases.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Attack crowdveil's own promises: how much epsilon can somebody who sees the outputs prove?

    Every mechanism runs on the worst neighbours that a search finds; an event is chosen on one sample of outputs and
    counted on a fresh one. Mistakes made on purpose must be caught, and the noise must follow its law. Exit code 1 if a
    promise is violated, a mistake is missed or a law is broken (a false alarm: less than once in a million runs).

    With `--surroundings`, it attacks the ledger with disguised crowds, the import with dirty files and the Python
    client with a lying server (`pip install '.[server]'`) instead; with `--browser`, it also attacks the voter's page
    in Chromium with a lying server (`pip install '.[browser]'`).

    Example: `crowdveil audit --quick --plot audit.svg`
    """
    if surroundings:
        if quick or draws is not None or mechanism is not None or plot is not None:
            raise CrowdveilError(
                "--surroundings attacks no mechanism: of the other options, give --seed, --browser or --json only"
            )
        _attack_surroundings(seed, browser, as_json)
        return
    if browser:
        raise CrowdveilError("--browser is for the attack on the voter's page: give --surroundings, too")
    from crowdveil.audit.audit import AuditRequest, check_format, save_picture, tasks
    from crowdveil.audit.audit import audit as run_audit
    from crowdveil.files import check_writable
    from crowdveil.privacy.epsilon import Epsilon

    make = AuditRequest.quick if quick else AuditRequest.thorough
    request = make(Epsilon(epsilon), draws, mechanism)
    if plot is not None:
        check_format(plot)
        check_writable(plot)
    with progress("attacking", len(tasks(request)), "trials") as advance:
        done = run_audit(request, advance)
    if plot is not None:
        save_picture(done, plot)
    show(done.as_dict() | ({"plot": str(plot)} if plot is not None else {}), as_json, lambda: _print(done, plot))
    if not done.clean:
        raise typer.Exit(NOT_CLEAN)


def _attack_surroundings(seed: int, browser: bool, as_json: bool) -> None:
    from crowdveil.audit.attacks import ATTACKS, CLIENT, PAGE, run_attacks

    check_whole(seed, "the seed", 0)
    attacks = list(ATTACKS)
    not_tried = dict[str, str]()
    with ExitStack() as stack:
        for name, start in ((CLIENT, _client_attacks), (PAGE, _page_attacks if browser else _no_browser)):
            try:
                attacks += start(stack)
            except CrowdveilError as missing:
                not_tried[name] = str(missing)
        with progress("attacking", len(attacks), "attacks") as advance:
            tests = run_attacks(seed, attacks, advance)
    clean = all(test.passed for test in tests)
    data = {"clean": clean, "seed": seed, "attacks": [test.as_dict() for test in tests], "not_tried": not_tried}
    show(data, as_json, lambda: _print_surroundings(tests, not_tried, clean))
    if browser and PAGE in not_tried:
        raise CrowdveilError(f"{PAGE} was not tried: {not_tried[PAGE]}")
    if not clean:
        raise typer.Exit(NOT_CLEAN)


def _client_attacks(stack: ExitStack) -> Sequence[Attack]:
    """Start the lying server; if a package is missing, the error says what to install."""
    try:
        from crowdveil.audit.client_attack import client_attacks, open_server
    except ModuleNotFoundError as error:
        raise missing_extra(error) from None
    return client_attacks(stack.enter_context(open_server()))


def _page_attacks(stack: ExitStack) -> Sequence[Attack]:
    """Start the lying server and the browser; if a package is missing, the error says what to install."""
    try:
        from crowdveil.audit.page_attack import open_page_harness, page_attacks
    except ModuleNotFoundError as error:
        raise missing_extra(error) from None
    return page_attacks(stack.enter_context(open_page_harness()))


def _no_browser(stack: ExitStack) -> Sequence[Attack]:
    raise CrowdveilError("give --browser")


def _print_surroundings(tests: Sequence[AttackResult], not_tried: Mapping[str, str], clean: bool) -> None:
    own = Table("The surroundings under attack", "attack", "verdict", "cases", numbers=1)
    mistakes = Table("Mistakes made on purpose", "attack", "mistake", "verdict", "cases", numbers=1)
    for test in tests:
        cases = f"{test.cases:,}"
        if test.mistake is None:
            own.add(test.attack, "holds" if test.passed else "BROKEN", cases, loud=not test.passed)
        else:
            mistakes.add(test.attack, test.mistake, "caught" if test.passed else "MISSED", cases, loud=not test.passed)
    for attack in not_tried:
        own.add(attack, "not tried", "")
    for shown in (own, mistakes):
        shown.print()
        say()
    for attack, reason in not_tried.items():
        say(f"Not tried, {attack}: {reason}.")
    for finding in (finding for test in tests if test.mistake is None for finding in test.findings):
        say(finding)
    say(bold("Nothing was found, all mistakes were caught." if clean else "This audit FAILED."))


def _print(done: Audit, plot: Path | None) -> None:
    promises = Table(
        "Promises under attack", "mechanism", "protects", "verdict", "promised", "proved", "reach", numbers=3
    )
    for trial in done.promises:
        promises.add(
            f"{trial.name} {trial.remark}".strip(),
            trial.paradigm,
            trial.verdict.value,
            trial.promised,
            f"≥ {trial.evidence.shown:.3f}",
            "" if trial.reach is None else f"{trial.reach:.3f}",
            loud=not trial.as_it_should_be,
        )
    mistakes = Table("Mistakes made on purpose", "mechanism", "mistake", "verdict", "promised", "proved", numbers=2)
    for trial in done.bugs:
        found_by = ", ".join(flaw.value for flaw in trial.flaws)
        mistakes.add(
            trial.name,
            trial.bug or "",
            f"{trial.verdict.value}{found_by and f' by {found_by}'}",
            trial.promised,
            f"≥ {trial.evidence.shown:.3f}",
            loud=not trial.as_it_should_be,
        )
    laws = Table("The noise against its law", "sampler", "law", "verdict", "draws", "p-value", numbers=2)
    for test in done.laws:
        laws.add(
            test.sampler,
            test.law,
            "as it should be" if test.passed else "WRONG LAW",
            f"{test.draws:,}",
            f"{test.p_value:.3g}",
            loud=not test.passed,
        )
    for shown in (promises, mistakes, laws):
        shown.print()
        say()
    say(
        f"{bold('All promises held, all mistakes were caught.' if done.clean else 'This audit FAILED.')} "
        f"{done.request.draws:,} outputs of each side ({done.request.slow_draws:,} of Gaussian noise, which is slow "
        "to draw); proved: lower bounds of epsilon at 99.9 %; reach: distance of the worst "
        "neighbours found, as a share of what the noise covers (the neighbours are in --json)."
    )
    if plot is not None:
        say(f"Drawn in {plot}.")
