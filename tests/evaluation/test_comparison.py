"""A comparison on small crowds: paired, the same for any number of workers, and right where the answer is known."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from crowdveil.ballots.ballot_file import write_ballots
from crowdveil.ballots.ballots import Ballots
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.society import society
from crowdveil.evaluation import comparison as compare_module
from crowdveil.evaluation.comparison import ComparisonRequest, compare
from crowdveil.evaluation.comparison_runs import (
    POOLED,
    SOCIETY,
    TEST_PAIRS,
    ComparisonEntry,
    ComparisonRun,
    ComparisonTask,
    HeldOutChoices,
    SyntheticPopulation,
    collect,
    of_file,
    synthetic,
)
from crowdveil.evaluation.toolkit.crowds import generator
from crowdveil.evaluation.toolkit.scores import on_all_gaussian_pairs
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.sources.simulated import synthetic_crowd
from crowdveil.study.bundled import synthetic_study

ONE = range(1)


@contextmanager
def unwatched(task, total):
    yield lambda done: None


def quality(table, entry):
    rows = table.filter(
        (table["mechanism"] == entry.mechanism)
        & table["epsilon"].eq_missing(None if entry.epsilon is None else str(entry.epsilon))
        & (table["equal_votes"] == entry.equal_votes)
    )
    (value,) = rows["quality"]
    return value


def test_the_same_crowd_whatever_is_compared_on_it():
    entry, other = ComparisonEntry("algorithm-1", Epsilon(1)), ComparisonEntry("algorithm-2", Epsilon(1))
    alone = ComparisonRun(SyntheticPopulation(10, 6, 2), 0, 3, (ComparisonTask(entry, True),)).measure(ONE)
    both = ComparisonRun(
        SyntheticPopulation(10, 6, 2), 0, 3, (ComparisonTask(other, True), ComparisonTask(entry, True))
    ).measure(ONE)
    for shared in (SOCIETY, POOLED, entry):
        assert quality(alone, shared) == quality(both, shared)
    assert quality(ComparisonRun(SyntheticPopulation(10, 6, 2), 1, 3, ()).measure(ONE), SOCIETY) != quality(
        alone, SOCIETY
    )
    assert quality(ComparisonRun(SyntheticPopulation(10, 6, 2), 0, 4, ()).measure(ONE), SOCIETY) != quality(
        alone, SOCIETY
    )


def test_accuracy_is_against_the_social_parameter():
    run = ComparisonRun(SyntheticPopulation(40, 20, 4), 0, 0, ())
    crowd = synthetic_crowd(40, 20, 4, generator(run.name))
    exact = on_all_gaussian_pairs(crowd.social, society(crowd.ballots, 2.0).parameter)
    deviation = np.sqrt(exact * (1 - exact) / TEST_PAIRS)
    assert quality(run.measure(ONE), SOCIETY) == pytest.approx(exact, abs=5.5 * deviation)


@pytest.mark.parametrize(
    ("name", "variance", "draws"),
    [("algorithm-1", 2 * (4 / 20 / 2) ** 2, 16), ("algorithm-2", 2 * (4 / 2) ** 2 / 20, 16)],
)
def test_the_squared_error_of_laplace_noise_is_its_known_variance(name, variance, draws):
    """N = 20, epsilon = 2, B = 2: scale 2B / (N epsilon) once, or 2B / epsilon from each voter, averaged."""
    run = ComparisonRun(SyntheticPopulation(20, 4, 3), 0, 0, (ComparisonTask(ComparisonEntry(name, Epsilon(2)), True),))
    (error,) = run.measure(ONE).filter(pl.col("epsilon") == "2")["squared_error"]
    kurtosis = 6 if name == "algorithm-1" else 6 / 20 + 3
    relative = np.sqrt((kurtosis + 2) / (3 * draws))
    assert error == pytest.approx(3 * variance, rel=5.5 * relative)


def test_probabilities_are_judged_by_what_was_chosen_pooled_over_draws():
    """Four voters are asked the same; three choose the first side, to which a release of 1 gives Phi(1)."""
    held_out = HeldOutChoices(np.ones((4, 1)), np.ones((4, 1)), np.array([1, 1, 1, -1]), np.arange(4))
    stated = stats.norm.cdf(1)
    one = held_out.scores(np.ones((1, 4)), np.array([[1.0]]), np.array([0.5]))
    assert one["quality"] == 1
    assert one["squared_error"] == 0.25
    assert one["brier"] == pytest.approx(0.75 * (1 - stated) ** 2 + 0.25 * stated**2)
    assert one["overstatement"] == pytest.approx(stated - 0.75)
    assert one["slope"] == pytest.approx(stats.norm.ppf(0.75))
    # With a draw that says the opposite, as much speaks for one side as for the other.
    both = held_out.scores(np.array([4 * [1.0], 4 * [-1.0]]), np.array([[1.0], [-1.0]]), np.array([0.0]))
    assert both["quality"] == 0.5
    assert both["overstatement"] == pytest.approx(stated - 0.5)
    assert both["slope"] == pytest.approx(0, abs=1e-9)


def test_fresh_voters_choose_as_the_crowd_was_drawn():
    """Preferences N(m, I): in a pair v the first side is chosen with probability Phi(m . v / sqrt(1 + |v|^2))."""
    run = ComparisonRun(SyntheticPopulation(4, 3, 2), 0, 0, ())
    _, held_out = run.population.draw(None, generator(run.name))
    social = synthetic_crowd(4, 3, 2, generator(run.name)).social
    pairs = held_out.pairs[: len(held_out.choices)]
    chance = stats.norm.cdf(pairs @ social / np.sqrt(1 + (pairs**2).sum(axis=1)))
    deviation = np.sqrt((chance * (1 - chance)).sum())
    assert (held_out.choices == 1).sum() == pytest.approx(chance.sum(), abs=5.5 * deviation)
    assert (held_out.choices * np.sign(chance - 0.5)).mean() == pytest.approx(
        np.abs(2 * chance - 1).mean(), abs=5.5 * 2 * deviation / len(chance)
    )


@pytest.fixture(scope="module")
def unanimous(tmp_path_factory):
    """Everybody prefers more of the first feature; every fifth answer is between two equals."""
    rng = np.random.default_rng(1)
    differences = np.abs(rng.normal(0, 1, (400, 2)) * [1, 0])
    differences[::5] = 0
    ballots = Ballots.from_differences(synthetic_study(2), np.arange(0, 401, 10), differences)
    path = tmp_path_factory.mktemp("compare") / "unanimous.parquet"
    write_ballots(path, ballots.study, [ballots], {})
    return path


def test_held_out_answers_are_predicted_and_ties_count_half(unanimous):
    table = ComparisonRun(
        of_file(unanimous), 0, 0, (ComparisonTask(ComparisonEntry("pooled-choices", Epsilon(50)), True),)
    ).measure(ONE)
    assert quality(table, SOCIETY) == pytest.approx(0.8 + 0.2 / 2)
    assert quality(table, POOLED) == pytest.approx(0.9)
    assert quality(table, ComparisonEntry("pooled-choices", Epsilon(50))) == pytest.approx(0.9)


def test_a_crowd_of_another_size_is_drawn_from_the_training_voters(unanimous):
    table = ComparisonRun(
        of_file(unanimous), 0, 0, (ComparisonTask(ComparisonEntry("algorithm-1", Epsilon(50)), False),), voters=100
    ).measure(ONE)
    assert quality(table, ComparisonEntry("algorithm-1", Epsilon(50))) == pytest.approx(0.9)


def in_this_process(runs, workers, tell):
    return collect(pl.concat([run.measure(ONE) for run in runs]))


CURVE = tuple(Epsilon(e) for e in ("0.01", "1", "30"))
"""Some levels of whole curves: that all of them are measured is tested with the command."""


@pytest.fixture(scope="module")
def small():
    paradigms = tuple(PARADIGMS[name] for name in ("vlcp", "aldp"))
    request = ComparisonRequest(synthetic(8, 5, 2), paradigms, (Epsilon(1), Epsilon("0.5")), 3, 0, whole_curves=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare_module, "carry_out", in_this_process)
        patch.setattr(compare_module, "CURVE", CURVE)
        return compare(request, unwatched)


def test_rows_say_what_they_are_about(small):
    data = small.as_dict()
    assert (data["voters"], data["records"], data["features"], data["crowds"]) == (8, 5, 2, 3)
    assert {(row["paradigm"], row["epsilon"]) for row in data["rows"]} == {
        (p, e) for p in ("vlcp", "aldp") for e in (0.5, 1.0)
    }
    for paradigm in ("vlcp", "aldp"):
        for epsilon in (0.5, 1.0):
            rows = [r for r in data["rows"] if (r["paradigm"], r["epsilon"]) == (paradigm, epsilon)]
            assert sum(row["recommended"] for row in rows) == 1
            assert sum(row["paper"] for row in rows) == (paradigm == "vlcp")
    for row in data["rows"]:
        assert row["ratio"] == pytest.approx(row["accuracy"] / data["no_privacy"]["accuracy"])
        assert row["low"] <= row["ratio"] <= row["high"]
        assert row["squared_error"] > 0
    assert data["no_privacy"]["estimate"] == "society"
    assert {"accuracy", "low", "high", "brier", "slope", "overstatement", "coverage"} == set(
        data["no_privacy"]["pooled"]
    )


def test_probabilities_are_judged_where_they_were_asked_for(small):
    for row in small.as_dict()["rows"]:
        assert 0 < row["brier"] < 1
        assert -1 < row["overstatement"] < 1
    points = [
        entry for entry in small.measured if entry.epsilon is not None and entry.epsilon not in small.request.asked
    ]
    assert points
    for entry in points:
        assert np.isnan(small.measured[entry].brier).all()


def test_intervals_are_students_over_the_crowds(small):
    entry = small.shown[0].entry
    values = small.measured[entry].quality
    half = stats.t.ppf(0.975, 2) * stats.sem(values)
    found = small.quality(entry)
    assert (found.low, found.high) == pytest.approx((values.mean() - half, values.mean() + half))


def test_intervals_are_of_what_is_possible(small):
    wild = np.array([0.1, 1.0, 0.9])
    entry = small.shown[0].entry
    base = small.request.population.baselines[0]
    far = {one: replace(small.measured[one], quality=wild[::step]) for one, step in ((entry, 1), (base, -1))}
    found = replace(small, measured={**small.measured, **far})
    accuracy, share = found.quality(entry), found.ratio(entry)
    assert accuracy.high == 1.0
    assert (accuracy.low, share.low) == (0.0, 0.0)
    assert share.high == pytest.approx(1 / wild.mean())


def test_curves_run_over_all_levels_and_give_the_epsilon_that_is_needed(small):
    curves = small.curves(PARADIGMS["vlcp"])
    assert set(curves) == {"paper", "recommended"}
    levels = sorted({*CURVE, Epsilon("0.5")})
    assert [entry.epsilon for entry in curves["paper"]] == levels
    assert [entry.epsilon for entry in curves["recommended"]] == levels
    needed = small.epsilon_needed()
    assert [(n["paradigm"], n["choice"]) for n in needed] == [
        ("vlcp", "paper"),
        ("vlcp", "recommended"),
        ("aldp", "recommended"),
    ]
    for found in needed:
        reached = [found[share] for share in ("80%", "90%", "95%") if found[share] is not None]
        assert reached == sorted(reached)


def test_results_do_not_depend_on_the_number_of_workers(small):
    one = Epsilon(1)
    request = ComparisonRequest(small.request.population, small.request.paradigms, (one,), 3, 0, workers=2)
    found = compare(request, unwatched)
    asked = {compared.entry for compared in small.shown if compared.entry.epsilon == one} | {SOCIETY, POOLED}
    assert found.measured.keys() == asked
    for entry, measured in found.measured.items():
        assert measured.quality.tolist() == small.measured[entry].quality.tolist()
        # The same noise; but workers sum on one thread, and what goes through an optimiser differs by its tolerance.
        assert measured.squared_error == pytest.approx(small.measured[entry].squared_error, rel=1e-4, abs=1e-9)


@pytest.mark.usefixtures("few_crowds_here")
def test_personal_epsilons_compare_equal_with_weighted_votes(monkeypatch):
    monkeypatch.setattr(compare_module, "carry_out", in_this_process)
    paradigms = tuple(PARADIGMS[name] for name in ("vldp", "rldp"))
    made = compare(ComparisonRequest(synthetic(20, 5, 2), paradigms, (), 2, 0), unwatched).as_dict()
    kinds = {(row["paradigm"], row["mechanism"], row["votes"]) for row in made["rows"]}
    assert {votes for _, _, votes in kinds} == {"equal", "weighted"}
    assert {row["epsilon"] for row in made["rows"]} == {None}
    errors = {row["votes"]: row["squared_error"] for row in made["rows"] if row["mechanism"] == "algorithm-2"}
    assert errors["weighted"] < errors["equal"] / 10
    assert "epsilon_needed" not in made


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"number": 1}, "2 or more"),
        ({"workers": 0}, "1 or more processes"),
        ({"epsilons": ()}, "vlcp adds one noise for all"),
        ({"epsilons": (), "paradigms": (PARADIGMS["vldp"],), "count_voters": True}, "--voters-needed"),
    ],
)
def test_orders_that_make_no_sense_are_refused(changes, said):
    usual = {
        "population": synthetic(8, 5, 2),
        "paradigms": (PARADIGMS["vlcp"],),
        "epsilons": (Epsilon(1),),
    }
    with pytest.raises(CrowdveilError, match=said):
        ComparisonRequest(**{**usual, "number": 3, "seed": 0, **changes})


def test_sizes_that_make_no_sense_are_refused(tmp_path):
    for size in ((1, 5, 2), (8, 0, 2), (8, 5, 0)):
        with pytest.raises(CrowdveilError):
            synthetic(*size)
    few = synthetic_crowd(12, 3, 2, np.random.default_rng(1)).ballots
    write_ballots(tmp_path / "few.parquet", few.study, [few], {})
    with pytest.raises(CrowdveilError, match="12 voters"):
        of_file(tmp_path / "few.parquet")
