"""Scores of secret groups: how far a voter can move counts and sums wherever she goes, and what the noise is for."""

import numpy as np
import pytest

from crowdveil.ballots.ballots import Ballots
from crowdveil.ballots.columns import CODE, Categories
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.mechanisms.fisher_scoring import VoterScore
from crowdveil.privacy.mechanisms.fisher_sums import SCORE_STEPS, SENSITIVITY
from crowdveil.privacy.mechanisms.group_mechanism import OTHERS, Grouping, NoisyGroup, groups_by_counts
from crowdveil.privacy.mechanisms.group_scores import GroupScores, split
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study, synthetic_study
from scripted_noise import RecordingNoise

STUDY = synthetic_study(3, 4)
SETTINGS = MechanismSettings(STUDY, 2.0)
GROUPING = Grouping("team", ("reds", "blues", "greens"))


def crowd(*voters):
    """Return voters, each with records and the code of a group."""
    offsets = np.cumsum([0] + [len(records) for records, _ in voters])
    made = Ballots.from_differences(STUDY, offsets, np.concatenate([records for records, _ in voters]))
    about = {"team": Categories(GROUPING.labels, np.array([group for _, group in voters], CODE))}
    return Ballots(made.study, made.offsets, made.dilemmas, made.choices, about=about)


@pytest.mark.parametrize("voters", [30, 300_000], ids=["one step", "all that is bought"])
def test_a_voter_who_leaves_a_group_and_enters_another_moves_no_more_than_the_noise_is_for(voters):
    rng, made, epsilon = np.random.default_rng(5), GroupScores(GROUPING), Epsilon(1)
    others = [(rng.normal(0, 3, (rng.integers(1, 5), 3)), int(rng.integers(-1, 3))) for _ in range(4)]
    farthest = 0
    for _ in range(60):
        one, other = (
            (rng.normal(0, 9, (rng.integers(1, 6), 3)) * rng.choice([0.1, 1, 100]), int(rng.integers(-1, 3)))
            for _ in range(2)
        )
        crowds = crowd(one, *others), crowd(other, *others)
        counts = [made.measure(ballots, SETTINGS, epsilon).total for ballots in crowds]
        assert np.abs(counts[0] - counts[1]).sum() <= 2
        largest = 0
        for code, label in enumerate(GROUPING.labels):
            group = NoisyGroup(label, (code,), float(voters), 1.0)
            totals = [made.scores(group, ballots, SETTINGS, epsilon).total for ballots in crowds]
            move = int(np.abs(totals[0] - totals[1]).max())
            assert move <= (SENSITIVITY if one[1] == other[1] == code else SCORE_STEPS)
            largest += move
        assert largest <= SENSITIVITY
        farthest = max(farthest, largest)
    assert farthest > 0.9 * SENSITIVITY, "some voters move the sums by nearly all that the theorem allows"


def test_the_noise_of_counts_and_of_every_groups_steps_adds_up_to_epsilon():
    (drawn,) = simulated_batches(load_study("kidney"), 3000, np.random.default_rng(1))
    about = {"team": Categories(GROUPING.labels, (np.arange(3000) % 3).astype(CODE))}
    ballots = Ballots(drawn.study, drawn.offsets, drawn.dilemmas, drawn.choices, about=about)
    settings, epsilon, noise = MechanismSettings(ballots.study, 2.0), Epsilon(2), RecordingNoise()
    made = GroupScores(GROUPING)
    found = made.release(made.measure(ballots, settings, epsilon), settings, epsilon, noise)
    assert [one.group.voters for one in found] == [1000, 1000, 1000]
    counts, *steps = noise.asked
    assert counts == ("laplace", 2, [200_000], 3)
    assert {(kind, reach) for kind, reach, _, _ in steps} == {("cube", SENSITIVITY)}
    assert sum(sum(micro) for _, _, micro, _ in steps) == 3 * 1_800_000
    # Without any noise, each group's estimate is what its members alone would have given.
    alone = ballots.filter(ballots.about["team"].codes == 1)
    known = VoterScore().measure(alone, settings, split(epsilon)[1])
    expected = VoterScore().release(known, settings, split(epsilon)[1], RecordingNoise())
    assert np.array_equal(found[1].estimate.parameter, expected.parameter)


def test_merging_looks_at_noisy_counts_and_leaves_out_what_cannot_be_told_from_nobody():
    counted = groups_by_counts(("a", "b", "c", "d"), [500.0, 60.0, 90.0, 400.0], [20.0] * 4, smallest=100)
    assert [(one.label, one.members, one.voters) for one in counted] == [
        ("a", (0,), 500.0),
        ("d", (3,), 400.0),
        (OTHERS, (1, 2), 150.0),
    ]
    assert counted[-1].deviation == pytest.approx(20 * np.sqrt(2))
    assert [one.label for one in groups_by_counts(("a", "b"), [500.0, 39.0], [20.0] * 2, smallest=0)] == ["a"]


def test_an_epsilon_that_cannot_be_shared_is_refused():
    with pytest.raises(CrowdveilError, match="too small to be shared between counts and scores"):
        split(Epsilon("0.0009"))
