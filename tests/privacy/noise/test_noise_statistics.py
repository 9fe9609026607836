"""The drawn noise against its law. Every assertion that chance could break does so with a probability below 1e-7."""

import math
import os
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.noise import coins as laplace_coins
from crowdveil.privacy.noise.exact_noise import BulkNoise, OpenDPNoise
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments

FALSE_ALARM = 1e-8
LARGE = 2**31

exact_sources = pytest.mark.parametrize(("source", "count"), [(BulkNoise(), 2_000_000), (OpenDPNoise(), 10_000)])


def draws(source, sensitivity, micro, count):
    rows = 1000
    return source.laplace(sensitivity, Epsilons.of_millionths(np.full(rows, micro)), -(-count // rows)).ravel()


def fit(values, scale):
    """The p-value of a chi-square test against the discrete Laplace law, with cells that expect 100 or more."""
    q = math.exp(-1 / scale)
    reach = 0
    while len(values) * q ** (reach + 1) / (1 + q) >= 100:
        reach += 1
    inner = np.arange(1 - reach, reach)
    tail = q**reach / (1 + q)
    expected = np.array([tail, *((1 - q) / (1 + q) * q ** np.abs(inner)), tail]) * len(values)
    observed = np.bincount(np.clip(values, -reach, reach) + reach, minlength=2 * reach + 1)
    return stats.chisquare(observed, expected).pvalue


@exact_sources
@pytest.mark.parametrize(
    ("sensitivity", "micro"), [(1, 2_000_000), (1, 1_000_000), (3, 1_000_000), (15, 2_000_000), (7, 123_457)]
)
def test_small_scales_follow_the_closed_form(source, count, sensitivity, micro):
    assert fit(draws(source, sensitivity, micro, count), sensitivity * 1e6 / micro) > FALSE_ALARM


@exact_sources
@pytest.mark.parametrize("factor", [0.5, 1 / math.sqrt(2), math.sqrt(2), 2])
def test_the_same_test_catches_a_wrong_scale(source, count, factor):
    assert fit(draws(source, 3, round(1_000_000 / factor), count), 3.0) < FALSE_ALARM


def test_rounded_float_noise_does_not_follow_it():
    """A Laplace variable rounded to integers is zero too rarely: 1 - e^(-1/2t) instead of tanh(1/2t)."""
    assert fit(draws(FloatNoiseForExperiments(1), 1, 1_000_000, 2_000_000), 1.0) < FALSE_ALARM


@pytest.mark.parametrize("span", [pytest.param(Fraction(1, 4), marks=pytest.mark.slow), Fraction(1, 1000)])
def test_the_tail_of_the_digits_follows_the_closed_form_too(monkeypatch, span):
    """With few or no digits, nearly every value goes through the tail."""
    monkeypatch.setattr(laplace_coins, "DIGITS_SPAN", span)
    assert laplace_coins.LaplaceCoins.of_scale(Fraction(3)).digits == 0
    assert fit(draws(BulkNoise(), 3, 1_000_000, 10_000), 3.0) > FALSE_ALARM


@pytest.fixture(scope="module")
def large_from_opendp():
    return draws(OpenDPNoise(), LARGE, 1_000_000, 15_000)


@pytest.mark.parametrize("source", [BulkNoise(), FloatNoiseForExperiments(2)])
def test_large_scales_agree_with_opendp(source, large_from_opendp):
    ours = draws(source, LARGE, 1_000_000, 500_000)
    assert stats.ks_2samp(ours, large_from_opendp, method="asymp").pvalue > FALSE_ALARM
    for wrong in (1 / math.sqrt(2), math.sqrt(2)):
        assert stats.ks_2samp(ours * wrong, large_from_opendp, method="asymp").pvalue < FALSE_ALARM


@pytest.mark.parametrize("sensitivity", [1000, LARGE, 2**45, 2**52])
def test_large_scales_follow_the_continuous_limit(sensitivity):
    """At scale 1000 the discrete law is 2.5e-4 from the continuous one: a fifth of what 500,000 draws resolve."""
    values = draws(BulkNoise(), sensitivity, 1_000_000, 500_000)
    assert stats.kstest(values, stats.laplace(scale=sensitivity).cdf).pvalue > FALSE_ALARM
    assert stats.kstest(values, stats.laplace(scale=sensitivity / math.sqrt(2)).cdf).pvalue < FALSE_ALARM


@exact_sources
def test_the_last_digits_of_large_noise_are_uniform(source, count):
    """The exact law of X modulo 64 differs from the uniform one by a relative (64/t)^2, here below 1e-15."""
    last = draws(source, LARGE, 1_000_000, count) & 63
    assert stats.chisquare(np.bincount(last, minlength=64)).pvalue > FALSE_ALARM


def largest_correlation(values):
    """The largest of the correlations at lags 1 to 300 of sign, magnitude and last digit, in standard deviations."""
    largest = 0.0
    for feature in (np.sign(values), np.log(np.abs(values) + 1.0), (values & 1).astype(float)):
        x = (feature - feature.mean()) / feature.std()
        for lag in range(1, 301):
            largest = max(largest, abs(float(x[lag:] @ x[:-lag])) / math.sqrt(len(x)))
    return largest


def test_values_are_uncorrelated_along_rows_and_columns():
    """Neighbours in a word, in a row, in a column and across words: P(|normal| > 7.5) < 1e-13, times 900 of them."""
    values = BulkNoise().laplace(LARGE, Epsilons.same(1, 8000), 23).ravel()
    assert largest_correlation(values) < 7.5
    values[1::2] = values[::2]
    assert largest_correlation(values) > 7.5


class Repeating:
    """A broken source: the same bytes at every request."""

    def take(self, count):
        return np.random.default_rng(4).integers(0, 256, size=count, dtype=np.uint8)


def repetitions(values):
    return len(values) - len(np.unique(values))


def test_values_hardly_ever_repeat():
    """Two values agree with probability 1/(4t), so that 20,000 values hold 0.023 equal pairs on average.

    Six pairs have a chance below 1e-12 (Poisson). A source that repeats itself is seen at once.
    """
    assert repetitions(draws(BulkNoise(), LARGE, 1_000_000, 20_000)) < 6
    assert repetitions(draws(BulkNoise(Repeating()), LARGE, 1_000_000, 20_000)) > 1000


@pytest.mark.parametrize("source", [BulkNoise(), OpenDPNoise()])
def test_forked_processes_draw_different_noise(source):
    """Parent and children share their whole memory at the fork; no value of one may turn up in another."""
    streams = [draws(source, LARGE, 1_000_000, 1000)]
    for _ in range(3):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.write(writer, draws(source, LARGE, 1_000_000, 1000).tobytes())
                status = 0
            finally:
                os._exit(status)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            streams.append(np.frombuffer(pipe.read(), dtype=np.int64))
        assert os.waitpid(child, 0)[1] == 0
    streams.append(draws(source, LARGE, 1_000_000, 1000))
    assert [len(stream) for stream in streams] == [1000] * 5
    assert repetitions(np.concatenate(streams)) < 6


@pytest.mark.parametrize(("source", "each"), [(BulkNoise(), 100_000), (OpenDPNoise(), 2000)])
def test_threads_share_a_source_without_sharing_noise(source, each):
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(lambda _: draws(source, 3, 1_000_000, each), range(8)))
        large = list(pool.map(lambda _: draws(source, LARGE, 1_000_000, 2000), range(8)))
    assert fit(np.concatenate(parts), 3.0) > FALSE_ALARM
    assert repetitions(np.concatenate(large)) < 6


def test_many_different_epsilons_at_once():
    """Every row has an epsilon of its own; each row's noise in units of its scale is Laplace of scale 1."""
    epsilons = np.random.default_rng(5).permutation(np.arange(10_000, 12_000))
    values = BulkNoise().laplace(LARGE, Epsilons.of_millionths(epsilons), 23) * (
        epsilons[:, np.newaxis] / (LARGE * 1e6)
    )
    assert stats.kstest(values.ravel(), stats.laplace.cdf).pvalue > FALSE_ALARM
    widths = np.abs(values).mean(axis=1)
    # The mean of 23 exponential variables of mean 1 leaves this range with a chance below 1e-12 a row (gamma tails).
    assert stats.gamma(23, scale=1 / 23).cdf(0.12) * 2000 < FALSE_ALARM
    assert stats.gamma(23, scale=1 / 23).sf(4.0) * 2000 < FALSE_ALARM
    assert ((widths > 0.12) & (widths < 4.0)).all()
