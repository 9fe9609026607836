"""Two worker processes, forked from one: their noise must have nothing in common."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.audit.attack import Rows
from crowdveil.audit.noiseless import Asked
from crowdveil.audit.subjects import Distributed
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import Paradigm
from crowdveil.privacy.mechanisms.mechanism import Settings
from crowdveil.privacy.noise.source import Noise


def can_fork() -> bool:
    """Whether this system forks processes at all."""
    return "fork" in multiprocessing.get_all_start_methods()


@dataclass(frozen=True)
class Forked:
    """One worker makes the voter's report, another one that of somebody whose answers are known.

    Whoever knows the answers behind the second report knows its noise. If the first report had the same noise, it could
    be taken off again.
    """

    inner: Distributed
    known: tuple[tuple[float, ...], ...]
    """The records of the other voter."""

    @property
    def name(self) -> str:
        """The mechanism's name."""
        return self.inner.name

    @property
    def remark(self) -> str:
        """What is special about it."""
        return "in forked workers"

    @property
    def paradigm(self) -> Paradigm:
        """Who is promised what."""
        return self.inner.paradigm

    @property
    def settings(self) -> Settings:
        """The public choices."""
        return self.inner.settings

    @property
    def epsilon(self) -> Epsilon:
        """The promise."""
        return self.inner.epsilon

    def asked(self, records: FloatArray) -> Asked | None:
        """Return the noise that the voter's worker asks for."""
        return self.inner.asked(records)

    def exact(self, records: FloatArray) -> IntArray:
        """Return the voter's exact integers."""
        return self.inner.exact(records)

    def sample(self, records: FloatArray, draws: int, noise: Noise) -> Rows:
        """Let both workers report, with a noise source that they inherit."""
        workers = [partial(self.inner.sample, voter, draws, noise) for voter in (np.array(self.known), records)]
        return np.concatenate(_in_children(workers), axis=1)

    def noisy(self, rows: Rows) -> tuple[IntArray, IntArray]:
        """Take the second half apart: the voter's own report."""
        return self.inner.noisy(rows[:, rows.shape[1] // 2 :])

    def same_release(self, left: FloatArray, right: FloatArray) -> bool:
        """Check what the voter's worker does."""
        return self.inner.same_release(left, right)


def _in_children(tasks: Sequence[Callable[[], Rows]]) -> list[Rows]:
    """Fork a child for every task, one after the other, from the same state of this process."""
    context = multiprocessing.get_context("fork")
    made = []
    for task in tasks:
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=_send, args=(task, theirs))
        child.start()
        theirs.close()
        try:
            shape, data = ours.recv(), ours.recv_bytes()
        except EOFError:
            raise RuntimeError("a forked worker of the audit died") from None
        child.join()
        made.append(np.frombuffer(data, np.int64).reshape(shape))
    return made


def _send(task: Callable[[], Rows], to: Connection) -> None:
    rows = np.ascontiguousarray(task(), np.int64)
    to.send(rows.shape)
    to.send_bytes(rows.tobytes())
    to.close()
