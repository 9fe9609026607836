"""Batches from a relay, each stored once: reports sorted by their content, with nothing about who sent them or when.

The sealed bytes are never stored. Only a digest of them is stored, apart from the reports, to refuse a sealed report
that is sent again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

from sqlalchemy import Connection, insert, select, update

from crowdveil.errors import CrowdveilError, Reason
from crowdveil.protocol.relay import Acknowledgement, KeyConfiguration, address_fragment, public_key_of
from crowdveil.service.poll import HostedPoll
from crowdveil.service.store import schema
from crowdveil.service.store.database import Database, rows_at_once
from crowdveil.service.store.polls import Polls, lock
from crowdveil.service.store.submissions import count_refusals
from crowdveil.study.plain_data import canonical_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_SHOWN = 20
"""Number of digits of a batch's id with which its reports' ids begin."""


@dataclass(frozen=True)
class HostKey:
    """A poll's private key, with the configuration that devices receive."""

    private: EllipticCurvePrivateKey
    configuration: KeyConfiguration


@dataclass(frozen=True)
class OpenedReport:
    """A report from a batch, opened and checked."""

    digest: str
    """Digest of its sealed bytes."""
    content: str
    """Canonical JSON."""


@dataclass(frozen=True)
class Batches:
    """The batches of polls with a relay."""

    database: Database
    polls: Polls
    _keys: dict[str, HostKey] = field(default_factory=dict, repr=False)

    def key(self, poll: HostedPoll) -> HostKey:
        """Return the key of a poll with a relay, which was drawn when the poll was created and never changes."""
        if poll.name not in self._keys:
            from cryptography.hazmat.primitives.asymmetric import ec

            table = schema.relay_key
            with self.database.reading() as connection:
                found = connection.scalar(select(table.c.private_key).where(table.c.poll == poll.name))
            if found is None:
                raise CrowdveilError(f"poll {poll.name} has no key for a relay")
            private = ec.derive_private_key(int(found, 16), ec.SECP256R1())
            self._keys[poll.name] = HostKey(private, KeyConfiguration.of(poll, public_key_of(private)))
        return self._keys[poll.name]

    def voters_path(self, poll: HostedPoll) -> str:
        """Return the path of the voter's page; with a relay, the fingerprint of the poll's key follows the #."""
        behind = "" if poll.relay is None else f"#{address_fragment(self.key(poll).configuration.fingerprint)}"
        return f"/p/{poll.name}/{behind}"

    def relay_key(self, name: str) -> str | None:
        """Return the public key of a poll's relay, if it was requested before."""
        table = schema.relay_key
        with self.database.reading() as connection:
            return connection.scalar(select(table.c.relay_key).where(table.c.poll == name))

    def pin_relay_key(self, name: str, key: str) -> str:
        """Store the public key of a poll's relay permanently, unless one is stored already; return the stored key."""
        table = schema.relay_key
        with self.database.writing() as connection:
            lock(connection, name)
            unknown = update(table).where(table.c.poll == name, table.c.relay_key.is_(None))
            connection.execute(unknown.values(relay_key=key))
            return str(connection.scalar(select(table.c.relay_key).where(table.c.poll == name)))

    def acknowledged(self, name: str, id: str) -> Acknowledgement | None:
        """Return the answer to a batch that was stored before, if it was."""
        with self.database.reading() as connection:
            return _acknowledged(connection, name, id)

    def sizes(self, name: str) -> list[int]:
        """Return how many reports of each batch were accepted, smallest first."""
        table = schema.batch
        with self.database.reading() as connection:
            return sorted(connection.scalars(select(table.c.accepted).where(table.c.poll == name)))

    def put(
        self,
        poll: HostedPoll,
        id: str,
        handed_over: int,
        opened: Sequence[OpenedReport],
        refused: Counter[str],
        today: date,
    ) -> Acknowledgement:
        """Store a batch, durably and once; return the answer to the relay.

        The reports of a batch are sorted by content. A report is stored under the batch's id and its place in that
        order, which says nothing about who sent it or when.
        """
        with self.database.writing() as connection:
            lock(connection, poll.name)
            if (before := _acknowledged(connection, poll.name, id)) is not None:
                return before
            new = _not_seen(connection, poll.name, opened)
            told = refused + Counter({Reason.REPLAYED.value: len(opened) - len(new)})
            row = {
                "handed_over": handed_over,
                "accepted": len(new),
                "refused": canonical_json(dict(told)),
                "day": today,
            }
            connection.execute(insert(schema.batch).values(poll=poll.name, id=id, **row))
            count_refusals(connection, {(poll.name, reason): times for reason, times in told.items()}, today)
            for some in rows_at_once(list(enumerate(sorted(new.values())))):
                rows = [_row(poll, id, place, content, today) for place, content in some]
                connection.execute(insert(schema.report), rows)
            for digests in rows_at_once(sorted(new)):
                seen = [{"poll": poll.name, "digest": digest} for digest in digests]
                connection.execute(insert(schema.seen), seen)
            added = schema.poll.c.participants + len(new)
            connection.execute(update(schema.poll).where(schema.poll.c.id == poll.name).values(participants=added))
        return Acknowledgement(id, len(new), dict(told))


def batch_of(report: str) -> str:
    """Return the part of a report's id that all reports of its batch share."""
    return report[:_SHOWN]


def _acknowledged(connection: Connection, name: str, id: str) -> Acknowledgement | None:
    table = schema.batch
    asked = select(table.c.accepted, table.c.refused).where(table.c.poll == name, table.c.id == id)
    row = connection.execute(asked).one_or_none()
    return None if row is None else Acknowledgement(id, row.accepted, json.loads(row.refused))


def _not_seen(connection: Connection, name: str, opened: Sequence[OpenedReport]) -> dict[str, str]:
    """Return the contents of the reports that are new, by the digest of their sealed bytes."""
    new = {report.digest: report.content for report in opened}
    table = schema.seen
    for some in rows_at_once(sorted(new)):
        for digest in connection.scalars(select(table.c.digest).where(table.c.poll == name, table.c.digest.in_(some))):
            del new[digest]
    return new


def _row(poll: HostedPoll, id: str, place: int, content: str, today: date) -> dict[str, object]:
    return {
        "poll": poll.name,
        "id": f"{id[:_SHOWN]}{place:012x}",
        "place": poll.paradigm.place.value,
        "epsilon_micro": poll.levels[0].epsilon.micro,
        "body": content,
        "about": "{}",
        "day": today,
        "pilot": False,
    }
