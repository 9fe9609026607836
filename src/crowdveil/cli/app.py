"""The program ``crowdveil``: all commands, and the one place where a user's mistake becomes one line."""

from __future__ import annotations

import sys

import typer

from crowdveil.cli import data, ledger, releases
from crowdveil.cli.audit import audit
from crowdveil.cli.backup import backup, restore
from crowdveil.cli.check_page import check_page
from crowdveil.cli.compare import compare
from crowdveil.cli.crowd import crowd
from crowdveil.cli.demo import demo
from crowdveil.cli.mcp import mcp
from crowdveil.cli.plan import planning
from crowdveil.cli.reproduce import reproducing
from crowdveil.cli.serve import serve
from crowdveil.cli.terminal import err
from crowdveil.errors import CrowdveilError
from crowdveil.version import VERSION

USER_ERROR = 2

app = typer.Typer(
    name="crowdveil",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    epilog="Start with `crowdveil demo`. Every command has `--help` with an example and `--json` for machines.",
)

app.command(rich_help_panel="Answers")(data.studies)
app.command(rich_help_panel="Answers")(data.simulate)
app.add_typer(data.importing, name="import", rich_help_panel="Answers")
app.command(rich_help_panel="Answers")(data.describe)
app.command(rich_help_panel="Answers")(data.fit)
app.add_typer(planning, name="plan", rich_help_panel="Private society")
app.command(rich_help_panel="Private society")(compare)
app.add_typer(ledger.ledger, name="ledger", rich_help_panel="Private society")
app.command(rich_help_panel="Private society")(releases.release)
app.command(rich_help_panel="Decisions")(releases.decide)
app.command(rich_help_panel="Decisions")(releases.report)
app.command(rich_help_panel="Decisions")(mcp)
app.command(rich_help_panel="Decisions")(demo)
app.command(rich_help_panel="Decisions")(audit)
app.command(rich_help_panel="Website")(serve)
app.command(rich_help_panel="Website")(crowd)
app.command(rich_help_panel="Website")(check_page)
app.command(rich_help_panel="Website")(backup)
app.command(rich_help_panel="Website")(restore)
app.add_typer(reproducing, name="reproduce", rich_help_panel="Decisions")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"crowdveil {VERSION}")
        raise typer.Exit


@app.callback()
def _crowdveil(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """A crowd guides an AI's decisions in ethical dilemmas, and no voter is exposed.

    Answers (`simulate`, `import`) become a private society (`release`), and a release decides (`decide`).
    """


def main() -> None:
    """Run the program; a mistake of the user's ends in one line on stderr and exit code 2."""
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except CrowdveilError as error:
        err.print(f"crowdveil: {error}", markup=False)
    except typer.Abort:
        err.print("crowdveil: stopped")
    except KeyboardInterrupt:
        err.print("crowdveil: interrupted")
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
    except typer.TyperException as error:
        command = " ".join(["crowdveil", *(word for word in sys.argv[1:2] if not word.startswith("-"))])
        err.print(f"crowdveil: {error.format_message()} (see {command} --help)", markup=False)
    sys.exit(USER_ERROR)
