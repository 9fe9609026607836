from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats
from tests.real_data import MORAL_MACHINE, with_moral_machine

from crowdveil.arrays import BoolArray, FloatArray, IntArray, SmallIntArray, ValueArray
from crowdveil.errors import CrowdveilError
from crowdveil.study.bundled import load_study, synthetic_study
from crowdveil.study.drawing import CHARACTERS, NOBODY, Scenario, draw_dilemmas, draw_groups
from crowdveil.study.study import Drawing

STUDY = load_study("moral-machine")
UNLIKELY = 1e-7


MALE = ("man", "old_man", "boy", "large_man", "male_executive", "male_athlete", "male_doctor")
FEMALE = ("woman", "old_woman", "girl", "large_woman", "female_executive", "female_athlete", "female_doctor")
PETS = ("dog", "cat")
AGES = {"boy": 0, "girl": 0, "man": 1, "woman": 1, "old_man": 2, "old_woman": 2}
SHAPES = {"large_man": 0, "large_woman": 0, "man": 1, "woman": 1, "male_athlete": 2, "female_athlete": 2}
RANKS = {"homeless": 0, "criminal": 0, "man": 1, "woman": 1} | dict.fromkeys(
    ("pregnant", "male_executive", "female_executive", "female_doctor", "male_doctor"), 2
)


def counts_of(side: SmallIntArray) -> IntArray:
    return np.stack([(side == k).sum(axis=1) for k in range(len(CHARACTERS))], axis=1)


def draw(scenario: Scenario, dilemmas: int = 5_000, seed: int = 1) -> tuple[IntArray, IntArray]:
    groups = draw_groups(scenario, dilemmas, np.random.default_rng(seed))
    return counts_of(groups[:, :, 0]), counts_of(groups[:, :, 1])


def many(counts: IntArray, *characters: str) -> IntArray:
    return np.asarray(counts[:, [CHARACTERS.index(c) for c in characters]].sum(axis=1))


def total(counts: IntArray, scale: dict[str, int]) -> IntArray:
    return np.asarray(sum(many(counts, c) * value for c, value in scale.items()))


@pytest.mark.parametrize("scenario", [s for s in Scenario if s not in (Scenario.NUMBER, Scenario.RANDOM)])
def test_attribute_groups_are_equally_large_and_sizes_uniform(scenario: Scenario) -> None:
    first, second = draw(scenario)
    assert (first.sum(axis=1) == second.sum(axis=1)).all()
    sizes = np.bincount(first.sum(axis=1), minlength=6)
    assert sizes[0] == 0
    assert stats.chisquare(sizes[1:]).pvalue > UNLIKELY


def test_gender_dilemmas_swap_the_sex_and_nothing_else() -> None:
    women, men = draw(Scenario.GENDER)
    assert many(women, *FEMALE).sum() == women.sum()
    for her, him in zip(FEMALE, MALE, strict=True):
        assert (many(women, her) == many(men, him)).all()
        assert many(women, her).sum() > 0


@pytest.mark.parametrize(
    ("scenario", "scale", "sign"),
    [(Scenario.AGE, AGES, -1), (Scenario.FITNESS, SHAPES, 1), (Scenario.SOCIAL_VALUE, RANKS, 1)],
)
def test_the_first_group_is_younger_fitter_or_higher(scenario: Scenario, scale: dict[str, int], sign: int) -> None:
    first, second = draw(scenario)
    for group in (first, second):
        assert (many(group, *scale) == group.sum(axis=1)).all(), "a character that the attribute does not know"
    step = sign * (total(first, scale) - total(second, scale))
    assert ((step >= first.sum(axis=1)) & (step <= 2 * first.sum(axis=1))).all(), "each pair differs by 1 or 2"


@pytest.mark.parametrize(
    ("scenario", "scale", "usual"),
    [(Scenario.AGE, AGES, (1, 2)), (Scenario.FITNESS, SHAPES, (2, 1)), (Scenario.SOCIAL_VALUE, RANKS, (1, 0))],
)
def test_of_three_levels_two_meet_half_of_the_time(
    scenario: Scenario, scale: dict[str, int], usual: tuple[int, int]
) -> None:
    firsts, seconds = draw_groups(scenario, 20_000, np.random.default_rng(2))[:, 0].T
    levels = [(scale[CHARACTERS[a]], scale[CHARACTERS[b]]) for a, b in zip(firsts, seconds, strict=True)]
    combinations = {usual, *levels} - {usual}
    assert len(combinations) == 2
    counts = [levels.count(usual), *(levels.count(combination) for combination in combinations)]
    assert stats.chisquare(counts, [10_000, 5_000, 5_000]).pvalue > UNLIKELY
    for members in (firsts, seconds):
        for level in range(3):
            at_level = np.bincount([m for m in members if scale[CHARACTERS[m]] == level])
            assert at_level.size == 0 or stats.chisquare(at_level[at_level > 0]).pvalue > UNLIKELY


@pytest.mark.parametrize("scenario", [Scenario.AGE, Scenario.FITNESS])
def test_age_and_fitness_dilemmas_keep_the_sexes(scenario: Scenario) -> None:
    first, second = draw(scenario)
    assert (many(first, *MALE) == many(second, *MALE)).all()


def test_species_dilemmas_are_humans_against_pets() -> None:
    humans, pets = draw(Scenario.SPECIES)
    assert many(humans, *PETS).sum() == 0
    assert many(pets, *PETS).sum() == pets.sum()
    assert stats.chisquare(humans.sum(axis=0)[:-2]).pvalue > UNLIKELY


def test_number_dilemmas_add_to_the_same_group_up_to_five() -> None:
    more, fewer = draw(Scenario.NUMBER)
    assert (more >= fewer).all()
    assert (more.sum(axis=1) == 5).all()
    sizes = np.bincount(fewer.sum(axis=1), minlength=5)
    assert sizes[0] == 0
    assert len(sizes) == 5
    assert stats.chisquare(sizes[1:]).pvalue > UNLIKELY


def test_random_groups_are_independent_and_of_any_characters() -> None:
    first, second = draw(Scenario.RANDOM)
    sizes = np.zeros((6, 6), int)
    np.add.at(sizes, (first.sum(axis=1), second.sum(axis=1)), 1)
    assert sizes[0].sum() == sizes[:, 0].sum() == 0
    assert stats.chisquare(sizes[1:, 1:].ravel()).pvalue > UNLIKELY
    assert stats.chisquare(first.sum(axis=0) + second.sum(axis=0)).pvalue > UNLIKELY


def test_places_beyond_a_groups_size_hold_nobody() -> None:
    groups = draw_groups(Scenario.RANDOM, 100, np.random.default_rng(1))
    assert groups.shape == (100, 5, 2)
    assert ((groups >= 0) & (groups <= NOBODY)).all()


def test_a_dilemma_hits_one_group_ahead_and_one_by_swerving() -> None:
    left, right = draw_dilemmas(STUDY, 2_000, np.random.default_rng(7))
    at = [STUDY.feature_names.index(name) for name in ("intervention", "barrier", "legality")]
    action, place, signal = (np.stack([left[:, k], right[:, k]]) for k in at)
    assert (action.sum(axis=0) == 1).all()
    assert (place.sum(axis=0) <= 1).all()
    assert (signal[place == 1] == 0).all(), "passengers have no light"
    both_cross = place.sum(axis=0) == 0
    assert (signal[0, both_cross] == -signal[1, both_cross]).all(), "two crossings have opposite lights"
    for side in (left, right):
        characters = side[:, [STUDY.feature_names.index(c) for c in CHARACTERS]].sum(axis=1)
        assert ((characters >= 1) & (characters <= 5)).all()
    assert stats.binomtest(int(action[0].sum()), action.shape[1]).pvalue > UNLIKELY, "sides are drawn at random"


def flags(left: ValueArray, right: ValueArray) -> dict[tuple[int, ...], int]:
    """Count (barrier ahead, barrier in the other lane, light ahead, light in the other lane)."""
    swerves = left[:, [0]] == 1
    ahead, other = np.where(swerves, right, left)[:, 1:3], np.where(swerves, left, right)[:, 1:3]
    together = np.stack([ahead[:, 0], other[:, 0], ahead[:, 1], other[:, 1]], axis=1)
    seen, counts = np.unique(together, axis=0, return_counts=True)
    return {tuple(map(int, key)): int(n) for key, n in zip(seen, counts, strict=True)}


# The weights of the published analysis: 0.48 both on the road, 0.32 and 0.20 in the car; light 0.48, 0.20, 0.32.
PUBLISHED: dict[tuple[int, ...], float] = {
    (0, 0, 0, 0): 0.48 * 0.48,
    (0, 0, 1, -1): 0.48 * 0.20,
    (0, 0, -1, 1): 0.48 * 0.32,
    (0, 1, 0, 0): 0.32 * 0.48,
    (0, 1, 1, 0): 0.32 * 0.20,
    (0, 1, -1, 0): 0.32 * 0.32,
    (1, 0, 0, 0): 0.20 * 0.48,
    (1, 0, 0, 1): 0.20 * 0.20,
    (1, 0, 0, -1): 0.20 * 0.32,
}


def test_places_and_lights_of_the_attributes_follow_the_published_weights() -> None:
    study = replace(STUDY, drawing=Drawing("moral-machine", 6))
    drawn = flags(*draw_dilemmas(study, 5_000, np.random.default_rng(8)))
    assert set(drawn) == set(PUBLISHED)
    expected = [30_000 * PUBLISHED[key] for key in drawn]
    assert stats.chisquare(list(drawn.values()), expected).pvalue > UNLIKELY


def only(counts: IntArray, characters: Iterable[str]) -> BoolArray:
    return np.asarray(many(counts, *characters) == counts.sum(axis=1))


def ordered(scale: dict[str, int], sign: int) -> Callable[[IntArray, IntArray], BoolArray]:
    return lambda a, b: only(a, scale) & only(b, scale) & (sign * total(a, scale) > sign * total(b, scale))


LOOKS_LIKE: dict[Scenario, Callable[[IntArray, IntArray], BoolArray]] = {
    Scenario.GENDER: lambda a, b: only(a, FEMALE) & only(b, MALE),
    Scenario.AGE: ordered(AGES, -1),
    Scenario.FITNESS: ordered(SHAPES, 1),
    Scenario.SOCIAL_VALUE: ordered(RANKS, 1),
    Scenario.SPECIES: lambda a, b: (many(a, *PETS) == 0) & only(b, PETS),
    Scenario.NUMBER: lambda a, b: (a.sum(axis=1) == 5) & (b.sum(axis=1) < 5) & (a >= b).all(axis=1),
}


@pytest.mark.parametrize(("dilemmas", "each"), [(6, 1), (12, 2), (13, 2), (26, 4)])
def test_a_session_holds_every_attribute_in_turn(dilemmas: int, each: int) -> None:
    study = replace(STUDY, drawing=Drawing("moral-machine", dilemmas))
    sides = draw_dilemmas(study, 200, np.random.default_rng(9))
    left, right = (side[:, [STUDY.feature_names.index(c) for c in CHARACTERS]].astype(int) for side in sides)
    alike = {s: (looks(left, right) | looks(right, left)).reshape(200, dilemmas) for s, looks in LOOKS_LIKE.items()}
    for scenario, hits in alike.items():
        assert (hits.sum(axis=1) >= each).all(), scenario
    # All but the random ones are of some attribute, and the order is shuffled: any position may be of any.
    assert (np.any(list(alike.values()), axis=0).sum(axis=1) >= 6 * each).all()
    for hits in alike.values():
        assert (hits.mean(axis=0) < 0.6).all()


def test_a_study_without_these_features_cannot_be_drawn_so() -> None:
    study = replace(synthetic_study(2), drawing=Drawing("moral-machine", 13))
    with pytest.raises(CrowdveilError, match="intervention"):
        draw_dilemmas(study, 1, np.random.default_rng(1))


NAMES = {
    Scenario.GENDER: ("Gender", "Female", "Male"),
    Scenario.AGE: ("Age", "Young", "Old"),
    Scenario.FITNESS: ("Fitness", "Fit", "Fat"),
    Scenario.SOCIAL_VALUE: ("Social Status", "High", "Low"),
    Scenario.SPECIES: ("Species", "Hoomans", "Pets"),
    Scenario.NUMBER: ("Utilitarian", "More", "Less"),
}


@pytest.fixture(scope="module")
def public() -> pl.DataFrame:
    return pl.read_csv(MORAL_MACHINE, infer_schema_length=None).sort("ResponseID", "Intervention")


def comparable(scenario: Scenario, first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    """Leave out what the public file holds only a part of.

    It has fewer of the dilemmas whose second group are ordinary adults only, and of those about social value only
    the ones without criminals, pregnant women and doctors.
    """
    keep = np.ones(len(first), bool)
    if scenario in (Scenario.AGE, Scenario.FITNESS, Scenario.SOCIAL_VALUE):
        keep &= many(second, "man", "woman") < second.sum(axis=1)
    if scenario is Scenario.SOCIAL_VALUE:
        keep &= many(first + second, "criminal", "pregnant", "female_doctor", "male_doctor") == 0
    return first[keep], second[keep]


def largest_z(real_values: FloatArray, drawn: FloatArray) -> float:
    apart = real_values.mean(axis=0) - drawn.mean(axis=0)
    error = np.sqrt(real_values.var(axis=0) / len(real_values) + drawn.var(axis=0) / len(drawn))
    assert (apart[error == 0] == 0).all()
    return float(np.abs(apart[error > 0] / error[error > 0]).max())


@with_moral_machine
@pytest.mark.parametrize("scenario", NAMES)
def test_groups_have_the_means_and_second_moments_of_the_public_answers(
    public: pl.DataFrame, scenario: Scenario
) -> None:
    kind, *levels = NAMES[scenario]
    columns = ["".join(w.capitalize() for w in c.split("_")) for c in CHARACTERS]
    rows = public.filter(pl.col("ScenarioType") == kind)
    seen = [rows.filter(pl.col("AttributeLevel") == level).select(columns).to_numpy() for level in levels]
    seen_first, seen_second = comparable(scenario, *seen)
    first, second = comparable(scenario, *draw(scenario, 40_000))
    # About 400 numbers a scenario: 5.5 standard errors by chance in fewer than 1 of 60,000 scenarios.
    assert largest_z(seen_first.astype(float), first.astype(float)) < 5.5
    assert largest_z(seen_second.astype(float), second.astype(float)) < 5.5
    seen_v, v = (np.einsum("ni,nj->nij", x, x).reshape(len(x), -1) for x in (seen_first - seen_second, first - second))
    assert largest_z(seen_v.astype(float), v.astype(float)) < 5.5


@with_moral_machine
def test_places_and_lights_have_the_second_moments_of_the_public_answers(public: pl.DataFrame) -> None:
    ahead, other = public.filter(pl.col("Intervention") == 0), public.filter(pl.col("Intervention") == 1)
    legality = pl.col("CrossingSignal").replace_strict({0: 0, 1: 1, 2: -1})
    seen = np.stack([f.select("Intervention", "Barrier", legality).to_numpy() for f in (ahead, other)])
    left, right = draw_dilemmas(STUDY, 10_000, np.random.default_rng(10))
    v, w = (seen[0] - seen[1]).astype(float), (left[:, :3] - right[:, :3]).astype(float)
    # A tolerance, not a law: the file holds a random scenario in 11.8 dilemmas where a session holds one in 13.
    assert np.abs(v.T @ v / len(v) - w.T @ w / len(w)).max() < 0.03


@with_moral_machine
def test_random_scenarios_have_the_places_and_lights_of_the_public_answers(public: pl.DataFrame) -> None:
    study = replace(STUDY, drawing=Drawing("moral-machine", 13))
    sides = draw_dilemmas(study, 20_000, np.random.default_rng(11))
    drawn = flags(*sides)
    random = public.filter(pl.col("ScenarioType") == "Random")
    ahead, other = random.filter(pl.col("Intervention") == 0), random.filter(pl.col("Intervention") == 1)
    light = {0: 0, 1: 1, 2: -1}
    keys = list(zip(ahead["Barrier"], other["Barrier"], ahead["CrossingSignal"], other["CrossingSignal"], strict=True))
    for key, chance in PUBLISHED.items():
        seen = sum((a, b, light[s], light[t]) == key for a, b, s, t in keys) / len(keys)
        # One dilemma of 13 is random: take the twelve others' part away.
        mine = (drawn[key] / 260_000 - 12 / 13 * chance) * 13
        assert mine == pytest.approx(seen, abs=0.03), key
