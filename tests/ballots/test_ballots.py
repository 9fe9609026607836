from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from crowdveil.ballots import ballots as module
from crowdveil.ballots.ballots import Ballots, census, check_source, concatenate, names_of, resampled
from crowdveil.ballots.columns import Categories, dilemmas_between, smallest_type
from crowdveil.errors import CrowdveilError
from crowdveil.study.bundled import load_study
from crowdveil.study.features import Feature
from crowdveil.study.study import Drawing, Study

STUDY = Study(
    "toy",
    "Toy",
    "Which?",
    (Feature("a", "a", 0, 5, levels=(0, 1)), Feature("b", "b", 0, 5, levels=(0, 1))),
    Drawing("independent", 2),
)


def crowd(counts: list[int], names: Sequence[str | None] | None = None, kind: type = np.int8, seed: int = 1) -> Ballots:
    random = np.random.default_rng(seed)
    return Ballots.from_differences(
        STUDY,
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        random.integers(-5, 6, (sum(counts), 2)).astype(kind),
        None if names is None else pa.array(names, pa.string()),
    )


def full_crowd(counts: list[int], names: list[str], kind: type = np.int8) -> Ballots:
    """The same voters with all that ballots can hold; every third record is of no known scenario."""
    records = np.arange(sum(counts))
    return replace(
        crowd(counts, names, kind),
        choices=np.where(records % 2 == 0, 1, -1).astype(np.int8),
        scenarios=Categories(("few", "many"), (records % 3).astype(np.int16) % 2 - (records % 3 == 2)),
        about={"pet": Categories(("cat", "dog"), (np.arange(len(counts)) + 1).astype(np.int16) % 2)},
    )


def same(one: Ballots, other: Ballots) -> bool:
    return (
        one.study == other.study
        and one.differences.dtype == other.differences.dtype
        and np.array_equal(one.offsets, other.offsets)
        and np.array_equal(one.differences, other.differences)
        and one.voter_names() == other.voter_names()
        and np.array_equal(one.dilemmas, other.dilemmas)
        and np.array_equal(one.choices, other.choices)
        and told(one.scenarios) == told(other.scenarios)
        and {q: told(said) for q, said in one.about.items()} == {q: told(said) for q, said in other.about.items()}
    )


def told(column: Categories | None) -> list[str | None] | None:
    return None if column is None else column.to_list()


def test_a_crowd_is_counted() -> None:
    ballots = crowd([2, 1, 3])
    assert (ballots.voters, ballots.records) == (3, 6)
    assert ballots.counts.tolist() == [2, 1, 3]
    assert ballots.voter_names() == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("offsets", "differences", "message"),
    [
        ([0, 1], np.zeros((1, 3)), "has 2 features"),
        ([0, 1], np.zeros(2), "has 2 features"),
        ([0, 2], np.zeros((1, 2)), "offsets"),
        ([1, 2], np.zeros((2, 2)), "offsets"),
        ([], np.zeros((0, 2)), "offsets"),
        ([0, 1, 1], np.zeros((1, 2)), "1 of 2 voters have no records"),
        ([0, 2, 1, 3], np.zeros((3, 2)), "voters have no records"),
        ([0, 1], np.array([[np.nan, 0]]), "not finite"),
        ([0, 1], np.array([[np.inf, 0]]), "not finite"),
    ],
)
def test_ballots_that_do_not_fit_are_refused(offsets: list[int], differences: Any, message: str) -> None:
    with pytest.raises(CrowdveilError, match=message):
        Ballots.from_differences(STUDY, np.array(offsets, np.int64), differences)


@pytest.mark.parametrize("names", [None, ["ann", "bob", "cy", "dee"]])
def test_some_voters_can_be_taken(names: list[str] | None) -> None:
    ballots = crowd([2, 1, 3, 2], names)
    middle = ballots[1:3]
    assert middle.counts.tolist() == [1, 3]
    assert middle.differences.tolist() == ballots.differences[2:6].tolist()
    assert np.shares_memory(middle.differences, ballots.differences)
    picked = ballots.take(np.array([3, 0, 1]))
    assert picked.counts.tolist() == [2, 2, 1]
    assert picked.differences.tolist() == ballots.differences[[6, 7, 0, 1, 2]].tolist()
    if names:
        assert middle.voter_names() == ["bob", "cy"]
        assert picked.voter_names() == ["dee", "ann", "bob"]
    assert ballots[2:2].voters == ballots[3:1].voters == 0


@pytest.mark.parametrize("names", [None, ["ann", "bob", "cy", "dee"]])
def test_a_voter_is_taken_once_and_drawn_again_for_experiments_only(names: list[str] | None) -> None:
    ballots = crowd([2, 1, 3, 2], names)
    for positions, message in (
        ([0] * 500, "position 0 is given 500 times: one voter is one ballot, so give each position once"),
        ([3, 0, 3], "position 3 is given 2 times"),
        (np.array([1, 2, 2], np.uint8), "position 2 is given 2 times"),
    ):
        with pytest.raises(CrowdveilError, match=message):
            ballots.take(np.array(positions))
    drawn = resampled(ballots, np.array([3, 0, 3]))
    assert drawn.counts.tolist() == [2, 2, 2]
    assert drawn.differences.tolist() == ballots.differences[[6, 7, 0, 1, 6, 7]].tolist()
    if names:
        assert drawn.voter_names() == ["dee", "ann", "dee"]


def test_every_selection_of_voters_is_told() -> None:
    ballots = crowd([1, 2, 3, 4], ["ann", "bob", "cy", "dee"])
    assert ballots.selection is None
    women = ballots.filter(np.array([True, False, True, True]), "gender = women")
    assert women.filter(lambda b: b.counts >= 0, "at least 0 answers").selection == "gender = women, at least 0 answers"
    assert women.take(np.array([1, 0])).selection == "gender = women, chosen positions"
    parts = (women[1:], women.head(1), women.with_digests(), women.decided(), *women.split(0.5, 1), *women.batches())
    assert {part.selection for part in parts} == {"gender = women"}
    assert {part.selection for part in (ballots[1:], *ballots.split(0.5, 1))} == {None}
    bob = ballots.filter(np.array([False, True, False, False]), "pet = dog")
    assert concatenate(STUDY, [women, bob]).selection == "gender = women and pet = dog"
    assert (
        concatenate(STUDY, [ballots[1:2], ballots[:1].filter(np.array([True]), "pet = cat")]).selection == "pet = cat"
    )
    for label, message in (("", "the label is '': say how the voters were selected"), ("\ud800", "whole characters")):
        with pytest.raises(CrowdveilError, match=message):
            ballots.filter(np.ones(4, bool), label)


def test_a_census_tells_the_selections_of_all_batches() -> None:
    ballots = crowd([1, 2, 3])

    class Batches:
        study, voters = STUDY, 3

        def batches(self) -> Iterator[Ballots]:
            yield ballots[:1]
            yield ballots[1:2].filter(np.array([True]), "pet = dog")
            yield ballots[2:].filter(np.array([True]), "pet = cat")

    assert census(Batches()).selection == "pet = dog and pet = cat"


def test_nobody_is_no_crowd() -> None:
    ballots = crowd([1, 2])
    check_source(ballots)
    for nobody in (ballots[:0], ballots.filter(np.zeros(2, bool)), ballots.split(0, 1)[0]):
        with pytest.raises(
            CrowdveilError, match="there are no voters in these ballots of the study toy: give at least"
        ):
            check_source(nobody)
        with pytest.raises(CrowdveilError, match="there are no voters"):
            census(nobody)


def test_batches_join_to_the_whole() -> None:
    ballots = crowd([2, 1, 3, 2], ["ann", "bob", "cy", "dee"])
    pieces = [ballots[:1], ballots[1:3], ballots[3:4]]
    assert same(concatenate(STUDY, pieces), ballots)
    with pytest.raises(CrowdveilError, match="no voters"):
        concatenate(STUDY, [])


def test_the_census_counts_and_names_exactly_these_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    ballots = crowd([2, 1, 3, 2])
    counted = census(ballots)
    assert (counted.voters, counted.records, counted.fewest_records, counted.most_records) == (4, 8, 1, 3)
    monkeypatch.setattr(module, "VOTERS_PER_BATCH", 1)
    assert census(ballots) == counted, "it depends on how the crowd is cut"
    flipped = ballots.differences.copy()
    flipped[3, 1] += 1
    others = [
        Ballots.from_differences(STUDY, ballots.offsets, flipped),
        Ballots.from_differences(STUDY, np.array([0, 1, 3, 6, 8]), ballots.differences),
        ballots.take(np.array([1, 0, 2, 3])),
        Ballots.from_differences(load_study("synthetic-2"), ballots.offsets, ballots.differences),
    ]
    prints = {census(other).fingerprint for other in others}
    assert len(prints | {counted.fingerprint}) == 5


@pytest.mark.parametrize(
    ("feature", "kind"),
    [
        (Feature("a", "a", 0, 5, levels=(0, 1)), np.int8),
        (Feature("a", "a", -60, 67, levels=(0, 1)), np.int8),
        (Feature("a", "a", -60, 68, levels=(0, 1)), np.float64),
        (Feature("a", "a", 0, 5, unit=10, levels=(0, 1)), np.float64),
        (Feature("a", "a", 0, 5.5, levels=(0, 1)), np.float64),
        (Feature("a", "a", 0, 5, levels=(0, 0.5)), np.float64),
    ],
)
def test_small_whole_differences_need_one_byte(feature: Feature, kind: type) -> None:
    assert smallest_type(Study("s", "S", "?", (feature,), Drawing("independent", 1))) is kind
    assert smallest_type(load_study("synthetic-2")) is np.float64
    assert smallest_type(load_study("moral-machine")) is np.int8


def test_differences_are_chosen_minus_other() -> None:
    dilemmas = np.array([[1, -2], [0, 3], [-4, 0]])
    choices = np.array([1, -1, -1], np.int8)
    for kind in (np.int8, np.float64):
        ballots = Ballots(STUDY, np.array([0, 1, 3]), dilemmas.astype(kind), choices)
        assert ballots.differences.dtype == kind
        assert ballots.differences.tolist() == [[1, -2], [0, -3], [4, 0]]
        assert not np.signbit(ballots.differences[[1, 2], [0, 1]]).any(), "a negative zero has other bytes"
        assert ballots[1:].differences.tolist() == [[0, -3], [4, 0]]
        again = Ballots.from_differences(STUDY, ballots.offsets, ballots.differences)
        assert census(again) == census(ballots), "the same records under two names have two budgets"


def test_differences_are_computed_once_for_all_passes() -> None:
    ballots = full_crowd([2, 1, 3], ["ann", "bob", "cy"])
    whole = ballots.differences
    assert all(np.shares_memory(batch.differences, whole) for _ in range(2) for batch in ballots.batches())


def test_records_in_which_neither_was_chosen_are_left_out_only_when_asked() -> None:
    rows = np.arange(12, dtype=np.int8).reshape(6, 2)
    ballots = replace(
        full_crowd([2, 1, 3], ["ann", "bob", "cy"]), dilemmas=rows, choices=np.array([1, 0, 0, -1, 0, 1], np.int8)
    )
    with pytest.raises(CrowdveilError, match=r"in 3 of 6 records neither side was chosen.*decided\(\)"):
        _ = ballots.differences
    decided = ballots.decided()
    assert decided.voter_names() == ["ann", "cy"]
    assert decided.counts.tolist() == [1, 2]
    assert decided.dilemmas.tolist() == rows[[0, 3, 5]].tolist()
    assert decided.choices.tolist() == [1, -1, 1]
    assert ballots.scenarios is not None
    before = ballots.scenarios.to_list()
    assert told(decided.scenarios) == [before[0], before[3], before[5]]
    assert told(decided.about["pet"]) == ["dog", "dog"]
    assert decided.decided() is decided
    women = replace(ballots, selection="gender = women")
    assert women.decided().selection == "gender = women"


def test_ballots_are_made_from_a_researchers_arrays() -> None:
    ballots = Ballots.from_arrays(
        replace(STUDY, indifference="Treat them equally"),
        voters=["bob", "ann", "bob", "cy"],
        left=[[1, 0], [2, 2], [0, 5], [0, 0]],
        right=[[0, 0], [0, 3], [0, 0], [1, 1]],
        choice=[1, -1, 0, 1],
        scenario=["few", None, "many", "few"],
        about={"pet": ["cat", None, "cat", "dog"]},
    )
    assert repr(ballots) == "Ballots(toy: 3 voters, 4 records)"
    assert ballots.dilemmas.dtype == np.int8
    table = ballots.to_polars()
    assert table.columns == ["voter", "a", "b", "choice", "scenario", "about pet"]
    assert table.rows() == [
        ("bob", 1, 0, 1, "few", "cat"),
        ("bob", 0, 5, 0, "many", "cat"),
        ("ann", 2, -1, -1, None, None),
        ("cy", -1, -1, 1, "few", "dog"),
    ]
    assert ballots.to_pandas()[["voter", "b"]].to_dict("list") == {
        "voter": ["bob", "bob", "ann", "cy"],
        "b": [0, 5, -1, -1],
    }
    assert "3 voters" in ballots._repr_html_()
    assert "<table" in ballots._repr_html_()
    picked = Ballots.from_arrays(STUDY, [1, 2], [[1, 0]] * 2, [[0, 0]] * 2, np.array([True, False]))
    assert picked.choices.tolist() == [1, -1]
    words: tuple[Any, ...] = (["left", "right"], np.array(["left", "right"], object))
    for choice in words:
        worded = Ballots.from_arrays(STUDY, [1, 2], [[1, 0]] * 2, [[0, 0]] * 2, choice)
        assert worded.choices.tolist() == [1, -1]
    unsure = replace(STUDY, indifference="toss a coin")
    assert Ballots.from_arrays(unsure, ["a"], [[1, 0]], [[0, 0]], ["neither"]).choices.tolist() == [0]
    assert Ballots.from_arrays(STUDY, ["a"], [[0.5, 0]], [[0, 0]], [1]).dilemmas.tolist() == [[0.5, 0]]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"left": [[1, 0]]}, r"left must have 2 rows .* and 2 columns \(a, b\), got shape \(1, 2\)"),
        ({"right": [[1], [2]]}, r"right must have 2 rows"),
        ({"right": [["x", 1], [0, 1]]}, "right must hold numbers of at most 308 digits only"),
        ({"right": [[10**400, 1], [0, 1]]}, "right must hold numbers of at most 308 digits only"),
        ({"left": [[0, 0], [0, 6]]}, "left, row 2: feature b must be a number from 0 to 5, got 6"),
        ({"left": [[0, float("nan")], [0, 0]]}, "left, row 1: feature b must be a number from 0 to 5, got nan"),
        ({"voters": ["ann", None]}, "voters, row 2: None is nobody"),
        ({"voters": [float("nan"), 1]}, "voters, row 1: nan is nobody"),
        ({"choice": [1]}, r"for each of 2 records of the study toy: it is \[1\]"),
        ({"choice": [1, 0]}, r"must hold 1 or 'left', -1 or 'right', or True .* for each .* row 2 has 0$"),
        ({"choice": [1, 2]}, "row 2 has 2$"),
        ({"choice": ["left", "rihgt"]}, "row 2 has 'rihgt'$"),
        ({"choice": ["left", "neither"]}, "row 2 has 'neither'$"),
        ({"choice": ["left", None]}, r"it is \['left', None\]$"),
        ({"choice": [[1], [1, 2]]}, r"it is \[\[1\], \[1, 2\]\]$"),
        ({"voters": np.array(1)}, r"voters is array\(1\): give the name or number"),
        ({"voters": ["\ud800", "ann"]}, r"voters, row 1: '\\ud800' is nobody; .* name, of whole characters"),
        ({"scenario": np.array("few")}, r"scenario is array\('few'.*: give a text for each record"),
        ({"scenario": ["few", "\ud800"]}, r"scenario, row 2: '\\ud800' is no text"),
        ({"about": {"pet": np.array(1)}}, r"pet is array\(1\): give a text for each record"),
        ({"about": {1: ["cat", "dog"]}}, "a question of about is 1: give a text"),
        ({"levels": {"pet": 1}}, "levels of 'pet' is 1: give a list of texts"),
        ({"levels": {"pet": "cat"}}, "levels of 'pet' is 'cat': give a list of texts"),
        ({"levels": {"pet": [1]}}, "levels of 'pet': 1 is no text"),
        ({"levels": {"pet": [None]}}, "levels of 'pet': None is no text"),
        ({"levels": {"pet": [[]]}}, r"levels of 'pet': \[\] is no text"),
        ({"scenario": ["few"]}, "scenario has 1 entries for 2 records"),
        ({"scenario": ["few", 3]}, "scenario, row 2: 3 is no text"),
        ({"about": {"pet": ["cat", "dog"]}, "voters": ["ann", "ann"]}, "more than one answer to 'pet'"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_in_one_line(changed: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "voters": ["ann", "bob"],
        "left": [[1, 0], [0, 1]],
        "right": [[0, 0]] * 2,
        "choice": [1, -1],
    }
    said = {"about": {"pet": ["cat", "dog"]}} if "levels" in changed else {}
    with pytest.raises(CrowdveilError, match=message):
        Ballots.from_arrays(STUDY, **(good | said | changed))


def test_voters_are_filtered_and_split() -> None:
    names = [f"v{i}" for i in range(20)]
    ballots = full_crowd([1 + i % 3 for i in range(20)], names)
    assert ballots.filter(lambda b: b.counts == 2).voter_names() == [f"v{i}" for i in range(20) if i % 3 == 1]
    assert ballots.filter(np.array([i == 7 for i in range(20)])).voter_names() == ["v7"]
    assert ballots.head(2).voter_names() == ["v0", "v1"]
    assert len(ballots.head()) == 5
    some, others = ballots.split(0.3, seed=4)
    assert (some.voters, others.voters) == (6, 14)
    assert sorted(some.voter_names() + others.voter_names()) == sorted(names)
    assert same(ballots.split(0.3, seed=4)[0], some)
    assert ballots.split(0.3, seed=5)[0].voter_names() != some.voter_names()
    assert same(
        concatenate(STUDY, [some, others]),
        ballots.take(np.array([names.index(n) for n in names_of(some) + names_of(others)])),
    )
    for mask in (np.ones(3, bool), np.ones(20)):
        with pytest.raises(CrowdveilError, match="mask of 20 booleans"):
            ballots.filter(mask)
    masks: dict[str, Any] = {
        "it is None": None,
        r"it is int64 values of shape \(2,\)": [1, 0],
        r"it is \[\[1\], \[1, 2\]\]$": [[1], [1, 2]],
        "the function returned True": lambda _: True,
    }
    for told, given in masks.items():
        with pytest.raises(CrowdveilError, match=told):
            ballots.filter(given)
    with pytest.raises(CrowdveilError, match="from 0 to 1"):
        ballots.split(1.5, seed=1)
    with pytest.raises(CrowdveilError, match=r"the positions are \[\[1\], \[1, 2\]\]: give whole numbers"):
        ballots.take([[1], [1, 2]])  # type: ignore[arg-type]
    with pytest.raises(CrowdveilError, match="step of 2"):
        _ = ballots[::2]
    cuts: list[Any] = [slice("a"), slice(1.5), slice(None, None, 0)]
    for cut in cuts:
        with pytest.raises(CrowdveilError, match=r"the part of the ballots is slice\(.*: cut out voters with"):
            _ = ballots[cut]


def test_a_voter_in_two_batches_is_not_counted_as_two() -> None:
    batches = [crowd([1, 2], ["ann", "bob"]), crowd([1], ["bob"])]
    with pytest.raises(CrowdveilError, match="1 of 2 voters occur more than once"):
        concatenate(STUDY, batches)
    with pytest.raises(CrowdveilError, match="1 of 2 voters occur more than once"):
        concatenate(STUDY, [batches[0], batches[1].with_digests()])
    with pytest.raises(CrowdveilError, match="names and others have none"):
        concatenate(STUDY, [batches[0], crowd([1])])


def test_nameless_voters_are_numbered_through_all_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "VOTERS_PER_BATCH", 2)
    assert names_of(crowd([1] * 5)) == ["1", "2", "3", "4", "5"]


def test_batches_with_other_columns_are_not_joined() -> None:
    with pytest.raises(CrowdveilError, match="same columns"):
        concatenate(STUDY, [full_crowd([1], ["ann"]), crowd([1], ["bob"])])
    other = replace(full_crowd([1], ["bob"]), about={"pet": Categories(("cat",), np.zeros(1, np.int16))})
    with pytest.raises(CrowdveilError, match="same categories"):
        concatenate(STUDY, [full_crowd([1], ["ann"]), other])
    with pytest.raises(CrowdveilError, match="1 of 2 voters have no name"):
        crowd([1, 1], ["ann", None])
    with pytest.raises(CrowdveilError, match="2 entries in place of 1"):
        replace(crowd([1]), names=pa.array(["ann", "bob"]))


def test_categories_are_codes_of_labels() -> None:
    said = Categories.encode(["b", None, "a"])
    assert (said.labels, said.codes.tolist(), said.to_list()) == (("a", "b"), [1, -1, 0], ["b", None, "a"])
    assert Categories.encode(["b"], labels=["c", "b"]).codes.tolist() == [1]
    with pytest.raises(CrowdveilError, match="'d' is not among the categories c, b"):
        Categories.encode(["d"], labels=["c", "b"])
    with pytest.raises(CrowdveilError, match="same label"):
        Categories(("a", "a"), np.zeros(1, np.int16))
    with pytest.raises(CrowdveilError, match="from -1 to 0"):
        Categories(("a",), np.ones(1, np.int16))


def test_dilemmas_take_the_smallest_type_that_holds_them() -> None:
    left, right = np.array([[1.0, 0.0]]), np.array([[0.0, 5.0]])
    assert dilemmas_between(STUDY, left, right).dtype == np.int8
    assert dilemmas_between(STUDY, left / 2, right).tolist() == [[0.5, -5.0]]


def test_levels_of_what_voters_said_are_public_where_they_are_given():
    study = load_study("synthetic-2")
    given = (study, ["ann", "bob"], [[1, 0]] * 2, [[0, 0]] * 2, [1, 1])
    made = Ballots.from_arrays(*given, about={"side": ["left", None]}, levels={"side": ["left", "right"]})
    assert made.about["side"].labels == ("left", "right")
    assert made.about["side"].to_list() == ["left", None]
    with pytest.raises(CrowdveilError, match="'up' is not among the categories left, right"):
        Ballots.from_arrays(*given, about={"side": ["up", "left"]}, levels={"side": ["left", "right"]})
