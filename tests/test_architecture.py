"""The import contract holds every module, and docs/architecture.md shows exactly that contract."""

import ast
import re
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def contract():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (exhaustive,) = (one for one in settings["contracts"] if one.get("exhaustive"))
    assert exhaustive["containers"] == ["crowdveil"]
    return exhaustive["layers"]


def test_the_page_shows_the_contract_line_by_line():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```text\n(.*?)^```$", page, re.M | re.S)
    assert [re.split(r"\s{2,}", line)[0] for line in shown.splitlines()] == contract()


def test_every_module_stands_in_the_contract():
    """import-linter says the same; this names the module that is missing, or that is gone."""
    folders = (path.parent for path in (ROOT / "src" / "crowdveil").glob("*/__init__.py"))
    files = (path for path in (ROOT / "src" / "crowdveil").glob("*.py") if path.name != "__init__.py")
    listed = [name for layer in contract() for name in layer.split(" | ")]
    assert sorted(listed) == sorted(path.stem for path in (*folders, *files))


def imported_names(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "crowdveil":
            yield from ((node.module, alias.name) for alias in node.names)


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_what_a_benchmark_imports_exists(path):
    """No test runs the benchmarks: a name that was moved would be missed only when somebody asks how fast it is."""
    for module, name in imported_names(path):
        assert hasattr(import_module(module), name) or find_spec(f"{module}.{name}"), f"{module}.{name}"


def notes(path):
    """The docstrings of a module and the notes under its attributes, or the comments of a script or a style sheet."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return re.findall(r"^\s*(?:/\*\*?\s*(?:\n \*\s*)?|// )(\S.*)", text, re.M)
    written = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr))
    return [node.value for node in written if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def test_docstrings_begin_with_a_verb_or_a_noun():
    sources = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".js", ".css")]
    assert len(sources) > 300
    found = [
        f"{path.relative_to(ROOT)}: {note:.60}"
        for path in sources
        for note in notes(path)
        if re.match(r"\s*(What|Say|That|Tell)\b", note)
    ]
    assert found == []
