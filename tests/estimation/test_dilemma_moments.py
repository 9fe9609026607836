"""What is not known of a file's dilemmas, against errors of their moments that are played out."""

import numpy as np
import pytest

from crowdveil.estimation.dilemma_moments import (
    DESIGN_DEVIATION,
    SHOWN_REACH,
    DilemmaMoments,
    product_deviation,
    shown_range,
    shown_size,
)


def test_what_is_not_known_of_dilemmas_moves_a_step_by_the_inverse_of_their_moments_times_it():
    """Played out: 200,000 errors of the moments, symmetric, as large as is supposed; to four standard errors.

    Two rows of a symmetric error share a product. In the formula rows are independent, as they nearly are of many axes.
    """
    moments = np.array([[1.0, 0.6, 0.0], [0.6, 0.8, -0.2], [0.0, -0.2, 1.3]])
    squares, product, moved = np.array([0.1, 0.2, 0.05]), 0.15, np.array([0.5, -0.3, 0.8])
    rng, draws = np.random.default_rng(3), 200_000
    errors = np.zeros((draws, 3, 3))
    for i, j in ((0, 1), (0, 2), (1, 2)):
        errors[:, i, j] = errors[:, j, i] = product * rng.standard_normal(draws)
    for i in range(3):
        errors[:, i, i] = squares[i] * moments[i, i] * rng.standard_normal(draws)
    told = DilemmaMoments(moments, squares, product, np.ones(len(squares))).deviations(
        moved, float(np.linalg.norm(moved))
    )
    alone = (errors @ moved).std(axis=0)
    assert np.sqrt(np.square(np.linalg.inv(moments)) @ np.square(alone)) == pytest.approx(told, rel=4 / np.sqrt(draws))


@pytest.mark.parametrize("axes", [2, 3, 9, 23])
def test_products_that_were_not_measured_are_as_unsure_as_a_mean_square_however_many_axes_there_are(axes):
    """The length of what they add to a step along any axis, relative to the step."""
    along = np.eye(axes)[0]
    unsure = DilemmaMoments(np.eye(axes), np.zeros(axes), product_deviation(axes), np.ones(axes)).deviations(along, 1.0)
    assert np.linalg.norm(unsure) == pytest.approx(DESIGN_DEVIATION)


def test_a_direction_that_is_stretched_has_so_many_times_the_mean_square_and_no_other_has():
    direction = np.array([0.6, 0.8])
    stretched = DilemmaMoments.of(2, known=True).stretched(direction, 0.49).moments
    assert direction @ stretched @ direction == pytest.approx(0.49)
    across = np.array([-0.8, 0.6])
    assert (across @ stretched @ across, across @ stretched @ direction) == pytest.approx((1.0, 0.0))


@pytest.mark.parametrize("axes", [1, 2, 3, 9])
def test_the_mean_square_in_a_direction_is_as_unsure_as_errors_of_all_moments_make_it(axes):
    """Played out: 200,000 errors of the moments and directions; to five standard errors of a standard deviation."""
    rng, draws = np.random.default_rng(axes), 200_000
    directions = rng.standard_normal((draws, axes))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    shown = np.ones(draws)
    for i in range(axes):
        shown += DESIGN_DEVIATION * rng.standard_normal(draws) * directions[:, i] ** 2
        for j in range(i):
            product = product_deviation(axes) * rng.standard_normal(draws)
            shown += 2 * product * directions[:, i] * directions[:, j]
    least, most = shown_range(axes)
    assert (least + most) / 2 == pytest.approx(1)
    assert (most - 1) / SHOWN_REACH == pytest.approx(shown.std(), rel=5 / np.sqrt(draws))


def test_half_of_the_range_of_sizes_is_that_of_what_is_divided_by_its_bounds():
    least, most = shown_range(3)
    assert (least, most) == pytest.approx((0.55, 1.45))
    assert shown_size(3) == pytest.approx((1 / 0.55 - 1 / 1.45) / 2)
