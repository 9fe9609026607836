"""Intervals of secret groups' preferences hold what is true of their people. The whole sweep is slow."""

import pytest
from group_coverage import CELLS, coverage, measure

PROMISED = 0.93


def test_a_sample_of_the_sweep():
    """Seeded: 2 crowds of 400 voters at epsilon 1, 36 intervals and 18 differences."""
    found = coverage("vlcp", "1", 400, 2, differ=False, seed=1)
    assert found.preferences >= PROMISED
    assert found.differences >= PROMISED


@pytest.mark.slow
@pytest.mark.parametrize("differ", [False, True])
@pytest.mark.parametrize(("paradigm", "epsilon", "voters"), CELLS)
def test_the_whole_sweep(paradigm, epsilon, voters, differ):
    found = measure(paradigm, epsilon, voters, 60 if paradigm == "vlcp" else 20, differ=differ)
    assert found.preferences >= PROMISED
    assert found.differences >= PROMISED
    assert found.false_findings <= 0.05
