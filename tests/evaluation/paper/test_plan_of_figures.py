"""Personal epsilons as Section 5.1 has them."""

import numpy as np
import pytest

from crowdveil.evaluation.paper import plan
from crowdveil.evaluation.toolkit.crowds import Groups


def test_the_papers_defaults():
    assert Groups() == Groups(conservative=0.54, moderate=0.36, epsilon_c=0.01, epsilon_m=0.2, epsilon_l=1.0)
    assert Groups().sizes(100) == (54, 36, 10)
    assert Groups().sizes(50) == (27, 18, 5)


@pytest.mark.parametrize("groups", [g for panel in (plan.CONSERVATIVE_FRACTIONS, plan.CONSERVATIVE_EPSILONS,
                                                    plan.MODERATE_EPSILONS) for _, g in panel])  # fmt: skip
def test_every_setting_of_the_paper(groups):
    epsilons = groups.draw(1000, np.random.default_rng(1)).values
    conservative, moderate, liberal = groups.sizes(1000)
    assert conservative + moderate + liberal == 1000
    assert np.allclose(100 * epsilons, np.rint(100 * epsilons), atol=1e-9), "rounded to hundredths"
    ordered = np.sort(epsilons)
    assert ordered[0] >= groups.epsilon_c - 1e-9
    assert (ordered[:conservative] <= groups.epsilon_m + 1e-9).all()
    assert (ordered[conservative : conservative + moderate] >= groups.epsilon_m - 1e-9).all()
    assert (ordered[-liberal:] == 1.0).all()


def test_the_papers_grids():
    assert [f for f, _ in plan.CONSERVATIVE_FRACTIONS] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    assert {g.moderate for _, g in plan.CONSERVATIVE_FRACTIONS} == {0.36}
    assert [e for e, _ in plan.CONSERVATIVE_EPSILONS] == [0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5]
    assert {g.epsilon_m for _, g in plan.CONSERVATIVE_EPSILONS} == {0.5}
    assert [e for e, _ in plan.MODERATE_EPSILONS] == [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5]
    assert {g.epsilon_c for _, g in plan.MODERATE_EPSILONS} == {0.01}
    assert len(plan.EPSILONS) == 17
    assert (plan.EPSILONS[0], plan.EPSILONS[-1]) == (0.01, 10.0)


def test_who_is_in_which_group_is_random():
    drawn = np.array([Groups().draw(100, np.random.default_rng(seed)).values for seed in range(200)])
    # The mean epsilon at each place is the same, whichever place it is: five standard errors around the mean of all.
    spread = drawn.std() / np.sqrt(200)
    assert np.abs(drawn.mean(axis=0) - drawn.mean()).max() < 5.5 * spread
