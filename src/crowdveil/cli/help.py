"""The base of all commands: help in panels and everyday words.

No file is written over one that is given, and ballots, releases, tables and studies are not replaced by something
else.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from crowdveil.errors import CrowdveilError

WRITTEN = frozenset(
    ("--out", "--rest", "--refused", "--plot", "--table", "--effects", "--keep-ballots", "--as-csv", "--transcript")
)
"""The options that name a file to write."""
RELEASE = "a release"
_BALLOTS, _TABLE, _EFFECTS = "ballots", "a table", "effects"
_CSV, _TOML = "a table (CSV)", "a study, a mapping or settings (TOML)"
_WRITERS = {
    **dict.fromkeys(("moral-machine", "table", "simulate", "filter", "split", "merge"), _BALLOTS),
    "release": RELEASE,
    "effects": _EFFECTS,
    "relay": _CSV,  # voters' links
}
"""Commands, and what they write where ``--out`` and ``--rest`` say."""
_REPLACED = {"--table": (_TABLE, _CSV), "--refused": (_CSV,), "--as-csv": (_CSV,)}
"""Options that write tables, and the kinds of table that they may replace."""
_LINE = 1024
"""Bytes that tell what a file holds."""
_FORMAT = re.compile(rb'{\s*"format": "crowdveil (release|effects) ')
_CELLS = re.compile(rb"(\xef\xbb\xbf)?[^<{\[\0-\x08\x80-\xbf\r\n][^\0-\x08\r\n]*[,;\t]")
"""The start of a table of text, and not of a page, a picture or JSON."""

_TYPE = re.compile(r" <(?:list\[)?(\w+)\]?>$")
"""The type that Typer writes after a name, such as <int> or <list[Path]>."""
_WORDS = {"int": "NUMBER", "float": "NUMBER", "str": "TEXT", "path": "PATH"}


class ReadableCommand(TyperCommand):
    """A command that lists its options in panels."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Name the arguments for the line of usage; brackets are around those that may be left out."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words after the command.

        Refuse an option that is given twice, of which all but the last would be lost, and an empty word for a path,
        which would mean this folder.
        """
        empty = any(word == "" or (word.startswith("--") and word.endswith("=")) for word in args)
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        rest = super().parse_args(ctx, args)
        _check_given_once(given)
        if empty:
            _check_named(self.get_params(ctx), ctx.params)
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command, unless it would write over a file that it is given, or over one of another kind.

        A file is replaced by one of its own kind only: ballots and tables are people's answers, a release was paid for,
        and a study is somebody's work.
        """
        _check_apart(self.get_params(ctx), ctx.params)
        _check_kinds(str(ctx.info_name), self.get_params(ctx), ctx.params)
        return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List arguments and options, grouped by ``rich_help_panel``."""
        _write_panels(self.get_params(ctx), ctx, formatter)


class ReadableGroup(TyperGroup):
    """A group of commands that lists its own options in the same way."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List the options of the group, then its commands."""
        _write_panels(self.get_params(ctx), ctx, formatter)
        self.format_commands(ctx, formatter)


def command_group(**settings: Any) -> typer.Typer:
    """Make a group of commands with readable help."""
    return typer.Typer(**{"cls": ReadableGroup, "add_completion": False, "rich_markup_mode": None, **settings})


def _paths(parameters: Sequence[Any], given: Mapping[str, Any]) -> Iterator[tuple[str, Path | str]]:
    """Yield each path that was given, and the study, with the option or the argument that it was given to."""
    for parameter in parameters:
        value = given.get(parameter.name)
        flags = [flag for flag in parameter.opts if flag.startswith("--")]
        for path in value if isinstance(value, list | tuple) else [value]:
            if isinstance(path, Path) or (isinstance(path, str) and parameter.name == "study"):
                yield flags[0] if flags else (parameter.metavar or parameter.name.upper()), path


def _check_given_once(given: Sequence[Any]) -> None:
    single = [one for one in given if one.param_type_name == "option" and not (one.multiple or one.is_flag)]
    for place, parameter in enumerate(single):
        if parameter in single[:place]:
            raise CrowdveilError(f"{parameter.opts[0]} is given twice, and only the last would count: give it once")


def _check_named(parameters: Sequence[Any], given: Mapping[str, Any]) -> None:
    for name, path in _paths(parameters, given):
        if path == Path():
            raise CrowdveilError(f"{name} is empty: give a path (this folder is ./)")


def _check_apart(parameters: Sequence[Any], given: Mapping[str, Any]) -> None:
    places: dict[str, tuple[str, bool]] = {}
    for name, path in _paths(parameters, given):
        written = name in WRITTEN
        other, other_is_written = places.setdefault(os.path.realpath(path), (name, written))
        if other != name and (written or other_is_written):
            raise CrowdveilError(f"{other} and {name} are the same file, {path}: write to another one")


def _check_kinds(command: str, parameters: Sequence[Any], given: Mapping[str, Any]) -> None:
    for name, path in _paths(parameters, given):
        if name in WRITTEN:
            check_replaced(name, Path(path), *_kinds_written(command, name))


def check_replaced(option: str, path: Path, *written: str) -> None:
    """Refuse to write over ballots, a table, a study, a release or effects, except with something of the same kind."""
    if (there := _kind_of(path)) and there not in written:
        raise CrowdveilError(f"{option}: {path} holds {there}, which would be lost: name another file, or remove it")


def _kind_of(path: Path) -> str | None:
    """Return what a file holds, if that must not be lost."""
    try:
        start = b""
        if path.is_file():  # a pipe would be waited for
            with path.open("rb") as file:
                start = file.read(_LINE)
            if start.startswith(b"\x1f\x8b"):
                with gzip.open(path) as file:
                    start = file.read(_LINE)
    except (OSError, EOFError, zlib.error):  # whoever writes to it says what is wrong
        return None
    if start.startswith(b"PAR1"):
        return _BALLOTS if _holds_ballots(path) else _TABLE
    if path.suffix == ".toml" and start.strip():
        return _TOML
    if _CELLS.match(start):
        return _CSV
    published = _FORMAT.match(start)
    return None if published is None else {b"release": RELEASE, b"effects": _EFFECTS}[published[1]]


def _holds_ballots(path: Path) -> bool:
    from pyarrow import ArrowException  # here, and not above: they take time to load

    from crowdveil.ballots.ballot_file import is_ballot_file

    try:
        return is_ballot_file(path)
    except (ArrowException, OSError):
        return False


def _kinds_written(command: str, option: str) -> tuple[str, ...]:
    if option in ("--out", "--rest"):
        return (_WRITERS.get(command, ""),)
    return {"--keep-ballots": (_BALLOTS,), "--effects": (_EFFECTS,), **_REPLACED}.get(option, ())


def _write_panels(parameters: Sequence[Any], ctx: Any, formatter: Any) -> None:
    panels: dict[str, list[tuple[str, str]]] = {}
    for parameter in parameters:
        listed = parameter.get_help_record(ctx)
        if listed is None:
            continue
        is_argument = parameter.param_type_name == "argument"
        name = _TYPE.sub("" if is_argument else _value, listed[0])
        panel = getattr(parameter, "rich_help_panel", None) or ("Arguments" if is_argument else "Options")
        panels.setdefault(panel, []).append((name, listed[1]))
    for panel, rows in panels.items():
        with formatter.section(panel):
            formatter.write_dl(rows)


def _value(found: re.Match[str]) -> str:
    return f" {_WORDS[found[1].lower()]}"
