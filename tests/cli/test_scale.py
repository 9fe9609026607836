"""From a file of choices to a release in one command, and the commands that work on shards and by an engine."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from tests.program import Result, crowdveil, refused

from crowdveil.ballots.ballot_file import open_ballots
from crowdveil.ballots.ballots import census
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.releases import read_release
from crowdveil.sources.simulated_layout import write_public_layout
from crowdveil.study.bundled import load_study

VOTERS = 120


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_public_layout(tmp_path / "a.csv", load_study("moral-machine"), VOTERS, np.random.default_rng(0), dirty=0.05)
    Ledger.create(tmp_path / "l", 4)
    return tmp_path


def release(folder: Path, source: str, *more: object) -> Result:
    private = ("--paradigm", "vlcp", "--epsilon", "1", "--ledger", folder / "l")
    return crowdveil("release", folder / source, *private, "--out", folder / "r.json", *more)


def test_from_answers_to_a_release_in_one_command(folder: Path) -> None:
    done = release(folder, "a.csv")
    assert done.code == 0, done.stderr
    assert "Imported" in done.stderr
    made = read_release(folder / "r.json")
    assert made.guarantee.voters == VOTERS
    left = {p.name for p in folder.iterdir()}
    assert left == {"a.csv", "l", "l.key", "r.json"}, "private answers lie beside the release"
    assert crowdveil("import", "moral-machine", folder / "a.csv", "--out", folder / "b").code == 0
    ((entry,),) = (account.entries for account in Ledger.open(folder / "l").statement().accounts)
    assert entry.dataset == census(open_ballots(folder / "b")).fingerprint, "other answers than those of an import"


def test_a_look_at_the_cost_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "temporary"))
    private = ("--paradigm", "vlcp", "--epsilon", "1", "--ledger", folder / "l", "--dry-run", "--json")
    done = crowdveil("release", folder / "a.csv", *private)
    assert json.loads(done.stdout)["guarantee"]["voters"] == VOTERS
    assert {p.name for p in folder.iterdir()} == {"a.csv", "l", "l.key", "temporary"}
    assert list((folder / "temporary").iterdir()) == []
    assert Ledger.open(folder / "l").statement().accounts == ()


def test_the_ballots_may_be_kept(folder: Path) -> None:
    assert release(folder, "a.csv", "--keep-ballots", folder / "b").code == 0
    assert open_ballots(folder / "b").voters == VOTERS
    refused(release(folder, "b", "--keep-ballots", folder / "c"), "is for a file of choices")


@pytest.mark.parametrize(
    "wrong",
    [
        ("--epsilon", "2"),
        ("--ledger", "nowhere"),
        ("--out", "no/where.json"),
        ("--sensitivity", "loose"),
        ("--engine", "x"),
    ],
)
def test_what_is_wrong_is_said_before_a_long_import(folder: Path, wrong: tuple[str, str]) -> None:
    words = {"--paradigm": "vlcp", "--epsilon": "1", "--ledger": folder / "l", "--out": folder / "r.json"}
    words |= {wrong[0]: wrong[1]} if wrong != ("--epsilon", "2") else {"--epsilons": "both.csv"}
    done = crowdveil("release", folder / "a.csv", *(word for pair in words.items() for word in pair))
    assert done.code == 2
    assert "Imported" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_commands_read_shards_as_one_crowd(folder: Path) -> None:
    for words in (("--out", folder / "one"), ("--out", folder / "many", "--shards")):
        assert crowdveil("import", "moral-machine", folder / "a.csv", *words).code == 0
    assert [p.name for p in (folder / "many").iterdir()] == ["shard-000000.parquet"]
    for command in ("describe", "fit"):
        one, many = (json.loads(crowdveil(command, folder / name, "--json").stdout) for name in ("one", "many"))
        preferences = [found.pop("crowd_preference", {}) for found in (one, many)]
        assert one == many
        # Sums of floats in another order differ in their last digits.
        assert preferences[0].keys() == preferences[1].keys()
        assert all(preferences[0][by] == pytest.approx(preferences[1][by], rel=1e-6) for by in preferences[0])
    assert release(folder, "many").code == 0
    words = ("--out", folder / "x", "--shards", "--refused", folder / "y")
    refused(crowdveil("import", "moral-machine", folder / "a.csv", *words), "--refused is for an import into one file")


@pytest.mark.slow
def test_the_same_by_spark(folder: Path) -> None:
    pytest.importorskip("pyspark")
    spark = ("--engine", "spark", "--master", "local[2]")
    assert crowdveil("import", "moral-machine", folder / "a.csv", "--out", folder / "many", *spark).code == 0
    here, there = (json.loads(crowdveil("fit", folder / "many", *words, "--json").stdout) for words in ((), spark))
    assert here == there
    done = release(folder, "a.csv", *spark)
    assert done.code == 0, done.stderr
    assert {p.name for p in folder.iterdir()} == {"a.csv", "l", "l.key", "r.json", "many"}
