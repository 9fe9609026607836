"""What mean scores tell of a preference: against closed forms, and true of faint and of loud crowds."""

from itertools import compress, product

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import multivariate_normal

from crowdveil.estimation.disagreement import DISAGREEMENT, pooled_probit, reach
from crowdveil.estimation.likely_preferences import _Errors, _lean, likely_preferences
from crowdveil.estimation.prior import LIKELY_MARGINS
from crowdveil.estimation.record_axes import record_axes
from crowdveil.estimation.tilted_design import moment_count, moments, tilted
from crowdveil.study.bundled import load_study, synthetic_study

AXES = record_axes(load_study("kidney"))
MANY_AXES = record_axes(synthetic_study(40, 20))
ALONG = AXES.design.along
SEEN = ALONG * reach(ALONG, DISAGREEMENT)[:, None]
TAUS = (0.0, 0.3, 0.6)
COMMON = np.array([0.4, -0.3, 0.2, 0.0, 0.1])
UNTOLD = tilted(AXES.design, np.zeros(moment_count(5)), 1e6 * np.eye(moment_count(5)))


def shown(common):
    """The mean scores of a crowd."""
    return AXES.scores.T @ (2 * ndtr(SEEN @ common) - 1) / len(SEEN)


def test_without_noise_the_pooled_probit_comes_out():
    found = likely_preferences(AXES, shown(COMMON), 1e-8 * np.eye(5))
    assert found.mean == pytest.approx(pooled_probit(ALONG, COMMON, DISAGREEMENT)[0], abs=0.02)
    assert np.sqrt(np.diag(found.covariance)).max() < 0.03


def test_where_nothing_is_told_the_prior_remains():
    found = likely_preferences(AXES, np.array([0.9, -0.9, 0.9, 0.0, 0.0]), 1e4 * np.eye(5))
    assert np.abs(found.mean).max() < 0.03
    # Seen through what the pooled probit makes of b, which is nearly b.
    fainter = np.mean([1 / (1 + 5 * tau**2) for tau in TAUS])
    assert np.trace(found.covariance) == pytest.approx(np.mean(np.square(LIKELY_MARGINS)) * fainter, rel=0.1)


@pytest.mark.parametrize(
    ("axes", "deviation", "length"), [(AXES, 0.02, 0.1), (MANY_AXES, 0.005, 0.03), (MANY_AXES, 0.002, 0.0)]
)
def test_of_a_small_preference_it_is_a_mixture_of_normal_laws(axes, deviation, length):
    """What is shown is then a line in b, and each size and disagreement has a normal posterior and an evidence.

    Of many axes, and a crowd that hardly prefers anything, the sizes differ by far more than the data tell.
    """
    along = axes.design.along
    k = along.shape[1]
    rng = np.random.default_rng(3)
    covariance = deviation**2 * np.eye(k)
    common = rng.normal(0, length / np.sqrt(k), k)

    def line(tau):
        return np.sqrt(2 / np.pi) * axes.scores.T @ (along * reach(along, tau)[:, None]) / len(along)

    lines = {tau: line(tau) for tau in TAUS}
    scores = line(DISAGREEMENT) @ common + rng.normal(0, deviation, k)
    laws = []
    for size, tau in product(LIKELY_MARGINS, TAUS):
        prior = np.eye(k) * size**2 / (k * (1 + k * tau**2))
        marginal = lines[tau] @ prior @ lines[tau].T + covariance
        laws.append((tau, prior, prior @ lines[tau].T @ np.linalg.inv(marginal)))
        laws[-1] += (multivariate_normal(np.zeros(k), marginal).logpdf(scores),)
    logs = np.array([log for *_, log in laws])
    weights = np.exp(logs - logs.max())
    likely = weights > 1e-9  # The others' probits would cost as much, and be seen nowhere.
    weights = weights[likely] / weights[likely].sum()
    means, spreads = [], []
    for tau, prior, gain, _ in compress(laws, likely):
        pooled, carried = pooled_probit(along, gain @ scores, tau)
        means.append(pooled)
        spreads.append(np.trace(carried @ (prior - gain @ lines[tau] @ prior) @ carried.T))
    mean = weights @ means
    among = weights @ np.square(np.array(means) - mean).sum(axis=1)
    found = likely_preferences(axes, scores, covariance)
    assert found.effective >= 1000
    assert found.mean == pytest.approx(mean, abs=0.04 * np.sqrt(weights @ spreads))
    assert np.trace(found.covariance) == pytest.approx(weights @ spreads + among, rel=0.05)


def test_a_tilt_that_is_not_told_is_not_known():
    known = likely_preferences(AXES, shown(COMMON), 1e-4 * np.eye(5))
    unknown = likely_preferences(AXES.over(UNTOLD.differences), shown(COMMON), 1e-4 * np.eye(5), UNTOLD)
    assert np.trace(unknown.covariance) > 1.5 * np.trace(known.covariance)


@pytest.mark.parametrize("size", [0.25, *(pytest.param(size, marks=pytest.mark.slow) for size in (0.4, 0.8)), 1.6])
def test_of_faint_and_of_loud_crowds_neither_too_much_nor_too_little_is_believed(size):
    """Seeded. A slope of the truth on the stated margins, as on held-out choices; 1 is honest, 0.5 much too sure.

    Of single crowds' sizes a prior may be off: on the whole, squared errors are about as large as stated.
    """
    rng = np.random.default_rng(7)
    deviation = 0.06
    agree, own, error, known = 0.0, 0.0, 0.0, 0.0
    for _ in range(16):
        common = rng.normal(size=5)
        common *= size / np.linalg.norm(common)
        truth = pooled_probit(ALONG[:2000], common, DISAGREEMENT)[0]
        found = likely_preferences(AXES, shown(common) + rng.normal(0, deviation, 5), deviation**2 * np.eye(5))
        agree, own = agree + truth @ found.mean, own + found.mean @ found.mean
        error, known = error + np.square(truth - found.mean).sum(), known + np.trace(found.covariance)
    assert 0.7 < agree / own < 1.5
    assert 0.5 < error / known < 1.5


@pytest.mark.parametrize("axes", [AXES, record_axes(synthetic_study(52, 20))], ids=["few axes", "many axes"])
@pytest.mark.parametrize("told", [False, True])
def test_the_errors_of_a_sample_of_dilemmas(axes, told):
    """The covariance of a mean over dilemmas, and of what a tilt moves it by, one preference after another."""
    along, k = axes.design.along, axes.design.directions
    dilemmas = tilted(axes.design, np.zeros(moment_count(k)), 1e-2 * np.eye(moment_count(k))) if told else None
    rows = slice(None, None, 32)
    if dilemmas is not None:
        axes = axes.over(dilemmas.differences)
        along = axes.design.along
    x, z = along[rows], axes.scores[rows]
    small = np.random.default_rng(4).normal(0, 0.3, (3, k))
    found = _Errors.of(z, x, len(along), dilemmas, rows).covariances(small.astype(np.float32))
    for preference, covariance in zip(small, found, strict=True):
        each = np.sqrt(2 / np.pi) * z * (x @ preference)[:, None]
        expected = np.cov(each.T, bias=True) / len(along)
        if dilemmas is not None:
            moments_told = dilemmas.moments[rows]
            moved = (each - each.mean(axis=0)).T @ moments_told / len(x)
            expected += moved @ dilemmas.spread @ moved.T
        assert covariance == pytest.approx(expected[np.triu_indices(k)], rel=1e-4, abs=1e-5 * np.abs(expected).max())


def test_margins_become_leanings():
    margins = np.linspace(-9, 9, 1001).reshape(7, 143)
    leaning = margins.copy()
    _lean(leaning)
    assert leaning == pytest.approx(2 * ndtr(margins) - 1, abs=1e-15)


def test_it_is_the_same_every_time():
    first, second = (likely_preferences(AXES, shown(COMMON), 1e-3 * np.eye(5)) for _ in range(2))
    assert np.array_equal(first.mean, second.mean)
    assert np.array_equal(first.covariance, second.covariance)
    assert first.effective >= 300


def test_with_many_axes_the_posterior_is_no_narrower_than_the_noise():
    """Of 40 numbers, few draws are likely: one that carried all the weight would leave no uncertainty at all."""
    axes = MANY_AXES
    along = axes.design.along
    common, deviation = np.random.default_rng(8).normal(0, 0.8 / np.sqrt(40), 40), 0.003
    seen = along * reach(along, DISAGREEMENT)[:, None]
    scores = axes.scores.T @ (2 * ndtr(seen @ common) - 1) / len(seen)
    slope = (axes.scores * np.sqrt(2 / np.pi) * np.exp(-0.5 * (seen @ common) ** 2)[:, None]).T @ seen / len(seen)
    dilemmas = tilted(axes.design, moments(along).mean(axis=0), 1e-3 * np.eye(40))
    found = likely_preferences(axes.over(dilemmas.differences), scores, deviation**2 * np.eye(40), dilemmas)
    expected = deviation * np.sqrt(np.diag(np.linalg.inv(slope.T @ slope)))
    assert (np.sqrt(np.diag(found.covariance)) > 0.8 * expected).all()
    pooled, _ = pooled_probit(along, common, DISAGREEMENT)
    assert np.linalg.norm(found.mean - pooled) < 0.15 * np.linalg.norm(pooled)
