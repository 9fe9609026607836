"""Dirty files in the Moral Machine's layout, and a reader of them that shares no code with the import.

The reader states the rules of the import plainly, with Python's csv module and a loop over rows. Both must find the
same voters, the same records and the same rows to refuse.
"""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from crowdveil.sources.import_report import ImportResult, RowDefect
from crowdveil.sources.moral_machine.importing import load_moral_machine
from crowdveil.study.bundled import load_study

FEATURES = load_study("moral-machine").feature_names
LEGALITY = {0: 0, 1: 1, 2: -1}
REMARK = "Weather"
"""A column that the import does not need, in which people may have written anything."""

PlainRow = tuple[str, str, int, tuple[int, ...]]


@dataclass(frozen=True)
class ImportOutcome:
    """The result of an import: the refused rows by number, and every voter's records, sorted."""

    refused: Mapping[int, RowDefect]
    records: Mapping[str, list[list[int]]]


def column(feature: str) -> str:
    """Return the column of a feature, as the public files name it."""
    return "CrossingSignal" if feature == "legality" else "".join(w.capitalize() for w in feature.split("_"))


COLUMNS = ("ResponseID", "ExtendedSessionID", REMARK, "NumberOfCharacters", "Saved", *map(column, FEATURES))


def import_file(path: Path) -> ImportOutcome:
    """Import a file as users do."""
    return outcome_of(load_moral_machine(path))


def outcome_of(imported: ImportResult) -> ImportOutcome:
    """Return what an import accepted and refused."""
    ballots = imported.ballots
    split = np.split(ballots.differences, ballots.offsets[1:-1]) if ballots.voters else []
    records = {name: sorted(v.tolist()) for name, v in zip(ballots.voter_names(), split, strict=True)}
    told = zip(imported.refused_rows["refused row"], imported.refused_rows["refused because"], strict=True)
    return ImportOutcome({number: RowDefect(reason) for number, reason in told}, records)


def import_plainly(path: Path) -> ImportOutcome:
    """Read a file with the independent reader."""
    return apply_rules(plain_rows(path.read_bytes().decode("utf-8-sig")))


def import_line_by_line(path: Path) -> ImportOutcome:
    """Read a file as if every line break ended a row: a deliberate mistake."""
    lines = path.read_bytes().decode("utf-8-sig").splitlines()
    return apply_rules(next(csv.reader([line])) for line in lines if line)


def import_in_silence(path: Path) -> ImportOutcome:
    """Leave out refused rows without reporting them: a deliberate mistake."""
    return ImportOutcome({}, import_plainly(path).records)


def plain_rows(text: str, longest: int = 1 << 23) -> Iterator[list[str] | None]:
    """Read a text with the csv module; None stands for a row that ends inside a quoted cell.

    If a row of several lines does not have as many cells as the header, is too long, or has other text behind a quoted
    cell of several lines, only its first line is the row.
    """
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)
    at = 0
    columns = 0
    while at < len(lines):
        reader = csv.reader(lines[at:])
        cells = next(reader)
        row = "".join(lines[at : at + reader.line_num])
        apart = len(cells) != (columns or len(cells)) or _is_open(row) or _is_mispaired(row) or _size(row) >= longest
        if reader.line_num > 1 and apart:
            cells = []
            row = lines[at]
            at += 1
        else:
            at += reader.line_num
        if row.strip("\r\n"):
            columns = columns or len(cells)
            yield None if _is_open(row) else cells


def _is_mispaired(row: str) -> bool:
    """Whether other text follows a quoted cell of several lines."""
    cells = re.finditer(r'(?<![^,\r\n])"((?:[^"]|"")*)"([^,\r\n]?)', row)
    return any(re.search(r"[\r\n]", cell[1]) and cell[2] for cell in cells)


def apply_rules(rows: Iterable[list[str] | None]) -> ImportOutcome:
    """Judge the rows after the header, and pair the remaining ones."""
    header, *body = rows
    columns = header or []
    refused: dict[int, RowDefect] = {}
    dilemmas: dict[str, dict[int, PlainRow]] = defaultdict(dict)
    for number, cells in enumerate(body, start=1):
        row = (
            _read(dict(zip(columns, cells, strict=True))) if cells and len(cells) == len(columns) else RowDefect.RAGGED
        )
        if isinstance(row, RowDefect):
            refused[number] = row
        else:
            dilemmas[row[0]][number] = row
    records: dict[str, list[list[int]]] = defaultdict(list)
    for group in dilemmas.values():
        pair = _pair(group, refused)
        if pair is not None:
            chosen, other = sorted(pair, key=lambda row: -row[2])
            records[chosen[1]].append([_value(chosen, k) - _value(other, k) for k in range(len(FEATURES))])
    return ImportOutcome(refused, {voter: sorted(of_voter) for voter, of_voter in records.items()})


def _size(row: str) -> int:
    return len(row.rstrip("\r\n").encode())


def _is_open(row: str) -> bool:
    """Whether a text ends inside a quoted cell: quotes in other cells mean nothing, two in a quoted cell are one."""
    rest = row
    while rest:
        cell = re.match(r'"(?:[^"]|"")*("?)' if rest.startswith('"') else r"()", rest)
        assert cell is not None
        if rest.startswith('"') and not cell[1]:
            return True
        rest = rest[cell.end() :].partition(",")[2]
    return False


def _value(row: PlainRow, k: int) -> int:
    return LEGALITY[row[3][k]] if FEATURES[k] == "legality" else row[3][k]


def _read(cells: dict[str, str]) -> PlainRow | RowDefect:
    cells = {name: cell.strip() for name, cell in cells.items()}
    needed = ["Saved", *map(column, FEATURES)]
    if not cells["ExtendedSessionID"]:
        return RowDefect.VOTER_MISSING
    if not cells["ResponseID"]:
        return RowDefect.DILEMMA_MISSING
    if not all(cells[name] for name in needed):
        return RowDefect.BLANK
    try:
        saved, *values = [float(cells[name]) for name in needed]
    except ValueError:
        return RowDefect.NOT_A_NUMBER
    if not all(map(math.isfinite, (saved, *values))):
        return RowDefect.NOT_A_NUMBER
    if saved not in (0, 1):
        return RowDefect.NO_SINGLE_CHOICE
    highest = [1, 1, 2] + [5] * 20
    if not all(0 <= v <= high and v == int(v) for v, high in zip(values, highest, strict=True)):
        return RowDefect.OUT_OF_BOUNDS
    if not 1 <= sum(values[3:]) <= 5:
        return RowDefect.OUT_OF_BOUNDS
    if cells.get("NumberOfCharacters", ""):
        try:
            if float(cells["NumberOfCharacters"]) != sum(values[3:]):
                return RowDefect.INCONSISTENT
        except ValueError:
            return RowDefect.INCONSISTENT
    return cells["ResponseID"], cells["ExtendedSessionID"], int(saved), tuple(map(int, values))


def _pair(rows: dict[int, PlainRow], refused: dict[int, RowDefect]) -> list[PlainRow] | None:
    if _wrong(list(rows.values())) is None:
        return list(rows.values())
    different: dict[PlainRow, int] = {}
    for number, row in rows.items():
        if row in different:
            refused[number] = RowDefect.DOUBLED
        else:
            different[row] = number
    reason = _wrong(list(different))
    if reason is None:
        return list(different)
    refused.update(dict.fromkeys(different.values(), reason))
    return None


def _wrong(rows: list[PlainRow]) -> RowDefect | None:
    if len(rows) == 1:
        return RowDefect.UNPAIRED
    if len(rows) > 2:
        return RowDefect.DOUBLED
    if rows[0][1] != rows[1][1]:
        return RowDefect.INCONSISTENT
    return None if rows[0][2] + rows[1][2] == 1 else RowDefect.NO_SINGLE_CHOICE


_REMARKS = (
    "fine",
    "fine,\nlater rain",
    "\r\n",
    'she said "no",\nand left',
    '"',
    "\n\n\n",
    "é",
    " ",
    "",
    "d1,v1,1\nd2,v1,0",
)
_CELLS = ("", " ", "1", "1.0", "01", "2", "-1", "nan", "1e400", "x", '"', "a,b", "1\n", "5 ")
_VOTERS = ("ann", "bob", "cy,d", 'e"f', "gü", "two\nlines", "-1000956146_3249823734583890.0")


def dirty_file(random: Random, dilemmas: int = 20) -> bytes:
    """Write a file as people might: mostly complete but oddly formatted, and wrong in some places."""
    rows = [row for number in range(dilemmas) for row in _dilemma(random, f"d{number}")]
    for row in random.sample(rows, random.randint(0, 4)):
        row[random.choice(COLUMNS)] = random.choice(_CELLS)
    for _ in range(random.randint(0, 3)):
        rows.remove(random.choice(rows))
    rows += [dict(row) for row in random.sample(rows, random.randint(0, 2))]
    if random.random() < 0.5:
        random.shuffle(rows)
    end = random.choice(["\n", "\r\n"])
    text = io.StringIO()
    # Python's "unix" dialect quotes every cell, "excel" only those that need it.
    writer = csv.DictWriter(text, COLUMNS, dialect=random.choice(["excel", "unix"]), lineterminator=end)
    writer.writeheader()
    for row in rows:
        writer.writerow(row)
        if random.random() < 0.1:
            text.write(end)
    return random.choice([b"", codecs.BOM_UTF8]) + text.getvalue().encode()


def _dilemma(random: Random, name: str) -> list[dict[str, str]]:
    """Make both rows of a dilemma."""
    voter = random.choice(_VOTERS)
    remark = random.choice(_REMARKS)
    first = random.randint(0, 1)
    rows = []
    for saved in (first, 1 - first):
        group = dict.fromkeys(COLUMNS[8:], 0)
        for who in random.choices(COLUMNS[8:], k=random.randint(1, 5)):
            group[who] += 1
        place = {"Intervention": random.randint(0, 1), "Barrier": random.randint(0, 1)}
        values = {"Saved": saved, **place, "CrossingSignal": random.randint(0, 2), **group}
        size = {"NumberOfCharacters": str(sum(group.values()))}
        words = {"ResponseID": name, "ExtendedSessionID": voter, REMARK: remark}
        rows.append(words | size | {column: str(value) for column, value in values.items()})
    return rows
