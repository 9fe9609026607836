"""The directory beside the target in which an import keeps its runs, so that it can go on after an interruption."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.arrays import ByteArray, IntArray
from crowdveil.errors import CrowdveilError
from crowdveil.files import check_writable
from crowdveil.sources.moral_machine.found import Found
from crowdveil.sources.moral_machine.runs import Reached, Run, read_run, write_run

BYTES_PER_PART = 1 << 27
MOST_BITS = 12


def bits_for(text_bytes: int) -> int:
    """Return into how many parts (2^bits) a file of this size goes, so that one part fits the memory easily."""
    return min(MOST_BITS, max(0, (text_bytes - 1) // BYTES_PER_PART).bit_length())


@dataclass(frozen=True)
class Workplace:
    """A directory of runs of one source."""

    folder: Path
    bits: int

    def runs(self) -> list[Run]:
        """Return the good runs from the first on."""
        runs: list[Run] = []
        while (run := read_run(self.run_path(len(runs)), self.bits)) is not None:
            runs.append(run)
        return runs

    def write(self, number: int, found: Found, refused: IntArray, reached: Reached) -> Run:
        """Write a run."""
        try:
            return write_run(self.run_path(number), self.bits, found, refused, reached)
        except OSError as error:
            raise CrowdveilError(f"cannot write to {self.folder}: {error.strerror or error}") from None

    def reasons(self, rows: int) -> ByteArray:
        """Return an empty table of the reasons why rows are refused, by row, which need not fit into memory."""
        return np.memmap(self.folder / "reasons", np.uint8, "w+", shape=(rows + 2,))

    def run_path(self, number: int) -> Path:
        """Return where a run is, or is to be."""
        return self.folder / f"run-{number:06}"


@contextmanager
def workplace_beside(target: Path, source: Mapping[str, Any], bits: int) -> Iterator[Workplace]:
    """Open the workplace of an import into ``target``, with the runs of an earlier one of the same source, if any.

    It is removed when the import is done, and when it fails; it stays when the import is interrupted or killed.
    """
    check_writable(target)
    folder, identity = target.with_name(f".{target.name}.importing"), json.dumps({**source, "bits": bits})
    label = folder / "source.json"
    try:
        if not label.is_file() or label.read_text(encoding="utf-8") != identity:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            label.write_text(identity, encoding="utf-8")
    except OSError as error:
        raise CrowdveilError(f"cannot write to {folder}: {error.strerror or error}") from None
    try:
        yield Workplace(folder, bits)
    except Exception:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
