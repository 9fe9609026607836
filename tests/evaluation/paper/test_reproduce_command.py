"""crowdveil reproduce, as a person runs it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from tests.program import answer, crowdveil, refused

from crowdveil.evaluation.paper.reproduction import find_data

PROGRAM = [sys.executable, "-c", "from crowdveil.cli.app import main; main()", "reproduce"]


@pytest.mark.parametrize(("words", "said"), [
    (["--moral-machine", "nowhere.csv"], "there is no file nowhere.csv"),
    (["figure", "nonsense"], "compare-no-privacy"),
    (["figure", "moral-machine"], "https://osf.io/3hvt2"),
    (["--crowds", "1"], "at least 2 crowds"),
    (["--workers", "0"], "at least one worker"),
    (["--out", "taken"], "cannot make the folder taken"),
    (["--moral-machine", "empty.csv"], "empty.csv"),
    (["--nonsense"], "--nonsense"),
])  # fmt: skip
def test_a_mistake_ends_in_one_line(tmp_path, monkeypatch, words, said):
    (tmp_path / "taken").write_text("a file")
    (tmp_path / "empty.csv").write_text("")
    monkeypatch.chdir(tmp_path)
    refused(crowdveil("reproduce", *words), said)


def test_without_real_data_it_says_how_to_get_some(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data, words = find_data(None)
    assert data is None
    assert "https://osf.io/3hvt2" in words
    assert "--moral-machine FILE" in words


def test_one_figure_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    figure = ["reproduce", "figure", "norm-bound", "--crowds", "2"]
    made = answer(*figure, "--workers", "1")
    assert made["command"] == "crowdveil reproduce figure norm-bound --crowds 2"
    assert {Path(path).suffix for path in made["files"].values()} == {".png", ".svg", ".csv", ".parquet"}
    assert all(Path(path).stat().st_size > 0 for path in made["files"].values())
    numbers = pl.read_parquet(made["files"]["parquet"])
    assert numbers["x"].unique().sort().to_list() == [0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0]
    jobs = {file: file.stat().st_mtime_ns for file in Path("reproduction/jobs").iterdir()}
    assert answer(*figure, "--workers", "2") == made
    assert jobs == {file: file.stat().st_mtime_ns for file in Path("reproduction/jobs").iterdir()}
    assert pl.read_parquet(made["files"]["parquet"]).equals(numbers)


def test_an_interruption_leaves_nothing_half_done(tmp_path):
    process = subprocess.Popen([*PROGRAM, "figure", "norm-bound", "--crowds", "1000", "--workers", "1"], cwd=tmp_path,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)  # fmt: skip
    jobs, deadline = tmp_path / "reproduction" / "jobs", time.monotonic() + 300
    while not (jobs.exists() and any(jobs.glob("*.parquet"))) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=300)[1].strip().splitlines()
    assert process.returncode == 130
    assert all(line.startswith("crowdveil: ") for line in said), said
    assert not list(jobs.glob(".*unfinished"))
