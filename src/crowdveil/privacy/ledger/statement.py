"""What a privacy ledger says: entries, raises and accounts, as values that can be read but not changed.

Amounts are integers: 1 epsilon is 1,000,000 micro-epsilons, so sums are exact and ten charges of 0.1 are 1. In a zCDP
ledger every amount is in millionths of rho instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from crowdveil.privacy.epsilon import MICROS_PER_UNIT
from crowdveil.privacy.guarantee import Unit

LINES = tuple(Unit)
"""From the strongest promise to the weakest: who protects a voter also protects each of its records."""


class Measure(StrEnum):
    """What a ledger adds up."""

    EPSILON = "epsilon"
    RHO = "rho"


def decimal_text(micro: int) -> str:
    """Write millionths as an exact decimal number.

    >>> decimal_text(1_300_000), decimal_text(3_000_000), decimal_text(1)
    ('1.3', '3', '0.000001')
    """
    whole, millionths = divmod(abs(micro), MICROS_PER_UNIT)
    sign = "-" if micro < 0 else ""
    return f"{sign}{whole}.{millionths:06d}".rstrip("0").rstrip(".")


def _number(micro: int) -> float:
    """Return millionths as the double nearest to the exact number: it prints as the exact decimal."""
    return micro / 1_000_000


@dataclass(frozen=True)
class Entry:
    """One charge. It counts as spent from the moment it exists, delivered or not."""

    ledger: str
    """The random id of the ledger that holds the entry; with ``id`` it traces a release to its charge."""
    id: int
    dataset: str
    unit: Unit
    charged_micro: int
    """In millionths of the measure."""
    records_per_voter: int
    purpose: str
    charged_at: str
    """UTC, ISO 8601, like every time in a ledger."""
    delivered_at: str | None = None
    release_digest: str | None = None
    measure: Measure = Measure.EPSILON

    @property
    def state(self) -> str:
        """Whether a release is known to have come of the charge."""
        return "charged, not delivered" if self.delivered_at is None else "delivered"

    @property
    def whole_voter_micro(self) -> int:
        """What the release can cost a voter as a whole, in millionths of the measure.

        Theorem (group privacy). If changing one record changes no probability by more than a factor e^eps,
        then changing k records changes none by more than e^(k eps): change them one after the other. If
        changing one record costs rho, changing k costs at most k^2 rho (Bun and Steinke 2016, Proposition 1.9).
        """
        if self.unit is Unit.VOTER:
            return self.charged_micro
        records = self.records_per_voter
        return self.charged_micro * (records if self.measure is Measure.EPSILON else records * records)

    def as_dict(self) -> dict[str, Any]:
        """Return the entry as plain data, amounts as numbers."""
        return {
            "ledger": self.ledger,
            "entry": self.id,
            "dataset": self.dataset,
            "unit": self.unit.value,
            self.measure.value: _number(self.charged_micro),
            "records_per_voter": self.records_per_voter,
            "purpose": self.purpose,
            "charged_at": self.charged_at,
            "state": self.state,
            "delivered_at": self.delivered_at,
            "release_digest": self.release_digest,
        }


@dataclass(frozen=True)
class Raise:
    """A budget that somebody raised on purpose, and why."""

    dataset: str | None
    """None: the default budget, for datasets that had no account yet."""
    old_micro: int
    new_micro: int
    note: str
    raised_at: str

    def as_dict(self) -> dict[str, Any]:
        """Return the raise as plain data, amounts as numbers."""
        return {
            "old_budget": _number(self.old_micro),
            "new_budget": _number(self.new_micro),
            "note": self.note,
            "raised_at": self.raised_at,
        }


@dataclass(frozen=True)
class Account:
    """What has been released about one dataset, and what may still be."""

    dataset: str
    budget_micro: int
    entries: tuple[Entry, ...]
    raises: tuple[Raise, ...]

    def spent_micro(self, line: Unit) -> int:
        """What one voter or one record has lost at most, by sequential composition.

        A release that protects voters with epsilon protects their records with the same epsilon, so an entry
        is posted to the line of its own unit and to every weaker one.
        """
        posted = LINES[: LINES.index(line) + 1]
        return sum(entry.charged_micro for entry in self.entries if entry.unit in posted)

    @property
    def remaining_micro(self) -> int:
        """The largest charge, of any unit, that still fits: every charge is posted to the weakest line."""
        return self.budget_micro - self.spent_micro(LINES[-1])

    @property
    def whole_voter_micro(self) -> int:
        """What all releases together can cost a voter as a whole, including those that protect less."""
        return sum(entry.whole_voter_micro for entry in self.entries)

    @property
    def undelivered(self) -> tuple[Entry, ...]:
        """Charges of which no release is known: spent all the same, since noise may have been drawn."""
        return tuple(entry for entry in self.entries if entry.delivered_at is None)

    def as_dict(self) -> dict[str, Any]:
        """Return the account as plain data, amounts as numbers."""
        return {
            "dataset": self.dataset,
            "budget": _number(self.budget_micro),
            "spent": {line.value: _number(self.spent_micro(line)) for line in LINES},
            "remaining": _number(self.remaining_micro),
            "whole_voter_loses_at_most": _number(self.whole_voter_micro),
            "charged_not_delivered": [entry.id for entry in self.undelivered],
            "entries": [entry.as_dict() for entry in self.entries],
            "raises": [step.as_dict() for step in self.raises],
        }


@dataclass(frozen=True)
class Statement:
    """The whole ledger at one moment."""

    ledger: str
    created_at: str
    default_budget_micro: int
    default_raises: tuple[Raise, ...]
    accounts: tuple[Account, ...]
    delta: float | None = None
    """Of a zCDP ledger, whose amounts are rhos; None for a pure one, whose amounts are epsilons."""

    @property
    def measure(self) -> Measure:
        """What the ledger adds up."""
        return Measure.EPSILON if self.delta is None else Measure.RHO

    def as_dict(self) -> dict[str, Any]:
        """Return the statement as plain data, amounts as numbers."""
        return {
            "ledger": self.ledger,
            "created_at": self.created_at,
            **({} if self.delta is None else {"measure": self.measure.value, "delta": self.delta}),
            "default_budget": _number(self.default_budget_micro),
            "default_raises": [step.as_dict() for step in self.default_raises],
            "accounts": [account.as_dict() for account in self.accounts],
        }


@dataclass(frozen=True)
class Preview:
    """What a charge would do if it were made now."""

    dataset: str
    unit: Unit
    requested_micro: int
    budget_micro: int
    remaining_micro: int
    """Before the charge."""
    measure: Measure = Measure.EPSILON

    @property
    def fits(self) -> bool:
        """Whether the charge would be accepted."""
        return self.requested_micro <= self.remaining_micro

    @property
    def remaining_after_micro(self) -> int:
        """What would remain afterwards; a refused charge takes nothing."""
        return self.remaining_micro - self.requested_micro if self.fits else self.remaining_micro

    @property
    def missing_micro(self) -> int:
        """By how much the request is too large; 0 if it fits."""
        return max(0, self.requested_micro - self.remaining_micro)

    def as_dict(self) -> dict[str, Any]:
        """Return the preview as plain data, amounts as numbers."""
        return {
            "dataset": self.dataset,
            "unit": self.unit.value,
            "fits": self.fits,
            **({} if self.measure is Measure.EPSILON else {"measure": self.measure.value}),
            "requested": _number(self.requested_micro),
            "budget": _number(self.budget_micro),
            "remaining": _number(self.remaining_micro),
            "remaining_after": _number(self.remaining_after_micro),
            "missing": _number(self.missing_micro),
        }
