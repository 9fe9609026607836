"""The posterior of a crowd: against a law that is known in closed form, and where ballots say only on which side."""

import math

import numpy as np
import pytest

from crowdveil.estimation.clipped_ballots import ClippedBallots
from crowdveil.estimation.likely_crowds import likely_crowds
from crowdveil.estimation.prior import margin_deviations
from crowdveil.study.bundled import synthetic_study


def normal_posterior(center, variance):
    """Of a normal estimate of so many equal variances, a priori normal with one of several deviations."""
    parts = [
        (
            -0.5 * (len(center) * math.log(variance + d**2) + center @ center / (variance + d**2)),
            d**2 / (variance + d**2),
        )
        for d in margin_deviations(len(center))
    ]
    weights = np.exp([log - max(log for log, _ in parts) for log, _ in parts])
    weights /= weights.sum()
    kept = np.array([part for _, part in parts])
    mean = (weights @ kept) * center
    return mean, weights @ (kept * variance) + weights @ np.square(np.outer(kept, center) - mean)


class Straight:
    """Ballots in which a crowd shows half of its preference, however long they are and however voters differ."""

    dilemmas = np.random.default_rng(1).normal(0.0, 0.01, (500, 3))
    """So short that the pooled probit is the preference itself."""

    def shown_by(self, crowds, told, tau):
        return crowds / 2


def test_crowds_that_show_a_part_of_their_preference_have_the_normal_posterior():
    seen, variance = np.array([0.4, -0.2, 0.0]), 0.09
    found = likely_crowds(Straight(), [(0.4, 0.5), (0.6, 0.5)], [0.0], seen, np.full(3, variance))
    mean, variances = normal_posterior(2 * seen, 4 * variance)
    assert found.effective > 100
    assert found.mean == pytest.approx(mean, abs=0.05)
    assert np.diag(found.covariance) == pytest.approx(variances, rel=0.2)


def test_where_ballots_say_only_on_which_side_a_voter_is_the_prior_says_how_far():
    """With hundreds of answers that all lean to one side, the least preference is not the likeliest size of it."""
    ballots = ClippedBallots(synthetic_study(2, 100), 0.03)
    seen = np.array([1.0, 0.0])
    found = likely_crowds(ballots, [(1.0, 1.0)], [0.15], seen, np.array([0.05, 0.05]))
    sizes = np.linspace(0, 2, 21)
    least = sizes[(ballots.shown_by(np.outer(sizes, [1.0, 0.0]), 1.0, 0.15)[:, 0] > 0.9).argmax()]
    sides = [size * math.sqrt(2 / math.pi) for size in margin_deviations(2)]
    assert found.mean[0] > 2 * least
    assert min(sides) < found.mean[0] < max(sides)
