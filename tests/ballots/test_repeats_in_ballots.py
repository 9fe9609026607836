"""A dilemma that is asked twice, in ballots: who answered alike goes along, and is no record."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.ballots.ballot_file import open_ballots, read_ballots, write_ballots
from crowdveil.ballots.ballots import Ballots, census, concatenate
from crowdveil.ballots.columns import answered_alike
from crowdveil.ballots.selection import filter_by_voter, merge, split_at_random
from crowdveil.errors import CrowdveilError
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study
from crowdveil.study.study import Study

STUDY = replace(load_study("kidney"), repeat=True)
ALIKE = np.array([1, -1, -1, 1, 1], np.int8)


def named(names, alike=ALIKE):
    each = STUDY.drawing.dilemmas
    (drawn,) = simulated_batches(STUDY, len(names), np.random.default_rng(1), alike=1)
    assert drawn.records == each * len(names)
    return replace(drawn, names=pa.array(names), alike=alike)


@pytest.fixture
def file(tmp_path):
    write_ballots(tmp_path / "crowd.parquet", STUDY, [named(list("abcde"))], {})
    return open_ballots(tmp_path / "crowd.parquet")


def test_a_study_says_that_it_asks_one_dilemma_twice():
    assert Study.from_dict(STUDY.as_dict()) == STUDY
    assert STUDY.answers == STUDY.drawing.dilemmas + 1
    assert STUDY.fingerprint != load_study("kidney").fingerprint
    with pytest.raises(CrowdveilError, match="'repeat' must be a bool"):
        Study.from_dict({**STUDY.as_dict(), "repeat": "yes"})
    with pytest.raises(CrowdveilError, match="two or more"):
        replace(STUDY, drawing=replace(STUDY.drawing, dilemmas=1))


def test_ballots_say_who_answered_alike_where_the_study_asks_and_nowhere_else():
    with pytest.raises(CrowdveilError, match="asks one dilemma twice, and these ballots do not say"):
        named(list("abcde"), None)
    with pytest.raises(CrowdveilError, match="does not ask one dilemma twice"):
        replace(named(list("abcde")), study=load_study("kidney"))
    with pytest.raises(CrowdveilError, match="1 or -1"):
        named(list("abcde"), np.array([1, 0, 1, 1, 1], np.int8))
    with pytest.raises(CrowdveilError, match="4 entries in place of 5"):
        named(list("abcde"), ALIKE[:4])


def test_a_ballot_file_keeps_who_answered_alike(file):
    assert read_ballots(file.path).alike.tolist() == ALIKE.tolist()
    assert file.load().to_polars()["alike"].to_list()[:: STUDY.drawing.dilemmas] == ALIKE.tolist()


def test_parts_and_sums_of_files_keep_it(file, tmp_path):
    filter_by_voter(file, ["d", "b"], "b and d", tmp_path / "two.parquet")
    assert read_ballots(tmp_path / "two.parquet").alike.tolist() == [-1, 1]
    split_at_random(file, 0.4, 1, tmp_path / "one.parquet", tmp_path / "other.parquet")
    parts = [read_ballots(tmp_path / name) for name in ("one.parquet", "other.parquet")]
    back = {name: alike for part in parts for name, alike in zip(part.voter_names(), part.alike.tolist(), strict=True)}
    assert back == dict(zip("abcde", ALIKE.tolist(), strict=True))
    merge([tmp_path / "one.parquet", tmp_path / "other.parquet"], tmp_path / "all.parquet")
    merged = read_ballots(tmp_path / "all.parquet")
    assert dict(zip(merged.voter_names(), merged.alike.tolist(), strict=True)) == back


def test_parts_and_sums_in_memory_keep_it():
    crowd = named(list("abcde"))
    assert crowd[1:3].alike.tolist() == [-1, -1]
    assert crowd.take(np.array([4, 1])).alike.tolist() == [1, -1]
    assert crowd.filter(crowd.alike == 1).voter_names() == ["a", "d", "e"]
    assert concatenate(STUDY, [crowd[:2], crowd[2:]]).alike.tolist() == ALIKE.tolist()


def test_a_repeat_is_no_record_but_an_answer_and_part_of_the_fingerprint():
    crowd = named(list("abcde"))
    counted, other = census(crowd), census(replace(crowd, alike=-ALIKE))
    assert (counted.most_records, counted.most_answers) == (STUDY.drawing.dilemmas, STUDY.drawing.dilemmas + 1)
    assert counted.records == 5 * STUDY.drawing.dilemmas
    assert counted.fingerprint != other.fingerprint
    assert isinstance(crowd, Ballots)


def test_simulated_voters_answer_alike_as_often_as_told_or_by_the_model():
    rng = np.random.default_rng(2)
    (nine,) = simulated_batches(STUDY, 4000, rng, alike=0.9)
    assert np.mean(nine.alike == 1) == pytest.approx(0.9, abs=0.025)
    # Without any preference every answer is a coin toss: alike by half; with a very strong one, nearly always.
    flat = replace(STUDY, features=tuple(replace(feature, lean=0.0) for feature in STUDY.features))
    (half,) = simulated_batches(flat, 4000, rng, spread=0)
    assert np.mean(half.alike == 1) == pytest.approx(0.5, abs=0.04)
    (sure,) = simulated_batches(flat, 4000, rng, spread=100)
    assert np.mean(sure.alike == 1) > 0.95
    with pytest.raises(CrowdveilError, match="from 0 to 1"):
        simulated_batches(STUDY, 10, rng, alike=1.5)
    with pytest.raises(CrowdveilError, match="repeat = true"):
        simulated_batches("kidney", 10, rng, alike=0.9)


def test_a_crowd_without_repeats_is_the_same_as_before():
    (plain,) = simulated_batches("kidney", 20, np.random.default_rng(5))
    (twice,) = simulated_batches(STUDY, 20, np.random.default_rng(5))
    assert plain.choices.tolist() == twice.choices.tolist()
    assert plain.dilemmas.tolist() == twice.dilemmas.tolist()


ROW = st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(-1, 1), st.booleans())
"""Left, right, choice, and whether it is marked as a second answer: few values, so that many rows are alike."""


def told_one_by_one(rows):
    """What a voter's rows tell, by looking at each."""
    marked = [row for row in rows if row[3]]
    if len(marked) != 1:
        return 0
    (left, right, second, _), others = marked[0], [row for row in rows if not row[3]]
    for one, other, first, _ in others:
        if (one, other) == (right, left):  # mirrored, also where both sides are the same
            return 1 if first == -second else -1
        if (one, other) == (left, right):
            return 1 if first == second else -1
    return 0


@given(st.lists(st.lists(ROW, min_size=1, max_size=5), min_size=1, max_size=4))
def test_second_answers_are_compared_as_one_would_by_hand(voters):
    rows = [row for voter in voters for row in voter]
    offsets = np.cumsum([0] + [len(voter) for voter in voters])
    left, right = (np.array([[row[k]] for row in rows]) for k in (0, 1))
    choices = np.array([row[2] for row in rows], np.int8)
    marked = np.array([row[3] for row in rows])
    assert answered_alike(offsets, left, right, choices, marked).tolist() == [told_one_by_one(one) for one in voters]
