"""Parts of ballot files: one with nobody in it is refused, and nothing is written."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from crowdveil.ballots.ballot_file import open_ballots, write_ballots
from crowdveil.ballots.selection import filter_by_voter, split_at_random
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
