"""Signed subset selection beside other purely private reports of a preference, by closed forms and by an optimum.

All numbers are E |estimate|^2 / B^2 for a voter who holds a corner of the l1 ball: what one report adds to the variance
of a crowd that is indifferent on the whole.
"""

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import linprog, minimize_scalar
from scipy.special import beta as beta_function
from scipy.special import betainc
from scipy.stats import norm

from crowdveil.privacy.mechanisms.subset_selection import mean_squared_error, subset_size

PAGE = Path(__file__).parents[3] / "docs" / "best-accuracy.md"


def signed(d, epsilon):
    return mean_squared_error(d, epsilon)


def laplace(d, epsilon):
    """Scale 2B / epsilon on each of d coordinates, and the corner itself."""
    return 8 * d / epsilon**2 + 1


def unsigned(d, epsilon, sizes=None):
    """Subset selection (Ye and Barg 2018) among the 2d corners as if they had nothing to do with each other."""
    n, errors = 2 * d, []
    for k in sizes or range(1, n):
        true = k * math.exp(epsilon) / (k * math.exp(epsilon) + n - k)
        other = ((k - 1) * true + k * (1 - true)) / (n - 1)
        # Of the opposite pairs, those count of which exactly one corner is in the subset.
        pair_with_true = true * (n - k) / (n - 1) + (1 - true) * k / (n - 1)
        rest_if_in = (k - 1) / (n - 1) * (1 - (k - 2) / (n - 2)) if n > 2 else 0
        rest_if_out = k / (n - 1) * (1 - (k - 1) / (n - 2)) if n > 2 else 0
        others = 2 * (d - 1) * (true * rest_if_in + (1 - true) * rest_if_out)
        errors.append((pair_with_true + others) / (true - other) ** 2)
    return min(errors)


def one_corner(d, epsilon):
    """Randomised response among the 2d corners."""
    return unsigned(d, epsilon, sizes=(1,))


def cap(d, epsilon, gamma):
    """PrivUnit (Bhowmick et al. 2018): a point of the unit sphere, likelier beyond gamma in the voter's direction."""
    above = betainc((d - 1) / 2, (d - 1) / 2, (1 - gamma) / 2)
    slope = (1 - gamma**2) ** ((d - 1) / 2) / ((d - 1) * beta_function(0.5, (d - 1) / 2))
    return ((1 + math.expm1(epsilon) * above) / (slope * math.expm1(epsilon))) ** 2


def priv_unit(d, epsilon):
    """PrivUnit with the best gamma, which is optimal for the l2 ball (Asi, Feldman and Talwar 2022)."""
    grid = np.linspace(0, 0.999, 400)
    start = grid[int(np.argmin([cap(d, epsilon, g) for g in grid]))]
    found = minimize_scalar(
        lambda g: cap(d, epsilon, g), bounds=(max(start - 0.01, 0), min(start + 0.01, 0.9999)), method="bounded"
    )
    return min(float(found.fun), cap(d, epsilon, start))


def half_sphere(d, epsilon):
    """The l2 mechanism of Duchi, Jordan and Wainwright (2018)."""
    return cap(d, epsilon, 0.0)


OTHERS = {
    "Laplace (Algorithm 2)": laplace,
    "half sphere": half_sphere,
    "PrivUnit": priv_unit,
    "one of 2d corners": one_corner,
    "subset of 2d corners": unsigned,
}


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0])
@pytest.mark.parametrize("d", [2, 5, 10, 23])
def test_no_other_report_has_a_smaller_error(d, epsilon):
    for name, other in OTHERS.items():
        assert signed(d, epsilon) <= other(d, epsilon) * (1 + 1e-6), name


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_no_private_channel_at_all_has_a_smaller_error(d, epsilon):
    """The optimum over every epsilon-private report of a corner, by linear programming over its extreme columns.

    A report y with probability c (e^epsilon or 1) for each corner tells about the crowd's mean by how it
    tells opposite corners apart: the Fisher information of the page's proof.
    """
    corners = [(j, s) for j in range(d) for s in (1, -1)]
    columns = np.array(list(product((0.0, 1.0), repeat=2 * d))) * math.expm1(epsilon) + 1
    tells = np.array([[y[corners.index((j, 1))] - y[corners.index((j, -1))] for j in range(d)] for y in columns])
    information = d / 2 * np.square(tells).sum(axis=1) / columns.sum(axis=1)
    best = linprog(-information, A_eq=columns.T, b_eq=np.ones(2 * d), bounds=(0, None))
    assert best.success
    assert signed(d, epsilon) == pytest.approx(d**2 / -best.fun, rel=1e-6)


def test_the_caps_of_priv_unit_by_quadrature():
    d, epsilon, gamma = 6, 1.5, 0.3

    def law(t):
        return (1 - t**2) ** ((d - 3) / 2)

    whole = quad(law, -1, 1)[0]
    below = quad(law, -1, gamma)[0] / whole
    above_mean = quad(lambda t: t * law(t), gamma, 1)[0] / whole / (1 - below)
    below_mean = quad(lambda t: t * law(t), -1, gamma)[0] / whole / below
    p = 1 / (1 + math.exp(-epsilon) * below / (1 - below))
    assert cap(d, epsilon, gamma) == pytest.approx((p * above_mean + (1 - p) * below_mean) ** -2)


def test_unsigned_subsets_by_enumeration():
    """d = 2: all subsets of 3 of the corners +1, -1, +2, -2, the first of which is the voter's."""
    epsilon, vectors = 1.2, np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    subsets = [np.array(s) for s in product((0, 1), repeat=4) if sum(s) == 3]
    weights = np.array([math.exp(epsilon) if s[0] else 1.0 for s in subsets])
    weights /= weights.sum()
    sums = np.array([s @ vectors for s in subsets])
    gain = 1 / (weights @ sums)[0]
    assert unsigned(2, epsilon, sizes=(3,)) == pytest.approx(gain**2 * (weights @ np.square(sums).sum(axis=1)))


def test_the_table_of_the_page():
    rows = [line.split("|")[1:-1] for line in PAGE.read_text().splitlines() if line.startswith("| d = ")]
    assert len(rows) >= 12
    for cells in rows:
        where, *shown, size = (cell.strip() for cell in cells)
        d, epsilon = (float(part.split("=")[1]) for part in where.split(","))
        expected = [other(int(d), epsilon) for other in OTHERS.values()] + [signed(int(d), epsilon)]
        assert [float(cell.strip("*")) for cell in shown] == pytest.approx(expected, rel=6e-3)
        assert int(size) == subset_size(int(d), epsilon)


@pytest.mark.parametrize(("epsilon", "times"), [(0.3, "1.01 times"), (1.0, "1.16 times"), (3.0, "2.6 times")])
def test_no_report_tells_more_of_a_direction_than_the_page_says(epsilon, times):
    """Scores in twelve bins, each report favoured by any set of them: the best of all 4,096 sets is one side of a cut,
    a little below the bound. And the bound, over the sign of a score that is turned over, is as the page says."""
    a = math.expm1(epsilon)
    ends = np.concatenate([[-np.inf], np.linspace(-2.2, 2.2, 11), [np.inf]])
    masses, parts = np.diff(norm.cdf(ends)), -np.diff(norm.pdf(ends))
    sets = np.array(list(product((0, 1), repeat=12)))
    told = (a * sets @ parts / (1 + a * sets @ masses)) ** 2
    bound = -minimize_scalar(
        lambda t: -((a * norm.pdf(t) / (1 + a * norm.sf(t))) ** 2), bounds=(0, 10), method="bounded"
    ).fun
    assert 0.97 * bound < told.max() < bound
    assert (np.diff(sets[told.argmax()]) != 0).sum() == 1
    sign = 2 / math.pi * math.tanh(epsilon / 2) ** 2
    assert f"{bound / sign:.{2 if epsilon < 3 else 1}f} times" == times
    assert times in PAGE.read_text(encoding="utf-8")


if __name__ == "__main__":
    for d, epsilon in product((5, 10, 23), (0.3, 1.0, 2.0, 5.0)):
        numbers = [f"{other(d, epsilon):.3g}" for other in OTHERS.values()] + [f"**{signed(d, epsilon):.3g}**"]
        print(f"| d = {d}, ε = {epsilon:g} | {' | '.join(numbers)} | {subset_size(d, epsilon)} |")
