"""Choices completed by public coins: the same however a crowd is cut, fair, and one record at a time."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from crowdveil.ballots.ballots import Ballots, join_batches
from crowdveil.ballots.columns import as_digests, keys_of_voters
from crowdveil.engines import batches
from crowdveil.engines.batches import completed, public_coins
from crowdveil.study.bundled import synthetic_study

STUDY = replace(synthetic_study(2), indifference="Toss a coin")


def crowd(voters=50, seed=1):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 6, voters)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    choices = rng.integers(-1, 2, offsets[-1]).astype(np.int8)
    return Ballots(STUDY, offsets, rng.normal(0, 1, (offsets[-1], 2)), choices)


class InPieces:
    """A crowd that is walked in pieces of some voters."""

    def __init__(self, ballots, size):
        self.ballots, self.size, self.study, self.voters = ballots, size, ballots.study, ballots.voters

    def batches(self):
        return (self.ballots[start : start + self.size] for start in range(0, self.voters, self.size))


def whole(source):
    return join_batches(STUDY, list(source.batches())).choices


def test_decided_choices_stay_and_the_others_are_decided():
    ballots = crowd()
    found = whole(completed(ballots))
    decided = ballots.choices != 0
    assert np.array_equal(found[decided], ballots.choices[decided])
    assert set(np.unique(found)) == {-1, 1}


def test_the_coins_do_not_depend_on_how_the_crowd_is_cut():
    ballots = crowd()
    assert np.array_equal(whole(completed(ballots)), whole(completed(InPieces(ballots, 7))))


def test_to_change_one_record_changes_one_completed_record():
    ballots = crowd()
    for place in range(0, ballots.records, 9):
        for choice in (-1, 0, 1):
            other = ballots.choices.copy()
            other[place] = choice
            differ = whole(completed(ballots)) != whole(completed(replace(ballots, choices=other)))
            assert set(np.flatnonzero(differ)) <= {place}


@pytest.fixture
def rows():
    """Records of 30 voters in a study with a third answer, as they came in: one of each, and then the next ones."""
    rng = np.random.default_rng(2)
    return [(f"v{n}", *rng.integers(0, 9, 4).tolist(), int(rng.integers(-1, 2))) for _ in range(6) for n in range(30)]


def made_of(rows):
    voters, a, b, c, d, choices = zip(*rows, strict=True)
    return Ballots.from_arrays(STUDY, voters, list(zip(a, b, strict=True)), list(zip(c, d, strict=True)), choices)


def test_a_voter_who_leaves_out_her_first_row_moves_nobodys_coins(rows):
    """Voters stand in the order of their first rows, so she moves all others by one place."""
    every, one_less = (completed(made_of(some)).batches() for some in (rows, rows[1:]))
    (every,), (one_less,) = list(every), list(one_less)
    assert one_less.voter_names().index("v0") == 29
    for name in every.voter_names()[1:]:
        of_her = [b[b.voter_names().index(name) :][:1].choices.tolist() for b in (every, one_less)]
        assert of_her[0] == of_her[1]


def test_a_voter_who_leaves_out_her_first_row_moves_nobody_to_another_part(rows):
    parts = [set(made_of(some).split(0.5, 3)[0].voter_names()) for some in (rows, rows[1:])]
    assert parts[0] == parts[1]
    assert len(parts[0]) == 15


def test_names_and_their_digests_have_the_same_coins(rows):
    ballots = made_of(rows)
    hidden = replace(ballots, names=as_digests(ballots.names))
    assert np.array_equal(whole(completed(ballots)), whole(completed(hidden)))


def test_choices_keep_their_type_and_a_crowd_that_decided_is_read_as_it_is(rows, monkeypatch):
    """Eight bytes for each of a hundred million choices would be too many, and so would a digest for each name."""
    ballots = made_of(rows)
    (made,) = completed(ballots).batches()
    assert made.choices.dtype == ballots.choices.dtype == np.int8
    monkeypatch.setattr(batches, "keys_of_voters", None)
    (again,) = completed(made).batches()
    assert np.shares_memory(again.choices, made.choices)


def test_the_coins_are_fair_along_voters_and_along_ballots():
    for names in (None, pa.array([f"voter {number}" for number in range(20_000)])):
        coins = public_coins(keys_of_voters(names, 10_000, 20_000), np.full(20_000, 10)).reshape(20_000, 10)
        check_fair(coins)


def check_fair(coins):
    assert np.abs(coins.mean(axis=0) - 0.5).max() < 5 / np.sqrt(4 * 20_000)
    assert abs(coins.mean() - 0.5) < 5 / np.sqrt(4 * 200_000)
    assert abs(np.mean(coins[:, 0] == coins[:, 1]) - 0.5) < 5 / np.sqrt(4 * 20_000)
