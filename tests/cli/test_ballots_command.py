"""crowdveil ballots filter, split and merge: who is kept, what stays with them, and that the ledger follows people."""

import numpy as np
import pytest
from tests.program import answer, crowdveil, refused

from crowdveil.ballots.ballot_file import read_ballots, write_ballots
from crowdveil.ballots.ballots import Ballots
from crowdveil.study.bundled import load_study

STUDY = load_study("synthetic-2")


@pytest.fixture
def folder(tmp_path):
    """Ballots of 40 voters with two records each, of whom every fourth is old and three did not say."""
    names = np.repeat([f"v{i}" for i in range(40)], 2).tolist()
    ages = ["old" if i % 4 == 0 else None if i in (1, 2, 3) else "young" for i in range(40) for _ in range(2)]
    left, right = np.random.default_rng(1).normal(size=(2, 80, 2)).clip(-5, 5)
    ballots = Ballots.from_arrays(STUDY, names, left, right, [1, -1] * 40, about={"age": ages})
    write_ballots(tmp_path / "all.parquet", STUDY, [ballots], {"from": "a test"})
    return tmp_path


def voters(path):
    return read_ballots(path).voter_names()


def test_a_group_keeps_what_it_was_selected_by(folder):
    (part,) = answer(
        "ballots", "filter", folder / "all.parquet", "--group", "age=old", "--out", folder / "old.parquet"
    )["parts"]
    assert (part["voters"], part["selection"]) == (10, "age = old")
    assert voters(folder / "old.parquet") == [f"v{i}" for i in range(0, 40, 4)]
    order = ("--paradigm", "rlcp", "--epsilon", "1", "--dry-run")
    refused(crowdveil("release", folder / "old.parquet", *order), "these voters were selected by 'age = old'")
    refused(crowdveil("effects", folder / "old.parquet", *order), "these voters were selected by 'age = old'")
    answer("effects", folder / "old.parquet", *order, "--public-selection", "age = old")


def test_the_ledger_charges_people_whichever_file_they_are_in(folder):
    answer("ballots", "split", folder / "all.parquet", "--by", "age", "--out", folder / "parts")
    answer("ledger", "create", folder / "ledger", "--budget", "2")
    charge = ("--paradigm", "rlcp", "--epsilon", "1.5", "--ledger", folder / "ledger")
    for path, label in (("1-old", "age = old"), ("2-young", "age = young")):
        declared = ("--public-selection", label, "--out", folder / f"{path}.json")
        answer("effects", folder / "parts" / f"{path}.parquet", *charge, *declared)
    refused(crowdveil("effects", folder / "all.parquet", *charge, "--out", folder / "all.json"), "1.5")


def test_a_list_of_voters(folder):
    (folder / "names.txt").write_bytes(b"\xef\xbb\xbfv3\r\nv30\r\n\r\n")  # as an editor on Windows saves it
    order = ("ballots", "filter", folder / "all.parquet", "--names", folder / "names.txt")
    (part,) = answer(*order, "--out", folder / "two.parquet")["parts"]
    assert voters(folder / "two.parquet") == ["v3", "v30"]
    assert part["selection"] == "the names in names.txt"
    (folder / "names.txt").write_text("v3\nzoe\n")
    refused(crowdveil(*order, "--out", folder / "two.parquet"), "1 of 2 names are not among the voters, one is 'zoe'")
    assert voters(folder / "two.parquet") == ["v3", "v30"]  # as it was


def test_parts_at_random_are_those_of_the_seed_and_merge_again(folder):
    order = ("ballots", "split", folder / "all.parquet", "--share", "0.75", "--seed", "7")
    answer(*order, "--out", folder / "a.parquet", "--rest", folder / "b.parquet")
    some, others = read_ballots(folder / "all.parquet").split(0.75, seed=7)
    assert voters(folder / "a.parquet") == some.voter_names()
    assert voters(folder / "b.parquet") == others.voter_names()
    assert read_ballots(folder / "a.parquet").selection is None
    merged = answer("ballots", "merge", folder / "a.parquet", folder / "b.parquet", "--out", folder / "again.parquet")
    assert merged["parts"][0]["voters"] == 40
    assert sorted(voters(folder / "again.parquet")) == sorted(voters(folder / "all.parquet"))
    refused(
        crowdveil("ballots", "merge", folder / "a.parquet", folder / "all.parquet", "--out", folder / "x.parquet"),
        "30 of 40 voters occur more than once",
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("filter",), "say whom to keep"),
        (("filter", "--group", "age=odd"), "'age' has no level 'odd': choose from old, young"),
        (("filter", "--group", "size=big"), "do not say what voters' 'size' is; the questions about them are age"),
        (("filter", "--group", "age"), "a group is QUESTION=LEVEL"),
        (("split",), "say how to split"),
        (("split", "--by", "age", "--seed", "1"), "leave out --rest, --share and --seed"),
        (("split", "--share", "2", "--seed", "1", "--rest", "y.parquet"), "a share is a number between 0 and 1"),
        (("merge",), "give two ballot files or more"),
    ],
)
def test_wrong_calls_get_one_line(folder, words, said):
    command, *rest = words
    refused(crowdveil("ballots", command, folder / "all.parquet", *rest, "--out", folder / "x.parquet"), said)


def test_the_file_that_is_read_is_not_overwritten(folder):
    path = folder / "all.parquet"
    refused(crowdveil("ballots", "filter", path, "--group", "age=old", "--out", path), "write to another one")
    assert len(voters(path)) == 40
