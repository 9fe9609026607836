"""Names the code that a result depends on, so that a result of other code is never taken for one of this."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

_ABOVE_PACKAGE = Path(__file__).parents[2]


@cache
def code_tag(module: str, above: Path = _ABOVE_PACKAGE) -> str:
    """Hash a module, everything of this package that it imports, directly or not, and the version of NumPy.

    NumPy draws and adds the numbers; a study's TOML file counts as part of the package that reads it.
    """
    seen: dict[Path, bytes] = {}
    pending = [module]
    while pending:
        for file in _files(pending.pop(), above):
            if file not in seen:
                seen[file] = file.read_bytes()
                if file.suffix == ".py":
                    pending += _imports(seen[file], module.partition(".")[0])
    digest = hashlib.sha256(np.__version__.encode())
    for file in sorted(seen):
        digest.update(f"\n{file.relative_to(above).as_posix()}\n".encode() + seen[file])
    return digest.hexdigest()[:16]


def _files(module: str, above: Path) -> list[Path]:
    """The files of a module; none for a name inside one."""
    place = above.joinpath(*module.split("."))
    if (place / "__init__.py").exists():
        return [place / "__init__.py", *place.glob("*.toml")]
    return [place.with_suffix(".py")] if place.with_suffix(".py").exists() else []


def _imports(source: bytes, package: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == package:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] == package)
