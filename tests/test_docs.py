"""The documentation keeps its word: what it shows runs, what it links to exists, what it lists is what there is.

How the pages are read: a fenced ``console`` block holds commands (``$ ...``) and their output, and is run with the
other blocks of its page, from top to bottom, in one folder. A comment right above a block says more about it:

    <!-- not run: WHY -->     it is only shown
    <!-- exit code 2 -->      the command must be refused
    <!-- same output -->      the output must be exactly as shown
    <!-- file: NAME -->       the block is the content of a file that the commands then use
"""

import contextlib
import csv
import gzip
import importlib
import importlib.util
import io
import json
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.main import get_command

import crowdveil
from crowdveil.cli.app import app, main
from crowdveil.privacy.mechanisms.registry import MECHANISMS, PAPERS_MECHANISM
from crowdveil.study.bundled import load_study
from crowdveil.study.drawing import draw_dilemmas

pytestmark = pytest.mark.usefixtures("few_crowds")

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
WRITTEN = [page for page in PAGES if "reference" not in page.parts and "reproduction" not in page.parts]


def named(path):
    return str(path.relative_to(ROOT))


# --- Reading a page -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    said: str
    """The comment right above the block, without its marks."""


FENCE = re.compile(r"(?:<!-- (?P<said>[^\n]*?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)


def blocks(page):
    found = FENCE.finditer(page.read_text(encoding="utf-8"))
    return [Block(m["language"], m["text"], m["said"] or "") for m in found]


def commands_of(text):
    """Split a console block into commands and what each of them prints."""
    commands = []
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif commands and (commands[-1][0].endswith("\\") or not complete(commands[-1][0])):
            commands[-1] = (f"{commands[-1][0].removesuffix(chr(92))}\n{line}", [])
        else:
            commands[-1][1].append(line)
    return [(command, "\n".join(printed)) for command, printed in commands]


def complete(command):
    try:
        return bool(shlex.split(command))
    except ValueError:
        return False


def test_commands_are_read_as_a_shell_would():
    text = "$ crowdveil a \\\n    --b 1\nprinted\n$ crowdveil c '[1,\n2]'\n$ crowdveil d > e\n"
    assert commands_of(text) == [
        ("crowdveil a \n    --b 1", "printed"),
        ("crowdveil c '[1,\n2]'", ""),
        ("crowdveil d > e", ""),
    ]


# --- Running a page -----------------------------------------------------------------------------------------------


def run(command):
    """Run one command line in this process; return its exit code and what it printed."""
    words = shlex.split(command)
    target = words[words.index(">") + 1] if ">" in words else None
    words = words[: words.index(">")] if target else words
    printed, old = io.StringIO(), sys.argv
    try:
        sys.argv = words
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed if target is None else io.StringIO()),
        ):
            if words[0] == "crowdveil":
                main()
            elif words[0] == "python":
                sys.argv = words[1:]
                runpy.run_path(words[1], run_name="__main__")
            elif words[0] == "ls":
                assert all(Path(word).exists() for word in words[1:])
                return 0, ""
            else:
                raise AssertionError(f"the documentation runs {words[0]}, which this test does not know")
        code = 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = old
    if target:
        Path(target).write_text(printed.getvalue(), encoding="utf-8")
    return code, printed.getvalue()


def moral_machine_file(path, voters=40):
    """Write the choices of simulated people in the public layout of the Moral Machine."""
    study, rng = load_study("moral-machine"), np.random.default_rng(3)
    left, right = draw_dilemmas(study, voters, rng)
    signals = {0: 0, 1: 1, -1: 2}
    legality = study.feature_names.index("legality")
    columns = [
        "CrossingSignal" if n == "legality" else n.replace("_", " ").title().replace(" ", "")
        for n in study.feature_names
    ]
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["ResponseID", "ExtendedSessionID", "Saved", *columns])
        for place, sides in enumerate(zip(left, right, strict=True)):
            spared = int(rng.integers(2))
            for side, values in enumerate(sides):
                cells = [signals[int(v)] if k == legality else int(v) for k, v in enumerate(values)]
                rows.writerow([f"r{place}", f"voter-{place // study.drawing.dilemmas}", int(side == spared), *cells])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder as the pages assume it."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    moral_machine_file(tmp_path / "SharedResponses.csv")
    (tmp_path / "answers.csv.gz").write_bytes(gzip.compress((tmp_path / "SharedResponses.csv").read_bytes()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


RUN = [page for page in WRITTEN if any(b.language in ("console", "python") for b in blocks(page))]


@pytest.mark.parametrize("page", RUN, ids=named)
def test_what_a_page_shows_runs(page, folder):
    names = {}
    for block in blocks(page):
        if block.said.startswith("not run: "):
            continue
        if block.said.startswith("file: "):
            Path(block.said.removeprefix("file: ")).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            exec(compile(block.text, named(page), "exec"), names)
        elif block.language == "console":
            for command, shown in commands_of(block.text):
                code, printed = run(command)
                assert code == (2 if block.said == "exit code 2" else 0), f"{command}\n{printed}"
                if block.said == "same output":
                    assert tidy(printed) == tidy(shown), command
                elif shown.startswith("{"):
                    assert keys(json.loads(printed)) == keys(json.loads(shown)), command


def tidy(text):
    return [line.rstrip() for line in text.strip().splitlines()]


def keys(data):
    """The keys of JSON without its values."""
    if isinstance(data, dict):
        return {name: keys(value) for name, value in data.items()}
    return [keys(value) for value in data] if isinstance(data, list) else None


# --- Commands that are shown and not run --------------------------------------------------------------------------

SHOWN = re.compile(r"^(?: {4}|\$ )(crowdveil (?:[^\n]*\\\n)*[^\n]*)$|`(crowdveil [^`]+)`", re.M)


def shown_commands(text):
    """The command lines of a page, wherever they stand: in a block, indented, or in a sentence."""
    for found in SHOWN.finditer(text):
        with contextlib.suppress(ValueError):  # a quotation that goes on in the next line
            words = shlex.split((found[1] or found[2]).replace("\\\n", " "), comments=True)
            if not re.fullmatch(r"crowdveil [a-z ]+ \d+", " ".join(words)):  # a format, such as `crowdveil report 1`
                yield words


def test_commands_are_found_wherever_they_stand():
    text = "Run `crowdveil a\n--b`.\n\n    crowdveil c \\\n      --d\n\n$ crowdveil e  # why\ncrowdveil: a message\n"
    assert [*shown_commands(text)] == [["crowdveil", "a", "--b"], ["crowdveil", "c", "--d"], ["crowdveil", "e"]]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_that_are_shown_exist(page):
    for words in shown_commands(page.read_text(encoding="utf-8")):
        command, context = get_command(app), None
        options = set()
        for word in words[1:]:
            if word.startswith("--"):
                options.add(word.partition("=")[0])
            elif hasattr(command, "list_commands"):
                context = typer.Context(command, parent=context)
                found = command.get_command(context, word)
                assert found or options, f"{named(page)}: {shlex.join(words)} names a command that does not exist"
                command = found or command
        known = {
            name for one in command.get_params(typer.Context(command)) for name in (*one.opts, *one.secondary_opts)
        }
        assert options <= known | {"--help"}, f"{named(page)}: {shlex.join(words)} has options that do not exist"


@pytest.mark.parametrize("page", WRITTEN, ids=named)
def test_blocks_of_commands_are_consoles(page):
    """So that they are run, or say why not."""
    for block in blocks(page):
        assert block.language not in ("sh", "bash", "shell"), (
            f"{named(page)} shows commands in a block of {block.language}"
        )
        if block.language != "console":
            assert not re.search(r"^\$? ?crowdveil ", block.text, re.M), (
                f"{named(page)} shows a command outside a console"
            )


# --- The site and its reference -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def helps():
    """The help of every command, as the site shows it."""
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "hooks.py")
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    return dict(hooks.command_helps())


def test_every_command_has_a_help_text_and_an_example(helps):
    assert len(helps) > 20
    for words, text in helps.items():
        assert text.startswith(f"Usage: {words}"), words
        if "COMMAND" not in text.splitlines()[0]:
            assert re.search(rf"Example[^\n]*\n?.*{words}", " ".join(text.split())), (
                f"{words} shows no example of itself"
            )


def test_every_command_appears_in_what_people_read(helps):
    text = "\n".join(page.read_text(encoding="utf-8") for page in WRITTEN)
    for words in helps:
        assert re.search(rf"\b{words}\b", text), f"no page speaks of {words}"


def test_every_public_name_is_explained():
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    listed = re.findall(r"^::: crowdveil\.(\w+)$", page, re.M)
    assert sorted(listed) == sorted(crowdveil.__all__)
    for name in listed:
        value = getattr(crowdveil, name)
        if callable(value):
            assert value.__doc__, f"{name} has no docstring"


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "crowdveil ledger create" in (tmp_path / "site" / "reference" / "commands.html").read_text(encoding="utf-8")


# --- Links, paths and examples ------------------------------------------------------------------------------------

LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_relative_links_lead_somewhere(page):
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{named(page)} links to {link}"
        if anchor:
            assert anchor in anchors(target), f"{named(page)} links to {link}: there is no such heading"


def test_every_page_can_be_reached_from_the_readme():
    reached, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        links = LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
        todo += [(page.parent / link.partition("#")[0]).resolve() for link in links if not re.match(r"[a-z]+:", link)]
    assert set(PAGES) <= reached, f"nothing leads to {sorted(map(named, set(PAGES) - reached))}"


@pytest.mark.parametrize("page", WRITTEN, ids=named)
def test_prose_is_wrapped_at_one_width(page):
    """Tables, pictures and what is shown as it is printed may be wider."""
    prose = FENCE.sub("", page.read_text(encoding="utf-8")).splitlines()
    wide = [line for line in prose if len(line) > 120 and not line.startswith(("|", "    ", "!["))]
    assert not wide


def test_scripts_styles_and_templates_are_as_narrow_as_prose():
    """Python is ruff's to check, and what others have written stays as they wrote it."""
    code = [path for folder in ("src", "tests", "examples") for path in sorted((ROOT / folder).rglob("*.*"))]
    ours = [path for path in code if path.suffix in {".js", ".mjs", ".css", ".html"} and "vendor" not in path.parts]
    assert {path.suffix for path in ours} == {".js", ".mjs", ".css", ".html"}
    lines = [(path, line) for path in ours for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(named(path), line) for path, line in lines if len(line) > 120] == []


SHIPPED = [*PAGES, ROOT / "Makefile", ROOT / "pyproject.toml", *sorted((ROOT / "examples").iterdir())]


@pytest.mark.parametrize("path", [path for path in SHIPPED if path.is_file()], ids=named)
def test_no_page_names_a_machine(path):
    text = path.read_text(encoding="utf-8")
    places = r"(?<![\w.])/(?:home|root|tmp|work|Users|mnt)/\w"
    hosts = r"\b(?:index-url|pythonhosted|localhost:\d+|\d+\.\d+\.\d+\.\d+:\d+)"
    assert not re.search(f"{places}|{hosts}", text)


@pytest.mark.parametrize("page", WRITTEN, ids=named)
def test_examples_of_data_can_be_read(page):
    for block in blocks(page):
        if block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "json":
            json.loads(block.text)


# --- Pages that list what there is --------------------------------------------------------------------------------


def test_every_mechanism_has_its_section():
    """Under its heading stands a line such as: Serves: `vlcp` (the paper's), `rlcp`."""
    text = (ROOT / "docs" / "mechanisms.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## `([a-z0-9-]+)`[^\n]*\n+Serves: ([^\n]+)\n", text, re.M))
    assert sections.keys() == MECHANISMS.keys()
    for name, line in sections.items():
        served = re.findall(r"`([a-z]+)`( \(the paper's\))?", line)
        assert tuple(paradigm for paradigm, _ in served) == tuple(MECHANISMS[name].paradigms), name
        assert {p for p, mark in served if mark} == {p for p, m in PAPERS_MECHANISM.items() if m == name}, name


def test_the_release_format_lists_every_key(folder):
    """The table of docs/file-formats.md against a release that was just made."""
    for command in (
        "crowdveil simulate synthetic-3 --voters 30 --records 5 --out b.parquet",
        "crowdveil ledger create l --budget 5",
        "crowdveil release b.parquet --paradigm vlcp --mechanism algorithm-1 --epsilon 1 --ledger l --out r.json",
    ):
        assert run(command)[0] == 0
    made = json.loads(Path("r.json").read_text(encoding="utf-8"))
    text = (ROOT / "docs" / "file-formats.md").read_text(encoding="utf-8")
    section = text.split("## Release")[1].split("\n## ")[0]
    listed = set(re.findall(r"^\| `([a-z_.]+)`", section, re.M))
    guarantee = {f"guarantee.{key}" for key in (*made["guarantee"], "smallest_epsilon", "delta", "rho")}
    assert listed == set(made) - {"guarantee"} | guarantee | {"reliability"}  # of studies that ask one dilemma twice
