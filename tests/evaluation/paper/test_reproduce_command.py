"""crowdveil reproduce, as a person runs it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from crowdveil.cli.app import main
from crowdveil.evaluation.paper.reproduction import find_data

PROGRAM = [sys.executable, "-c", "from crowdveil.cli.app import main; main()", "reproduce"]


def run(folder, *words):
    return subprocess.run([*PROGRAM, *words], cwd=folder, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize(("words", "said"), [
    (["--data", "nowhere.csv"], "there is no file nowhere.csv"),
    (["figure", "nonsense"], "compare-no-privacy"),
    (["figure", "moral-machine"], "https://osf.io/3hvt2"),
    (["--crowds", "1"], "at least 2 crowds"),
    (["--workers", "0"], "at least one worker"),
    (["--out", "taken"], "cannot make the folder taken"),
    (["--data", "empty.csv"], "empty.csv"),
    (["--nonsense"], "--nonsense"),
])  # fmt: skip
def test_a_mistake_ends_in_one_line(tmp_path, monkeypatch, capsys, words, said):
    (tmp_path / "taken").write_text("a file")
    (tmp_path / "empty.csv").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["crowdveil", "reproduce", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    shown = capsys.readouterr()
    (line,) = shown.err.strip().splitlines()
    assert said in line
    assert line.startswith("crowdveil: ")
    assert shown.out == ""


def test_without_real_data_it_says_how_to_get_some(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data, words = find_data(None)
    assert data is None
    assert "https://osf.io/3hvt2" in words
    assert "--data FILE" in words


def test_one_figure_alone(tmp_path):
    result = run(tmp_path, "figure", "norm-bound", "--crowds", "2", "--workers", "1", "--json")
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    answer = json.loads(result.stdout)
    assert answer["command"] == "crowdveil reproduce figure norm-bound --crowds 2"
    assert {Path(path).suffix for path in answer["files"].values()} == {".png", ".svg", ".csv", ".parquet"}
    assert all((tmp_path / path).stat().st_size > 0 for path in answer["files"].values())
    numbers = pl.read_parquet(tmp_path / answer["files"]["parquet"])
    assert numbers["x"].unique().sort().to_list() == [0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0]
    jobs = {file: file.stat().st_mtime_ns for file in (tmp_path / "reproduction" / "jobs").iterdir()}
    again = run(tmp_path, "figure", "norm-bound", "--crowds", "2", "--workers", "2", "--json")
    assert json.loads(again.stdout) == answer
    assert jobs == {file: file.stat().st_mtime_ns for file in (tmp_path / "reproduction" / "jobs").iterdir()}
    assert pl.read_parquet(tmp_path / answer["files"]["parquet"]).equals(numbers)


def test_an_interruption_leaves_nothing_half_done(tmp_path):
    process = subprocess.Popen([*PROGRAM, "figure", "norm-bound", "--crowds", "100000", "--workers", "1"], cwd=tmp_path,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)  # fmt: skip
    jobs, deadline = tmp_path / "reproduction" / "jobs", time.monotonic() + 300
    while not (jobs.exists() and any(jobs.glob("*.parquet"))) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=300)[1].strip().splitlines()
    assert process.returncode == 130
    assert all(line.startswith("crowdveil: ") for line in said), said
    assert not list(jobs.glob(".*unfinished"))
