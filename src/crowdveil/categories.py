"""Columns of categories: labels that are written once, and a code for each entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import CrowdveilError

CODE = np.dtype("<i2")
UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class Categories:
    """A column of categories: entry i is ``labels[codes[i]]``, or unknown where the code is -1."""

    labels: tuple[str, ...]
    codes: NDArray[np.int16]

    def __post_init__(self) -> None:
        if len(set(self.labels)) < len(self.labels):
            raise CrowdveilError(f"two categories have the same label among {', '.join(self.labels)[:80]}")
        if len(self.codes) and not UNKNOWN <= self.codes.min() <= self.codes.max() < len(self.labels):
            raise CrowdveilError(
                f"codes of categories must be from -1 to {len(self.labels) - 1}: the column is damaged"
            )

    @classmethod
    def encode(cls, entries: Sequence[str | None], labels: Sequence[str] | None = None) -> Categories:
        """Find each entry among the labels (by default all that occur, sorted); None is unknown."""
        known = tuple(sorted({e for e in entries if e is not None}) if labels is None else labels)
        if len(known) > np.iinfo(np.int16).max:
            raise CrowdveilError(
                f"a column of categories has at most {np.iinfo(np.int16).max} labels, got {len(known)}"
            )
        codes = {label: code for code, label in enumerate(known)} | {None: UNKNOWN}
        try:
            return cls(known, np.array([codes[entry] for entry in entries], CODE))
        except KeyError as unexpected:
            raise CrowdveilError(f"{unexpected} is not among the categories {', '.join(known)[:200]}") from None

    @classmethod
    def concatenate(cls, columns: Sequence[Categories]) -> Categories:
        """Join columns that have the same labels."""
        labels = columns[0].labels
        if any(column.labels != labels for column in columns):
            raise CrowdveilError("batches of one crowd must have the same categories, in the same order")
        return cls(labels, np.concatenate([column.codes for column in columns]))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, entries: Any) -> Categories:
        return Categories(self.labels, self.codes[entries])

    def to_list(self) -> list[str | None]:
        """Return each entry's label."""
        return [self.labels[code] if code >= 0 else None for code in self.codes.tolist()]
