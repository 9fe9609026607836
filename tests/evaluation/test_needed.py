"""How much epsilon and how many voters are needed: interpolation by a closed form, the search on invented curves."""

import math
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.evaluation import comparison
from crowdveil.evaluation.comparison import crossing, voters_needed
from crowdveil.evaluation.comparison_runs import SOCIETY, EntryResult, synthetic
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import PARADIGMS


def test_half_way_on_a_logarithmic_axis_is_the_geometric_mean():
    assert crossing([1.0, 10.0], [0.7, 0.9], 0.8) == pytest.approx(math.sqrt(10))
    assert crossing([0.1, 1.0, 10.0], [0.5, 0.6, 1.0], 0.9) == pytest.approx(10**0.75)


def test_the_first_crossing_counts_and_none_is_none():
    assert crossing([1.0, 2.0, 4.0, 8.0], [0.7, 0.8, 0.7, 0.9], 0.8) == pytest.approx(2.0)
    assert crossing([1.0, 2.0], [0.9, 0.5], 0.8) == 1.0
    assert crossing([1.0, 2.0], [0.7, 0.79], 0.8) is None


@given(st.lists(st.floats(0.4, 1.1), min_size=1, max_size=9), st.floats(0.45, 1.05))
def test_the_crossing_lies_between_the_points_around_it(ratios, share):
    points = [0.01 * 3**i for i in range(len(ratios))]
    found = crossing(points, ratios, share)
    first = next((i for i, ratio in enumerate(ratios) if ratio >= share), None)
    if first is None:
        assert found is None
    else:
        assert points[max(first - 1, 0)] * (1 - 1e-12) <= found <= points[first] * (1 + 1e-12)


@contextmanager
def unwatched(task, total):
    yield lambda done: None


def result(quality):
    """The quality is all that a point of a curve has."""
    unknown = np.full(3, np.nan)
    return EntryResult(np.full(3, quality), *5 * [unknown])


def test_crowds_are_doubled_until_every_curve_has_reached_its_goal(monkeypatch):
    """Invented curves: no privacy is 0.9 everywhere; a release is right in 0.5 + 0.4 (1 - k / N) of cases."""
    simulated = []

    def invented(runs, workers, tell):
        voters = runs[0].voters
        entries = [task.entry for task in runs[0].tasks]
        simulated.append((voters, len(runs), {(e.mechanism, e.epsilon) for e in entries}))
        hard = {"algorithm-1": 60.0, "pooled-score": 10.0}
        found = {e: result(0.5 + 0.4 * (1 - hard[e.mechanism] / voters)) for e in entries}
        return {**found, SOCIETY: result(0.9)}

    monkeypatch.setattr(comparison, "carry_out", invented)
    epsilons = [Epsilon(1)]
    found = voters_needed(synthetic(50, 4, 2), [PARADIGMS["rlcp"]], epsilons, 20, 0, 1, unwatched)
    # Reached where 0.4 k / N = 0.045: the paper's at N = 533, between 400 and 800; the recommended at 89.
    assert {(v.choice, v.voters is not None) for v in found} == {("paper", True), ("recommended", True)}
    by_choice = {v.choice: v.voters for v in found}
    assert 400 < by_choice["paper"] < 800
    assert 50 < by_choice["recommended"] < 100
    assert [voters for voters, _, _ in simulated] == [25, 50, 100, 200, 400, 800]
    # Who has arrived is not simulated again, and larger crowds are fewer.
    assert simulated[2][2] == {("algorithm-1", Epsilon(1)), ("pooled-score", Epsilon(1))}
    assert simulated[3][2] == {("algorithm-1", Epsilon(1))}
    assert [number for _, number, _ in simulated] == [20, 20, 10, 8, 8, 8]


def test_what_is_never_reached_is_none_and_ends(monkeypatch):
    def hopeless(runs, workers, tell):
        entries = [task.entry for task in runs[0].tasks]
        return {**dict.fromkeys(entries, result(0.5)), SOCIETY: result(0.9)}

    monkeypatch.setattr(comparison, "carry_out", hopeless)
    found = voters_needed(synthetic(50, 1000, 10), [PARADIGMS["vldp"]], [Epsilon("0.1")], 4, 0, 1, unwatched)
    assert [v.voters for v in found] == [None, None]
    assert {v.simulated_up_to for v in found} == {3200}  # 3200 x 1000 x 10 is the last below 2^25
