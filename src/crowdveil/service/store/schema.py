"""The tables. They have no column for a voter's address, exact time or order of arrival, so none can be kept.

A poll is permanently central or distributed (``place``). A ballot row must name a central poll and a report row a
distributed one: ``place`` is part of the foreign key, and a CHECK fixes it in each of the two tables. So the database
itself refuses a choice in a distributed poll, whatever the program does.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from crowdveil.service.store.database import NAMES

metadata = MetaData(naming_convention=NAMES)

_NUMBER = BigInteger().with_variant(Integer, "sqlite")
"""Type of a column of row numbers: SQLite assigns them only in a column of type INTEGER."""

installation = Table(
    "installation",
    metadata,
    Column(
        "id",
        String(36),
        primary_key=True,
        doc="A random UUID: every poll's ledger has an id derived from it and the poll's name.",
    ),
)

poll = Table(
    "poll",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("place", String(11), nullable=False),
    Column("definition", Text, nullable=False, doc="The poll as canonical JSON. It never changes."),
    Column("closed", Boolean, nullable=False, doc="Whether the host closed it; dates and quota are in the definition."),
    Column("pilot", Boolean, nullable=False, doc="Whether it is being tried out, so that submissions never count."),
    Column("archived", Boolean, nullable=False, doc="Whether the host archived it: closed, and no longer listed."),
    Column("destroyed_on", Date, doc="Central polls: the day on which the exact answers were destroyed."),
    Column("participants", BigInteger, nullable=False, doc="The number of stored reports or ballots."),
    Column("budget_micro", BigInteger, doc="Central polls: the cap on all releases together."),
    Column("spent_micro", BigInteger, nullable=False),
    Column("marked_release", String(64), doc="The release that decisions use; null: the newest."),
    UniqueConstraint("id", "place"),
    CheckConstraint("place IN ('central', 'distributed')", "place"),
    CheckConstraint("(place = 'central') = (budget_micro IS NOT NULL)", "only_central_has_budget"),
    CheckConstraint("spent_micro >= 0 AND spent_micro <= coalesce(budget_micro, 0)", "within_budget"),
    CheckConstraint("participants >= 0", "participants"),
)


def _of_a_poll(place: str) -> tuple[ForeignKeyConstraint, CheckConstraint]:
    return (
        ForeignKeyConstraint(["poll", "place"], ["poll.id", "poll.place"]),
        CheckConstraint(f"place = '{place}'", "place"),
    )


report = Table(
    "report",
    metadata,
    Column("poll", String(40), primary_key=True),
    Column("id", String(32), primary_key=True),
    Column("place", String(11), nullable=False),
    Column("epsilon_micro", BigInteger, nullable=False),
    Column("body", Text, nullable=False, doc="Canonical JSON, without the answers to about-you questions."),
    Column("about", Text, nullable=False, doc="Canonical JSON, perturbed on the device."),
    Column("day", Date, nullable=False),
    Column("pilot", Boolean, nullable=False, doc="Sent while the poll was tried out: never counted."),
    *_of_a_poll("distributed"),
    sqlite_with_rowid=False,
)

ballot = Table(
    "ballot",
    metadata,
    Column("poll", String(40), primary_key=True),
    Column("id", String(32), primary_key=True),
    Column("place", String(11), nullable=False),
    Column("records", Text, nullable=False, doc="Canonical JSON: what was shown and what was chosen."),
    Column("about", Text, nullable=False, doc="Canonical JSON."),
    Column("day", Date, nullable=False),
    Column("pilot", Boolean, nullable=False, doc="Sent while the poll was tried out: never counted."),
    *_of_a_poll("central"),
    sqlite_with_rowid=False,
)

link = Table(
    "link",
    metadata,
    Column("poll", String(40), ForeignKey("poll.id"), primary_key=True),
    Column("id", String(32), primary_key=True, doc="The report id derived from the link's token."),
    sqlite_with_rowid=False,
)

withdrawal = Table(
    "withdrawal",
    metadata,
    Column("poll", String(40), ForeignKey("poll.id"), primary_key=True),
    Column("id", String(32), primary_key=True, doc="A report id that cannot be used again."),
    sqlite_with_rowid=False,
)

refusal = Table(
    "refusal",
    metadata,
    Column("poll", String(40), ForeignKey("poll.id"), primary_key=True),
    Column("day", Date, primary_key=True),
    Column("reason", String(40), primary_key=True),
    Column("times", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

deleted_poll = Table(
    "deleted_poll",
    metadata,
    Column("id", String(40), primary_key=True, doc="A name that cannot be used again: ledgers' ids depend on it."),
)

step = Table(
    "step",
    metadata,
    Column("poll", String(40), ForeignKey("poll.id"), primary_key=True),
    Column("day", Date, primary_key=True),
    Column("step", String(20), primary_key=True, doc="The step that somebody reached."),
    Column("times", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

relay_key = Table(
    "relay_key",
    metadata,
    Column("poll", String(40), ForeignKey("poll.id"), primary_key=True),
    Column(
        "private_key", String(64), nullable=False, doc="The host's key for this poll: a P-256 scalar, in hexadecimal."
    ),
    Column("relay_key", String(43), doc="The relay's public key, set when the relay was first asked for it."),
    sqlite_with_rowid=False,
)

batch = Table(
    "batch",
    metadata,
    Column("poll", String(40), ForeignKey("poll.id"), primary_key=True),
    Column("id", String(32), primary_key=True, doc="Drawn by the relay: a batch is stored once."),
    Column("handed_over", BigInteger, nullable=False, doc="The number of sealed reports in it."),
    Column("accepted", BigInteger, nullable=False),
    Column("refused", Text, nullable=False, doc="Canonical JSON: the number for each reason."),
    Column("day", Date, nullable=False),
    CheckConstraint("accepted >= 0 AND accepted <= handed_over", "accepted"),
    sqlite_with_rowid=False,
)

seen = Table(
    "seen",
    metadata,
    Column("poll", String(40), ForeignKey("poll.id"), primary_key=True),
    Column("digest", String(64), primary_key=True, doc="Of a sealed report that was stored, to refuse it later."),
    sqlite_with_rowid=False,
)

release = Table(
    "release",
    metadata,
    Column("number", _NUMBER, primary_key=True, autoincrement=True),
    Column("id", String(64), nullable=False, unique=True, doc="The checksum of the release file."),
    Column("poll", String(40), ForeignKey("poll.id"), nullable=False),
    Column("made_on", Date, nullable=False),
    Column("file", Text, nullable=False, doc="The release file, JSON."),
    Column("made_at", BigInteger, doc="Seconds since 1970, if the host's pages made it."),
    Column("name", String(80), nullable=False, doc="For the host's own use; may be empty."),
    Column("note", Text, nullable=False, doc="For the host's own use; may be empty."),
)

effects = Table(
    "effects",
    metadata,
    Column("number", _NUMBER, primary_key=True, autoincrement=True),
    Column("id", String(64), nullable=False, unique=True, doc="The checksum of the file of effects."),
    Column("poll", String(40), ForeignKey("poll.id"), nullable=False),
    Column("made_on", Date, nullable=False),
    Column("file", Text, nullable=False, doc="The file of effects, JSON."),
)

charge = Table(
    "charge",
    metadata,
    Column("poll", String(40), ForeignKey("poll.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False, doc="Counted from 1 in each poll."),
    Column("cost_micro", BigInteger, nullable=False),
    Column("unit", String(10), nullable=False),
    Column("purpose", Text, nullable=False),
    Column("charged_on", Date, nullable=False),
    Column("release", String(64), doc="Set when the release, or the effects, that were paid for are stored."),
    CheckConstraint("cost_micro > 0", "cost"),
    sqlite_with_rowid=False,
)

host = Table(
    "host",
    metadata,
    Column("name", String(80), primary_key=True),
    Column("password", Text, doc="An argon2 hash; null until the host has chosen one."),
    Column("role", String(10), nullable=False),
    Column("second_factor", String(64), doc="The key of the host's one-time codes (base32); null: none are required."),
    Column("last_code", BigInteger, nullable=False, doc="The time step of the last code used: no code works twice."),
    CheckConstraint("role IN ('owner', 'analyst', 'viewer')", "role"),
)

sign_in_link = Table(
    "sign_in_link",
    metadata,
    Column("id", String(64), primary_key=True, doc="SHA-256 of the link's token."),
    Column("host", String(80), ForeignKey("host.name"), nullable=False),
    Column("expires_at", BigInteger, nullable=False, doc="Seconds since 1970, like all times of hosts."),
)

session = Table(
    "session",
    metadata,
    Column("id", String(64), primary_key=True, doc="SHA-256 of the cookie's content."),
    Column("host", String(80), ForeignKey("host.name"), nullable=False),
    Column("expires_at", BigInteger, nullable=False),
)

audit_log = Table(
    "audit_log",
    metadata,
    Column("number", _NUMBER, primary_key=True, autoincrement=True),
    Column("at", BigInteger, nullable=False),
    Column("host", String(80), nullable=False, doc="The host's name at that time."),
    Column("action", String(80), nullable=False),
    Column("poll", String(40)),
    Column("detail", Text, nullable=False),
)
