"""Which engine the user asks for, by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from crowdveil.engines.engine import Engine
from crowdveil.engines.local import LocalEngine
from crowdveil.engines.spark import spark_engine
from crowdveil.errors import CrowdveilError

ENGINES = ("local", "spark")


@contextmanager
def chosen_engine(name: str, master: str | None = None) -> Iterator[Engine]:
    """Start an engine and end it afterwards. ``master`` says where a Spark cluster is; by default, on all cores here."""
    if name not in ENGINES:
        raise CrowdveilError(f"there is no engine {name!r}: use {' or '.join(ENGINES)}")
    if name == "spark":
        with spark_engine(master or "local[*]") as engine:
            yield engine
    elif master is not None:
        raise CrowdveilError("--master is for --engine spark: the local engine has no cluster")
    else:
        yield LocalEngine()
