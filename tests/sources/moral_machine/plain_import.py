"""The rules of the import said plainly, row by row: what streaming must agree with."""

from __future__ import annotations

import csv
import math
import re
from collections import defaultdict
from collections.abc import Iterator

from crowdveil.sources.import_report import Refusal
from crowdveil.study.bundled import load_study

FEATURES = load_study("moral-machine").feature_names
LEGALITY = {0: 0, 1: 1, 2: -1}
Row = tuple[str, str, int, tuple[int, ...]]
Plain = tuple[dict[int, Refusal], dict[str, list[list[int]]]]


def column(feature: str) -> str:
    return "CrossingSignal" if feature == "legality" else "".join(w.capitalize() for w in feature.split("_"))


def plain_rows(text: str, longest: int = 1 << 23) -> Iterator[list[str] | None]:
    """Read a text with the csv module; None is a row that ends inside a quoted cell.

    A row of several lines that has not as many cells as the header, or is too long, is its first line only.
    """
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)
    at, columns = 0, 0
    while at < len(lines):
        reader = csv.reader(lines[at:])
        cells = next(reader)
        row = "".join(lines[at : at + reader.line_num])
        if reader.line_num > 1 and (len(cells) != (columns or len(cells)) or _is_open(row) or _size(row) >= longest):
            cells, row = [], lines[at]
            at += 1
        else:
            at += reader.line_num
        if row.strip("\r\n"):
            columns = columns or len(cells)
            yield None if _is_open(row) else cells


def _size(row: str) -> int:
    return len(row.rstrip("\r\n").encode())


def _is_open(row: str) -> bool:
    """Tell whether a text ends in a quoted cell: quotes in other cells mean nothing, two in a quoted one are one."""
    rest = row
    while rest:
        cell = re.match(r'"(?:[^"]|"")*("?)' if rest.startswith('"') else r"()", rest)
        assert cell is not None
        if rest.startswith('"') and not cell[1]:
            return True
        rest = rest[cell.end() :].partition(",")[2]
    return False


def plain_import(text: str, longest: int = 1 << 23) -> Plain:
    """Return the refused rows with their reasons, and every voter's answers, sorted."""
    header, *rows = plain_rows(text, longest)
    columns = header or []
    refused: dict[int, Refusal] = {}
    dilemmas: dict[str, dict[int, Row]] = defaultdict(dict)
    for number, cells in enumerate(rows, start=1):
        row = _read(dict(zip(columns, cells, strict=True))) if cells and len(cells) == len(columns) else Refusal.RAGGED
        if isinstance(row, Refusal):
            refused[number] = row
        else:
            dilemmas[row[0]][number] = row
    answers: dict[str, list[list[int]]] = defaultdict(list)
    for group in dilemmas.values():
        pair = _pair(group, refused)
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
