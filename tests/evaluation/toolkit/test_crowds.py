"""Crowds are drawn by name, and judged by the truth they name."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from tests.real_data import MORAL_MACHINE, with_moral_machine

from crowdveil.errors import CrowdveilError
from crowdveil.evaluation.toolkit.crowds import (
    TEST_PAIRS,
    MoralMachineSource,
    SyntheticSource,
    generator,
    open_moral_machine,
    seed,
)


def test_a_crowd_is_the_same_whichever_others_are_drawn_with_it():
    source = SyntheticSource(records=5, features=3)
    together, alone = source.draw(7, range(4)), source.draw(7, range(2, 3))
    assert np.array_equal(together.by_crowd(together.own_preferences)[2], alone.own_preferences)
    assert np.array_equal(together.ballots[14:21].differences, alone.ballots.differences)
    learned = np.random.default_rng(1).normal(size=(4, 2, 3))
    judged = together.judge(learned, learned[:, 0])["accuracy"][2:3]
    assert np.array_equal(judged, alone.judge(learned[2:3], learned[2:3, 0])["accuracy"])


def test_synthetic_crowds_are_judged_on_enough_pairs():
    assert TEST_PAIRS >= 1000
    drawn = SyntheticSource(records=5, features=3).draw(200, range(3))
    means = drawn.by_crowd(drawn.own_preferences).mean(axis=1)
    judged = drawn.judge(means[:, None], means)
    assert judged["against the mean of the drawn preferences"] == pytest.approx(np.ones((3, 1)))
    assert judged["against the crowd without privacy"] == pytest.approx(np.ones((3, 1)))
    # Against m: the mean of 200 drawn preferences is close to it, but not it.
    assert ((judged["accuracy"] > 0.8) & (judged["accuracy"] < 1)).all()
    # 1,000 pairs against infinitely many: six standard deviations.
    assert np.abs(judged["accuracy"] - judged["accuracy on all pairs"]).max() < 6 * 0.5 / np.sqrt(TEST_PAIRS)


def test_seeds_follow_from_names():
    assert seed("a", 1) == seed("a", 1) != seed("a", 2)
    assert generator("x").integers(1 << 60) == generator("x").integers(1 << 60)


@with_moral_machine
def test_real_crowds():
    source, everyone = open_moral_machine(MORAL_MACHINE)
    assert (everyone.voters, everyone.records) == (2097, 22315)
    drawn = source.draw(50, range(2))
    first, second = (set(drawn.ballots[s].voter_names()) for s in (slice(0, 50), slice(50, 100)))
    assert len(first) == len(second) == 50
    assert first != second
    own = np.zeros((2, 23))
    # Sparing more of the group "man, woman, boy, girl, ..." than the other is right for more people than not.
    more_lives = np.zeros((2, 1, 23))
    more_lives[
        :, 0, [i for i, n in enumerate(everyone.study.feature_names) if n in ("man", "woman", "boy", "girl")]
    ] = 1
    judged = drawn.judge(more_lives, own)
    assert (judged["predicted"] > 0.5).all()
    # A parameter and its opposite share the pairs between them.
    for measure, values in drawn.judge(-more_lives, own).items():
        assert values == pytest.approx(1 - judged[measure])


def test_too_few_real_voters(tmp_path):
    small = tmp_path / "small.csv"
    if not MORAL_MACHINE.exists():
        pytest.skip("the Moral Machine file is not here")
    with gzip.open(MORAL_MACHINE, "rt") as whole:
        small.write_text("".join(next(whole) for _ in range(401)))
    with pytest.raises(CrowdveilError, match="at least 400"):
        open_moral_machine(small)


def test_the_name_of_real_crowds_is_their_answers():
    assert MoralMachineSource(Path("a"), "f" * 64).name == MoralMachineSource(Path("b"), "f" * 64).name
