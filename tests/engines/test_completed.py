"""Choices completed by public coins: the same however a crowd is cut, fair, and one record at a time."""

from dataclasses import replace

import numpy as np

from crowdveil.ballots.ballots import Ballots, join_batches
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


def test_the_coins_are_fair_along_voters_and_along_ballots():
    coins = public_coins(10_000, np.full(20_000, 10)).reshape(20_000, 10)
    assert np.abs(coins.mean(axis=0) - 0.5).max() < 5 / np.sqrt(4 * 20_000)
    assert abs(coins.mean() - 0.5) < 5 / np.sqrt(4 * 200_000)
    assert abs(np.mean(coins[:, 0] == coins[:, 1]) - 0.5) < 5 / np.sqrt(4 * 20_000)
