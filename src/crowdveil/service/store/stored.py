"""Reading what voters sent: in chunks, ordered by report id, which says nothing about who came when."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, Table, select

from crowdveil.ballots import Ballots, concatenate, dilemmas_between
from crowdveil.service.poll import Poll
from crowdveil.service.store import schema
from crowdveil.service.store.database import Database

ROWS_PER_CHUNK = 4096


@dataclass(frozen=True)
class StoredReport:
    """One voter's report in a distributed poll."""

    id: str
    body: Mapping[str, Any]
    """As ``crowdveil.protocol.report`` has it."""
    about: Mapping[str, str]
    day: date


@dataclass(frozen=True)
class StoredBallot:
    """One voter's answers in a central poll."""

    id: str
    answers: Sequence[Mapping[str, Any]]
    """{"left": [...], "right": [...], "chosen": "left" | "right"}, in the features' raw values."""
    about: Mapping[str, str]
    day: date


def reports(database: Database, poll: Poll) -> Iterator[list[StoredReport]]:
    """Walk the reports of a poll as they are at one moment, in chunks of which none is empty."""
    with database.reading() as connection:
        for rows in _chunks(connection, schema.report, poll.name):
            yield [StoredReport(row.id, json.loads(row.body), json.loads(row.about), row.day) for row in rows]


def ballots(database: Database, poll: Poll) -> Iterator[list[StoredBallot]]:
    """Walk the ballots of a poll as they are at one moment, in chunks of which none is empty."""
    with database.reading() as connection:
        for rows in _chunks(connection, schema.ballot, poll.name):
            yield [StoredBallot(row.id, json.loads(row.answers), json.loads(row.about), row.day) for row in rows]


def crowd(database: Database, poll: Poll) -> Ballots:
    """Return the answers of a central poll as they are at one moment, as columns."""
    return concatenate(poll.study, [_columns(chunk, poll) for chunk in ballots(database, poll)])


def _columns(chunk: Sequence[StoredBallot], poll: Poll) -> Ballots:
    study, answers = poll.study, [answer for ballot in chunk for answer in ballot.answers]
    left = np.array([answer["left"] for answer in answers], np.float64)
    right = np.array([answer["right"] for answer in answers], np.float64)
    choices = np.array([1 if answer["chosen"] == "left" else -1 for answer in answers], np.int8)
    offsets = np.concatenate([[0], np.cumsum([len(ballot.answers) for ballot in chunk])]).astype(np.int64)
    return Ballots(study, offsets, dilemmas_between(study, left, right), choices)


def _chunks(connection: Connection, table: Table, name: str) -> Iterator[Sequence[Row[Any]]]:
    after = ""
    while True:
        asked = select(table).where(table.c.poll == name, table.c.id > after).order_by(table.c.id)
        rows = connection.execute(asked.limit(ROWS_PER_CHUNK)).all()
        if not rows:
            return
        yield rows
        after = rows[-1].id
