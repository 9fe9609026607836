"""A real Spark with two worker processes: the same bits as here, also when a worker is killed in the middle."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engines.test_local import BOUND, STUDY, VOTERS, crowd, cut, measured_whole, measurements

from crowdveil.arrays import IntArray
from crowdveil.ballots.ballot_file import open_ballots
from crowdveil.ballots.ballots import Ballots, census
from crowdveil.engines.batches import BatchedBallots, add_up
from crowdveil.engines.spark import SparkEngine, spark_engine
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.society import society
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.publish.release import publish
from crowdveil.publish.request import Request
from crowdveil.sources.moral_machine import shards
from crowdveil.sources.moral_machine.engine_import import import_with_engine
from crowdveil.sources.moral_machine.importing import import_moral_machine
from crowdveil.sources.simulated_layout import write_public_layout

cloudpickle = pytest.importorskip("pyspark.cloudpickle")
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not have the tests

__all__ = ["crowd", "measured_whole"]  # fixtures


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkEngine]:
    """A cluster of Java processes that end before an optimising compiler would earn back what it costs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        with spark_engine("local-cluster[2,1,1024]") as engine:
            yield engine


def test_workers_do_not_change_a_bit(
    tmp_path: Path, crowd: Ballots, measured_whole: dict[str, Any], spark: SparkEngine
) -> None:
    assert measurements(BatchedBallots(cut(crowd, tmp_path / "crowd", 90), spark)) == measured_whole


def test_an_import_by_workers_is_the_import_here(
    tmp_path: Path, spark: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "BYTES_PER_BUCKET", 1 << 18)
    write_public_layout(tmp_path / "a.csv", STUDY, 400, np.random.default_rng(0), dirty=0.05)
    report = import_moral_machine(tmp_path / "a.csv", tmp_path / "here")
    assert import_with_engine(tmp_path / "a.csv", tmp_path / "there", spark, shard_bytes=200_000) == report
    assert len(list((tmp_path / "there").iterdir())) > 1
    assert census(open_ballots(tmp_path / "there")) == census(open_ballots(tmp_path / "here"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.csv", "here", "there"]


def test_workers_draw_their_own_noise(tmp_path: Path, crowd: Ballots, spark: SparkEngine) -> None:
    drawn = spark.each(lambda number: BulkNoise().laplace(2**40, Epsilons.same(1, 1), 1)[0, 0], 40)
    assert len(set(drawn)) == 40  # two are equal with a probability of less than 2^-30
    ledger, batches = Ledger.create(tmp_path / "l", 10**8), BatchedBallots(cut(crowd, tmp_path / "crowd", 90), spark)
    request = Request(PARADIGMS["vldp"], Epsilons.same(40, VOTERS), mechanism="paper")
    made = publish(batches, request, ledger, tmp_path / "r.json")
    widest = np.asarray(made.noise.half_widths(1 - 1e-9))
    assert (np.abs(made.parameter - society(crowd, BOUND).parameter) <= widest).all()
    (account,) = ledger.statement().accounts
    assert account.entries[0].dataset == census(crowd).fingerprint


def test_what_goes_wrong_is_said_in_one_line(tmp_path: Path, crowd: Ballots, spark: SparkEngine) -> None:
    file = cut(crowd, tmp_path / "crowd", 90)
    cut(crowd[:VOTERS], tmp_path / "crowd", 100)
    with pytest.raises(CrowdveilError, match=r"^Spark: .*crowd is another file here than where the program runs$"):
        society(BatchedBallots(file, spark), BOUND)


@dataclass(frozen=True)
class WaitingSum:
    """Leaves a note of who adds up answers, and waits until somebody was killed before it does."""

    folder: Path

    def __call__(self, ballots: Ballots) -> IntArray:
        daemon = os.getppid()
        executor = int(Path(f"/proc/{daemon}/stat").read_text().rsplit(")", 1)[1].split()[1])
        (self.folder / f"{executor}-{time.monotonic_ns()}.note").touch()
        while not self.over.exists():
            time.sleep(0.01)
        return ballots.differences.astype(np.int64).sum(axis=0)

    @property
    def over(self) -> Path:
        return self.folder / "over"

    def notes(self) -> list[Path]:
        return list(self.folder.glob("*.note"))

    def workers(self) -> set[int]:
        return {int(note.name.split("-")[0]) for note in self.notes()}


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the workers' processes in /proc")
def test_a_killed_worker_costs_only_time(tmp_path: Path, crowd: Ballots, spark: SparkEngine) -> None:
    (tmp_path / "notes").mkdir()
    waiting, batches = WaitingSum(tmp_path / "notes"), BatchedBallots(cut(crowd, tmp_path / "crowd", 10), spark)
    killed: list[int] = []

    def kill() -> None:
        patience = time.monotonic() + 300
        while len(waiting.workers()) < 2 and time.monotonic() < patience:
            time.sleep(0.01)
        if len(waiting.workers()) == 2:
            killed.append(waiting.workers().pop())
            os.kill(killed[0], signal.SIGKILL)
        waiting.over.touch()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    total = add_up(batches, waiting)
    killer.join()
    assert killed, "nobody was killed"
    assert len(waiting.notes()) > 70, "no batch was done twice: the worker was not in the middle of anything"
    assert total.tolist() == crowd.differences.astype(np.int64).sum(axis=0).tolist()
