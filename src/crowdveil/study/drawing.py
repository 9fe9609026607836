"""Draw a study's dilemmas, for a voter's page and for simulated crowds: by levels, or as the Moral Machine does.

The Moral Machine's method (Awad et al. 2018): of the 13 dilemmas of a session, two are about each of six attributes of
the characters, and one is random. In a dilemma about an attribute, the two groups consist of pairs that differ in it:
the first member of a pair joins one group, the second member the other. Each dilemma draws which group dies if the car
stays on course, who sits in the car and who crosses against the light. The distributions are those of the platform,
taken from its published answers and analysis: see the constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from itertools import product

import numpy as np

from crowdveil.arrays import FloatArray, IntArray, SmallIntArray, ValueArray
from crowdveil.errors import CrowdveilError
from crowdveil.study.study import Alternative, Dilemma, Study

CHARACTERS = (
    "man",
    "woman",
    "pregnant",
    "stroller",
    "old_man",
    "old_woman",
    "boy",
    "girl",
    "homeless",
    "large_woman",
    "large_man",
    "criminal",
    "male_executive",
    "female_executive",
    "female_athlete",
    "male_athlete",
    "female_doctor",
    "male_doctor",
    "dog",
    "cat",
)
NOBODY = len(CHARACTERS)
LARGEST_GROUP = 5
_NORMAL_REACH = 3.0
"""Values that normal ones hardly ever exceed."""

Pairs = tuple[tuple[str, str], ...]


class Scenario(Enum):
    """The attribute in which the two groups of a dilemma differ, with the level of the first group named first."""

    GENDER = "female or male"
    AGE = "young or old"
    FITNESS = "fit or large"
    SOCIAL_VALUE = "high or low"
    SPECIES = "humans or pets"
    NUMBER = "more or fewer"
    RANDOM = "random"


_ATTRIBUTES = tuple(s for s in Scenario if s is not Scenario.RANDOM)
_SESSION = (*_ATTRIBUTES, *_ATTRIBUTES, Scenario.RANDOM)

_LOW = ("homeless", "criminal")
_NEUTRAL = ("man", "woman")
_HIGH = ("pregnant", "male_executive", "female_executive", "female_doctor", "male_doctor")

# Equally likely pairs, one for each place of the group; likelier pairs are repeated. If an attribute has three levels,
# one combination of two levels has probability 1/2, and each of the other two 1/4.
_PAIRS: dict[Scenario, Pairs] = {
    Scenario.GENDER: (
        ("woman", "man"),
        ("old_woman", "old_man"),
        ("girl", "boy"),
        ("large_woman", "large_man"),
        ("female_executive", "male_executive"),
        ("female_athlete", "male_athlete"),
        ("female_doctor", "male_doctor"),
    ),
    Scenario.AGE: (
        *(("man", "old_man"), ("woman", "old_woman")) * 2,
        *(("boy", "old_man"), ("girl", "old_woman")),
        *(("boy", "man"), ("girl", "woman")),
    ),
    Scenario.FITNESS: (
        *(("male_athlete", "man"), ("female_athlete", "woman")) * 2,
        *(("male_athlete", "large_man"), ("female_athlete", "large_woman")),
        *(("man", "large_man"), ("woman", "large_woman")),
    ),
    Scenario.SOCIAL_VALUE: (
        *tuple(product(_NEUTRAL, _LOW)) * 5,
        *product(_HIGH, _LOW),
        *product(_HIGH, _NEUTRAL),
    ),
    Scenario.SPECIES: tuple(product(CHARACTERS[:-2], CHARACTERS[-2:])),
}

# P(both groups cross the road; those in the car die if it swerves; those in the car die if it stays), and
# P(no light; green for the pedestrians; red for them). If both groups cross, that is the light of the group ahead, and
# the group in the other lane has the opposite one. The first row is for the attributes and is published (as weights in
# the analysis code of Awad et al.). The second row is for random scenarios and was counted in the public answers.
_PLACES = np.array([[0.48, 0.32, 0.20], [0.14, 0.46, 0.40]])
_LIGHTS = np.array([[0.48, 0.20, 0.32], [0.12, 0.40, 0.48]])


def draw_groups(scenario: Scenario, dilemmas: int, rng: np.random.Generator) -> SmallIntArray:
    """Draw who is in the two groups: (dilemmas, 5 places, 2 groups) positions in CHARACTERS, or NOBODY."""
    shape = (dilemmas, LARGEST_GROUP)
    place = np.arange(LARGEST_GROUP)
    if scenario in _PAIRS:
        pairs = np.array([[CHARACTERS.index(c) for c in pair] for pair in _PAIRS[scenario]], np.int8)
        groups = pairs[rng.integers(len(pairs), size=shape)]
        groups[place >= rng.integers(1, LARGEST_GROUP + 1, size=(dilemmas, 1))] = NOBODY
    elif scenario is Scenario.NUMBER:
        everyone = rng.integers(len(CHARACTERS), size=shape, dtype=np.int8)
        fewer = rng.integers(1, LARGEST_GROUP, size=(dilemmas, 1))
        groups = np.stack([everyone, np.where(place < fewer, everyone, np.int8(NOBODY))], axis=2)
    else:
        groups = rng.integers(len(CHARACTERS), size=(*shape, 2), dtype=np.int8)
        sizes = rng.integers(1, LARGEST_GROUP + 1, size=(dilemmas, 1, 2))
        groups[place[:, None] >= sizes] = NOBODY
    return groups


SCENARIO_LABELS = {
    Scenario.NUMBER: "Utilitarian",
    Scenario.GENDER: "Gender",
    Scenario.FITNESS: "Fitness",
    Scenario.AGE: "Age",
    Scenario.SOCIAL_VALUE: "Social Status",
    Scenario.SPECIES: "Species",
    Scenario.RANDOM: "Random",
}
"""The names of scenario types in the platform's public files, in the order of their codes."""


def draw_moral_machine(study: Study, voters: int, rng: np.random.Generator) -> tuple[SmallIntArray, SmallIntArray]:
    """Draw the sessions of this many voters: the features of the left and the right groups, one row per dilemma."""
    left, right, _ = draw_with_scenarios(study, voters, rng)
    return left, right


def draw_with_scenarios(
    study: Study, voters: int, rng: np.random.Generator
) -> tuple[SmallIntArray, SmallIntArray, IntArray]:
    """Draw sessions, and the type of each dilemma's scenario as its position among ``SCENARIO_LABELS``.

    A session longer or shorter than 13 cycles through the same scenarios (six attributes, six attributes, random), and
    is then shuffled.
    """
    absent = [n for n in ("intervention", "barrier", "legality", *CHARACTERS) if n not in study.feature_names]
    if absent:
        raise CrowdveilError(
            f"study {study.name!r} cannot be drawn as the Moral Machine is: it lacks {', '.join(absent)}"
        )
    deck = [_SESSION[i % len(_SESSION)] for i in range(study.drawing.dilemmas)]
    order = rng.permuted(np.tile(np.arange(len(deck)), (voters, 1)), axis=1).reshape(-1)
    everyone = np.arange(len(order))
    # An extra column after the features receives the empty places.
    sides = np.zeros((2, len(order), study.dimension + 1), np.int8)
    column = np.array([*map(study.feature_names.index, CHARACTERS), study.dimension])
    for scenario in dict.fromkeys(deck):
        rows = np.flatnonzero(np.array([s is scenario for s in deck])[order])
        groups = column[draw_groups(scenario, len(rows), rng)]
        first = rng.integers(2, size=len(rows))
        for place in range(LARGEST_GROUP):
            sides[first, rows, groups[:, place, 0]] += 1
            sides[1 - first, rows, groups[:, place, 1]] += 1

    law = np.array([s is Scenario.RANDOM for s in deck], np.int64)[order]
    where, light = _pick(_PLACES[law], rng), _pick(_LIGHTS[law], rng)
    ahead = rng.integers(2, size=len(order))
    intervention, barrier, legality = map(study.feature_names.index, ("intervention", "barrier", "legality"))
    sides[1 - ahead, everyone, intervention] = 1
    sides[1 - ahead, everyone, barrier] = where == 1
    sides[ahead, everyone, barrier] = where == 2
    green = np.array([0, 1, -1], np.int8)[light]
    sides[ahead, everyone, legality] = np.where(where == 2, 0, green)
    sides[1 - ahead, everyone, legality] = np.choose(where, [-green, 0, green])
    codes = np.array([list(SCENARIO_LABELS).index(scenario) for scenario in deck], np.int64)[order]
    return sides[0, :, :-1], sides[1, :, :-1], codes


def _pick(chances: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw 0, 1 or 2 with the probabilities in each row."""
    first = chances[:, 0]
    second = first + chances[:, 1]
    drawn = rng.random(len(chances))
    return (drawn >= first).astype(np.int64) + (drawn >= second)


def draw_dilemmas(study: Study, voters: int, rng: np.random.Generator) -> tuple[ValueArray, ValueArray]:
    """Draw the dilemmas of this many voters by the study's method.

    Return the left and the right alternatives, each (voters * dilemmas, features) in raw values of the features. The
    dilemmas of one voter are consecutive rows.
    """
    return _METHODS[study.drawing.method](study, voters, rng)


def draw_typed(
    study: Study, voters: int, rng: np.random.Generator
) -> tuple[ValueArray, ValueArray, tuple[tuple[str, ...], IntArray] | None]:
    """Draw the same dilemmas with their scenario types: the labels, and each dilemma's position among them.

    The types are None if the study's method has none.
    """
    if study.drawing.method != "moral-machine":
        return *draw_dilemmas(study, voters, rng), None
    left, right, codes = draw_with_scenarios(study, voters, rng)
    return left, right, (tuple(SCENARIO_LABELS.values()), codes)


def draw_session(study: Study, rng: np.random.Generator) -> list[Dilemma]:
    """Draw one voter's dilemmas, each between an alternative named left and one named right.

    No dilemma occurs twice if the study has plenty of them (``has_plenty``).
    """
    drawn = _draw_one(study, rng)
    while has_plenty(study) and count_repeats(drawn):
        if study.drawing.method == "moral-machine":  # A session is drawn as a whole: two dilemmas of each kind.
            drawn = _draw_one(study, rng)
        else:
            different = {_sides(dilemma): dilemma for dilemma in (*drawn, *_draw_one(study, rng))}
            drawn = list(different.values())[: study.drawing.dilemmas]
    return drawn


def has_plenty(study: Study) -> bool:
    """Whether a study has at least twice as many different dilemmas as a session."""
    if study.drawing.method != "independent":
        return True
    alternatives = math.prod(len(set(attribute.levels)) for attribute in study.attributes)
    return alternatives * (alternatives - 1) // 2 >= 2 * study.drawing.dilemmas


def never_shown(study: Study, alternative: Alternative) -> str | None:
    """Return a value in an alternative that the study's drawing could never produce, in words, or None."""
    for feature, value in zip(study.features, alternative.values, strict=True):
        match study.drawing.method:
            case "independent":
                possible = value in feature.levels
            case "moral-machine":
                possible = value.is_integer()
            case _:
                possible = True
        if not possible:
            return f"{value:g} for {feature.name}"
    wrong = study.first_without_level(np.array([alternative.values]))
    return None if wrong is None else f"no single level for {wrong[1].name}"


def count_repeats(dilemmas: Sequence[Dilemma]) -> int:
    """Count the dilemmas that occurred before, whichever sides their alternatives were on."""
    return len(dilemmas) - len({_sides(dilemma) for dilemma in dilemmas})


def _sides(dilemma: Dilemma) -> frozenset[tuple[float, ...]]:
    return frozenset(alternative.values for alternative in dilemma.alternatives)


def _draw_one(study: Study, rng: np.random.Generator) -> list[Dilemma]:
    return [
        Dilemma((Alternative("left", tuple(map(float, left))), Alternative("right", tuple(map(float, right)))))
        for left, right in zip(*draw_dilemmas(study, 1, rng), strict=True)
    ]


def _draw_gaussian(study: Study, voters: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw every feature from N(0, 1), clipped to its public bounds (the paper's Section 5.1); alternatives differ."""
    if all(f.low >= _NORMAL_REACH or f.high <= -_NORMAL_REACH for f in study.features):
        raise CrowdveilError(
            f"study {study.name!r} has no dilemma to draw: the method 'gaussian' draws values around 0, which "
            "hardly ever lie within a feature's range; give levels, and the method 'independent'"
        )
    low, high = (np.array([getattr(f, end) for f in study.features]) for end in ("low", "high"))
    sides = np.empty((2, voters * study.drawing.dilemmas, study.dimension))
    same = np.arange(sides.shape[1])
    while len(same):
        sides[:, same] = np.clip(rng.standard_normal((2, len(same), study.dimension)), low, high)
        same = same[(sides[0, same] == sides[1, same]).all(axis=1)]
    return sides[0], sides[1]


def _draw_independent(study: Study, voters: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw every feature uniformly from its levels, given that the two alternatives differ."""
    if all(len(set(attribute.levels)) < 2 for attribute in study.attributes):
        raise CrowdveilError(
            f"study {study.name!r} has no dilemma to draw: every feature has a single level; "
            "give at least one feature two levels"
        )
    dilemmas = voters * study.drawing.dilemmas
    pairs = np.empty((dilemmas, 2, study.dimension))
    same = np.arange(dilemmas)
    categories = set(np.concatenate([[], *study.level_columns]).tolist())
    numbers = [(k, feature.levels) for k, feature in enumerate(study.features) if k not in categories]
    while len(same):
        for k, levels in numbers:
            pairs[same, :, k] = rng.choice(levels, (len(same), 2))
        for columns in study.level_columns:
            pairs[same[:, None, None], np.arange(2)[:, None], columns] = np.eye(len(columns))[
                rng.integers(len(columns), size=(len(same), 2))
            ]
        same = same[(pairs[same, 0] == pairs[same, 1]).all(axis=1)]
    return pairs[:, 0], pairs[:, 1]


_METHODS: Mapping[str, Callable[[Study, int, np.random.Generator], tuple[ValueArray, ValueArray]]] = {
    "moral-machine": draw_moral_machine,
    "independent": _draw_independent,
    "gaussian": _draw_gaussian,
}
