"""A search for links between a voter and a report, in what was captured on the way and in what is kept.

Who searches knows everything that the two parties know apart: who sent which sealed report, and when. What must not be
there is anything that takes a sender's token, id, address, time, place in a row or length over to the host's side, or
that joins a row about a sender with a row about a report.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from scipy.stats import spearmanr
from sqlalchemy import MetaData, Table, select

from crowdveil.protocol.relay import SEALED_LENGTH
from crowdveil.protocol.submission import report_id
from crowdveil.service.store.database import Database

STRONG = 0.35
"""A rank correlation of 300 places beyond this comes by chance less than once in 10^9."""
_TIME = re.compile(rb"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\b1[7-9]\d{8}(\.\d+)?\b")
"""A moment, as text: anything finer than a day."""


@dataclass(frozen=True)
class Sender:
    """A voter, as her relay knows her."""

    token: str
    address: str
    sealed: bytes
    content: str
    """What the report says, as its host stores it."""


@dataclass(frozen=True)
class Evidence:
    """All that can be looked at."""

    senders: Sequence[Sender]
    """In the order in which they came."""
    traffic: bytes
    """What the relay sent to the host, byte for byte."""
    batches: Sequence[Sequence[bytes]]
    """The sealed reports in it, in their order."""
    relay: Mapping[str, Sequence[Sequence[Any]]]
    """The rows of the relay's tables, after the poll."""
    host: Mapping[str, Sequence[Sequence[Any]]]
    relay_files: bytes = b""
    """The relay's database as it lies on the disk, journals included."""
    host_files: bytes = b""


def rows_of(database: Database, metadata: MetaData) -> dict[str, list[tuple[Any, ...]]]:
    """Read every table as it lies there: no order is asked for."""
    with database.reading() as connection:
        return {name: _rows(connection.execute(select(table)).all()) for name, table in _tables(metadata)}


def _tables(metadata: MetaData) -> list[tuple[str, Table]]:
    return sorted(metadata.tables.items())


def _rows(found: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in found]


def files_of(folder: Path, name: str) -> bytes:
    """Read a SQLite database with its journals."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob(f"{name}.sqlite*")))


def find_links(found: Evidence) -> set[str]:
    """Return the kinds of links that there are."""
    sealed = tuple(sender.sealed[65:] for sender in found.senders)
    kinds = {
        "token": _mentions(found, lambda sender: (sender.token.encode(),), everywhere=True),
        "id": _mentions(found, lambda sender: _spellings(report_id(sender.token))),
        "address": _mentions(found, lambda sender: (sender.address.encode(),), everywhere=True),
        "time": bool(_TIME.search(found.traffic) or _TIME.search(_written(found.relay, ("sealed", "spent", "batch")))),
        "order": _in_order(found),
        "length": any(len(sealed) != SEALED_LENGTH for batch in found.batches for sealed in batch),
        "kept": any(_any_in(sealed, place) for place in (found.relay_files, found.host_files)),
        "join": _joined(found),
    }
    return {kind for kind, there in kinds.items() if there}


def _mentions(found: Evidence, words: Any, everywhere: bool = False) -> bool:
    """Whether anything of a sender's is on the host's side; or, where nobody may keep it, on either."""
    places = [found.traffic, found.host_files, _written(found.host, found.host)]
    if everywhere:
        places += [found.relay_files, _written(found.relay, found.relay)]
    sought = tuple(word for sender in found.senders for word in words(sender))
    return any(_any_in(sought, place) for place in places)


@lru_cache(maxsize=64)
def _any_in(words: tuple[bytes, ...], place: bytes) -> bool:
    """Whether any of the words is there. A planted link is in one place: the others are looked through once."""
    return any(word in place for word in words)


def _spellings(id: str) -> tuple[bytes, ...]:
    return id.encode(), id[:16].encode(), bytes.fromhex(id), bytes.fromhex(id)[::-1]


def _written(tables: Mapping[str, Sequence[Sequence[Any]]], names: Any) -> bytes:
    """Write tables out, values in a line."""
    lines = (b"|".join(_bytes(value) for value in row) for name in names for row in tables.get(name, ()))
    return b"\n".join(lines)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _in_order(found: Evidence) -> bool:
    """Whether places in a batch, or in the host's table, go with the order of arrival or of the senders' ids."""
    came = {sender.sealed: place for place, sender in enumerate(found.senders)}
    named = {sender.sealed: report_id(sender.token) for sender in found.senders}
    for batch in found.batches:
        known = [sealed for sealed in batch if sealed in came]
        for key in (came.__getitem__, named.__getitem__):
            ranks = sorted(range(len(known)), key=lambda i, key=key: key(known[i]))
            if abs(float(spearmanr(ranks, range(len(ranks))).statistic)) > STRONG:
                return True
    # Within a batch, the host's reports must lie in the order of what they say.
    stored = sorted((str(row[1]), str(row[4])) for row in found.host["report"])
    bodies = [body for _, body in stored]
    by_batch: dict[str, list[str]] = {}
    for (id, _), body in zip(stored, bodies, strict=True):
        by_batch.setdefault(id[:20], []).append(body)
    return any(contents != sorted(contents) for contents in by_batch.values())


def _joined(found: Evidence) -> bool:
    """Whether a row about a sender shares anything with a row about a report, but for the poll's name."""
    ids = {report_id(sender.token) for sender in found.senders}
    of_senders = {v for rows in found.relay.values() for row in rows if ids & set(_texts(row)) for v in _texts(row)}
    of_reports = {v for name in ("report", "seen", "batch") for row in found.host[name] for v in _texts(row)}
    return any(len(value) > 8 and value != "shuffled" for value in of_senders & of_reports)


def _texts(row: Sequence[Any]) -> list[str]:
    return [value for value in row if isinstance(value, str)]
