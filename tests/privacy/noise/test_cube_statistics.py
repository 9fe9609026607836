"""The cube's drawn noise against its law. Every assertion that chance could break does so with less than 1e-7."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.noise import coins as laplace_coins
from crowdveil.privacy.noise import cube_noise as cube_module
from crowdveil.privacy.noise.coins import draw
from crowdveil.privacy.noise.exact_noise import BulkNoise, OpenDPNoise
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments

FALSE_ALARM = 1e-8
LARGE = 2**31
SMALL = [(1, 2_000_000), (1, 1_000_000), (3, 1_000_000), (7, 4_000_000)]


def fit(vectors, scale):
    """The p-value of a chi-square test against the law: a cell for each vector that is expected 100 times or more."""
    d, q = vectors.shape[1], math.exp(-1 / scale)
    weights = q ** np.arange(2000) * np.array([1, *((2 * m + 1.0) ** d - (2 * m - 1.0) ** d for m in range(1, 2000))])
    reach = 0
    while len(vectors) * q ** (reach + 1) / weights.sum() >= 100 and (2 * reach + 3) ** d < 3000:
        reach += 1
    norms = np.abs(vectors).max(axis=1)
    inside = vectors[norms <= reach] + reach
    index = inside @ (2 * reach + 1) ** np.arange(d)
    cells = np.array(list(product(range(-reach, reach + 1), repeat=d)))[:, ::-1]
    law = q ** np.abs(cells).max(axis=1) / weights.sum()
    observed = [*np.bincount(index, minlength=len(cells)), len(vectors) - len(inside)]
    expected = np.array([*law, 1 - law.sum()]) * len(vectors)
    if expected[-1] < 100:
        observed, expected = observed[:-1], expected[:-1] * (sum(observed[:-1]) / expected[:-1].sum())
    return stats.chisquare(observed, expected).pvalue


def draws(sensitivity, micro, d, count=400_000, source=None):
    return (source or BulkNoise()).cube(sensitivity, Epsilons.of_millionths(np.full(count, micro)), d)


@pytest.mark.parametrize(("sensitivity", "micro"), SMALL)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_small_scales_follow_the_closed_form(sensitivity, micro, d):
    assert fit(draws(sensitivity, micro, d), sensitivity * 1e6 / micro) > FALSE_ALARM


def test_a_row_of_one_is_discrete_laplace_noise():
    cube, laplace = (
        draws(3, 1_000_000, 1),
        BulkNoise().laplace(3, Epsilons.same(1, 400_000), 1),
    )
    reach = 30
    counts = [np.bincount(np.clip(x[:, 0], -reach, reach) + reach, minlength=2 * reach + 1) for x in (cube, laplace)]
    assert stats.chi2_contingency([row + 1 for row in counts]).pvalue > FALSE_ALARM


@pytest.mark.parametrize("factor", [0.5, 1 / math.sqrt(2), math.sqrt(2), 2])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_same_test_catches_a_wrong_scale(d, factor):
    assert fit(draws(3, round(1_000_000 / factor), d), 3.0) < FALSE_ALARM


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_same_test_catches_a_wrong_count_of_points(monkeypatch, d):
    """Radii with the weight (2r - 1)^d q^r are greater by one than those with (2r + 1)^d q^r."""
    radii = cube_module._radii

    def greater(*args):
        right, large = radii(*args)
        return right + 1, large

    monkeypatch.setattr(cube_module, "_radii", greater)
    assert fit(draws(3, 1_000_000, d), 3.0) < FALSE_ALARM


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_same_test_catches_a_missing_geometric_variable(monkeypatch, d):
    """With d of them, R has the weights of the cube's surface, (2r + 1)^d - (2r - 1)^d; the points fill the cube."""

    def one_less(*args, **kwargs):
        values, tails = draw(*args, **kwargs)
        values[:: d + 1] = 1
        return values, tails

    monkeypatch.setattr(cube_module, "draw", one_less)
    assert fit(draws(3, 1_000_000, d), 3.0) < FALSE_ALARM


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_same_test_catches_a_missing_shift(monkeypatch, d):
    """K = 0 makes the weights of the radii C(r + d, d) q^r."""
    monkeypatch.setattr(cube_module, "invert", lambda source, thresholds, count: np.zeros(count, dtype=np.int64))
    assert fit(draws(3, 1_000_000, d), 3.0) < FALSE_ALARM


def test_the_rounded_float_noise_does_not_follow_it():
    assert fit(draws(1, 1_000_000, 2, source=FloatNoiseForExperiments(1)), 1.0) < FALSE_ALARM


@pytest.mark.parametrize("span", [pytest.param(Fraction(1, 4), marks=pytest.mark.slow), Fraction(1, 1000)])
def test_the_tails_of_the_geometric_variables_follow_the_closed_form_too(monkeypatch, span):
    """With few or no digits, nearly every radius goes through a tail."""
    monkeypatch.setattr(laplace_coins, "DIGITS_SPAN", span)
    assert fit(draws(3, 1_000_000, 2, count=4_000), 3.0) > FALSE_ALARM


large_sources = pytest.mark.parametrize(
    "source", [BulkNoise(), OpenDPNoise(), FloatNoiseForExperiments(2)], ids=lambda source: type(source).__name__
)


@large_sources
@pytest.mark.parametrize("d", [1, 2, 10, 23])
def test_large_scales_follow_the_continuous_limit(source, d):
    """In units of the scale: the norm is gamma(d), and the other coordinates are uniform up to the norm."""
    vectors = draws(LARGE, 1_000_000, d, 30_000, source) / LARGE
    norms = np.abs(vectors).max(axis=1)
    assert stats.kstest(norms, stats.gamma(d).cdf).pvalue > FALSE_ALARM
    assert stats.kstest(norms, stats.gamma(d + 1).cdf).pvalue < FALSE_ALARM
    assert stats.kstest(norms * math.sqrt(2), stats.gamma(d).cdf).pvalue < FALSE_ALARM
    largest = np.abs(vectors).argmax(axis=1)
    assert d == 1 or stats.chisquare(np.bincount(largest, minlength=d)).pvalue > FALSE_ALARM
    rows, others = np.arange(len(vectors)), (largest + 1) % d
    assert d == 1 or stats.kstest(vectors[rows, others] / norms, stats.uniform(-1, 2).cdf).pvalue > FALSE_ALARM


@large_sources
def test_moments_of_a_coordinate(source):
    """R is gamma(d + 1) and X_j uniform up to R: E X_j^2 = (d+1)(d+2)/3 and E X_j^4 = (d+1)(d+2)(d+3)(d+4)/5."""
    d, rows = 10, 50_000
    squares = (draws(LARGE, 1_000_000, d, rows, source) / LARGE) ** 2
    second, fourth = (d + 1) * (d + 2) / 3, (d + 1) * (d + 2) * (d + 3) * (d + 4) / 5
    assert np.abs(squares.mean(axis=0) - second).max() < 6.5 * math.sqrt((fourth - second**2) / rows)


@pytest.mark.parametrize("sensitivity", [2**40, 2**52 // 24])
def test_the_largest_scales_too(sensitivity):
    vectors = draws(sensitivity, 1_000_000, 23, 10_000)
    assert stats.kstest(np.abs(vectors).max(axis=1) / sensitivity, stats.gamma(23).cdf).pvalue > FALSE_ALARM


def test_the_last_digits_of_large_noise_are_uniform():
    last = draws(LARGE, 1_000_000, 10, 100_000) & 63
    assert stats.chisquare(np.bincount(last.ravel(), minlength=64)).pvalue > FALSE_ALARM


def test_many_columns_at_a_small_scale():
    """Where drawing a radius by rejection would never end: 300 columns at a scale of 1/2."""
    d = 300
    radii = np.arange(2000)
    log_weights = d * np.log(2 * radii + 1) - 2 * radii
    weights = np.exp(log_weights - log_weights.max())
    law = weights / weights.sum()
    # P(|x| <= m) is the sum over r of P(R = r) min(1, ((2m + 1) / (2r + 1))^d).
    norms = np.abs(draws(1, 2_000_000, d, 3000)).max(axis=1)
    cdf = [float(law @ np.minimum(1.0, (2 * m + 1) / (2 * radii + 1)) ** d) for m in range(norms.max() + 1)]
    shares = np.cumsum(np.bincount(norms)) / norms.size
    # Massart's bound: the empirical distribution function is this near but for a chance of 2 exp(-2 n x^2).
    assert np.abs(shares - cdf).max() < math.sqrt(math.log(2 / FALSE_ALARM) / (2 * norms.size))


def test_many_different_epsilons_at_once():
    epsilons = np.random.default_rng(5).permutation(np.arange(10_000, 11_000))
    vectors = BulkNoise().cube(LARGE, Epsilons.of_millionths(epsilons), 5) * (epsilons[:, np.newaxis] / (LARGE * 1e6))
    assert stats.kstest(np.abs(vectors).max(axis=1), stats.gamma(5).cdf).pvalue > FALSE_ALARM


def test_rows_are_independent_of_each_other():
    """Norms of neighbouring rows, and the signs of neighbouring coordinates: P(|normal| > 6) < 2e-9."""
    vectors = draws(LARGE, 1_000_000, 10, 50_000)
    norms = np.log(np.abs(vectors).max(axis=1))
    norms = (norms - norms.mean()) / norms.std()
    for lag in range(1, 66):
        assert abs(norms[lag:] @ norms[:-lag]) / math.sqrt(norms.size) < 6
    signs = np.sign(vectors).ravel()
    for lag in range(1, 66):
        assert abs(signs[lag:] @ signs[:-lag]) / math.sqrt(signs.size) < 6
