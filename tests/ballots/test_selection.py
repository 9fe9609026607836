"""Parts of ballot files: one with nobody in it is refused, and nothing is written."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from crowdveil.ballots.ballot_file import open_ballots, write_ballots
from crowdveil.ballots.selection import filter_by_voter, merge, split_at_random
from crowdveil.errors import CrowdveilError
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study

STUDY = load_study("kidney")


@pytest.fixture
def file(tmp_path):
    (drawn,) = simulated_batches(STUDY, 5, np.random.default_rng(1))
    write_ballots(tmp_path / "crowd.parquet", STUDY, [replace(drawn, names=pa.array(list("abcde")))], {})
    return open_ballots(tmp_path / "crowd.parquet")


@pytest.mark.parametrize(
    "select",
    [
        lambda file, folder: filter_by_voter(file, [], "nobody", folder / "part.parquet"),
        lambda file, folder: split_at_random(file, 0.01, 1, folder / "part.parquet", folder / "rest.parquet"),
    ],
)
def test_a_part_without_voters_is_refused_and_not_written(file, tmp_path, select):
    with pytest.raises(CrowdveilError, match=r"nobody is left of .*crowd\.parquet: nothing was written"):
        select(file, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["crowd.parquet"]


def test_a_part_of_a_selection_names_both_on_disk_and_in_memory(file, tmp_path):
    few = filter_by_voter(file, ["a", "b", "c"], "asked in May", tmp_path / "few.parquet")
    assert few.selection == "asked in May"
    fewer = filter_by_voter(open_ballots(few.path), ["a", "b"], "drew a prize", tmp_path / "fewer.parquet")
    assert fewer.selection == "asked in May, drew a prize"
    one = open_ballots(fewer.path).load().filter(np.array([True, False]), "left-handed")
    one.save(tmp_path / "one.parquet")
    assert open_ballots(tmp_path / "one.parquet").header.selection == "asked in May, drew a prize, left-handed"
    rest = filter_by_voter(file, ["d"], "asked in June", tmp_path / "rest.parquet")
    merged = merge([few.path, rest.path], tmp_path / "merged.parquet")
    assert merged.selection == "asked in May and asked in June"
    assert open_ballots(merged.path).load().selection == merged.selection


def test_a_selection_without_a_name_is_refused_and_not_written(file, tmp_path):
    with pytest.raises(CrowdveilError, match="the label is '': say how the voters were selected"):
        filter_by_voter(file, ["a"], "", tmp_path / "part.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["crowd.parquet"]
