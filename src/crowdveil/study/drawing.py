"""Drawing a study's dilemmas, for a voter's page and for simulated crowds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from crowdveil.arrays import FloatArray, IntArray, ValueArray
from crowdveil.errors import CrowdveilError
from crowdveil.study.moral_machine_sessions import SCENARIO_LABELS, draw_moral_machine, draw_with_scenarios
from crowdveil.study.study import Alternative, Dilemma, Study


def draw_dilemmas(study: Study, voters: int, rng: np.random.Generator) -> tuple[ValueArray, ValueArray]:
    """Draw the dilemmas of this many voters by the study's method.

    Returns the left and the right alternatives, each (voters * dilemmas, features) in the features' raw
    values; one voter's dilemmas are consecutive rows.
    """
    return _METHODS[study.drawing.method](study, voters, rng)


def draw_typed(
    study: Study, voters: int, rng: np.random.Generator
) -> tuple[ValueArray, ValueArray, tuple[tuple[str, ...], IntArray] | None]:
    """Draw the same dilemmas with their types of scenario: the labels, and each dilemma's position among them.

    The types are None where the study's method knows none.
    """
    if study.drawing.method != "moral-machine":
        return *draw_dilemmas(study, voters, rng), None
    left, right, codes = draw_with_scenarios(study, voters, rng)
    return left, right, (tuple(SCENARIO_LABELS.values()), codes)


def draw_session(study: Study, rng: np.random.Generator) -> list[Dilemma]:
    """Draw one voter's dilemmas, each between an alternative named left and one named right.

    No dilemma comes twice where the study has plenty of them (``has_plenty``).
    """
    drawn = _draw_one(study, rng)
    while has_plenty(study) and count_repeats(drawn):
        if study.drawing.method == "moral-machine":  # Its sessions are made as wholes: two dilemmas of each kind.
            drawn = _draw_one(study, rng)
        else:
            different = {_sides(dilemma): dilemma for dilemma in (*drawn, *_draw_one(study, rng))}
            drawn = list(different.values())[: study.drawing.dilemmas]
    return drawn


def has_plenty(study: Study) -> bool:
    """Whether a study can show at least twice as many different dilemmas as a session has."""
    if study.drawing.method != "independent":
        return True
    alternatives = math.prod(len(set(attribute.levels)) for attribute in study.attributes)
    return alternatives * (alternatives - 1) // 2 >= 2 * study.drawing.dilemmas


def never_shown(study: Study, alternative: Alternative) -> str | None:
    """Return what a study's drawing could never come up with in an alternative, if there is anything."""
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
    """Count the dilemmas that came before, whichever side their alternatives were on."""
    return len(dilemmas) - len({_sides(dilemma) for dilemma in dilemmas})


def _sides(dilemma: Dilemma) -> frozenset[tuple[float, ...]]:
    return frozenset(alternative.values for alternative in dilemma.alternatives)


def _draw_one(study: Study, rng: np.random.Generator) -> list[Dilemma]:
    return [
        Dilemma((Alternative("left", tuple(map(float, left))), Alternative("right", tuple(map(float, right)))))
        for left, right in zip(*draw_dilemmas(study, 1, rng), strict=True)
    ]


def _draw_gaussian(study: Study, voters: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw every feature from N(0, 1), cut off at its public bounds (the paper's Section 5.1)."""
    dilemmas = voters * study.drawing.dilemmas
    low, high = (np.array([getattr(f, end) for f in study.features]) for end in ("low", "high"))
    left, right = np.clip(rng.standard_normal((2, dilemmas, study.dimension)), low, high)
    return left, right


def _draw_independent(study: Study, voters: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw every feature uniformly from its levels, given that the two alternatives are not the same."""
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
