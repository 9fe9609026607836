"""The examples run as they stand; `make lint` checks their types."""

import ast
import json
import runpy
import shutil
from pathlib import Path
from types import SimpleNamespace

import matplotlib.figure
import polars as pl
import pytest

import crowdveil as cv

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOK = EXAMPLES / "from-answers-to-decisions.ipynb"


def cells():
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run(cell, names):
    """Run a cell as a notebook does, and return the value of its last expression."""
    *statements, last = ast.parse(cell).body
    if not isinstance(last, ast.Expr):
        exec(cell, names)
        return None
    exec(compile(ast.Module(statements, []), NOTEBOOK.name, "exec"), names)
    return eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The examples in a folder of their own."""
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    monkeypatch.chdir(tmp_path / "examples")
    return tmp_path / "examples"


def test_the_notebook_runs_from_answers_to_decisions(folder, capsys):
    names = {}
    shown = [run(cell, names) for cell in cells()]
    kinds = {type(value) for value in shown if value is not None}
    assert {cv.Ballots, cv.Release, cv.EffectsRelease, cv.Decision, cv.Alignment} <= kinds
    assert pl.DataFrame in kinds
    assert sum(isinstance(value, matplotlib.figure.Figure) for value in shown) == 2
    for value in (names["ballots"], names["release"], names["effects"], names["decision"], names["alignment"]):
        assert "<" in value._repr_html_()
    assert "remaining 3" in capsys.readouterr().out, "the second release was not refused"
    assert cv.read_release("kidney.json").digest == names["release"].digest
    assert "<html" in Path("kidney.html").read_text(encoding="utf-8")


def test_the_notebook_is_stored_without_outputs():
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert all(not cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code")


@pytest.mark.parametrize("relay", [None, "https://relay.example"])
def test_a_vote_from_the_terminal_asks_again_and_shows_what_is_sent(relay, monkeypatch, capsys):
    """A poll of the kidney study; a body for a relay is sealed, and no text."""
    study = cv.load_study("kidney")
    body = b'{"a": 1}' if relay is None else b"\xff\xfe\x00"
    sides = study.alternative({"obesity": 0}, "A"), study.alternative({"obesity": 1}, "B")
    chosen = []

    class Client:
        def __init__(self, url):
            self.url = url

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def poll(self, name):
            return SimpleNamespace(distributed=True, study=study, levels=[SimpleNamespace(name="high", epsilon=1)])

        def submission(self, poll, choose, level):
            chosen.append(choose(SimpleNamespace(alternatives=sides)))
            return SimpleNamespace(relay=relay, body=body)

        def send(self, submission):
            return SimpleNamespace(id="7", token="t")

    answers = iter(["high", "left", "", "3", "2"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(answers))
    monkeypatch.setattr(cv, "Client", Client)
    runpy.run_path(str(EXAMPLES / "vote.py"))["main"]("https://crowd.example", "p")
    assert chosen == ["right"]
    said = capsys.readouterr().out
    assert said.count("Please type 1 or 2.") == 3
    assert ('{"a": 1}' if relay is None else f"by way of {relay}: 3 sealed bytes") in said
