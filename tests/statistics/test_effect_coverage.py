"""Intervals of effects and of differences between groups hold what is true of the people whom voters were drawn from.

The whole sweep is slow; a seeded sample of it runs with every test.
"""

import pytest
from effect_coverage import CELLS, coverage, measure

from crowdveil.privacy.guarantee import PARADIGMS

PROMISED = 0.93


@pytest.mark.parametrize("paradigm", PARADIGMS)
def test_a_sample_of_the_sweep(paradigm):
    """Seeded: 12 crowds of 300 voters, 216 effects and 108 differences."""
    found = coverage(paradigm, 1, 300, 12)
    assert found.effects >= PROMISED
    assert found.differences >= PROMISED


def test_groups_that_are_alike_are_not_told_apart():
    """Seeded: in 20 crowds, at most 5 % of the factors."""
    assert coverage("rlcp", 1, 300, 20, differ=False).false_findings <= 0.05


def test_groups_are_told_apart_where_they_differ_by_enough():
    """Seeded: 3,000 voters, whose groups differ by 0.13 to 0.2 on gender and species."""
    assert coverage("rlcp", 3, 3000, 3).findings >= 3


@pytest.mark.slow
@pytest.mark.parametrize("differ", [False, True])
@pytest.mark.parametrize(("epsilon", "voters"), CELLS)
@pytest.mark.parametrize("paradigm", PARADIGMS)
def test_the_whole_sweep(paradigm, epsilon, voters, differ):
    found = measure(paradigm, epsilon, voters, differ=differ)
    assert found.effects >= PROMISED
    assert found.differences >= PROMISED
    assert found.false_findings <= 0.05
