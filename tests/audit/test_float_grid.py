"""Floating-point noise has holes, and the attack knows them without being wrong about a single output."""

import numpy as np
import pytest

from crowdveil.audit.float_grid import LastBits, grain, grid_noise, holes, textbook_noise
from crowdveil.audit.trial import Verdict, put_on_trial
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.noise.exact_noise import BulkNoise


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
@pytest.mark.parametrize("centre", [0.0, 1.0])
def test_what_numpy_gave_it_can_give(centre, epsilon):
    """If this ever fails, numpy's sampler has changed, and the attack must follow."""
    assert holes(centre, epsilon)(textbook_noise(centre, epsilon, 2000)).sum() == 0


def test_most_outputs_cannot_have_come_from_the_other_side():
    """In twenty runs of 4,000 the share lay between 0.78 and 0.82; a half is forty standard deviations away."""
    assert holes(0.0, 1.0)(textbook_noise(1.0, 1.0, 4000)).mean() > 0.5


def test_grain_describes_doubles():
    rows = np.array([[0.75], [-3.0], [0.0], [1.0 + 2.0**-52]])
    assert grain(rows).tolist() == [[1, 0, 12], [-1, 2, 12], [0, 0, 12], [1, 1, 0]]


def test_the_grid_leaves_doubles_that_are_whole_steps():
    doubles = grid_noise(1.0, Epsilon(1), 1000, BulkNoise())
    assert np.array_equal(doubles * 2**30, np.rint(doubles * 2**30))


def test_numpy_is_caught_and_the_grid_is_not():
    epsilon = Epsilon("1")
    theirs, ours = (put_on_trial(LastBits(epsilon, on_the_grid), 20_000) for on_the_grid in (False, True))
    assert theirs.verdict is Verdict.VIOLATED
    assert theirs.evidence.shown > 6
    assert ours.verdict in (Verdict.TIGHT, Verdict.HOLDS)
    assert ours.evidence.judged <= 1
