"""The posterior of a crowd: against a law that is known in closed form, and where ballots say only on which side."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from crowdveil.estimation.clipped_ballots import ClippedBallots
from crowdveil.estimation.likely_crowds import faintest_margins, likely_crowds
from crowdveil.study.bundled import synthetic_study


def deviations(axes, variance):
    """The prior along each axis: seven sizes of margins, equally spaced in logarithms, for this variance of a mean."""
    shown = 2 * (1 / 0.3**2 + axes) / math.pi
    return np.geomspace(min(0.25, math.sqrt(axes * variance / shown)), 4.0, 7) / math.sqrt(axes)


def normal_posterior(center, variance):
    """Of a normal estimate of so many equal variances, a priori normal with one of several deviations.

    The estimate is twice what was seen.
    """
    parts = [
        (
            -0.5 * (len(center) * math.log(variance + d**2) + center @ center / (variance + d**2)),
            d**2 / (variance + d**2),
        )
        for d in deviations(len(center), variance / 4)
    ]
    weights = np.exp([log - max(log for log, _ in parts) for log, _ in parts])
    weights /= weights.sum()
    kept = np.array([part for _, part in parts])
    mean = (weights @ kept) * center
    return mean, weights @ (kept * variance) + weights @ np.square(np.outer(kept, center) - mean)


class Straight:
    """Ballots in which a crowd shows half of its preference, however long they are and however voters differ.

    Of voters of one mind the pooled probit is the preference itself.
    """

    left_out, most = 0, None

    def __init__(self, axes, length):
        self.dilemmas = np.random.default_rng(1).normal(0.0, length, (500, axes))

    def shown_by(self, crowds, told, tau):
        return crowds / 2


def test_crowds_that_show_a_part_of_their_preference_have_the_normal_posterior():
    seen, variance = np.array([0.4, -0.2, 0.0]), 0.09
    found = likely_crowds(Straight(3, 0.01), [(0.4, 0.5), (0.6, 0.5)], [0.0], seen, np.full(3, variance))
    mean, variances = normal_posterior(2 * seen, 4 * variance)
    assert found.effective > 100
    assert found.mean == pytest.approx(mean, abs=0.05)
    assert np.diag(found.covariance) == pytest.approx(variances, rel=0.2)


@pytest.mark.parametrize(("variance", "other_dilemmas", "surer"), [(0.01, 0.3, 0.0), (0.2, 0.0, 0.18)])
def test_the_error_of_what_shows_may_grow_or_fall_with_it(variance, other_dilemmas, surer):
    """Prior times likelihood, added up over a grid: for dilemmas that others may have drawn, and for means of bits."""
    seen = np.array([0.8, 0.1])
    line = np.linspace(-6, 6, 601)
    grid = np.stack(np.meshgrid(line, line, indexing="ij"), axis=2).reshape(-1, 2)
    prior = np.mean(
        [np.exp(-0.5 * np.square(grid / size).sum(axis=1)) / size**2 for size in deviations(2, variance)], axis=0
    )
    shown = grid / 2
    errors = variance + other_dilemmas**2 * np.square(shown).mean(axis=1, keepdims=True)
    errors = errors - surer * np.minimum(np.square(shown), 0.9)
    weights = prior * (np.exp(-0.5 * np.square(seen - shown) / errors) / np.sqrt(errors)).prod(axis=1)
    weights /= weights.sum()
    mean = weights @ grid
    found = likely_crowds(Straight(2, 0.01), [(1.0, 1.0)], [0.0], seen, np.full(2, variance), other_dilemmas, surer)
    assert found.mean == pytest.approx(mean, abs=0.05)
    assert np.diag(found.covariance) == pytest.approx(weights @ (grid - mean) ** 2, rel=0.2)


def mixed_probabilities(dilemmas, center, variance):
    """What the normal posteriors under each deviation state of dilemmas, weighted by how probable these are."""
    logs, stated = [], []
    for d in deviations(len(center), variance / 4):
        logs.append(-0.5 * (len(center) * math.log(variance + d**2) + center @ center / (variance + d**2)))
        kept = d**2 / (variance + d**2)
        spread = 1 + kept * variance * np.square(dilemmas).sum(axis=1)
        stated.append(ndtr(kept * (dilemmas @ center) / np.sqrt(spread)))
    weights = np.exp(np.array(logs) - max(logs))
    return weights @ np.array(stated) / weights.sum()


def as_voters_see(dilemmas):
    """Dilemmas as long as they are to voters who differ by 0.3 along each axis, next to one of the usual length."""
    lengths = np.square(dilemmas).sum(axis=1)
    return dilemmas * np.sqrt((1 + dilemmas.shape[1] * 0.3**2) / (1 + 0.3**2 * lengths))[:, None]


def stated_by(found, dilemmas):
    """What a release states: the probit that is nearest to what voters see is smaller than their common preference."""
    seen = as_voters_see(dilemmas)
    seen = seen * np.square(dilemmas).sum() / (seen * dilemmas).sum()
    spread = 1 + ((seen @ found.covariance) * seen).sum(axis=1)
    return ndtr(seen @ found.mean / np.sqrt(spread))


@pytest.mark.parametrize(("seen", "variance"), [([0.9, -0.5, 0.2], 0.04), ([0.5, 0.2, 0.0], 0.25)])
def test_the_mean_and_the_covariance_state_what_all_crowds_state(seen, variance):
    """Where the size may be off by factors, the moments themselves would state up to 3 % less."""
    ballots = Straight(3, 1.0)
    found = likely_crowds(ballots, [(1.0, 1.0)], [0.3], np.array(seen), np.full(3, variance))
    exact = mixed_probabilities(as_voters_see(ballots.dilemmas), 2 * np.array(seen), 4 * variance)
    assert stated_by(found, ballots.dilemmas) == pytest.approx(exact, abs=0.02)
    assert np.abs(stated_by(found, ballots.dilemmas) - exact).mean() < 0.004


def test_the_faintest_margins_are_those_that_hardly_show_where_voters_say_which_side_they_are_on():
    """Simulated voters, N(b', tau^2) along each axis, who each say their side: what they say is as large as its error.

    Where the noise is larger, the faintest margins are those of crowds of which 58 % agree.
    """
    rng, axes, tau, variance = np.random.default_rng(2), 9, 0.3, 0.03
    faintest = faintest_margins(np.full(axes, variance))
    pooled = faintest / math.sqrt(axes)
    voters = rng.normal(pooled * math.sqrt(1 + axes * tau**2), tau, 4_000_000)
    assert np.sign(voters).mean() ** 2 / variance == pytest.approx(1.0, rel=0.03)
    assert faintest_margins(np.full(axes, 10.0)) == 0.25
    assert 0.5 + math.atan(0.25) / math.pi == pytest.approx(0.58, abs=0.005)


def test_of_fewer_records_fainter_margins_do_not_show():
    """Simulated voters, whose mean score of four records with one contrast each says their side of an axis."""
    rng, axes, tau, variance, records = np.random.default_rng(3), 2, 0.3, 0.003, 4
    faintest = faintest_margins(np.full(axes, variance), records)
    pooled = faintest / math.sqrt(axes)
    own = rng.normal(pooled * math.sqrt(1 + axes * tau**2), tau, 4_000_000)
    means = math.sqrt(2 / math.pi) * own + rng.normal(0.0, math.sqrt(1 / records), len(own))
    assert np.sign(means).mean() ** 2 / variance == pytest.approx(1.0, rel=0.05)
    assert faintest > 1.5 * faintest_margins(np.full(axes, variance))


def test_of_faint_crowds_probabilities_are_not_told_too_surely():
    """Crowds of which 61 % agree in a dilemma, nine axes, and noise of twice the preference along each.

    Taken to have margins of at least 0.5, such crowds are told to agree by 5 % more than they do.
    """
    rng, ballots, gaps = np.random.default_rng(5), Straight(9, 1.0), []
    for _ in range(30):
        preference = rng.normal(size=9)
        preference *= 0.44 / np.linalg.norm(preference)
        seen = preference / 2 + rng.normal(0.0, 0.16, 9)
        stated = stated_by(likely_crowds(ballots, [(1.0, 1.0)], [0.0], seen, np.full(9, 0.16**2)), ballots.dilemmas)
        agree = ndtr(ballots.dilemmas @ preference)
        gaps.append((np.maximum(stated, 1 - stated) - np.where(stated > 0.5, agree, 1 - agree)).mean())
    assert np.mean(gaps) < 0.02


def test_where_ballots_say_only_on_which_side_a_voter_is_the_prior_says_how_far():
    """With hundreds of answers that all lean to one side, the least preference is not the likeliest size of it."""
    ballots = ClippedBallots(synthetic_study(2, 100), 0.03)
    seen = np.array([1.0, 0.0])
    found = likely_crowds(ballots, [(1.0, 1.0)], [0.15], seen, np.array([0.05, 0.05]))
    sides = [size * math.sqrt(2 / math.pi) for size in deviations(2, 0.05)]
    # Prior times likelihood, added up over a grid; nothing explains these means far along the second axis, and nothing
    # that leans to the other side: its likelihood is e^-40.
    line, near = np.linspace(-1, 10, 111), np.linspace(-2, 2, 41)
    grid = np.stack(np.meshgrid(line, near, indexing="ij"), axis=2).reshape(-1, 2)
    prior = np.mean(
        [np.exp(-0.5 * np.square(grid / size).sum(axis=1)) / size**2 for size in deviations(2, 0.05)], axis=0
    )
    # A few crowds at a time: each is evaluated on thousands of dilemmas.
    shown = np.concatenate([ballots.shown_by(some, 1.0, 0.15) for some in np.array_split(grid, 100)])
    weights = prior * np.exp(-0.5 * np.square(seen - shown).sum(axis=1) / 0.05)
    expected = weights @ grid / weights.sum()
    least = line[(ballots.shown_by(np.outer(line, [1.0, 0.0]), 1.0, 0.15)[:, 0] > 0.9).argmax()]
    assert expected[0] > 2 * least
    assert found.common == pytest.approx(expected, abs=0.15 * expected[0])
    assert min(sides) < found.mean[0] < max(sides)
