"""The relay's first tables."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "relay_0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create all tables, and draw the relay's key."""
    relay = op.create_table(
        "relay",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("signing_key", sa.String(64), nullable=False),
        sa.CheckConstraint("number = 1", name="ck_relay_one"),
        sa.PrimaryKeyConstraint("number", name="pk_relay"),
    )
    op.create_table(
        "poll",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("closed", sa.Boolean(), nullable=False),
        sa.Column("participants", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("participants >= 0", name="ck_poll_participants"),
        sa.PrimaryKeyConstraint("id", name="pk_poll"),
    )
    op.create_table(
        "batch",
        sa.Column("poll", sa.String(40), nullable=False),
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("acknowledged", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["poll"], ["poll.id"], name="fk_batch_poll"),
        sa.PrimaryKeyConstraint("poll", "id", name="pk_batch"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "link",
        sa.Column("poll", sa.String(40), nullable=False),
        sa.Column("id", sa.String(32), nullable=False),
        sa.ForeignKeyConstraint(["poll"], ["poll.id"], name="fk_link_poll"),
        sa.PrimaryKeyConstraint("poll", "id", name="pk_link"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "sealed",
        sa.Column("poll", sa.String(40), nullable=False),
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("batch", sa.String(32), nullable=True),
        sa.ForeignKeyConstraint(["poll"], ["poll.id"], name="fk_sealed_poll"),
        sa.PrimaryKeyConstraint("poll", "id", name="pk_sealed"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "spent",
        sa.Column("poll", sa.String(40), nullable=False),
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("withdrawn", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["poll"], ["poll.id"], name="fk_spent_poll"),
        sa.PrimaryKeyConstraint("poll", "id", name="pk_spent"),
        sqlite_with_rowid=False,
    )
    op.bulk_insert(relay, [{"number": 1, "signing_key": secrets.token_hex(32)}])
