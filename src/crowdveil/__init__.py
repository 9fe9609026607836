"""A crowd guides an AI's decisions in ethical dilemmas, and no voter is exposed.

The file ``__init__.pyi`` lists every public name once, and editors and type checkers read it too. Public names are
documented and change only with notice in CHANGELOG.md. Nothing inside the package imports from this module.

>>> import crowdveil as cv
>>> cv.load_study("kidney").dimension
5

Each name is loaded on first use: a program that only decides loads nothing that could read an answer.
"""

import ast
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


@cache
def _modules() -> dict[str, str]:
    """Map each public name to the module that defines it."""
    listed = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    return {
        alias.name: str(statement.module)
        for statement in listed
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_modules())
    if name == "__version__":
        return import_module("crowdveil.version").VERSION
    if name.startswith("_") or name not in _modules():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(_modules()[name]), name)
    except ModuleNotFoundError as error:
        from crowdveil.errors import missing_extra

        raise missing_extra(error) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*(name for name in globals() if name.startswith("__")), *_modules()]
