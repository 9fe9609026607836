"""The many-crowds functions give what the mechanisms give, one crowd and one epsilon at a time."""

from dataclasses import replace

import numpy as np
import pytest

from crowdveil.estimation.society import fit_voters
from crowdveil.evaluation.paper.experiments import (
    CUT,
    PRINTED,
    RAW_PRINTED,
    REPAIRED,
    algorithm1,
    algorithm2,
    algorithm3,
    papers_settings,
    same_for_all,
    unscaled_coefficients,
)
from crowdveil.evaluation.toolkit.crowds import NORM_BOUND, SyntheticSource
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.grid import STEPS
from crowdveil.privacy.mechanisms.algorithm1 import Algorithm1
from crowdveil.privacy.mechanisms.algorithm2 import Algorithm2
from crowdveil.privacy.mechanisms.algorithm3 import Algorithm3
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments

EPSILONS = (0.1, 1.0, 10.0)


@pytest.fixture(scope="module")
def one():
    return SyntheticSource(records=15, features=4).draw(12, range(1))


@pytest.fixture(scope="module")
def several():
    return SyntheticSource(records=15, features=4).draw(12, range(3))


def fitted(crowds):
    return fit_voters(crowds.ballots, NORM_BOUND).values


def test_algorithm1(one):
    settings, noise = papers_settings(one.study, NORM_BOUND), FloatNoiseForExperiments(3)
    measured = Algorithm1().measure(one.ballots, settings, Epsilon(1))
    expected = [Algorithm1().release(measured, settings, Epsilon(e), noise).parameter for e in EPSILONS]
    found = algorithm1(one, fitted(one), settings, EPSILONS, FloatNoiseForExperiments(3))
    assert found.shape == (1, 3, 4)
    assert np.array_equal(found[0], expected)


def test_algorithm2(one):
    settings, noise = papers_settings(one.study, NORM_BOUND), FloatNoiseForExperiments(4)
    levels = same_for_all(EPSILONS, one)
    expected = [
        Algorithm2().aggregate([Algorithm2().report(one.ballots, settings, level, noise)], settings).parameter
        for level in levels
    ]
    assert np.array_equal(algorithm2(one, fitted(one), settings, levels, FloatNoiseForExperiments(4))[0], expected)


@pytest.mark.parametrize("variant", [PRINTED, REPAIRED, CUT])
def test_algorithm3(one, variant):
    public, noise = papers_settings(one.study, NORM_BOUND), FloatNoiseForExperiments(5)
    study = one.study if variant.cut_to is None else replace(one.study, record_norm=variant.cut_to)
    settings = replace(public, study=study, repair=variant.repair, sensitivity=variant.sensitivity)
    levels = same_for_all(EPSILONS, one)
    expected = [
        Algorithm3().aggregate([Algorithm3().report(one.ballots, settings, level, noise)], settings) for level in levels
    ]
    found, without = algorithm3(one, variant, public, levels, FloatNoiseForExperiments(5))
    assert found[0] == pytest.approx(np.array([e.parameter for e in expected]), rel=1e-6)
    assert without[0] * one.voters == pytest.approx([e.facts["voters_without_a_maximum"] for e in expected])


def test_several_crowds_are_kept_apart(several):
    settings = papers_settings(several.study, NORM_BOUND)
    preferences = fitted(several)
    means = several.by_crowd(preferences).mean(axis=1)
    # At the largest epsilon the noise of Algorithm 1 has scale 2B / (N eps) = 0.0067: each crowd is near its own mean.
    found = algorithm1(several, preferences, settings, (50.0,), FloatNoiseForExperiments(1))[:, 0]
    assert np.abs(found - means).max() < 0.0067 * 20
    assert np.abs(found[[1, 2, 0]] - means).max() > 0.2


def test_unscaled_coefficients(one):
    d, records = one.study.dimension, one.ballots.differences.reshape(12, 15, 4)
    linear = np.sqrt(2 / np.pi) * records.sum(axis=1)
    rows, columns = np.triu_indices(d)
    quadratic = -np.einsum("vjk,vjl->vkl", records, records)[:, rows, columns] / np.pi
    expected = np.concatenate([linear, quadratic * np.where(rows == columns, 1, 2)], axis=1)
    # The library cuts a scaled record to a grid of 2^-16.
    assert unscaled_coefficients(one) / STEPS == pytest.approx(expected, abs=15 * 8**2 * 4 * 2**-16)


def test_without_noise_the_unscaled_maximum_is_newtons(one):
    class Silence(FloatNoiseForExperiments):
        def laplace(self, sensitivity, epsilons, columns):
            return np.zeros((len(epsilons), columns), np.int64)

    learned, without = algorithm3(
        one, RAW_PRINTED, papers_settings(one.study, NORM_BOUND), same_for_all((1.0,), one), Silence(1)
    )
    records = one.ballots.differences.reshape(12, 15, 4)
    # The maximum of sqrt(2/pi) t - t^2/pi, summed over records: (2/pi) V'V beta = sqrt(2/pi) V'1.
    each = [np.linalg.solve(v.T @ v * 2 / np.pi, np.sqrt(2 / np.pi) * v.sum(axis=0)) for v in records]
    assert learned[0, 0] == pytest.approx(np.mean(each, axis=0), abs=2e-3)
    assert without.tolist() == [[0.0]]
