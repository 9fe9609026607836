"""The program ``crowdveil``: all commands, and the one place that reports a user's mistake, in one line."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from io import TextIOWrapper
from itertools import pairwise
from threading import current_thread, main_thread
from typing import Any, NamedTuple, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

from crowdveil.cli.help import ReadableCommand, command_group
from crowdveil.cli.terminal import tell
from crowdveil.errors import CrowdveilError, missing_extra, shown

USER_ERROR = 2
INTERRUPTED = 130
NOBODY_READS = 1
THREADS_OF_BLAS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
"""The variables that say with how many threads NumPy multiplies matrices. It reads them when it is loaded."""


class Command(NamedTuple):
    """The panel and the line that list a command, and where it is defined. Its module is loaded when it is used."""

    panel: str
    module: str
    function: str
    line: str

    def load(self, name: str) -> Any:
        """Load the command, or the group of commands."""
        return _built(name, getattr(import_module(f"crowdveil.cli.{self.module}"), self.function))


@cache
def _built(name: str, found: Any) -> Any:
    """Build the command, or the group of commands, from the function that is one or the group that Typer knows."""
    if not isinstance(found, typer.Typer):
        alone = command_group()
        alone.command(name, cls=ReadableCommand)(found)
        found = alone
    return get_command(found)


COMMANDS = {
    "demo": Command("Start here", "demo", "demo", "From simulated voters to decisions, in one go."),
    "studies": Command("Start here", "studies", "studies", "List the bundled studies, or show one."),
    "simulate": Command("Ballots", "studies", "simulate", "Write the ballots of simulated voters."),
    "import": Command("Ballots", "ballots", "importing", "Read what people chose from a file."),
    "ballots": Command("Ballots", "ballots", "ballots", "Filter, split and merge ballot files."),
    "describe": Command(
        "Ballots", "describe", "describe", "Show what was asked and preferred. Exact: not for publishing."
    ),
    "fit": Command("Ballots", "describe", "fit", "Average all voters without privacy, to compare."),
    "plan": Command("Private release", "plan", "planning", "What does a promise cost in accuracy?"),
    "ledger": Command("Private release", "ledger", "ledger", "The privacy budget: create it, show it, raise it."),
    "release": Command("Private release", "release", "release", "Publish the crowd's preference, charged to a ledger."),
    "effects": Command("Private release", "effects", "effects", "Publish which sides were preferred, by factor."),
    "decide": Command("Decisions", "decide", "decide", "Ask a release to decide a dilemma."),
    "page": Command("Decisions", "decide", "page", "Write a page about a release, in plain words."),
    "align": Command("Decisions", "evaluate", "align", "How far does an AI model agree with the crowd?"),
    "mcp": Command("Decisions", "client", "mcp", "Offer decisions to an AI agent as a tool."),
    "serve": Command("Website", "website", "serve", "Put a study on the web."),
    "relay": Command("Website", "website", "relay", "Pass sealed reports on, between voters and a host."),
    "backup": Command("Website", "website", "backup", "Write all that a website keeps to one file."),
    "restore": Command("Website", "website", "restore", "Fill an empty database from a backup."),
    "crowd": Command("Website", "client", "crowd", "Let simulated voters vote on a website."),
    "check-page": Command("Website", "client", "check_page", "Is a website's page the one that crowdveil ships?"),
    "audit": Command("Evidence", "audit", "audit", "Attack crowdveil's own promises."),
    "evaluate": Command("Evidence", "evaluate", "evaluate", "Judge a release by people's choices. Exact."),
    "compare": Command("Evidence", "compare", "compare", "How accurate is each mechanism?"),
    "reproduce": Command("Evidence", "reproduce", "reproducing", "Run the paper's evaluation again, claim by claim."),
}


class Program(TyperGroup):
    """The group of all commands; each is loaded when it is used."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: dict[str, Any] = dict(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Load one command."""
        return COMMANDS[cmd_name].load(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands, panel by panel."""
        for panel in dict.fromkeys(command.panel for command in COMMANDS.values()):
            with formatter.section(panel):
                listed = ((name, command.line) for name, command in COMMANDS.items() if command.panel == panel)
                formatter.write_dl([(name.ljust(max(map(len, COMMANDS))), line) for name, line in listed])


app = typer.Typer(
    name="crowdveil",
    cls=Program,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Every command has --help with an example; those that compute have --json for machines.",
)


def _version(wanted: bool) -> None:
    if wanted:
        from crowdveil.version import VERSION

        typer.echo(f"crowdveil {VERSION}")
        raise typer.Exit


@app.callback()
def _crowdveil(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """A crowd guides an AI's decisions in ethical dilemmas, and no voter is exposed.

    Ballots (`import`, `simulate`) become a private release (`release`), and a release decides (`decide`).
    """


def main(words: Sequence[str] | None = None) -> NoReturn:
    """Run the program; a user's mistake prints one line on stderr and exits with code 2."""
    given = (sys.argv[1:] if words is None else list(words)) or ["--help"]
    if not any(name in os.environ for name in THREADS_OF_BLAS):
        # Matrices are small here: more threads wait for each other for longer than they compute.
        os.environ[THREADS_OF_BLAS[0]] = "1"
    _open_closed_streams()
    _print_any_character()
    interrupt = _Interrupt()
    try:
        with interrupt:
            code = app(given, prog_name="crowdveil", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except KeyboardInterrupt:
        _complain(f"interrupted{_charged(given)}")
        sys.exit(INTERRUPTED)
    except CrowdveilError as error:
        _complain(str(error))
    except ModuleNotFoundError as error:
        _complain(str(missing_extra(error)))
    except MemoryError as error:
        _complain(f"this takes more memory than there is ({error or 'no more is known'}): ask for less")
    except typer.Abort:
        _complain("stopped")
    except BrokenPipeError:
        sys.exit(NOBODY_READS)  # Whoever was reading has read enough.
    except OSError as error:
        reason = error.strerror or str(error)
        _complain(f"{error.filename}: {reason}" if error.filename else reason)
    except typer.TyperException as error:
        _complain(_misused(error, given))
    finally:
        _flush()
    sys.exit(USER_ERROR)


class _Interrupt:
    """Ctrl-C: it ends the block as KeyboardInterrupt, whatever becomes of that on the way."""

    def __init__(self) -> None:
        self._came = False

    def __enter__(self) -> None:
        if current_thread() is main_thread():
            self._before = signal.signal(signal.SIGINT, self._raise)

    def __exit__(self, *_: object) -> None:
        if current_thread() is main_thread():
            signal.signal(signal.SIGINT, self._before)
        if self._came:
            # Some libraries turn it into an error of their own, and the command line turns it into an exit code.
            raise KeyboardInterrupt

    def _raise(self, *_: object) -> NoReturn:
        self._came = True
        raise KeyboardInterrupt


def _charged(words: Sequence[str]) -> str:
    """Return where to look after an interruption: what was charged stays charged, with or without a release."""
    ledger = next((after for word, after in pairwise(words) if word == "--ledger"), None)
    return "" if ledger is None else f": crowdveil ledger show {ledger} says whether this was charged, and delivered"


_KINDS = {"valid integer": "give a whole number", "valid number": "give a number"}
"""A part of Typer's complaint about a value that is none of its kind -> the remedy."""


def _misused(error: Any, words: Sequence[str]) -> str:
    """Return what is wrong with the words that were given, and where help is."""
    told = error.format_message()
    for flag in getattr(getattr(error, "param", None), "opts", ()):
        values = [after for word, after in pairwise(words) if word == flag]
        values += [word.partition("=")[2] for word in words if word.startswith(f"{flag}=")]
        if values:
            wrong = error.message.removeprefix("Value error, ")
            told = f"{flag} is {shown(values[-1])}: {next((do for kind, do in _KINDS.items() if kind in wrong), wrong)}"
    context = getattr(error, "ctx", None)
    command = " ".join(["crowdveil", *words[:1]]) if words[:1] and words[0] in COMMANDS else "crowdveil"
    return f"{told} (see {command if context is None else context.command_path} --help)"


def _complain(line: str) -> None:
    tell(f"crowdveil: {line}")


def _open_closed_streams() -> None:
    """Connect stdin, stdout and stderr to nothing if they are closed.

    Otherwise, the next file that is opened would take the place of one of them, and what is printed would go into it.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    for number, (name, mode) in enumerate({"stdin": "r", "stdout": "w", "stderr": "w"}.items()):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def _print_any_character() -> None:
    """Let a terminal that does not know a character get its number: what was paid for must not fail at the last."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _flush() -> None:
    """Print what is left, and drop what cannot be printed: the interpreter would complain of it when it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, stream.fileno())
            os.close(nothing)
