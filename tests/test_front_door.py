"""The front door: the public names, loaded one by one, and what they do not load."""

import ast
import importlib
import importlib.metadata
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import crowdveil
from crowdveil.publish.release import release_for_experiments
from crowdveil.sources.simulated import synthetic_crowd
from crowdveil.sources.simulated_layout import write_public_layout

HEAVY = {"matplotlib", "numba", "opendp", "polars", "pyarrow", "rich", "scipy"}
PACKAGE = Path(crowdveil.__file__).parent


def test_every_public_name_is_the_one_of_its_module():
    listed = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8")).body
    imports = [statement for statement in listed if isinstance(statement, ast.ImportFrom)]
    for statement in imports:
        for alias in statement.names:
            assert alias.asname == alias.name, "a stub exports only what it renames to itself"
            value = getattr(crowdveil, alias.name)
            assert value is getattr(importlib.import_module(statement.module), alias.name)
            if callable(value):
                assert value.__module__ == statement.module, f"{alias.name} is not defined in {statement.module}"
                assert value.__doc__, f"{alias.name} has no docstring"
    assert crowdveil.__all__ == sorted(alias.name for statement in imports for alias in statement.names)
    assert set(crowdveil.__all__) <= set(dir(crowdveil))


SIX_LINES = """
import crowdveil as cv
ballots = cv.read_moral_machine("answers.csv.gz")
ledger = cv.Ledger.open("study.ledger", budget=3)
release = cv.release(ballots, "vlcp", epsilon=1, ledger=ledger)
release.save("release.json")
print(cv.decide(release, [{"girl": 1}, {"dog": 2}]).choice)
"""


def test_from_a_file_to_a_decision_in_six_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    study = crowdveil.load_study("moral-machine")
    write_public_layout(tmp_path / "answers.csv.gz", study, 40, np.random.default_rng(1), dirty=0.0)
    names = {}
    exec(SIX_LINES, names)
    assert capsys.readouterr().out.strip() in {"A", "B", "None"}
    assert len(names["ballots"]) == 40
    assert crowdveil.read_release("release.json").digest == names["release"].digest
    (account,) = crowdveil.Ledger.open("study.ledger", budget=3).statement().accounts
    assert [entry.state for entry in account.entries] == ["delivered"]


def test_no_public_name_is_a_module():
    """Python sets a module as an attribute of its package: it would hide the function of the same name."""
    assert not {module.name for module in pkgutil.iter_modules([str(PACKAGE)])} & set(crowdveil.__all__)


def test_all_names_can_be_imported_at_once():
    names = {}
    exec("from crowdveil import *", names)
    assert set(crowdveil.__all__) <= set(names)


def test_a_name_that_is_not_public_is_an_attribute_error():
    assert not hasattr(crowdveil, "nonsense")


def test_the_version_is_that_of_the_distribution():
    assert crowdveil.__version__ == importlib.metadata.version("crowdveil")


def loaded_by(code):
    """The modules that a fresh interpreter has loaded after some lines of code."""
    words = [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"]
    return set(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())


def test_the_package_alone_loads_nothing():
    assert {name for name in loaded_by("import crowdveil") if name.startswith("crowdveil")} == {"crowdveil"}


def test_a_program_that_decides_loads_nothing_that_reads_answers():
    loaded = loaded_by("from crowdveil import decide, read_release")
    assert "crowdveil.decision" in loaded
    reading = {"ballots", "sources", "estimation", "privacy.mechanisms", "protocol"}
    assert not {f"crowdveil.{room}" for room in reading} & loaded


def test_deciding_loads_nothing_heavy(tmp_path):
    crowd = synthetic_crowd(30, 10, 2, np.random.default_rng(1)).ballots
    release_for_experiments(crowd, "vlcp", epsilon=1, seed=1).save(tmp_path / "r.json")
    words = ["decide", str(tmp_path / "r.json"), '[{"features": {"x1": 1}}, {"features": {}}]', "--allow-experiment"]
    run = f"import contextlib\nwith contextlib.suppress(SystemExit):\n    main({words})"
    told = loaded_by(f"from crowdveil.cli.app import main\n{run}")
    assert "Certainty:" in told, "it has not decided"
    assert not HEAVY & told


def test_nothing_inside_imports_the_front_door():
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: relative import"
                assert node.module != "crowdveil", path
            elif isinstance(node, ast.Import):
                assert "crowdveil" not in [alias.name for alias in node.names], path


@pytest.mark.parametrize("name", ["\0", "x" * 256, "ü" * 128, "folder/" + "x" * 256, "\ud800"])
def test_a_name_that_no_file_can_have_is_refused(name):
    for read in (
        crowdveil.read_release,
        crowdveil.read_effects,
        crowdveil.read_ballots,
        crowdveil.open_ballots,
        crowdveil.load_study,
        crowdveil.load_mapping,
    ):
        with pytest.raises(crowdveil.CrowdveilError, match="no file has such a name"):
            read(name)
    with pytest.raises(crowdveil.CrowdveilError, match="no file has such a name"):
        crowdveil.Ledger.open(name, 1)
    with pytest.raises(crowdveil.CrowdveilError, match="no file has such a name"):
        crowdveil.read_table(name, study="kidney")


def test_ballots_are_no_list_of_voters():
    crowd = crowdveil.synthetic_crowd(4, 3, 2, np.random.default_rng(1)).ballots
    with pytest.raises(
        crowdveil.CrowdveilError, match=r"the part of the ballots is 0: cut out voters with ballots\[first:end\]"
    ):
        crowd[0]
    with pytest.raises(crowdveil.CrowdveilError, match="cut out voters"):
        np.asarray(crowd)
