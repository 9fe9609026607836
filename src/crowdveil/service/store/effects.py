"""Effects of polls. Those of a central poll were paid for: the charge is durable before noise is drawn, and names them.

They stand beside releases of preferences, and decisions never see them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date

from sqlalchemy import insert, select, update

from crowdveil.effect_release import EffectsRelease, effects_from_dict
from crowdveil.service.store import schema
from crowdveil.service.store.database import Database


@dataclass(frozen=True)
class StoredEffects:
    """Effects in the database."""

    id: str
    poll: str
    made_on: date
    file: str
    """The file of effects, JSON."""

    def read(self) -> EffectsRelease:
        """Return them, checked."""
        return effects_from_dict(json.loads(self.file))


@dataclass(frozen=True)
class EffectFiles:
    """The effects of all polls."""

    database: Database

    def put(self, poll: str, made: EffectsRelease, today: date) -> StoredEffects:
        """Store effects, and note them at the charge that paid for them."""
        data = made.as_dict()
        stored = StoredEffects(data["checksum"], poll, today, json.dumps(data, indent=2, ensure_ascii=False) + "\n")
        row = {"id": stored.id, "poll": poll, "made_on": today, "file": stored.file}
        with self.database.writing() as connection:
            # The same reports give the same effects again: they are there once.
            if connection.scalar(select(schema.effects.c.id).where(schema.effects.c.id == stored.id)) is None:
                connection.execute(insert(schema.effects).values(row))
            if made.ledger is not None:
                entry = schema.charge.c.number == made.ledger["entry"]
                paid = update(schema.charge).where(schema.charge.c.poll == poll, entry)
                connection.execute(paid.values(release=stored.id))
        return stored

    def get(self, id: str) -> StoredEffects | None:
        """Return effects by their id."""
        with self.database.reading() as connection:
            row = connection.execute(_EFFECTS.where(schema.effects.c.id == id)).one_or_none()
        return None if row is None else StoredEffects(*row)

    def all(self, poll: str) -> list[StoredEffects]:
        """Return the effects of a poll, newest first."""
        asked = _EFFECTS.where(schema.effects.c.poll == poll).order_by(schema.effects.c.number.desc())
        with self.database.reading() as connection:
            return [StoredEffects(*row) for row in connection.execute(asked).all()]


_EFFECTS = select(*(schema.effects.c[name] for name in ("id", "poll", "made_on", "file")))
