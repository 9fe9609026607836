"""Sums of reports stand for the reports: by whomever, and in whatever pieces, they were added up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.mechanisms.level_sums import LevelSums, unsummed
from crowdveil.privacy.mechanisms.mechanism import Settings
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.privacy.noise.distribution import spread_of
from crowdveil.privacy.noise.float_noise import FloatNoiseForExperiments
from crowdveil.sources.simulated import synthetic_crowd

VOTERS = 60
CUTS = (slice(0, 1), slice(1, 23), slice(23, VOTERS))


@pytest.fixture(scope="module")
def crowd():
    return synthetic_crowd(VOTERS, 12, 4, np.random.default_rng(8)).ballots


@pytest.mark.parametrize("robust", [0.0, 0.1])
@pytest.mark.parametrize("name", DISTRIBUTED)
def test_condensed_reports_give_the_same_estimate(name, robust, crowd):
    mechanism, settings = DISTRIBUTED[name], Settings(crowd.study, 2.0, robust=robust)
    epsilons = Epsilons.of(np.random.default_rng(1).choice([0.5, 1, 3], VOTERS))
    noise = FloatNoiseForExperiments(4)
    reports = [mechanism.report(crowd[part], settings, epsilons[part], noise) for part in CUTS]
    plain = mechanism.aggregate(reports, settings)
    condensed = mechanism.aggregate([mechanism.condense(report, settings) for report in reports], settings)
    np.testing.assert_allclose(condensed.parameter, plain.parameter, rtol=0, atol=1e-12)
    np.testing.assert_allclose(condensed.noise.half_widths(0.95), plain.noise.half_widths(0.95), rtol=1e-9)
    assert condensed.facts == plain.facts


def test_what_leaves_a_worker_does_not_grow_with_its_voters(crowd):
    settings = Settings(crowd.study, 2.0)
    for name in ("algorithm-2", "algorithm-3", "algorithm-3-choices", "subset-selection", "score"):
        report = DISTRIBUTED[name].report(crowd, settings, Epsilons.same(1, VOTERS), FloatNoiseForExperiments(1))
        condensed = DISTRIBUTED[name].condense(report, settings)
        assert isinstance(condensed, LevelSums)
        assert len(condensed.counts) <= 2  # of one epsilon; with and without a maximum for Algorithm 3
        assert condensed.counts.sum() == VOTERS


def test_the_mean_and_its_spread_are_those_of_the_single_reports():
    rng = np.random.default_rng(2)
    values, levels = rng.normal(size=(VOTERS, 3)), rng.integers(0, 4, (VOTERS, 2))
    sums = LevelSums.of(levels[:20], values[:20]) + LevelSums.of(levels[20:], values[20:])
    variances = 1.0 + sums.levels @ [1.0, 10.0]
    weights = sums.weights(variances, equal_votes=False)
    by_level = {tuple(level): weight for level, weight in zip(sums.levels.tolist(), weights, strict=True)}
    each = np.array([by_level[tuple(level)] for level in levels.tolist()])
    assert each.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(sums.mean(weights), each @ values, atol=1e-14)
    np.testing.assert_allclose(sums.spread(weights).matrix, spread_of(values, each).matrix, atol=1e-14)


def test_what_needs_every_report_does_not_take_sums(crowd):
    settings = Settings(crowd.study, 2.0)
    report = DISTRIBUTED["algorithm-2"].report(crowd, settings, Epsilons.same(1, VOTERS), FloatNoiseForExperiments(1))
    summed = DISTRIBUTED["algorithm-2"].condense(report, settings)
    with pytest.raises(ValueError, match="all of them are needed"):
        DISTRIBUTED["algorithm-2"].aggregate([summed], replace(settings, robust=0.1))
    assert unsummed([1, 2]) == [1, 2]
