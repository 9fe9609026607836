"""How much the means of a crowd's scores vary with the draw of its voters, against populations played out."""

from itertools import product

import numpy as np
import pytest

from crowdveil.estimation.step_estimate import UnitCounts

AXES = np.array([[1.5, 0.2], [-0.3, 1.0], [0.8, -0.6], [0.1, 0.4]])
"""Four dilemmas that are equally probable, with each sign; their scores along two axes."""
DILEMMAS = np.concatenate([AXES, -AXES]) @ np.linalg.eigh(AXES.T @ AXES)[1]
"""The same along axes on which they are uncorrelated."""


def variance_in_two_camps(direction, records, favoured, *, clipped):
    """Return the variance along a direction of one voter's mean score: every camp, dilemma and choice enumerated."""
    values, chances = [], []
    for camp in (1, -1):
        for shown in product(DILEMMAS, repeat=records):
            choices = [camp * np.sign(x @ favoured) or 1.0 for x in shown]
            mean = np.mean([y * x for y, x in zip(choices, shown, strict=True)], axis=0)
            values.append(float((np.clip(mean, -1, 1) if clipped else mean) @ direction))
            chances.append(0.5 / len(DILEMMAS) ** records)
    mean = np.dot(chances, values)
    return np.dot(chances, np.square(values)) - mean**2


@pytest.mark.parametrize("clipped", [True, False])
@pytest.mark.parametrize("records", [1, 3])
@pytest.mark.parametrize("angle", np.linspace(0, np.pi, 5)[:-1])
def test_no_two_camps_scatter_more_than_is_allowed_for(angle, records, clipped):
    variances = np.square(DILEMMAS).mean(axis=0)
    assert (DILEMMAS[:, 0] * DILEMMAS[:, 1]).mean() == pytest.approx(0, abs=1e-12)
    units = UnitCounts(clipped, 40, 0 if clipped else 40 * records, 0 if clipped else 40 * records**2)
    bound = units.divided(variances)
    for turned in (angle, angle + 0.6):
        direction = np.array([np.cos(turned), np.sin(turned)])
        played = variance_in_two_camps(direction, records, np.array([np.cos(angle), np.sin(angle)]), clipped=clipped)
        assert played / 40 <= direction @ np.diag(bound) @ direction + 1e-12


def test_camps_whose_dilemmas_are_all_alike_scatter_by_all_that_is_allowed_for():
    """A voter then says the same in every record: 25 voters with 2 records, and 25 with 4, of scores of 0.5 or -0.5."""
    of_records = UnitCounts(False, 50, 25 * 2 + 25 * 4, 25 * 2**2 + 25 * 4**2)
    exact = sum((0.5 * length) ** 2 for length in [2] * 25 + [4] * 25) / 150**2
    assert of_records.divided(np.array([0.25]))[0] == pytest.approx(exact)
    assert UnitCounts(True, 50, 0, 0).divided(np.array([0.25]))[0] == pytest.approx(0.25 / 50)


def test_voters_who_are_clipped_scatter_by_one_along_each_axis_at_most():
    assert UnitCounts(True, 10, 0, 0).divided(np.array([7.0, 5.0])).tolist() == [0.2, 0.2]


def test_a_voter_who_differs_in_one_direction_alone_may_scatter_more_than_one_who_differs_in_all():
    units, variances = UnitCounts(False, 20, 20 * 40, 20 * 40**2), np.ones(5)
    assert (units.divided(variances) > 3 * units.sampling(variances, 1.0, 2 / (np.pi * 5))).all()
