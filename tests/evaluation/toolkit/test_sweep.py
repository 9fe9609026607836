"""The sweep: the same numbers for any number of workers, nothing computed twice, nothing lost in a crash."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from slow_counting import Counting

from crowdveil.errors import CrowdveilError
from crowdveil.evaluation.toolkit.sweep import CROWDS_PER_JOB, Job, compute, jobs, sweep

HERE = Path(__file__).parent
EXPERIMENTS = [Counting("a"), Counting("b")]
CROWDS = 35


def measured(experiment, crowds):
    """Measure all crowds in this process, one job at a time, as the sweep's table has them."""
    tables = [experiment.measure(job.crowds) for job in jobs([experiment], crowds)]
    return pl.concat(tables).select(pl.lit(experiment.name).alias("experiment"), pl.all())


@pytest.fixture(scope="module")
def reference():
    return pl.concat([measured(experiment, CROWDS) for experiment in EXPERIMENTS])


def written(folder):
    return {file.name: file.stat().st_mtime_ns for file in folder.glob("*.parquet")}


def test_the_table(reference):
    assert reference.columns == ["experiment", "series", "measure", "point", "crowd", "value"]
    assert reference.height == 2 * CROWDS * 2
    assert reference["experiment"].unique(maintain_order=True).to_list() == ["counting a", "counting b"]
    assert reference.filter(pl.col("experiment") == "counting a")["crowd"].unique().sort().to_list() == list(
        range(CROWDS)
    )


def test_any_number_of_workers_gives_the_same(reference, tmp_path):
    assert sweep(EXPERIMENTS, CROWDS, 2, tmp_path, lambda done: None).equals(reference)


def test_only_what_is_new_is_computed(reference, tmp_path):
    told = []
    sweep(EXPERIMENTS[:1], 20, 1, tmp_path, told.append)
    before = written(tmp_path)
    assert len(before) == 2
    assert told == [0, 1, 1]
    told.clear()
    assert sweep(EXPERIMENTS, CROWDS, 1, tmp_path, told.append).equals(reference)
    assert told == [2, 1, 1, 1, 1, 1, 1]
    after = written(tmp_path)
    assert len(after) == 8
    assert before.items() <= after.items(), "what was there was not touched"
    told.clear()
    assert sweep(EXPERIMENTS, CROWDS, 2, tmp_path, told.append).equals(reference)
    assert told == [8]


def test_a_killed_sweep_goes_on_where_it_stopped(tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "from slow_counting import Counting\n"
        "from crowdveil.evaluation.toolkit.sweep import sweep\n"
        "sweep([Counting('slow', seconds=0.4)], 200, 2, Path(sys.argv[2]), lambda done: None)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(HERE), str(tmp_path)], start_new_session=True)
    deadline = time.monotonic() + 300
    while len(written(tmp_path)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    workers = children(process.pid)
    assert workers
    process.kill()
    process.wait()
    while any(map(alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, workers)), "a worker outlived the sweep"
    before = written(tmp_path)
    assert 3 <= len(before) < 20
    finished = sweep([Counting("slow")], 200, 1, tmp_path, lambda done: None)
    assert before.items() <= written(tmp_path).items()
    assert finished.height == 400
    assert finished.equals(measured(Counting("slow"), 200)), "the interruption left no trace"


def test_a_killed_worker_is_named_and_what_is_finished_is_kept(tmp_path):
    me = os.getpid()
    before = set(children(me))

    def kill_one(done):
        if len(written(tmp_path)) >= 2:
            for worker in set(children(me)) - before:
                if b"spawn_main" in Path(f"/proc/{worker}/cmdline").read_bytes():
                    os.kill(worker, signal.SIGKILL)
                    break

    with pytest.raises(CrowdveilError, match="what is finished is kept"):
        sweep([Counting("victim", seconds=0.2)], 400, 2, tmp_path, kill_one)
    assert 2 <= len(written(tmp_path)) < 40


def test_a_bug_in_an_experiment_is_not_swallowed(tmp_path):
    with pytest.raises(ArithmeticError, match="a bug"):
        sweep([Counting("bad", fails=True)], 10, 1, tmp_path, lambda done: None)
    assert list(tmp_path.iterdir()) == [], "nothing half-written"


def test_a_damaged_job_is_named(tmp_path):
    (job,) = jobs(EXPERIMENTS[:1], 10)
    file = tmp_path / f"{job.key}.parquet"
    compute(job, file)
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(CrowdveilError, match=rf"{file.name} is damaged"):
        sweep(EXPERIMENTS[:1], 10, 1, tmp_path, lambda done: None)


def test_jobs_and_their_keys():
    made = jobs([*EXPERIMENTS, EXPERIMENTS[0]], CROWDS)
    assert [len(p.crowds) for p in made] == [CROWDS_PER_JOB] * 3 + [5] + [CROWDS_PER_JOB] * 3 + [5]
    assert len({p.key for p in made}) == len(made)
    assert Job(Counting("a"), range(10)).key == made[0].key
    assert Job(Counting("c"), range(10)).key != made[0].key


WAITING = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a job that a shell runs in the background
import threading
import polars as pl
from crowdveil.evaluation.toolkit.sweep import heed_interrupts
pl.LazyFrame({"a": [1]}).collect()
heed_interrupts()
print("waiting", flush=True)
threading.Event().wait()
"""


def test_a_wait_is_interrupted_although_polars_has_waits_go_on():
    process = subprocess.Popen([sys.executable, "-c", WAITING], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"waiting\n"
        time.sleep(0.2)  # An interrupt before the wait begins would end it anyway.
        process.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in process.communicate(timeout=60)[1]
    finally:
        process.kill()
        process.communicate()


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes through /proc")
