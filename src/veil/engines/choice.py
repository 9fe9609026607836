"""Which engine the user asks for, by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from veil.engines.engine import Engine
from veil.engines.local import LocalEngine
from veil.engines.spark import spark_engine
from veil.errors import VeilError

ENGINES = ("local", "spark")


@contextmanager
def chosen_engine(name: str, master: str | None = None) -> Iterator[Engine]:
    """Start an engine and end it afterwards. ``master`` says where a Spark cluster is; by default, on all cores here."""
    if name not in ENGINES:
        raise VeilError(f"there is no engine {name!r}: use {' or '.join(ENGINES)}")
    if name == "spark":
        with spark_engine(master or "local[*]") as engine:
            yield engine
    elif master is not None:
        raise VeilError("--master is for --engine spark: the local engine has no cluster")
    else:
        yield LocalEngine()
