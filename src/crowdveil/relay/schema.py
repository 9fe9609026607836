"""The relay's tables. They have no column for an address, a time or an order of arrival, so none can be kept."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

from crowdveil.service.store.database import NAMES

metadata = MetaData(naming_convention=NAMES)

relay = Table(
    "relay",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("signing_key", String(64), nullable=False, doc="The relay's own key: 32 bytes of Ed25519, in hexadecimal."),
    CheckConstraint("number = 1", "one"),
)

poll = Table(
    "poll",
    metadata,
    Column("id", String(40), primary_key=True),
    Column(
        "definition", Text, nullable=False, doc="Canonical JSON: the key configuration and the rules. It never changes."
    ),
    Column("closed", Boolean, nullable=False, doc="Whether its host closed it; dates and quota are in the definition."),
    Column("participants", BigInteger, nullable=False, doc="The number of people who took part and did not withdraw."),
    CheckConstraint("participants >= 0", "participants"),
)

link = Table(
    "link",
    metadata,
    Column("poll", String(40), ForeignKey("poll.id"), primary_key=True),
    Column("id", String(32), primary_key=True, doc="The report id derived from the link's token."),
    sqlite_with_rowid=False,
)

batch = Table(
    "batch",
    metadata,
    Column("poll", String(40), ForeignKey("poll.id"), primary_key=True),
    Column("id", String(32), primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("acknowledged", Boolean, nullable=False),
    sqlite_with_rowid=False,
)

sealed = Table(
    "sealed",
    metadata,
    Column("poll", String(40), ForeignKey("poll.id"), primary_key=True),
    Column("id", String(32), primary_key=True, doc="The report id derived from a token."),
    Column("body", LargeBinary, nullable=False, doc="Sealed to the host. Erased when its batch is acknowledged."),
    Column("batch", String(32), doc="Set when it is about to be handed over; until then it can be withdrawn."),
    sqlite_with_rowid=False,
)

spent = Table(
    "spent",
    metadata,
    Column("poll", String(40), ForeignKey("poll.id"), primary_key=True),
    Column("id", String(32), primary_key=True, doc="A report id that cannot be used again."),
    Column("withdrawn", Boolean, nullable=False, doc="If not, it was handed over, in a batch that is no longer known."),
    sqlite_with_rowid=False,
)
