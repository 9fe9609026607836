"""Submissions in the database: one report or ballot for each token, which the database enforces, many in one commit."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from typing import Any, Generic, TypeVar

import numpy as np
from sqlalchemy import Connection, Row, Table, bindparam, delete, func, insert, select, update

from crowdveil.ballots.ballots import Ballots, concatenate
from crowdveil.ballots.columns import Categories, dilemmas_between
from crowdveil.errors import CrowdveilError, Reason
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.protocol.polls import EntryRule, PollState
from crowdveil.protocol.questions import Answer
from crowdveil.protocol.submission import SubmissionStatus, new_token, report_id, split_repeat
from crowdveil.service.poll import HostedPoll, group_labels, group_of, grouping_questions
from crowdveil.service.store import schema
from crowdveil.service.store.database import ROWS_AT_ONCE, Database, insert_into, rows_among, rows_at_once
from crowdveil.service.store.polls import Polls, lock, lock_if_there

MOST_LINKS = 100_000
MOST_AT_ONCE = 500
"""Maximum number of rows that one commit stores."""
_CODES = {"left": 1, "right": -1, "neither": 0}
"""Codes of choices, as in ballots."""

R = TypeVar("R")
"""The row of a submission, or of a sealed report."""
Outcome = SubmissionStatus | Reason
"""The outcome of a submission: it is stored, or was refused for a reason."""
Refusals = Mapping[tuple[str, str], int]
"""(poll, reason) -> number of refusals."""
# The statements are built once: at thousands of reports per second, building them each time would cost too much.
_POLL = schema.poll.c.id == bindparam("poll_id")
_ADD = update(schema.poll).where(_POLL).values(participants=schema.poll.c.participants + bindparam("more"))
_INSERT = {True: insert(schema.report), False: insert(schema.ballot)}
_STORED = {True: rows_among(schema.report, "body", "about"), False: rows_among(schema.ballot, "records", "about")}
_BARRED = rows_among(schema.withdrawal)
_INVITED = rows_among(schema.link)


@dataclass(frozen=True)
class SubmissionRow:
    """A checked submission for the database."""

    poll: str
    id: str
    """The report id derived from its token."""
    content: str
    """Canonical JSON: a report's body without ``about``, or a ballot's records."""
    about: str
    """Canonical JSON."""
    epsilon: Epsilon | None = None
    """The epsilon of a report; None for a ballot."""


@dataclass(frozen=True)
class StoredReport:
    """One voter's report in a distributed poll."""

    id: str
    body: Mapping[str, Any]
    """The report, as ``crowdveil.protocol.report`` defines it."""
    about: Mapping[str, Answer]
    day: date


@dataclass(frozen=True)
class StoredBallot:
    """One voter's ballot in a central poll."""

    id: str
    records: Sequence[Mapping[str, Any]]
    """{"left": [...], "right": [...], "chosen": "left" | "right" | "neither"}, in the features' raw values.

    If the study asks one dilemma twice, the last record is the second answer, with "repeats": the index of the first.
    """
    about: Mapping[str, Answer]
    day: date


@dataclass(frozen=True)
class DayCount:
    """The number of participants on a day, for one level of privacy (None in a central poll)."""

    day: date
    epsilon: Epsilon | None
    participants: int


@dataclass(frozen=True)
class RefusalCount:
    """The number of refusals on a day, for one reason."""

    day: date
    reason: str
    times: int


@dataclass(frozen=True)
class Submissions:
    """The submissions to each poll, identified only by report id."""

    database: Database
    polls: Polls

    def put(self, rows: Sequence[SubmissionRow], today: date, refusals: Refusals | None = None) -> list[Outcome]:
        """Store many voters' submissions in one transaction; return the outcome of each, in order.

        When this returns, the outcomes are durable. The same content sent twice is stored once. Of two different
        submissions for the same token, the first is stored and the other refused. A poll that was just deleted is
        closed, and its refusals are dropped.
        """
        refusals = refusals or {}
        positions: dict[str, list[int]] = {name: [] for name, _ in refusals}
        for position, row in enumerate(rows):
            positions.setdefault(row.poll, []).append(position)
        polls = {name: self.polls.definition(name) for name in sorted(positions)}
        outcomes: list[Outcome] = [Reason.CLOSED] * len(rows)
        with self.database.writing() as connection:
            for name, poll in polls.items():  # The same order everywhere, by name, avoids deadlocks.
                locked = lock_if_there(connection, name)
                if poll is None or locked is None:
                    continue
                decided = _put(connection, poll, locked, [rows[position] for position in positions[name]], today)
                for position, outcome in zip(positions[name], decided, strict=True):
                    outcomes[position] = outcome
                count_refusals(connection, {key: times for key, times in refusals.items() if key[0] == name}, today)
        return outcomes

    def withdraw(self, name: str, id: str) -> bool:
        """Delete a submission permanently and never accept its report id again; return False if there is none."""
        if self.polls.known(name).relay is not None:
            raise CrowdveilError(
                f"the reports of poll {name!r} came through a relay, and nobody can tell whose they are: a voter "
                "withdraws at the relay, before it hands them over"
            )
        with self.database.writing() as connection:
            lock_if_there(connection, name)
            deleted = [
                pilot
                for table in (schema.report, schema.ballot)
                for pilot in connection.scalars(
                    delete(table).where(table.c.poll == name, table.c.id == id).returning(table.c.pilot)
                )
            ]
            if deleted:
                connection.execute(insert(schema.withdrawal).values(poll=name, id=id))
                connection.execute(_ADD, {"poll_id": name, "more": -deleted.count(False)})
        if deleted:
            self.database.forget_deleted()
        return bool(deleted)

    def check(self, name: str, id: str) -> SubmissionStatus | Reason | None:
        """Return the outcome that a submission with this report id would have; None if nothing is known against it."""
        poll = self.polls.known(name)
        among = {"poll_id": name, "ids": [id]}
        with self.database.reading() as connection:
            if connection.execute(_STORED[poll.distributed], among).first() is not None:
                return SubmissionStatus.ALREADY_STORED
            if poll.entry is EntryRule.LINKS and connection.scalar(_INVITED, among) is None:
                return Reason.UNKNOWN_BALLOT
            return None if connection.scalar(_BARRED, among) is None else Reason.WITHDRAWN

    def create_links(self, name: str, number: int) -> list[str]:
        """Create tokens for a poll with links, and return them only here: only their ids are stored."""
        if self.polls.known(name).entry is not EntryRule.LINKS:
            raise CrowdveilError(f"poll {name!r} takes no links: make one with entry = 'links'")
        if (relay := self.polls.known(name).relay) is not None:
            raise CrowdveilError(f"the links of poll {name!r} are made by its relay, {relay.url}, and not by its host")
        if not 1 <= number <= MOST_LINKS:
            raise CrowdveilError(f"make 1 to {MOST_LINKS:,} links at a time, got {number}")
        tokens = [new_token() for _ in range(number)]
        rows = [{"poll": name, "id": report_id(token)} for token in tokens]
        with self.database.writing() as connection:
            lock(connection, name)
            for some in rows_at_once(rows):
                connection.execute(insert(schema.link), some)
        return tokens

    def links(self, name: str) -> int:
        """Return the number of links that were created for a poll."""
        with self.database.reading() as connection:
            counted = select(func.count()).select_from(schema.link).where(schema.link.c.poll == name)
            return connection.execute(counted).scalar_one()

    def by_day(self, name: str) -> list[DayCount]:
        """Return the number of participants by day and level."""
        poll = self.polls.known(name)
        table = schema.report if poll.distributed else schema.ballot
        kinds = [table.c.day, table.c.epsilon_micro] if poll.distributed else [table.c.day]
        counts = (table.c.poll == name, table.c.pilot.is_(False))
        counted = select(*kinds, func.count()).where(*counts).group_by(*kinds).order_by(*kinds)
        with self.database.reading() as connection:
            rows = connection.execute(counted).all()
        return [DayCount(row[0], Epsilon.of_millionths(row[1]) if poll.distributed else None, row[-1]) for row in rows]

    def about_counts(self, name: str) -> list[tuple[Mapping[str, Answer], int]]:
        """Return each stored combination of voters' answers about themselves, and how often it occurs."""
        table = schema.report if self.polls.known(name).distributed else schema.ballot
        counts = (table.c.poll == name, table.c.pilot.is_(False))
        asked = select(table.c.about, func.count()).where(*counts).group_by(table.c.about)
        with self.database.reading() as connection:
            return [(json.loads(about), times) for about, times in connection.execute(asked).all()]

    def pilots(self, name: str) -> int:
        """Return the number of submissions during the poll's trial. They are counted nowhere else."""
        table = schema.report if self.polls.known(name).distributed else schema.ballot
        counted = select(func.count()).select_from(table).where(table.c.poll == name, table.c.pilot.is_(True))
        with self.database.reading() as connection:
            return connection.execute(counted).scalar_one()

    def refusals(self, name: str) -> list[RefusalCount]:
        """Return the number of refusals by day and reason."""
        refusal = schema.refusal
        asked = select(refusal.c.day, refusal.c.reason, refusal.c.times).where(refusal.c.poll == name)
        with self.database.reading() as connection:
            rows = connection.execute(asked.order_by(refusal.c.day, refusal.c.reason)).all()
        return [RefusalCount(row.day, row.reason, row.times) for row in rows]

    def reports(self, name: str) -> Iterator[list[StoredReport]]:
        """Yield the reports of a distributed poll at one moment, in non-empty batches.

        They are ordered by report id, which says nothing about their order of arrival.
        """
        with self.database.reading() as connection:
            for rows in _batches(connection, schema.report, self.polls.known(name)):
                yield [StoredReport(row.id, json.loads(row.body), json.loads(row.about), row.day) for row in rows]

    def ballots(self, name: str) -> Iterator[list[StoredBallot]]:
        """Yield the ballots of a central poll at one moment, in non-empty batches, ordered by id."""
        with self.database.reading() as connection:
            for rows in _batches(connection, schema.ballot, self.polls.known(name)):
                yield [StoredBallot(row.id, json.loads(row.records), json.loads(row.about), row.day) for row in rows]

    def crowd(self, name: str, tell: Callable[[int], None] | None = None) -> Ballots:
        """Return the ballots of a central poll at one moment, as columns; call ``tell`` with the number read so far.

        Leave out voters who failed an attention check if the poll declared this rule before it opened. The rule uses
        only answers to about-you questions, so it selects the same voters for neighbours, who differ in choices.
        """
        poll = self.polls.known(name)
        parts = []
        for batch in self.ballots(name):
            if poll.public_selection is not None:
                batch = [ballot for ballot in batch if not poll.failed_checks(ballot.about)]
            if not batch:
                continue
            parts.append(_columns(batch, poll))
            if tell is not None:
                tell(sum(map(len, parts)))
        return concatenate(poll.study, parts)


def _put(
    connection: Connection, poll: HostedPoll, locked: Row[Any], rows: Sequence[SubmissionRow], today: date
) -> list[Outcome]:
    """Store the acceptable submissions to one poll, inside a transaction that has locked its row."""
    if not rows:
        return []
    among = {"poll_id": poll.name, "ids": [row.id for row in rows]}
    stored = {id: (content, about) for id, content, about in connection.execute(_STORED[poll.distributed], among)}
    barred = frozenset(connection.scalars(_BARRED, among))
    invited = frozenset(connection.scalars(_INVITED, among) if poll.entry is EntryRule.LINKS else among["ids"])
    outcomes: list[Outcome] = []
    new: list[SubmissionRow] = []
    for row in rows:
        state = poll.state(today, locked.closed, locked.participants + len(new), locked.pilot)
        if row.id in stored:
            same = stored[row.id] == (row.content, row.about)
            outcomes.append(SubmissionStatus.ALREADY_STORED if same else Reason.DIFFERENT_REPORT)
        elif row.id not in invited:
            outcomes.append(Reason.UNKNOWN_BALLOT)
        elif row.id in barred:
            outcomes.append(Reason.WITHDRAWN)
        elif state is not PollState.OPEN:
            outcomes.append(Reason(state.value))
        else:
            outcomes.append(SubmissionStatus.STORED)
            stored[row.id] = (row.content, row.about)
            new.append(row)
    if new:
        connection.execute(_INSERT[poll.distributed], [_columns_of(row, poll, today, locked.pilot) for row in new])
        connection.execute(_ADD, {"poll_id": poll.name, "more": 0 if locked.pilot else len(new)})
    return outcomes


def _columns_of(row: SubmissionRow, poll: HostedPoll, today: date, pilot: bool) -> dict[str, object]:
    content: dict[str, object] = (
        {"records": row.content} if row.epsilon is None else {"epsilon_micro": row.epsilon.micro, "body": row.content}
    )
    place = poll.paradigm.place.value
    shared = {"poll": poll.name, "id": row.id, "place": place, "about": row.about, "day": today, "pilot": pilot}
    return {**shared, **content}


def count_refusals(connection: Connection, refusals: Refusals, today: date) -> None:
    """Add to the counts of refusals, inside a transaction that has locked their polls."""
    for (name, reason), times in sorted(refusals.items()):
        added = insert_into(connection, schema.refusal).values(poll=name, day=today, reason=reason, times=times)
        keys = ["poll", "day", "reason"]
        connection.execute(
            added.on_conflict_do_update(index_elements=keys, set_={"times": schema.refusal.c.times + times})
        )


def _batches(connection: Connection, table: Table, poll: HostedPoll) -> Iterator[Sequence[Row[Any]]]:
    after = ""
    while True:
        counts = (table.c.poll == poll.name, table.c.pilot.is_(False))
        asked = select(table).where(*counts, table.c.id > after).order_by(table.c.id)
        rows = connection.execute(asked.limit(ROWS_AT_ONCE)).all()
        if not rows:
            return
        yield rows
        after = rows[-1].id


def _columns(batch: Sequence[StoredBallot], poll: HostedPoll) -> Ballots:
    split = [split_repeat(ballot.records) for ballot in batch]
    records = [record for answered, _ in split for record in answered]
    left = np.array([record["left"] for record in records], np.float64)
    right = np.array([record["right"] for record in records], np.float64)
    choices = np.array([_CODES[record["chosen"]] for record in records], np.int8)
    offsets = np.concatenate([[0], np.cumsum([len(answered) for answered, _ in split])]).astype(np.int64)
    alike = np.array([1 if same else -1 for _, same in split], np.int8) if poll.study.repeat else None
    about = {
        question.id: Categories.encode([group_of(question, ballot.about) for ballot in batch], group_labels(question))
        for question in grouping_questions(poll)
    }
    return Ballots(poll.study, offsets, dilemmas_between(poll.study, left, right), choices, about=about, alike=alike)


class GroupCommit(Generic[R]):
    """A queue that stores submissions: those that arrive during one commit go into the next.

    Each caller gets its outcome after the commit that contains its submission, never before. A commit takes a
    millisecond or more on disk, whether it contains one report or hundreds. The longer it takes, the more submissions
    the next one contains.
    """

    def __init__(self, put: Callable[[Sequence[R], Refusals], list[Outcome]]) -> None:
        self._put = put
        self._waiting: list[tuple[R, asyncio.Future[Outcome]]] = []
        self._refused: Counter[tuple[str, str]] = Counter()
        self._running: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "commit")

    async def put(self, row: R) -> Outcome:
        """Store a submission and return its outcome, which is durable."""
        told: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((row, told))
        self._run()
        return await told

    def count_refusal(self, poll: str, reason: str) -> None:
        """Count a refusal with the next commit, without waiting for it."""
        self._refused[poll, reason] += 1
        self._run()

    async def close(self) -> None:
        """Wait until everything is stored."""
        if self._running is not None:
            await self._running
        self._thread.shutdown()

    def _run(self) -> None:
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().create_task(self._commit_all())

    async def _commit_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting or self._refused:
            batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
            refused, self._refused = self._refused, Counter()
            try:
                outcomes = await loop.run_in_executor(self._thread, self._put, [row for row, _ in batch], refused)
            except Exception as error:
                for _, told in batch:
                    if not told.done():
                        told.set_exception(error)
                continue
            for (_, told), outcome in zip(batch, outcomes, strict=True):
                if not told.done():  # It is done already if the caller has gone.
                    told.set_result(outcome)
