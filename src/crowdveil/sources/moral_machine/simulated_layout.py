"""A simulated crowd's answers as a file in the public layout, of any size and as dirty as wanted.

The file says what an import of it must find: how many rows, pairs and voters, and how many rows of each kind are to
be refused.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BufferedWriter
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.arrays import IntArray, SmallIntArray
from crowdveil.errors import CrowdveilError
from crowdveil.files import replacing
from crowdveil.sources.import_report import Refusal
from crowdveil.sources.moral_machine.written_rows import (
    HEADER,
    MOST_BYTES_PER_ROW,
    MOST_ROWS_PER_DILEMMA,
    Dirt,
    write_rows,
)
from crowdveil.sources.simulated import Answered, simulate_answers
from crowdveil.study.study import Study

_LOST = {Refusal.UNPAIRED: 1}
REFUSED_FOR: Mapping[Dirt, Mapping[Refusal, int]] = {
    Dirt.NONE: {},
    Dirt.PARTNER_LOST: _LOST,
    Dirt.REPEATED: {Refusal.DOUBLED: 1},
    Dirt.TOO_MANY: {Refusal.OUT_OF_BOUNDS: 1, **_LOST},
    Dirt.NO_NUMBER: {Refusal.NOT_A_NUMBER: 1, **_LOST},
    Dirt.BLANK: {Refusal.BLANK: 1, **_LOST},
    Dirt.NO_VOTER: {Refusal.VOTER_MISSING: 1, **_LOST},
    Dirt.NO_DILEMMA: {Refusal.DILEMMA_MISSING: 1, **_LOST},
    Dirt.WRONG_SUM: {Refusal.INCONSISTENT: 1, **_LOST},
    Dirt.BOTH_SAVED: {Refusal.NO_SINGLE_CHOICE: 2},
    Dirt.CUT_SHORT: {Refusal.RAGGED: 1, **_LOST},
    Dirt.DECIMALS: {},
    Dirt.APART: {},
}
"""Which rows of a dilemma an import refuses, and why."""

_KEEP_THE_PAIR = (Dirt.NONE, Dirt.REPEATED, Dirt.DECIMALS, Dirt.APART)
_DILEMMAS_PER_PIECE = 1 << 14


@dataclass(frozen=True)
class Expected:
    """What an import of the written file must report."""

    rows: int
    pairs: int
    voters: int
    refused: Mapping[Refusal, int]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data, in the words of an import's report."""
        refused = {reason.value: count for reason, count in self.refused.items()}
        return {"rows": self.rows, "pairs": self.pairs, "voters": self.voters, "refused": refused}


def write_public_layout(
    path: Path,
    study: Study,
    voters: int,
    rng: np.random.Generator,
    dirty: float = 0.0,
    progress: Callable[[int], None] | None = None,
) -> Expected:
    """Write a simulated crowd's answers as CSV (gzipped where the name ends in .gz), a block of voters at a time.

    ``dirty`` is the share of dilemmas with something wrong or unusual, of all kinds in equal parts. The answers are
    those of ``simulate_crowd`` with a generator of the same seed. Dilemmas come in random order within a block, with
    their two rows one after the other. ``progress`` is told how many voters were written.
    """
    if study.name != "moral-machine":
        raise CrowdveilError(f"only answers to moral-machine can be written in its public layout, not to {study.name}")
    if not 0 <= dirty <= 1:
        raise CrowdveilError(f"the share of dirty dilemmas must be between 0 and 1, got {dirty}")
    rows, pairs, present, refused = 0, 0, 0, Counter[Refusal]()
    per_voter, before = study.drawing.dilemmas, 0
    with replacing(path) as unfinished, _open(unfinished, path.suffix == ".gz") as file:
        file.write(HEADER)
        for block in simulate_answers(study, voters, rng):
            dilemmas = len(block.chose_left)
            # Seeded by the block alone: the crowd's own generator must not notice whether its answers are spoilt.
            dirt, order = _spoil(dilemmas, dirty, np.random.default_rng([before, dilemmas]))
            for start in range(0, dilemmas, _DILEMMAS_PER_PIECE):
                text, written = _write(block, dirt, order[start : start + _DILEMMAS_PER_PIECE], before)
                file.write(text)
                rows += written
            keeps = np.isin(dirt, _KEEP_THE_PAIR)
            pairs += int(keeps.sum())
            present += int(keeps.reshape(-1, per_voter).any(axis=1).sum())
            for kind, count in zip(*np.unique(dirt, return_counts=True), strict=True):
                refused.update({reason: n * int(count) for reason, n in REFUSED_FOR[Dirt(kind)].items()})
            before += dilemmas // per_voter
            if progress is not None:
                progress(dilemmas // per_voter)
    return Expected(rows, pairs, present, {reason: refused[reason] for reason in Refusal if refused[reason]})


def _open(path: Path, zipped: bool) -> gzip.GzipFile | BufferedWriter:
    return gzip.open(path, "wb", compresslevel=1) if zipped else path.open("wb")


def _spoil(dilemmas: int, dirty: float, rng: np.random.Generator) -> tuple[SmallIntArray, IntArray]:
    """Choose which dilemmas are dirty, in what way, and in which order all of them come."""
    kinds = rng.integers(1, len(Dirt), dilemmas, dtype=np.int8)
    return np.where(rng.random(dilemmas) < dirty, kinds, np.int8(Dirt.NONE)), rng.permutation(dilemmas)


def _write(block: Answered, dirt: SmallIntArray, order: IntArray, first_voter: int) -> tuple[memoryview, int]:
    out = np.empty(len(order) * MOST_ROWS_PER_DILEMMA * MOST_BYTES_PER_ROW, np.uint8)
    size, rows = write_rows(
        block.left, block.right, block.chose_left, dirt, order, block.study.drawing.dilemmas, first_voter, out
    )
    return out[:size].data, rows
