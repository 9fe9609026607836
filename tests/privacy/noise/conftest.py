"""Bounds of an exponential that are too far apart at first."""

import pytest

from crowdveil.privacy.noise.coins import exp_bounds


@pytest.fixture
def coarse_at_first(monkeypatch):
    """Make a module's ``exp_bounds`` too coarse at the first call; return the precisions that it is asked for."""

    def coarsen(module):
        precisions = []

        def bounds(x, precision):
            precisions.append(precision)
            slack = 2 ** (precision - 60) if len(precisions) == 1 else 0
            low, high = exp_bounds(x, precision)
            return low - slack, high + slack

        monkeypatch.setattr(module, "exp_bounds", bounds)
        return precisions

    return coarsen
