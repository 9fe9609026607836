"""Run experiments on all cores, save every finished job, never compute a job twice; and read off their curves.

A job is one experiment on a few consecutive crowds. Its random numbers follow from its name, so the results are the
same for any number of workers and in any order. A finished job is a file named by a hash of its name and of the code
that computes it: an existing file is not computed again, and changed code gives another name.
"""

from __future__ import annotations

import ast
import hashlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import polars as pl

from crowdveil.arrays import BoolArray, FloatArray
from crowdveil.errors import CrowdveilError
from crowdveil.files import replacing

Result = TypeVar("Result")

CROWDS_PER_JOB = 10
NO_PRIVACY_AT = float("inf")
"""Position of a result without privacy on an axis of epsilons."""


class Experiment(Protocol):
    """Something that can be measured on crowds numbered from 0."""

    @property
    def name(self) -> str:
        """Everything that the results depend on, apart from the crowds and the code."""

    def measure(self, crowds: range) -> pl.DataFrame:
        """Measure these crowds; see ``rows`` for the columns."""


@dataclass(frozen=True)
class Job:
    """One experiment on a few consecutive crowds: the unit of work and of memory."""

    experiment: Experiment
    crowds: range

    @property
    def key(self) -> str:
        """The name of the result: equal keys mean equal numbers."""
        name = f"{self.experiment.name} | {self.crowds} | {code_tag(type(self.experiment).__module__)}"
        return hashlib.sha256(name.encode()).hexdigest()[:32]


def jobs(experiments: Sequence[Experiment], crowds: int) -> list[Job]:
    """Split experiments into jobs; more crowds later only add jobs."""
    starts = range(0, crowds, CROWDS_PER_JOB)
    cuts = [range(start, min(start + CROWDS_PER_JOB, crowds)) for start in starts]
    return [Job(experiment, cut) for experiment in dict.fromkeys(experiments) for cut in cuts]


def sweep(
    experiments: Sequence[Experiment], crowds: int, workers: int, folder: Path, tell: Callable[[int], None]
) -> pl.DataFrame:
    """Measure every experiment on crowds 0, 1, ..., and return one table with the name of the experiment in front.

    ``tell`` is called with the number of jobs found on disk, then after each finished job.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = jobs(experiments, crowds)
    missing = [job for job in wanted if not _file(folder, job).exists()]
    tell(len(wanted) - len(missing))
    if missing:
        _compute(missing, workers, folder, tell)
    return pl.concat([_read(folder, job) for job in wanted])


def _compute(missing: list[Job], workers: int, folder: Path, tell: Callable[[int], None]) -> None:
    try:
        in_processes(compute, [(job, _file(folder, job)) for job in missing], workers, tell)
    except BrokenProcessPool:
        raise CrowdveilError(
            "a worker process was ended from outside (out of memory?); what is finished is kept: "
            "run the same command again, perhaps with --workers 1"
        ) from None


def in_processes(
    function: Callable[..., Result], calls: Sequence[tuple[object, ...]], workers: int, tell: Callable[[int], None]
) -> list[Result]:
    """Call a function with each of these arguments in this many processes, and return what it returns, in order.

    ``tell(1)`` is called after each. If a process is ended from outside, BrokenProcessPool is raised.
    """
    # Fresh processes: a fork would copy the locks of numba's and NumPy's threads in an undefined state.
    with (
        _one_thread_each(),
        ProcessPoolExecutor(
            min(workers, len(calls)), mp_context=get_context("spawn"), initializer=_live_and_die_with_parent
        ) as pool,
    ):
        heed_interrupts()
        running = [pool.submit(function, *call) for call in calls]
        try:
            for finished in as_completed(running):
                finished.result()
                tell(1)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return [finished.result() for finished in running]


def heed_interrupts() -> None:
    """Let Ctrl-C end a wait of the main thread: polars, once it is loaded, has waits go on after it."""
    if threading.current_thread() is threading.main_thread():
        signal.siginterrupt(signal.SIGINT, True)


def _live_and_die_with_parent() -> None:
    """Let an interrupted worker finish its job, and end a worker whose parent was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def compute(job: Job, file: Path) -> None:
    """Measure one job and save it; the file appears whole or not at all."""
    with replacing(file) as unfinished:
        job.experiment.measure(job.crowds).write_parquet(unfinished)


def _file(folder: Path, job: Job) -> Path:
    return folder / f"{job.key}.parquet"


def _read(folder: Path, job: Job) -> pl.DataFrame:
    file = _file(folder, job)
    try:
        table = pl.read_parquet(file)
    except (OSError, pl.exceptions.PolarsError):
        raise CrowdveilError(f"{file} is damaged: delete it and run the same command again") from None
    return table.select(pl.lit(job.experiment.name).alias("experiment"), pl.all())


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Limit each worker to one core, since the pool uses all cores."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


_ABOVE_PACKAGE = Path(__file__).parents[3]


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
    """Return the files of a module; none for a name inside a module."""
    place = above.joinpath(*module.split("."))
    if (place / "__init__.py").exists():
        return [place / "__init__.py", *place.glob("*.toml")]
    return [place.with_suffix(".py")] if place.with_suffix(".py").exists() else []


@cache
def _imports(source: bytes, package: str) -> tuple[str, ...]:
    """Return the modules of a package that a source imports, or names inside them."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == package:
            found += [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
        elif isinstance(node, ast.Import):
            found += [name.name for name in node.names if name.name.split(".")[0] == package]
    return tuple(found)


def rows(
    crowds: range, series: str, points: tuple[float, ...], measured: Mapping[str, FloatArray]
) -> list[pl.DataFrame]:
    """Return a table for each measure (crowds, points): series, measure, point, crowd, value."""
    tables = []
    for measure, values in measured.items():
        if values.shape != (len(crowds), len(points)):
            raise ValueError(
                f"{series}, {measure}: {values.shape} values for {len(crowds)} crowds, {len(points)} points"
            )
        tables.append(
            pl.DataFrame(
                {
                    "series": pl.repeat(series, values.size, eager=True),
                    "measure": pl.repeat(measure, values.size, eager=True),
                    "point": np.tile(np.array(points, dtype=np.float64), len(crowds)),
                    "crowd": np.repeat(np.array(crowds, dtype=np.int32), len(points)),
                    "value": values.reshape(-1),
                }
            )
        )
    return tables


@dataclass(frozen=True)
class Curve:
    """One series of one experiment: values (crowds, points)."""

    points: tuple[float, ...]
    values: FloatArray

    def at(self, point: float) -> FloatArray:
        """Return the values of all crowds at one point."""
        return self.values[:, self.points.index(point)]

    @property
    def only(self) -> FloatArray:
        """The values of a curve of a single point."""
        (point,) = self.points
        return self.at(point)

    @property
    def overall(self) -> FloatArray:
        """Each crowd's mean over all points."""
        result: FloatArray = self.values.mean(axis=1)
        return result

    def where(self, keep: BoolArray) -> Curve:
        """Return the curve at some of its points."""
        points = tuple(point for point, kept in zip(self.points, keep, strict=True) if kept)
        return replace(self, points=points, values=self.values[:, keep])


@dataclass(frozen=True)
class Results:
    """Everything that was measured."""

    table: pl.DataFrame

    def curve(self, experiment: Experiment, series: str, measure: str) -> Curve:
        """Return one series, with its points and crowds in order."""
        wide = self._parts[experiment.name, series, measure].pivot("point", index="crowd", values="value").sort("crowd")
        points = tuple(float(point) for point in wide.columns[1:])
        order = np.argsort(points)
        values = wide.drop("crowd").to_numpy()[:, order]
        return Curve(tuple(points[i] for i in order), values)

    @cached_property
    def _parts(self) -> dict[tuple[str, str, str], pl.DataFrame]:
        parts = self.table.partition_by("experiment", "series", "measure", as_dict=True)
        return {(str(a), str(b), str(c)): part for (a, b, c), part in parts.items()}
