"""The engine for crowds that one machine is too small or too slow for: Spark.

Workers read pieces of the ballot file by its path, which must lead to the same file on all of them, and send back the
sums of their tallies. Nothing else leaves them; noise and ledger stay where the program runs. What a lost worker had
done is done again by another, with the same result, since it is a sum of the same integers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from veil.ballots import BallotSource, open_ballots
from veil.engines.engine import IntArray, Tally
from veil.engines.java import java
from veil.engines.threads import be_one_of_many
from veil.errors import VeilError

TASKS_PER_CORE = 4
_SUMS = pa.schema([("sums", pa.list_(pa.int64()))])


@runtime_checkable
class OnDisk(Protocol):
    """A crowd in a ballot file."""

    @property
    def path(self) -> Path:
        """Where the file is."""

    @property
    def pieces(self) -> int:
        """How many pieces there are."""


@dataclass(frozen=True)
class SparkEngine:
    """Works on a Spark cluster."""

    session: Any

    def add_up(self, source: BallotSource, tally: Tally) -> IntArray:
        """Add up a tally over all pieces of a ballot file."""
        if not isinstance(source, OnDisk):
            raise VeilError("Spark works on ballot files, which its workers can read: write these ballots to one first")
        work = _Work(str(source.path.resolve()), source.voters, source.pieces, tally)
        tasks = min(source.pieces, TASKS_PER_CORE * self.session.sparkContext.defaultParallelism)
        numbers = self.session.range(0, source.pieces, 1, tasks)
        with _one_line():
            rows = numbers.mapInArrow(work, "sums array<bigint>").collect()
        total: IntArray = np.sum([np.array(row.sums, np.int64) for row in rows], axis=0)
        return total


@dataclass(frozen=True)
class _Work:
    """What is sent to the workers."""

    path: str
    voters: int
    pieces: int
    tally: Tally

    def __call__(self, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        be_one_of_many()
        file = open_ballots(self.path)
        if (file.voters, file.pieces) != (self.voters, self.pieces):
            raise VeilError(f"{self.path} is another file here than where the program runs")
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield pa.record_batch([[self.tally(file.piece(number)).tolist()]], schema=_SUMS)


@contextmanager
def spark_engine(master: str) -> Iterator[SparkEngine]:
    """Start a Spark application on a cluster, by its URL, and end it afterwards.

    ``local[2]`` is one process on this machine with two threads, ``local-cluster[2,1,1024]`` two worker processes with
    a core and 1024 MB each; a cluster has a URL such as ``spark://host:7077``.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise VeilError("the engine spark is not installed: pip install 'veil[spark]'") from None
    # Workers must run the same Python; other addresses than the loopback are for clusters only.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with java():
        with _one_line():
            session = (
                SparkSession.builder.master(master)
                .appName("veil")
                .config("spark.ui.enabled", "false")
                .config("spark.ui.showConsoleProgress", "false")
                .config("spark.log.level", "ERROR")
                .getOrCreate()
            )
        try:
            yield SparkEngine(session)
        finally:
            session.stop()


@contextmanager
def _one_line() -> Iterator[None]:
    """Turn what Spark says into one line for the user."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        said = [line.strip() for line in str(error).splitlines() if line.strip()]
        ours = [line for line in said if line.startswith("veil.errors.VeilError:")]
        raise VeilError(f"Spark: {ours[-1].split(': ', 1)[1] if ours else said[0]}") from None
