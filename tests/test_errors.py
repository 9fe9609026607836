"""What is installed: the base does the job on files, and whatever else is missing names the extra that brings it."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from tests.program import Result, refused

from crowdveil.errors import EXTRAS, CrowdveilError, missing_extra

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BROUGHT_BY_OTHERS = {"argon2": "argon2-cffi", "pydantic": "fastapi", "starlette": "fastapi", "tomli_w": "tomli-w"}
"""Module -> the distribution that brings it, where their names differ."""
SUBMODULES_OF_OTHERS = {"py4j": "pyspark"}


def names(requirements):
    return {re.match(r"[A-Za-z0-9_-]+", requirement)[0] for requirement in requirements}


@cache
def imported():
    """The modules of others that the package imports anywhere."""
    return frozenset(_imported())


def _imported():
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [node.module] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in modules:
                top = str(module).partition(".")[0]
                if top not in {*sys.stdlib_module_names, "crowdveil"}:
                    yield SUBMODULES_OF_OTHERS.get(top, top)


def test_every_import_is_installed_by_the_base_or_by_the_extra_that_is_named():
    base, extras = names(PROJECT["dependencies"]), PROJECT["optional-dependencies"]
    used = imported()
    assert used - base == set(EXTRAS) & used
    for module, extra in EXTRAS.items():
        assert BROUGHT_BY_OTHERS.get(module, module) in names(extras[extra]), module


def test_the_base_is_used():
    assert names(PROJECT["dependencies"]) <= imported()


@pytest.mark.parametrize(
    ("missing", "words", "extra"),
    [
        ("fastapi", ["serve", "kidney"], "server"),
        ("httpx", ["relay", "--host", "https://crowd.example"], "server"),
        ("httpx", ["check-page", "--url", "https://crowd.example", "--poll", "x"], "client"),
        ("mcp", ["mcp", "--url", "https://crowd.example"], "mcp"),
        ("pyspark", ["fit", "ballots", "--engine", "spark"], "spark"),
    ],
)
def test_a_command_without_its_extra_says_which(tmp_path, missing, words, extra):
    """In an interpreter of its own, where nothing that needs the extra has been loaded yet."""
    code = f"import sys; sys.modules[{missing!r}] = None; from crowdveil.cli.app import main; main({words})"
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    refused(Result(ended.returncode, ended.stdout, ended.stderr), missing, f"'.[{extra}]'")


def test_a_module_that_no_extra_brings_is_a_bug():
    with pytest.raises(ModuleNotFoundError):
        missing_extra(ModuleNotFoundError("no module", name="crowdveil.nowhere"))
    assert isinstance(missing_extra(ModuleNotFoundError("no module", name="fastapi.responses")), CrowdveilError)
