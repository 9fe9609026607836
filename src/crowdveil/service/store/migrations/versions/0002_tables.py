"""The first published tables. (0001 was never published.)"""

import uuid

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = None
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create all tables, and give the installation its id."""
    op.create_table(
        "audit_log",
        sa.Column("number", _NUMBER, autoincrement=True, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("host", sa.String(80), nullable=False),
        sa.Column("action", sa.String(80), nullable=False),
        sa.Column("poll", sa.String(40), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit_log"),
    )
    op.create_table(
        "deleted_poll",
        sa.Column("id", sa.String(40), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_deleted_poll"),
    )
    op.create_table(
        "host",
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("password", sa.Text(), nullable=True),
        sa.Column("role", sa.String(10), nullable=False),
        sa.Column("second_factor", sa.String(64), nullable=True),
        sa.Column("last_code", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("role IN ('owner', 'analyst', 'viewer')", name="ck_host_role"),
        sa.PrimaryKeyConstraint("name", name="pk_host"),
    )
    installation = op.create_table(
        "installation",
        sa.Column("id", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_installation"),
    )
    op.create_table(
        "poll",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("place", sa.String(11), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("closed", sa.Boolean(), nullable=False),
        sa.Column("pilot", sa.Boolean(), nullable=False),
        sa.Column("archived", sa.Boolean(), nullable=False),
        sa.Column("destroyed_on", sa.Date(), nullable=True),
        sa.Column("participants", sa.BigInteger(), nullable=False),
        sa.Column("budget_micro", sa.BigInteger(), nullable=True),
        sa.Column("spent_micro", sa.BigInteger(), nullable=False),
        sa.Column("marked_release", sa.String(64), nullable=True),
        sa.CheckConstraint("(place = 'central') = (budget_micro IS NOT NULL)", name="ck_poll_only_central_has_budget"),
        sa.CheckConstraint("place IN ('central', 'distributed')", name="ck_poll_place"),
        sa.CheckConstraint("participants >= 0", name="ck_poll_participants"),
        sa.CheckConstraint(
            "spent_micro >= 0 AND spent_micro <= coalesce(budget_micro, 0)", name="ck_poll_within_budget"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_poll"),
        sa.UniqueConstraint("id", "place", name="uq_poll_id_place"),
    )
    op.create_table(
        "ballot",
        sa.Column("poll", sa.String(40), nullable=False),
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("place", sa.String(11), nullable=False),
        sa.Column("records", sa.Text(), nullable=False),
        sa.Column("about", sa.Text(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("pilot", sa.Boolean(), nullable=False),
        sa.CheckConstraint("place = 'central'", name="ck_ballot_place"),
        sa.ForeignKeyConstraint(["poll", "place"], ["poll.id", "poll.place"], name="fk_ballot_poll"),
        sa.PrimaryKeyConstraint("poll", "id", name="pk_ballot"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "batch",
        sa.Column("poll", sa.String(40), nullable=False),
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("handed_over", sa.BigInteger(), nullable=False),
        sa.Column("accepted", sa.BigInteger(), nullable=False),
        sa.Column("refused", sa.Text(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.CheckConstraint("accepted >= 0 AND accepted <= handed_over", name="ck_batch_accepted"),
        sa.ForeignKeyConstraint(["poll"], ["poll.id"], name="fk_batch_poll"),
        sa.PrimaryKeyConstraint("poll", "id", name="pk_batch"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "charge",
        sa.Column("poll", sa.String(40), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("cost_micro", sa.BigInteger(), nullable=False),
        sa.Column("unit", sa.String(10), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("charged_on", sa.Date(), nullable=False),
        sa.Column("release", sa.String(64), nullable=True),
        sa.CheckConstraint("cost_micro > 0", name="ck_charge_cost"),
        sa.ForeignKeyConstraint(["poll"], ["poll.id"], name="fk_charge_poll"),
        sa.PrimaryKeyConstraint("poll", "number", name="pk_charge"),
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
        "refusal",
        sa.Column("poll", sa.String(40), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("reason", sa.String(40), nullable=False),
        sa.Column("times", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["poll"], ["poll.id"], name="fk_refusal_poll"),
        sa.PrimaryKeyConstraint("poll", "day", "reason", name="pk_refusal"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "relay_key",
        sa.Column("poll", sa.String(40), nullable=False),
        sa.Column("private_key", sa.String(64), nullable=False),
        sa.Column("relay_key", sa.String(43), nullable=True),
        sa.ForeignKeyConstraint(["poll"], ["poll.id"], name="fk_relay_key_poll"),
        sa.PrimaryKeyConstraint("poll", name="pk_relay_key"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "release",
        sa.Column("number", _NUMBER, autoincrement=True, nullable=False),
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("poll", sa.String(40), nullable=False),
        sa.Column("made_on", sa.Date(), nullable=False),
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("made_at", sa.BigInteger(), nullable=True),
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["poll"], ["poll.id"], name="fk_release_poll"),
        sa.PrimaryKeyConstraint("number", name="pk_release"),
        sa.UniqueConstraint("id", name="uq_release_id"),
    )
    op.create_table(
        "effects",
        sa.Column("number", _NUMBER, autoincrement=True, nullable=False),
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("poll", sa.String(40), nullable=False),
        sa.Column("made_on", sa.Date(), nullable=False),
        sa.Column("file", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["poll"], ["poll.id"], name="fk_effects_poll"),
        sa.PrimaryKeyConstraint("number", name="pk_effects"),
        sa.UniqueConstraint("id", name="uq_effects_id"),
    )
    op.create_table(
        "report",
        sa.Column("poll", sa.String(40), nullable=False),
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("place", sa.String(11), nullable=False),
        sa.Column("epsilon_micro", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("about", sa.Text(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("pilot", sa.Boolean(), nullable=False),
        sa.CheckConstraint("place = 'distributed'", name="ck_report_place"),
        sa.ForeignKeyConstraint(["poll", "place"], ["poll.id", "poll.place"], name="fk_report_poll"),
        sa.PrimaryKeyConstraint("poll", "id", name="pk_report"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "seen",
        sa.Column("poll", sa.String(40), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.ForeignKeyConstraint(["poll"], ["poll.id"], name="fk_seen_poll"),
        sa.PrimaryKeyConstraint("poll", "digest", name="pk_seen"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "session",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("host", sa.String(80), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["host"], ["host.name"], name="fk_session_host"),
        sa.PrimaryKeyConstraint("id", name="pk_session"),
    )
    op.create_table(
        "sign_in_link",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("host", sa.String(80), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["host"], ["host.name"], name="fk_sign_in_link_host"),
        sa.PrimaryKeyConstraint("id", name="pk_sign_in_link"),
    )
    op.create_table(
        "step",
        sa.Column("poll", sa.String(40), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("step", sa.String(20), nullable=False),
        sa.Column("times", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["poll"], ["poll.id"], name="fk_step_poll"),
        sa.PrimaryKeyConstraint("poll", "day", "step", name="pk_step"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "withdrawal",
        sa.Column("poll", sa.String(40), nullable=False),
        sa.Column("id", sa.String(32), nullable=False),
        sa.ForeignKeyConstraint(["poll"], ["poll.id"], name="fk_withdrawal_poll"),
        sa.PrimaryKeyConstraint("poll", "id", name="pk_withdrawal"),
        sqlite_with_rowid=False,
    )
    op.bulk_insert(installation, [{"id": str(uuid.uuid4())}])
