"""Write into the site what only the program knows: the help of every command.

mkdocs calls ``on_page_markdown`` for each page. A line ``<!-- help of every command -->`` becomes a section a command,
with its ``--help`` as a terminal of 100 columns shows it. A link to a file of the repository outside ``docs/`` becomes
the file's name: the site is built from ``docs/`` alone.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator
from typing import Any
from unittest import mock

import typer
from typer.main import get_command

from crowdveil.cli.app import app, main

MARKER = "<!-- help of every command -->"
WIDTH = 100
_OUTSIDE = re.compile(r"\[([^\]]*)\]\((?:\.\./)+(?:src|tests|examples|benchmarks|vectors)/[^)]*\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill in the marker, and drop links that lead out of the site."""
    return _OUTSIDE.sub(r"\1", markdown.replace(MARKER, help_of_every_command()) if MARKER in markdown else markdown)


def help_of_every_command() -> str:
    """Return one section of Markdown for each command."""
    return "\n\n".join(f"## {words}\n\n```text\n{text}\n```" for words, text in command_helps())


def command_helps() -> Iterator[tuple[str, str]]:
    """Walk the commands with their help texts, in the order in which ``crowdveil --help`` lists them."""
    for words in _commands(get_command(app), ["crowdveil"]):
        yield " ".join(words), _help(words)


def _commands(command: Any, words: list[str]) -> Iterator[list[str]]:
    yield words
    if hasattr(command, "list_commands"):
        context = typer.Context(command)
        for name in command.list_commands(context):
            yield from _commands(command.get_command(context, name), [*words, name])


def _help(words: list[str]) -> str:
    printed = io.StringIO()
    with (
        mock.patch.object(sys, "argv", [*words, "--help"]),
        mock.patch.dict(os.environ, {"COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb"}),
        contextlib.redirect_stdout(printed),
        contextlib.suppress(SystemExit),
    ):
        main()
    return "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())
