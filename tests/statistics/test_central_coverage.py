"""Error bars of releases by a trusted aggregator cover the value of the population.

The whole sweep is slow; a seeded sample of it runs with every test, on few crowds and against a bound that follows.
"""

from itertools import product

import numpy as np
import pytest
from populations import EPSILONS, RECORDS, SPREADS, VOTERS, coverage, measure, usual_population

from crowdveil.privacy.epsilon import Epsilon
from crowdveil.study.bundled import load_study

MECHANISMS = ("voter-score", "pooled-score", "pooled-choices")


def least_covered(runs, promised=0.93):
    """Five binomial deviations below what is promised."""
    return promised - 5 * np.sqrt(promised * (1 - promised) / runs)


@pytest.mark.parametrize(
    ("mechanism", "study", "spread", "voters", "records", "epsilon"),
    [
        # Ballots of one dilemma: their length has to be told, or the size comes out as a third.
        ("voter-score", "moral-machine", 0.1, 500, 1, 1),
        ("pooled-score", "moral-machine", 0.5, 300, 4, 1),
        ("pooled-choices", "kidney", 0.5, 50, 4, 10),
    ],
)
def test_a_sample_of_the_sweep(mechanism, study, spread, voters, records, epsilon):
    runs = 6
    population = usual_population(load_study(study), spread)
    found = coverage(mechanism, population, voters, records, Epsilon(epsilon), runs, seed=3)
    # Of all factors together. The draws are seeded, so chance has no part in it; before lengths were told, it was .47.
    assert found.covered.mean() >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("study", ["moral-machine", "kidney", "synthetic-10"])
@pytest.mark.parametrize(("spread", "epsilon"), list(product(SPREADS, EPSILONS)), ids=str)
@pytest.mark.parametrize(("voters", "records"), list(product(VOTERS, RECORDS)))
def test_the_whole_sweep(mechanism, study, spread, epsilon, voters, records):
    runs = 200 if voters < 5000 else 100
    found = measure(mechanism, study, spread, epsilon, voters, records, runs)
    assert found.covered.min() >= least_covered(runs)
