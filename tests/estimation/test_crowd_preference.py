"""The crowd's preference, against closed forms, a general optimiser and finite differences."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

import crowdveil.ballots.ballots
from crowdveil.ballots.ballots import Ballots
from crowdveil.errors import CrowdveilError, ImpossibleEstimate
from crowdveil.estimation.crowd_preference import crowd_preference
from crowdveil.study.bundled import load_study
from crowdveil.study.study import Study

WEIGHTINGS = ("voters", "choices")


def crowd(dilemmas, choices, counts):
    dilemmas = np.array(dilemmas, np.float64)
    study = load_study(f"synthetic-{dilemmas.shape[1]}")
    return Ballots(study, np.concatenate([[0], np.cumsum(counts)]), dilemmas, np.array(choices, np.int8))


def random_crowd(seed, voters=60, features=4, preference=(0.8, -0.5, 0.3, 0.0)):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 9, voters)
    dilemmas = rng.normal(size=(counts.sum(), features)) * [1, 10, 0.1, 1][:features]
    margins = dilemmas @ (np.array(preference[:features]) / [1, 10, 0.1, 1][:features])
    choices = np.where(rng.normal(size=len(margins)) < margins, 1, -1)
    choices[rng.uniform(size=len(margins)) < 0.1] = 0
    return crowd(dilemmas, choices, counts)


def plain_loss(ballots, beta, weighting):
    """Minus the mean log-likelihood, written voter by voter."""
    voters = []
    for start, stop in zip(ballots.offsets[:-1], ballots.offsets[1:], strict=True):
        choices = ballots.choices[start:stop]
        logs = stats.norm.logcdf((choices * (ballots.dilemmas[start:stop] @ beta))[choices != 0])
        if logs.size:
            voters.append(logs)
    if weighting == "choices":
        return -np.concatenate(voters).mean()
    return -np.mean([logs.mean() for logs in voters])


def share_crowd(right, number, size=1.0, each=1):
    """Voters who all saw the same difference in one feature; so many of them chose the larger side."""
    return crowd([[size]] * number * each, ([1] * right + [-1] * (number - right)) * each, [each] * number)


def test_one_difference_gives_the_quantile_of_the_share():
    """Phi(beta v) = r, and by the delta method the variance of beta is r (1 - r) / (n - 1) / (v phi(beta v))^2."""
    right, number, size = 30, 40, 2.5
    found = crowd_preference(share_crowd(right, number, size))
    quantile, share = stats.norm.ppf(right / number), right / number
    assert found.preference == pytest.approx([quantile / size], rel=1e-9)
    deviation = math.sqrt(share * (1 - share) / (number - 1)) / (size * stats.norm.pdf(quantile))
    assert found.standard_errors == pytest.approx([deviation], rel=1e-9)
    assert (found.voters, found.choices) == (number, number)


def test_every_voter_counts_once_or_every_choice_does():
    # One voter chose the larger side nine times, three voters the smaller side once each, one the larger side once.
    ballots = crowd([[1.0]] * 13, [1] * 9 + [-1] * 3 + [1], [9, 1, 1, 1, 1])
    assert crowd_preference(ballots).preference == pytest.approx([stats.norm.ppf(2 / 5)], rel=1e-9)
    by_choice = crowd_preference(ballots, weighting="choices")
    assert by_choice.preference == pytest.approx([stats.norm.ppf(10 / 13)], rel=1e-9)


def test_undecided_choices_and_voters_without_another_are_left_out():
    ballots = crowd([[1.0], [1.0], [5.0], [1.0], [7.0]], [1, -1, 0, 1, 0], [1, 1, 2, 1])
    found = crowd_preference(ballots)
    assert (found.voters, found.choices) == (3, 3)
    assert found.preference == pytest.approx([stats.norm.ppf(2 / 3)], rel=1e-9)
    with pytest.raises(ImpossibleEstimate, match="no choice was decided"):
        crowd_preference(crowd([[1.0]], [0], [1]))


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("seed", [1, 2])
def test_it_is_the_most_likely_preference(weighting, seed):
    ballots = random_crowd(seed)
    found = crowd_preference(ballots, weighting=weighting)
    scale = np.array([1, 0.1, 10, 1])
    best = optimize.minimize(lambda x: plain_loss(ballots, x * scale, weighting), np.zeros(4), method="BFGS")
    # BFGS stops at a gradient of 1e-5; the curvature here is above 0.1.
    assert found.preference / scale == pytest.approx(best.x, abs=1e-4)
    assert plain_loss(ballots, found.preference, weighting) <= best.fun + 1e-12
    assert found.known.all()


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_covariance_is_the_sandwich_of_voters(weighting):
    ballots = random_crowd(3, features=2)
    found = crowd_preference(ballots, weighting=weighting)
    decided = ballots.decided()
    total = decided.records if weighting == "choices" else decided.voters
    scale = np.array([1, 0.1])

    def loss_of_voter(i, x):
        alone = decided[i : i + 1]
        return plain_loss(alone, x * scale, weighting) * (alone.records if weighting == "choices" else 1) / total

    def gradient(f, x, h=1e-4):
        return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(2)])

    at = found.preference / scale
    scores = np.array([gradient(lambda x, i=i: loss_of_voter(i, x), at) for i in range(decided.voters)])
    hessian = gradient(lambda y: gradient(lambda x: plain_loss(decided, x * scale, weighting), y), at)
    factor = decided.voters / (decided.voters - 1)
    expected = factor * np.linalg.inv(hessian) @ scores.T @ scores @ np.linalg.inv(hessian)
    # Central differences with step h are wrong by about h^2 = 1e-8 of third derivatives, and 1e-16 / h^2 = 1e-8.
    assert found.covariance / np.outer(scale, scale) == pytest.approx(expected, rel=1e-5)
    assert found.standard_errors == pytest.approx(np.sqrt(np.diag(found.covariance)))


def test_choices_of_one_voter_are_not_taken_for_many():
    """Ten answers alike from everybody say no more than one from everybody."""
    once, tenfold = share_crowd(30, 40), crowd([[1.0]] * 400, [1] * 300 + [-1] * 100, [10] * 40)
    for weighting in WEIGHTINGS:
        found = crowd_preference(tenfold, weighting=weighting)
        assert found.standard_errors == pytest.approx(crowd_preference(once).standard_errors, rel=1e-9)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_batches_do_not_matter(weighting, monkeypatch):
    ballots = random_crowd(4)
    whole = crowd_preference(ballots, weighting=weighting)
    monkeypatch.setattr(crowdveil.ballots.ballots, "VOTERS_PER_BATCH", 7)
    assert len(list(ballots.batches())) == 9
    cut = crowd_preference(ballots, weighting=weighting)
    # Sums in another order differ in the last digits.
    assert cut.preference == pytest.approx(whole.preference, rel=1e-9)
    assert cut.covariance == pytest.approx(whole.covariance, rel=1e-9, abs=1e-12)


def test_a_batch_without_a_decided_choice_adds_nothing(monkeypatch):
    monkeypatch.setattr(crowdveil.ballots.ballots, "VOTERS_PER_BATCH", 1)
    found = crowd_preference(crowd([[1.0]] * 4, [1, 0, 1, -1], [1] * 4))
    assert found.preference == pytest.approx([stats.norm.ppf(2 / 3)], rel=1e-9)


def test_directions_restrict_the_preference():
    ballots = random_crowd(5)
    directions = np.array([[1, 0], [1, 0], [0, 2], [0, -1]])
    found = crowd_preference(ballots, directions=directions)
    along = crowd(ballots.dilemmas @ directions, ballots.choices, np.diff(ballots.offsets))
    expected = crowd_preference(along)
    assert found.coordinates == pytest.approx(expected.preference, rel=1e-9)
    assert found.covariance == pytest.approx(expected.covariance, rel=1e-9)
    assert found.preference == pytest.approx(directions @ found.coordinates)


def test_units_do_not_matter():
    ballots = random_crowd(6)
    units = np.array([1e-4, 1.0, 1e5, 3.0])
    found = crowd_preference(ballots, directions=np.diag(units))
    assert found.preference == pytest.approx(crowd_preference(ballots).preference, rel=1e-8)


def test_a_feature_that_never_differs_is_zero_and_said_to_be_unknown():
    ballots = random_crowd(7)
    dead = crowd(ballots.dilemmas * [1, 0, 1, 1], ballots.choices, np.diff(ballots.offsets))
    found = crowd_preference(dead)
    assert found.preference[1] == pytest.approx(0, abs=1e-12)
    assert found.identified.tolist() == found.known.tolist() == [True, False, True, True]
    assert math.isinf(found.standard_errors[1])
    others = crowd_preference(dead, directions=np.eye(4)[:, [0, 2, 3]])
    assert found.preference == pytest.approx(others.preference, rel=1e-9, abs=1e-12)
    assert found.standard_errors[[0, 2, 3]] == pytest.approx(others.standard_errors, rel=1e-9)


def test_features_that_always_differ_together_share_their_preference():
    ballots = random_crowd(8)
    dilemmas = ballots.dilemmas.copy()
    dilemmas[:, 3] = dilemmas[:, 0]
    found = crowd_preference(crowd(dilemmas, ballots.choices, np.diff(ballots.offsets)))
    assert found.identified.tolist() == [False, True, True, False]
    assert found.preference[0] == pytest.approx(found.preference[3], rel=1e-6)
    together = crowd_preference(
        crowd(dilemmas, ballots.choices, np.diff(ballots.offsets)),
        directions=np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]),
    )
    assert found.preference == pytest.approx(together.preference, rel=1e-6)
    assert found.standard_errors[1:3] == pytest.approx(together.standard_errors[1:], rel=1e-6)


def test_effects_of_a_categorys_levels_sum_to_zero_and_are_known():
    """The same as a fit with an effect less, which is minus the sum of the others."""
    study = Study.from_dict(
        {
            "name": "soup",
            "question": "Which?",
            "drawing": {"method": "independent", "dilemmas": 1},
            "features": [{"name": "price", "low": 0, "high": 9, "levels": [1, 5]}],
            "categories": [{"name": "kind", "levels": ["leek", "pea", "fish"]}],
        }
    )
    rng = np.random.default_rng(3)
    levels = np.eye(3)[rng.integers(3, size=(2, 600))]
    dilemmas = np.column_stack([rng.choice([-4.0, 0.0, 4.0], 600), levels[0] - levels[1]])
    choices = np.where(rng.normal(size=600) < dilemmas @ [-0.1, 0.1, 0.3, -0.4], 1, -1).astype(np.int8)
    ballots = Ballots(study, np.arange(0, 601, 3), dilemmas, choices)
    without = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, -1, -1]])
    best = optimize.minimize(lambda free: plain_loss(ballots, without @ free, "voters"), np.zeros(3), tol=1e-10)
    found = crowd_preference(ballots)
    assert found.known.all()
    assert found.preference == pytest.approx(without @ best.x, abs=1e-6)
    free = crowd_preference(ballots, directions=without.astype(np.float64))
    assert found.covariance == pytest.approx(without @ free.covariance @ without.T, rel=1e-6, abs=1e-12)
    # Where one level was never shown, the others are known against each other only, and not against the mean of all.
    shown = (levels[0, :, 2] == 0) & (levels[1, :, 2] == 0)
    some = crowd_preference(Ballots(study, np.arange(shown.sum() + 1), dilemmas[shown], choices[shown]))
    assert some.known.tolist() == [True, False, False, False]


@pytest.mark.parametrize("weight", [1, 1000])
def test_unanimous_choices_stay_in_the_ball_and_are_said_to_be_unknown(weight):
    """Nobody who saw the second feature differ dissents: its sign is clear and its size is not."""
    rng = np.random.default_rng(9)
    voters = 20 * weight
    dilemmas = np.zeros((voters, 2))
    dilemmas[:, 0] = 1
    choices = np.where(rng.uniform(size=voters) < 0.7, 1, -1)
    dilemmas[:3] = [0, 1]
    choices[:3] = 1
    found = crowd_preference(crowd(dilemmas, choices, [1] * voters))
    assert found.separated.tolist() == [False, True]
    assert 5 <= found.preference[1] < 10
    assert math.isinf(found.standard_errors[1])
    assert found.preference[0] == pytest.approx(stats.norm.ppf((choices[3:] > 0).mean()), rel=1e-6)
    assert math.isfinite(found.standard_errors[0])


def test_one_voter_has_no_sampling_error():
    alone = crowd([[1.0], [1.0], [1.0]], [1, 1, -1], [3])
    found = crowd_preference(alone)
    assert found.preference == pytest.approx([stats.norm.ppf(2 / 3)], rel=1e-9)
    assert found.known.all()
    assert np.isinf(found.standard_errors).all()


def test_one_voter_who_is_consistent_stays_finite():
    rng = np.random.default_rng(10)
    dilemmas = rng.normal(size=(5, 4))
    found = crowd_preference(crowd(dilemmas, np.sign(dilemmas[:, 0]), [5]))
    assert np.isfinite(found.preference).all()
    assert (np.sign(dilemmas @ found.preference) == np.sign(dilemmas[:, 0])).all()
    assert not found.known.any()


def test_the_sampling_error_covers():
    """Voters disagree; a normal disagreement D makes the crowd's preference beta / sqrt(1 + v' D v)."""
    rng = np.random.default_rng(11)
    voters, each, spread, mean = 80, 5, 0.8, 0.6
    truth, covered = mean / math.sqrt(1 + spread**2), 0
    for _ in range(200):
        sides = rng.choice([-1.0, 1.0], size=(voters, each))
        own = mean + spread * rng.normal(size=(voters, 1))
        choices = np.where(rng.normal(size=(voters, each)) < own * sides, 1, -1)
        found = crowd_preference(crowd(sides.reshape(-1, 1), choices.reshape(-1), [each] * voters))
        covered += abs(found.preference[0] - truth) <= 2 * found.standard_errors[0]
    # About 95 % of 200 is 190, five standard deviations (15) below.
    assert covered >= 175


@pytest.mark.parametrize(
    "directions", [np.eye(2), np.ones(4), np.full((4, 1), np.nan), np.zeros((4, 0)), pytest.param(10**400, id="huge")]
)
def test_directions_must_fit(directions):
    with pytest.raises(CrowdveilError, match="a row for each of the 4 features"):
        crowd_preference(random_crowd(1), directions=directions)


def test_nobody_has_no_preference():
    with pytest.raises(CrowdveilError, match="there are no voters in these ballots of the study synthetic-4"):
        crowd_preference(random_crowd(1)[:0])


def test_the_weighting_must_be_known():
    with pytest.raises(CrowdveilError, match="'voters' or 'choices'"):
        crowd_preference(random_crowd(1), weighting="people")
