"""The share of a heterogeneous crowd that prefers a side, and the probit that is nearest to it."""

import numpy as np
import pytest
from scipy import optimize
from scipy.special import log_ndtr, ndtr

from crowdveil.estimation.design import public_design
from crowdveil.estimation.disagreement import DISAGREEMENT, common_size
from crowdveil.study.bundled import load_study


def probit_of(along, shares):
    """Return the probit that fits these shares of voters best, by a general optimiser."""

    def loss(gamma):
        margins = along @ gamma
        value = -np.mean(shares * log_ndtr(margins) + (1 - shares) * log_ndtr(-margins))
        density = np.exp(-(margins**2) / 2) / np.sqrt(2 * np.pi)
        pull = density * (ndtr(margins) - shares) / (ndtr(margins) * ndtr(-margins))
        return value, pull @ along / len(along)

    return optimize.minimize(loss, np.zeros(along.shape[1]), jac=True, options={"gtol": 1e-9}).x


@pytest.mark.parametrize("name", ["moral-machine", "kidney"])
def test_faint_crowds_have_a_common_preference_of_the_stated_size(name):
    """Shares are those of voters who differ: Phi(b' . x / sqrt(1 + t^2 |x|^2)), b' = sqrt(1 + k t^2) b."""
    along = public_design(load_study(name)).along[:4000]
    k = along.shape[1]
    spread = np.sqrt(1 + DISAGREEMENT**2 * np.square(along).sum(axis=1))
    ratios = []
    for axis in np.eye(k):
        common = 0.01 * axis
        shares = ndtr(np.sqrt(1 + k * DISAGREEMENT**2) * (along @ common) / spread)
        ratios.append(probit_of(along, shares) @ axis / 0.01)
    # The sample is a little larger along some axes than along others, which the mean ratio does not allow for.
    assert common_size(along) == pytest.approx(1 / np.mean(ratios), rel=5e-3)
    assert common_size(along) > 1.01
