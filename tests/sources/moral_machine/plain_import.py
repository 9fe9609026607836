"""The rules of the import said plainly, row by row: what streaming must agree with."""

from __future__ import annotations

import csv
import io
import math
from collections import defaultdict

from crowdveil.sources.import_report import Refusal
from crowdveil.study.bundled import load_study

FEATURES = load_study("moral-machine").feature_names
LEGALITY = {0: 0, 1: 1, 2: -1}
Row = tuple[str, str, int, tuple[int, ...]]
Plain = tuple[dict[int, Refusal], dict[str, list[list[int]]]]


def column(feature: str) -> str:
    return "CrossingSignal" if feature == "legality" else "".join(w.capitalize() for w in feature.split("_"))


def plain_import(text: str) -> Plain:
    """Return the refused rows with their reasons, and every voter's answers, sorted."""
    header, *lines = [line for line in text.replace("\r", "\n").split("\n") if line]
    columns = next(csv.reader([header]))
    refused: dict[int, Refusal] = {}
    dilemmas: dict[str, dict[int, Row]] = defaultdict(dict)
    for number, line in enumerate(lines, start=1):
        cells = next(csv.reader(io.StringIO(line)))
        row = _read(dict(zip(columns, cells, strict=True))) if len(cells) == len(columns) else Refusal.RAGGED
        if isinstance(row, Refusal):
            refused[number] = row
        else:
            dilemmas[row[0]][number] = row
    answers: dict[str, list[list[int]]] = defaultdict(list)
    for rows in dilemmas.values():
        pair = _pair(rows, refused)
        if pair is not None:
            chosen, other = sorted(pair, key=lambda row: -row[2])
            answers[chosen[1]].append([_value(chosen, k) - _value(other, k) for k in range(len(FEATURES))])
    return refused, {voter: sorted(of_voter) for voter, of_voter in answers.items()}


def _value(row: Row, k: int) -> int:
    return LEGALITY[row[3][k]] if FEATURES[k] == "legality" else row[3][k]


def _read(cells: dict[str, str]) -> Row | Refusal:
    cells = {name: cell.strip() for name, cell in cells.items()}
    needed = ["Saved", *map(column, FEATURES)]
    if not cells["ExtendedSessionID"]:
        return Refusal.VOTER_MISSING
    if not cells["ResponseID"]:
        return Refusal.DILEMMA_MISSING
    if not all(cells[name] for name in needed):
        return Refusal.BLANK
    try:
        saved, *values = [float(cells[name]) for name in needed]
    except ValueError:
        return Refusal.NOT_A_NUMBER
    if not all(map(math.isfinite, (saved, *values))):
        return Refusal.NOT_A_NUMBER
    if saved not in (0, 1):
        return Refusal.NO_SINGLE_CHOICE
    highest = [1, 1, 2] + [5] * 20
    if not all(0 <= v <= high and v == int(v) for v, high in zip(values, highest, strict=True)):
        return Refusal.OUT_OF_BOUNDS
    if not 1 <= sum(values[3:]) <= 5:
        return Refusal.OUT_OF_BOUNDS
    if cells.get("NumberOfCharacters", ""):
        try:
            if float(cells["NumberOfCharacters"]) != sum(values[3:]):
                return Refusal.INCONSISTENT
        except ValueError:
            return Refusal.INCONSISTENT
    return cells["ResponseID"], cells["ExtendedSessionID"], int(saved), tuple(map(int, values))


def _pair(rows: dict[int, Row], refused: dict[int, Refusal]) -> list[Row] | None:
    if _wrong(list(rows.values())) is None:
        return list(rows.values())
    different: dict[Row, int] = {}
    for number, row in rows.items():
        if row in different:
            refused[number] = Refusal.DOUBLED
        else:
            different[row] = number
    reason = _wrong(list(different))
    if reason is None:
        return list(different)
    refused.update(dict.fromkeys(different.values(), reason))
    return None


def _wrong(rows: list[Row]) -> Refusal | None:
    if len(rows) == 1:
        return Refusal.UNPAIRED
    if len(rows) > 2:
        return Refusal.DOUBLED
    if rows[0][1] != rows[1][1]:
        return Refusal.INCONSISTENT
    return None if rows[0][2] + rows[1][2] == 1 else Refusal.NO_SINGLE_CHOICE
