"""What the program prints: tables for 80 columns whatever the terminal, help in panels, one line for a mistake."""

import importlib
import json
import os
import re
import shlex
import subprocess
import sys

import pytest
import typer
from tests.program import crowdveil, refused
from typer.main import get_command

from crowdveil.cli import app as program
from crowdveil.cli.terminal import WIDTH, Table, bold, printable, say, say_wrapped, tell

LONG = "a sentence that is much longer than its column may be, so that it has to be wrapped at its spaces"


def printed(table, capsys):
    table.print()
    return capsys.readouterr().out.splitlines()


def test_a_table_wraps_words_and_breaks_none(capsys):
    table = Table("Title", "name", "words", "number", numbers=1)
    table.add("algorithm-3-choices", LONG, "1,000,000")
    title, heading, *rows = printed(table, capsys)
    assert title == "Title"
    assert heading.split() == ["name", "words", "number"]
    assert max(map(len, rows)) == WIDTH
    assert rows[0].endswith("1,000,000")
    assert " ".join(" ".join(rows).replace("1,000,000", "").split()) == f"algorithm-3-choices {LONG}"


def test_a_table_that_cannot_fit_is_wider_and_still_breaks_no_word(capsys):
    table = Table(None, "a", "b")
    table.add("x" * 60, "y" * 60)
    assert printed(table, capsys)[1] == f"{'x' * 60}  {'y' * 60}"


def test_wide_characters_take_two_columns(capsys):
    table = Table(None, "a", "b")
    table.add("日本", "1")
    table.add("abcd", "2")
    assert printed(table, capsys)[1:] == ["日本  1", "abcd  2"]


def test_a_table_without_rows_is_left_out(capsys):
    assert printed(Table("Title", "a"), capsys) == []


@pytest.mark.parametrize("columns", ["40", "200"])
def test_a_table_does_not_follow_the_terminal(monkeypatch, columns):
    usual = crowdveil("studies", "moral-machine").stdout
    monkeypatch.setenv("COLUMNS", columns)
    assert crowdveil("studies", "moral-machine").stdout == usual


def test_the_demo_fits_80_columns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = crowdveil("demo", "--voters", 60)
    assert done.code == 0, done.stderr
    (start,) = (i for i, line in enumerate(done.stdout.splitlines()) if line.startswith("paradigm"))
    rows = done.stdout.splitlines()[start : start + 6]
    assert [row.split()[0] for row in rows] == ["paradigm", "VLCP", "RLCP", "VLDP", "RLDP", "none"]
    assert max(map(len, rows)) <= WIDTH
    for row in rows[1:5]:  # no certainty is stated where it would be below one half: 0 % would read as "surely not"
        sure = re.search(r"[%–] +(–|> 99\.9%|(\d+\.\d)%) ", row)
        assert sure, row
        assert sure[2] is None or float(sure[2]) >= 50
    assert (tmp_path / "demo" / "page.html").exists()
    tried = [line.strip() for line in done.stdout.partition("Try next:")[2].splitlines() if line.strip()]
    assert len(tried) == 4
    for line in tried:
        program, *words = shlex.split(line)
        assert program == "crowdveil"
        assert crowdveil(*words).code == 0, line


def test_help_lists_every_command_in_its_panel():
    text = crowdveil("--help").stdout
    for name, command in program.COMMANDS.items():
        assert f"\n{command.panel}:\n" in text
        assert f"\n  {name}" in text
        assert command.line in text, f"the line of {name} is too long for one line"
    assert crowdveil().stdout == text


def test_help_is_whole_and_readable_at_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for words in every_command(get_command(program.app), []):
        text = crowdveil(*words, "--help").stdout
        usage, _, rest = text.partition("\n\n")
        assert not re.search(r"[{}<]|\[\[|\.{6}", usage), usage
        assert not re.search(r"^ +--\S+ <(?!\w+\|)|<list", rest, re.M), text
        listed = rest.partition("\nCommands:\n")[2]
        assert "..." not in listed, listed


def every_command(command, words):
    yield words
    context = typer.Context(command)
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        yield from every_command(command.get_command(context, name), [*words, name])


def test_every_command_is_where_the_table_says():
    for command in program.COMMANDS.values():
        assert hasattr(importlib.import_module(f"crowdveil.cli.{command.module}"), command.function)


@pytest.mark.parametrize("words", [["relaese"], ["import", "morale-machine"], ["ledger", "shwo"]])
def test_an_unknown_command_suggests_the_nearest(words):
    refused(crowdveil(*words), "Did you mean")


@pytest.mark.parametrize("group", ["import", "ledger"])
def test_a_group_without_a_command_says_so(group):
    refused(crowdveil(group), "Missing command", f"crowdveil {group} --help")


def test_an_import_without_a_layout_names_both():
    refused(crowdveil("import", "answers.csv.gz"), "import moral-machine answers.csv.gz", "import table answers.csv.gz")


def test_words_from_a_file_cannot_command_the_terminal(capsys):
    table = Table(None, "a", "b")
    table.add("x\x1b]0;owned\x07\ny", "1")
    (_, row) = printed(table, capsys)
    assert row == "x\ufffd]0;owned\ufffd y  1"
    say(f"{bold('loud')} \x1b[2J\r\u202eback\x9b\ttab\n")
    assert printable(bold("loud")) == bold("loud")
    assert capsys.readouterr().out == "loud \ufffd[2J\ufffd\ufffdback\ufffd\ttab\n\n"
    tell("\x1b[31mred")
    assert capsys.readouterr().err == "\ufffd[31mred\n"


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "ascii", "utf-8"])
def test_a_terminal_that_does_not_know_every_character_gets_its_number(tmp_path, encoding):
    study = tmp_path / "s.toml"
    study.write_text(
        'name = "s"\ntitle = "漢 “±”"\nquestion = "?"\n[drawing]\nmethod = "independent"\ndilemmas = 1\n'
        '[[features]]\nname = "a"\nlow = 0\nhigh = 1\nlevels = [0, 1]\n',
        encoding="utf-8",
    )
    words = [sys.executable, "-m", "crowdveil", "studies", str(study)]
    settings = {**os.environ, "PYTHONIOENCODING": encoding}
    shown = subprocess.run(words, env=settings, capture_output=True, check=True)
    known = "utf-8" if encoding == "ascii" else encoding  # where nothing else is known, UTF-8 is
    assert shown.stdout.splitlines()[0] == "漢 “±”".encode(known, errors="backslashreplace")
    told = subprocess.run([*words, "--json"], env=settings, capture_output=True, check=True)
    assert json.loads(told.stdout.decode(encoding))["title"] == "漢 “±”"


def test_sentences_are_as_wide_as_tables(capsys):
    say_wrapped(LONG * 3)
    lines = capsys.readouterr().out.splitlines()
    assert WIDTH - 15 < max(map(len, lines)) <= WIDTH
    assert " ".join(lines) == LONG * 3
