"""Records as people hold them: two alternatives' own values and a choice, checked and turned into columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crowdveil.arrays import BoolArray, IntArray, SmallIntArray, ValueArray
from crowdveil.errors import CrowdveilError
from crowdveil.study.study import Study


def smallest_type(study: Study) -> type[np.int8] | type[np.float64]:
    """Return int8 where every possible difference of the study is a small whole number, else float64."""
    whole = all(
        f.unit == 1 and f.reach <= 127 and all(float(v).is_integer() for v in (f.low, f.high, *f.levels))
        for f in study.features
    )
    return np.int8 if whole and study.drawing.method != "gaussian" else np.float64


def dilemmas_between(study: Study, left: ValueArray, right: ValueArray) -> ValueArray:
    """Subtract the right alternatives from the left ones, in model units, in the smallest type that holds them."""
    dilemmas = np.subtract(left, right) / study.units
    # Where every drawn difference is a small whole number, others may still have been given.
    if smallest_type(study) is np.int8 and (dilemmas == np.rint(dilemmas)).all():
        return dilemmas.astype(np.int8)
    return dilemmas


def check_alternatives(study: Study, side: str, given: Any, records: int) -> ValueArray:
    """Check one side's values against the study's public bounds: a row a record, a column a feature."""
    try:
        values = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise CrowdveilError(
            f"{side} must hold numbers only: a row for each record, a column for each feature"
        ) from None
    if values.shape != (records, study.dimension):
        raise CrowdveilError(
            f"{side} must have {records} rows (one for each entry of voters) and {study.dimension} columns "
            f"({', '.join(study.feature_names)}), got shape {values.shape}"
        )
    for k, feature in enumerate(study.features):
        inside = (values[:, k] >= feature.low) & (values[:, k] <= feature.high)
        if not inside.all():
            row = int(np.argmin(inside))
            raise CrowdveilError(
                f"{side}, row {row + 1}: feature {feature.name} must be a number from {feature.low:g} to "
                f"{feature.high:g}, got {values[row, k]:g}"
            )
    if wrong := study.first_without_level(values):
        raise CrowdveilError(
            f"{side}, row {wrong[0] + 1}: {wrong[1].name} needs a 1 for exactly one of its levels "
            f"({', '.join(wrong[1].feature_names)})"
        )
    return values


def check_choices(given: Any, records: int) -> SmallIntArray:
    """Read choices: 1 or True for the left alternative, -1 or False for the right, 0 for neither."""
    choices = np.asarray(given)
    if choices.dtype == np.bool_:
        choices = np.where(choices, 1, -1)
    if choices.shape != (records,) or not np.isin(choices, (-1, 0, 1)).all():
        raise CrowdveilError(
            f"choice must hold 1 or True (left), -1 or False (right) or 0 (neither) for each of {records} records, "
            f"got an array of shape {choices.shape}"
        )
    return choices.astype(np.int8)


def check_voters(given: Sequence[object]) -> list[str]:
    """Read the label of each record's voter."""
    for row, voter in enumerate(given, start=1):
        if voter is None or voter != voter or voter == "":  # NaN is not equal to itself
            raise CrowdveilError(
                f"voters, row {row}: {voter!r} is nobody; every record needs its voter's name or number"
            )
    return [str(voter) for voter in given]


def answered_alike(
    offsets: IntArray, left: ValueArray, right: ValueArray, choices: SmallIntArray, repeat: BoolArray
) -> SmallIntArray:
    """Compare each voter's second answer to a dilemma with the first: 1 if they are alike, -1 if not.

    The rows of voter i are those from ``offsets[i]`` to ``offsets[i + 1]``, and ``repeat`` marks second answers. A
    repeat may be mirrored or not. 0 where a voter has none, or more than one, or one of a dilemma that she has not
    answered besides.
    """
    voters = len(offsets) - 1
    counts = np.diff(offsets)
    whose = np.repeat(np.arange(voters), counts)
    second, first = np.full(voters, -1), np.full(voters, -1)
    second[whose[repeat]] = np.flatnonzero(repeat)
    again = second[whose]
    mirrored = (left == right[again]).all(axis=1) & (right == left[again]).all(axis=1)
    same = (left == left[again]).all(axis=1) & (right == right[again]).all(axis=1)
    found = np.flatnonzero((mirrored | same) & ~repeat)[::-1]
    first[whose[found]] = found  # of several, the first, which is written last
    whole = (first >= 0) & (np.bincount(whose[repeat], minlength=voters) == 1)
    turned = np.where(mirrored[first], -choices[second], choices[second])
    return np.where(whole, np.where(choices[first] == turned, 1, -1), 0).astype(np.int8)
