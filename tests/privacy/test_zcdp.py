"""zCDP: conversions against OpenDP and closed forms, the discrete Gaussian against its law and its theorem."""

import math
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.grid import STEPS, sum_of_preferences
from crowdveil.privacy.noise.exact_noise import OpenDPGaussian, gaussian_variance, root_above
from crowdveil.privacy.zcdp import ZcdpBudget, epsilon_of, rho_of

dp.enable_features("contrib")

FALSE_ALARM = 1e-8

rhos = st.floats(-6, 2).map(lambda exponent: 10**exponent)
deltas = st.floats(-15, -2).map(lambda exponent: 10**exponent)


def opendp_epsilon(rho, delta):
    """OpenDP's conversion of the same rho: that of a Gaussian of scale 1 and a distance of sqrt(2 rho)."""
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    gaussian = space >> dp.m.then_gaussian(scale=1.0)
    return dp.c.make_zCDP_to_approxDP(gaussian).map(math.sqrt(2 * rho)).epsilon(delta)


@given(rhos, deltas)
def test_the_conversion_agrees_with_opendp(rho, delta):
    assert epsilon_of(rho, delta) == pytest.approx(opendp_epsilon(rho, delta), rel=1e-6, abs=1e-9)


@given(rhos, deltas)
def test_never_worse_than_the_first_closed_form(rho, delta):
    """Bun and Steinke 2016, Proposition 1.3: rho + 2 sqrt(rho ln(1 / delta))."""
    assert epsilon_of(rho, delta) < rho + 2 * math.sqrt(rho * math.log(1 / delta))


@given(rhos, deltas)
def test_never_better_than_the_gaussian_mechanism_allows(rho, delta):
    """The exact delta of Gaussian noise (Balle and Wang 2018) is a lower bound for anything that is true of zCDP."""
    epsilon, mu = epsilon_of(rho, delta), math.sqrt(2 * rho)
    needed = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon + stats.norm.logcdf(-mu / 2 - epsilon / mu))
    assert needed <= delta * (1 + 1e-9)


@given(st.floats(0.001, 50), deltas)
def test_there_and_back(epsilon, delta):
    rho = rho_of(epsilon, delta)
    assert epsilon_of(rho, delta) == pytest.approx(epsilon, rel=1e-6)
    assert opendp_epsilon(rho, delta) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_a_pure_release_costs_no_more_than_half_its_epsilon_squared(epsilon):
    """Randomised response, the worst epsilon-private mechanism there is, has Renyi divergences in closed form."""
    yes, no = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    for alpha in (1.001, 1.1, 2.0, 5.0, 30.0):
        divergence = math.log(yes**alpha * no ** (1 - alpha) + no**alpha * yes ** (1 - alpha)) / (alpha - 1)
        assert divergence <= alpha * epsilon**2 / 2 * (1 + 1e-9)


@given(st.fractions(Fraction(1, 10**12), 10**20))
def test_root_above(x):
    root = root_above(x)
    assert Fraction(root) ** 2 >= x > Fraction(math.nextafter(root, 0)) ** 2


def discrete_gaussian(variance, reach):
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-(x**2) / (2 * variance))
    return x, weights / weights.sum()


@pytest.mark.parametrize("rho", [Fraction(1, 8), Fraction(2), Fraction(1, 50)])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_the_theorem_by_summation(rho, shift):
    """The Renyi divergence of the law and the shifted law, summed over all outcomes that matter."""
    variance = float(gaussian_variance(shift, rho))
    reach = math.ceil(shift + 45 * math.sqrt(variance) + 45)
    x, p = discrete_gaussian(variance, reach)
    normaliser = -math.log(p[reach])
    for alpha in (1.01, 1.5, 2.0, 4.0):
        exponent = -(alpha * (x - shift) ** 2 + (1 - alpha) * x**2) / (2 * variance) - normaliser
        divergence = math.log(math.fsum(np.exp(exponent))) / (alpha - 1)
        assert divergence <= alpha * float(rho) * (1 + 1e-9)
        # Half the standard deviation would cost four times the rho, and show.
        halved = -(alpha * (x - shift) ** 2 + (1 - alpha) * x**2) / (2 * variance / 4)
        law = np.exp(-(x**2) / (2 * variance / 4)).sum()
        assert math.log(math.fsum(np.exp(halved)) / law) / (alpha - 1) > 1.5 * alpha * float(rho)


def fit(values, variance):
    """The p-value of a chi-square test against the discrete Gaussian law, with cells that expect 50 or more."""
    reach = math.ceil(12 * math.sqrt(variance) + 12)
    x, p = discrete_gaussian(variance, reach)
    inner = np.abs(x) <= max(int(k) for k, q in zip(x, p, strict=True) if q * len(values) >= 50)
    expected = np.append(p[inner], p[~inner].sum()) * len(values)
    observed = np.array([(values == k).sum() for k in x[inner]])
    observed = np.append(observed, len(values) - observed.sum())
    return stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


@pytest.mark.parametrize(("sensitivity", "rho"), [(1, Fraction(1, 2)), (3, Fraction(1, 2)), (2, Fraction(1, 7))])
def test_the_noise_follows_its_law(sensitivity, rho):
    values = OpenDPGaussian().gaussian(sensitivity, rho, 20_000)
    variance = float(Fraction(sensitivity) ** 2 / (2 * rho))
    assert fit(values, variance) > FALSE_ALARM
    for wrong in (0.5, 1 / math.sqrt(2), math.sqrt(2), 2.0):
        assert fit(values, variance * wrong**2) < FALSE_ALARM


def test_the_noise_of_a_sum_of_preferences():
    """At the scale of a release the law is normal to 1 part in 2^30; half the sigma would be caught."""
    rho, columns = Fraction(468, 10**6), 5000
    sigma = 2 * STEPS / math.sqrt(2 * 468e-6)
    values = OpenDPGaussian().gaussian(sum_of_preferences(), rho, columns) / sigma
    assert stats.kstest(values, "norm").pvalue > FALSE_ALARM
    for wrong in (0.5, 1 / math.sqrt(2), math.sqrt(2), 2.0):
        assert stats.kstest(values * wrong, "norm").pvalue < FALSE_ALARM
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 6 / math.sqrt(columns)


def test_l2_sensitivity_is_reached_and_never_passed():
    """Corners and random points of the l1 ball: no two are farther apart in l2 than the two ends of an axis."""
    rng = np.random.default_rng(3)
    points = rng.dirichlet(np.full(5, 0.2), 400) * rng.choice([-1, 1], (400, 5)) * STEPS
    points = np.vstack([points, np.eye(5) * STEPS, -np.eye(5) * STEPS])
    apart = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2)).max()
    assert apart == sum_of_preferences()


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_amounts_out_of_range(bad):
    with pytest.raises(CrowdveilError, match="must be a positive number"):
        epsilon_of(bad, 1e-6)
    with pytest.raises(CrowdveilError, match="must be a positive number"):
        rho_of(bad, 1e-6)


@pytest.mark.parametrize("bad", [0.0, 1.0, math.nan])
def test_deltas_out_of_range(bad):
    with pytest.raises(CrowdveilError, match="delta must be between 0 and 1"):
        rho_of(1.0, bad)


def test_noise_that_does_not_fit_into_64_bits():
    with pytest.raises(CrowdveilError, match="too near the end of 64-bit integers"):
        OpenDPGaussian().gaussian(2**53, Fraction(1, 2), 1)


@pytest.mark.parametrize(("sensitivity", "rho", "columns"), [(0, 1, 1), (1, 0, 1), (1, -1, 1), (1, 1, 0)])
def test_requests_for_no_noise_at_all(sensitivity, rho, columns):
    with pytest.raises(CrowdveilError, match="must be"):
        OpenDPGaussian().gaussian(sensitivity, Fraction(rho), columns)


def test_a_delta_may_be_a_fraction():
    budget = ZcdpBudget("0.02", Fraction(1, 4))
    assert repr(budget) == "ZcdpBudget('0.02', 0.25)"
    assert budget == ZcdpBudget("0.02", 0.25)
