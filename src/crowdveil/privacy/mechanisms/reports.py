"""Reports of devices: integers that are private already, and how they travel as JSON.

The envelope of a report (format, study, mechanism, epsilon) is the protocol's; here is what a mechanism puts into it.
Nothing in here knows a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from crowdveil.arrays import IntArray
from crowdveil.errors import Reason, Refusal
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.noise.source import Noise
from crowdveil.study.study import Study

R = TypeVar("R")

LARGEST = 2**63 - 1
"""Numbers of a report fit into 64 bits, with their sign."""
PUBLIC_COLUMNS = 2
"""Numbers of a report, as the audit lays it out, that are public and come before the others."""

_KEYS = 2**62


class WireFormat(Protocol[R]):
    """The way in which the reports of a mechanism are written, checked for their shape, and read."""

    @property
    def fields(self) -> frozenset[str]:
        """The fields of a report besides those of the envelope."""

    def write(self, reports: R) -> Iterable[dict[str, Any]]:
        """Return the fields of each voter's report."""

    def check(self, body: Mapping[str, Any], study: Study) -> None:
        """Refuse a report whose fields do not have the shape of one of this study."""

    def read(self, bodies: Sequence[Mapping[str, Any]], study: Study) -> R:
        """Gather reports that were checked."""


@dataclass(frozen=True)
class Reports:
    """Reports of most devices: one row of integers a voter, and the epsilon it was made with."""

    epsilons: Epsilons
    values: IntArray

    def rows(self) -> IntArray:
        """Lay out all that leaves, bit for bit, a row a voter: public columns, a mask of the values, the values."""
        none = np.zeros(len(self.values), np.int64)
        return np.column_stack([self.epsilons.micro, none, np.ones_like(self.values), self.values])


@dataclass(frozen=True)
class IntegerRow:
    """The wire format of ``Reports``: the row, in a field."""

    length: Callable[[int], int]
    """Of the row, by the number of features."""
    largest: int = LARGEST

    fields = frozenset({"values"})

    def write(self, reports: Reports) -> Iterable[dict[str, Any]]:
        """Return each voter's row."""
        return ({"values": values} for values in reports.values.tolist())

    def check(self, body: Mapping[str, Any], study: Study) -> None:
        """Refuse a row of another length, or of other than whole numbers in range."""
        check_integers("values", body["values"], self.length(study.dimension), self.largest)

    def read(self, bodies: Sequence[Mapping[str, Any]], study: Study) -> Reports:
        """Gather the rows."""
        return Reports(epsilons_of(bodies), np.array([body["values"] for body in bodies], np.int64))


def check_integers(name: str, given: Any, length: int | None, most: int, least: int | None = None) -> None:
    """Refuse what is not a list of so many whole numbers from ``least`` (or -``most``) to ``most``."""
    if not isinstance(given, list) or any(type(value) is not int for value in given):
        raise Refusal(Reason.MALFORMED, f"{name} must be a list of whole numbers")
    if length is not None and len(given) != length:
        raise Refusal(Reason.WRONG_SIZE, f"{name} has {len(given)} numbers, a report of this study {length}")
    least = -most if least is None else least
    if any(not least <= value <= most for value in given):
        raise Refusal(Reason.OUT_OF_RANGE, f"{name} must be from {least} to {most}")


def epsilons_of(bodies: Sequence[Mapping[str, Any]]) -> Epsilons:
    """Read the epsilons that reports were made with."""
    return Epsilons.of_millionths(body["epsilon_micro"] for body in bodies)


def random_orders(rows: int, places: int, noise: Noise) -> IntArray:
    """Return a uniformly random permutation of 0..places-1 in every row: what to report, drawn without looking.

    Sorting independent keys gives each order with the same probability as long as no two keys are equal; a row with
    equal keys is drawn again, so that the law is exact.
    """
    keys = noise.uniform(_KEYS, rows, places)
    while True:
        ordered = np.sort(keys, axis=1)
        tied = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if len(tied) == 0:
            return np.argsort(keys, axis=1)
        keys[tied] = noise.uniform(_KEYS, len(tied), places)
