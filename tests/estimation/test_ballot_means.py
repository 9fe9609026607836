"""What is expected of voters' clipped means: derivatives against differences, and against voters who were drawn."""

import numpy as np
import pytest

from crowdveil.estimation.ballot_means import BallotMeans
from crowdveil.estimation.clipped_means import SCORE_DISAGREEMENT, voter_clip

CLIP = 0.7 * voter_clip(13)
PREFERENCE = np.array([0.6, -0.3, 0.2])


def sparse_dilemmas(dilemmas, seed):
    """Axes of unit mean square along which two of three dilemmas do not differ."""
    rng = np.random.default_rng(seed)
    return rng.choice([-1.0, 1.0], (dilemmas, 3)) * (rng.random((dilemmas, 3)) < 1 / 3) * np.sqrt(3)


@pytest.mark.parametrize("told", [1.0, 0.6, 1 / 3, 0.25, 1 / 13])
def test_the_derivative_against_differences(told):
    means, step = BallotMeans(sparse_dilemmas(1300, 1)), 1e-5

    def at(preference):
        return means.clipped(preference, told + SCORE_DISAGREEMENT**2, (CLIP, CLIP))

    differences = [(at(PREFERENCE + s).mean - at(PREFERENCE - s).mean) / (2 * step) for s in step * np.eye(3)]
    assert at(PREFERENCE).derivative == pytest.approx(np.transpose(differences), abs=1e-6)
    assert at(PREFERENCE).told == pytest.approx(told)


@pytest.mark.parametrize("records", [1, 4, 13])
def test_voters_who_were_drawn_are_as_expected(records):
    rng, voters = np.random.default_rng(2), 20_000
    x = sparse_dilemmas(voters * records, 3)
    own = np.repeat(rng.normal(PREFERENCE, 0.1, (voters, 3)), records, axis=0)
    sides = np.where((x * own).sum(axis=1) + rng.standard_normal(len(x)) > 0, 1, -1)
    scores = (x * sides[:, None]).reshape(voters, records, 3).mean(axis=1)
    seen = np.clip(scores / CLIP, -1, 1).mean(axis=0)
    expected = BallotMeans(sparse_dilemmas(26_000, 4)).clipped(
        PREFERENCE, 1 / records + SCORE_DISAGREEMENT**2, (CLIP, CLIP)
    )
    # A single choice is not normal: the normal law has its sign tell sqrt(2 / pi) of what it tells.
    assert expected.mean == pytest.approx(seen, rel=0.25, abs=0.03)
