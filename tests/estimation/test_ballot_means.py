"""What is expected of voters' clipped means: derivatives against differences, and against voters who were drawn."""

import numpy as np
import pytest

from crowdveil.estimation.ballot_means import BallotMeans
from crowdveil.estimation.clipped_means import voter_clip
from crowdveil.estimation.design import AxisSample, public_design
from crowdveil.study.bundled import load_study
from crowdveil.study.drawing import draw_dilemmas

PREFERENCE = np.array([0.6, -0.3, 0.2])
CLIPS = (0.5 * voter_clip(13), 1.0, 3.0)


def sparse_dilemmas(dilemmas, seed):
    """Axes of unit mean square along which two of three dilemmas do not differ."""
    rng = np.random.default_rng(seed)
    return rng.choice([-1.0, 1.0], (dilemmas, 3)) * (rng.random((dilemmas, 3)) < 1 / 3) * np.sqrt(3)


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("told", [1.0, 0.6, 1 / 3, 0.25, 1 / 13, 0.001])
def test_the_derivative_against_differences(told, clip):
    means, step = BallotMeans(AxisSample(sparse_dilemmas(1301, 1)), clip, inflation=0.1), 1e-5
    ends = [[means.expected(told, PREFERENCE + s * axis)[0] for s in (step, -step)] for axis in np.eye(3)]
    differences = [(ahead - behind) / (2 * step) for ahead, behind in ends]
    assert means.expected(told, PREFERENCE)[1] == pytest.approx(np.transpose(differences), abs=1e-6)


def test_many_preferences_show_what_each_shows():
    means, several = (
        BallotMeans(AxisSample(sparse_dilemmas(400, 2)), 0.4, inflation=0.1),
        np.outer([0.1, 1, 5], PREFERENCE),
    )
    shown = means.shown(0.2, several)
    assert shown == pytest.approx(np.array([means.expected(0.2, one)[0] for one in several]), abs=1e-12)


def test_one_record_that_no_clip_reaches_is_the_mean_score_itself():
    sample = AxisSample(sparse_dilemmas(2000, 1))
    expected = BallotMeans(sample, 3.0).expected(1.0, PREFERENCE)[0]
    # What the normal law takes off at a clip of its tails.
    assert expected == pytest.approx(sample.mixing.T @ sample.expected_means(PREFERENCE)[0] / 3, rel=0.02)


def drawn(x, records, preference, rng):
    """Mean scores of voters who differ by 0.1."""
    voters = len(x) // records
    own = np.repeat(rng.normal(preference, 0.1, (voters, len(preference))), records, axis=0)
    sides = np.where((x * own).sum(axis=1) + rng.standard_normal(len(x)) > 0, 1, -1)
    return (x * sides[:, None]).reshape(voters, records, -1).mean(axis=1)


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("records", [1, 2, 4, 13])
def test_voters_who_were_drawn_are_as_expected(records, clip):
    rng, voters = np.random.default_rng(2), 20_000
    scores = drawn(sparse_dilemmas(voters * records, 3), records, PREFERENCE, rng)
    seen = np.clip(scores @ AxisSample(scores).mixing / clip, -1, 1).mean(axis=0)
    expected, _ = BallotMeans(AxisSample(sparse_dilemmas(26_000, 4)), clip).expected(1 / records, PREFERENCE)
    assert expected == pytest.approx(seen, rel=0.15, abs=0.03)


@pytest.mark.parametrize("records", [1, 13])
def test_nor_do_contrasts_that_leak_into_one_another_mislead(records):
    """Along the Moral Machine's axes most dilemmas differ a little: the sign of such a score tells of other axes."""
    study, rng, voters = load_study("moral-machine"), np.random.default_rng(5), 8000
    design = public_design(study)
    left, right = draw_dilemmas(study, -(-voters * records // 13), rng)
    x = ((left - right) / study.units @ design.basis)[: voters * records]
    preference, clip = np.array([0.4, 0.3, 0.3, 0.1, 0.1, 0.2, 0.3, 0.1, -0.2]), CLIPS[0]
    seen = np.clip(drawn(x, records, preference, rng) @ design.sample.mixing / clip, -1, 1).mean(axis=0)
    expected, _ = BallotMeans(design.sample.head(4000), clip).expected(1 / records, preference)
    assert expected == pytest.approx(seen, rel=0.15, abs=0.06)
