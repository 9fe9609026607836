"""The entries of a privacy ledger, written before noise is drawn, and its read-only statement.

Amounts are exact, so that ten charges of 0.1 are 1. In a zCDP ledger every amount is a rho instead of an epsilon.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from crowdveil.errors import BudgetExceeded, plural
from crowdveil.privacy.epsilon import NOTHING, Amount, PrivacyMeasure
from crowdveil.privacy.guarantee import Unit


@dataclass(frozen=True)
class Crowd:
    """The people whose records a release is about."""

    study: str
    """A digest of the study's features alone: changing its title, order or bounds leaves it the same study."""
    voters: int
    digests: bytes | None = field(default=None, repr=False)
    """A digest of each voter's name, 16 bytes each; None if there are no names."""

    @classmethod
    def of(cls, features: Iterable[str], voters: int, digests: bytes | None) -> Crowd:
        """Describe the voters of a study with these features."""
        return cls(hashlib.sha256("\0".join(sorted(features)).encode()).hexdigest(), voters, digests)


@dataclass(frozen=True)
class Charge:
    """The cost of one release."""

    dataset: str
    """The fingerprint of the ballots."""
    crowd: Crowd
    unit: Unit
    """The unit that the release protects."""
    epsilon: Amount
    records_per_voter: int
    """The largest number of records of any voter."""
    purpose: str
    rho: Amount | None = None
    """The rho of a zCDP release, which has no pure epsilon."""


class PostedCharge(Protocol):
    """A charge on disk."""

    @property
    def ledger(self) -> str:
        """The id of the ledger that holds it."""

    @property
    def id(self) -> int:
        """Its number in that ledger."""


class ChargeableLedger(Protocol):
    """A record of what releases cost, written before their noise is drawn: a ledger file, or a poll's budget."""

    @property
    def delta(self) -> float | None:
        """The delta of a zCDP ledger; None for a pure one."""

    def charge(self, charge: Charge) -> PostedCharge:
        """Spend the amount durably, or raise ``BudgetExceeded`` and spend nothing."""


LINES = tuple(Unit)
"""The units, from the strongest promise to the weakest: protecting a voter also protects each of their records."""


@dataclass(frozen=True)
class LedgerEntry:
    """One charge. It counts as spent from the moment it exists, delivered or not."""

    ledger: str
    """The random id of the ledger that holds the entry; with ``id`` it traces a release to its charge."""
    id: int
    crowd: int
    """The number of the crowd that was charged."""
    dataset: str
    unit: Unit
    charged: Amount
    records_per_voter: int
    purpose: str
    charged_at: str
    """UTC, ISO 8601, like every time in a ledger."""
    delivered_at: str | None = None
    release_digest: str | None = None
    measure: PrivacyMeasure = PrivacyMeasure.EPSILON

    @property
    def state(self) -> str:
        """Whether the release that was charged is known to be delivered."""
        return "charged, not delivered" if self.delivered_at is None else "delivered"

    @property
    def whole_voter(self) -> Amount:
        """The cost of the release to a voter as a whole, in the ledger's measure.

        Theorem (group privacy). If changing one record changes no probability by more than a factor e^eps, then
        changing k records changes none by more than e^(k eps): change them one after the other. If changing one record
        costs rho, changing k costs at most k^2 rho (Bun and Steinke 2016, Proposition 1.9).
        """
        if self.unit is Unit.VOTER:
            return self.charged
        records = self.records_per_voter
        return self.charged * (records if self.measure is PrivacyMeasure.EPSILON else records * records)

    def as_dict(self) -> dict[str, Any]:
        """Return the entry as plain data, with amounts as numbers."""
        return {
            "ledger": self.ledger,
            "entry": self.id,
            "crowd": self.crowd,
            "dataset": self.dataset,
            "unit": self.unit.value,
            self.measure.value: self.charged.value,
            "records_per_voter": self.records_per_voter,
            "purpose": self.purpose,
            "charged_at": self.charged_at,
            "state": self.state,
            "delivered_at": self.delivered_at,
            "release_digest": self.release_digest,
        }


@dataclass(frozen=True)
class BudgetRaise:
    """A deliberate raise of the budget, with the reason for it."""

    old: Amount
    new: Amount
    note: str
    raised_at: str

    def as_dict(self) -> dict[str, Any]:
        """Return the raise as plain data, with amounts as numbers."""
        return {
            "old_budget": self.old.value,
            "new_budget": self.new.value,
            "note": self.note,
            "raised_at": self.raised_at,
        }


@dataclass(frozen=True)
class Overlap:
    """Another crowd that was charged, and the number of people in both."""

    crowd: int
    shared: int | None
    """The number of people in both crowds. None if the people of either are unknown: then anybody may be in both."""
    spent: Amount

    def as_dict(self) -> dict[str, Any]:
        """Return the overlap as plain data, with amounts as numbers."""
        return {"crowd": self.crowd, "people_in_both": self.shared, "spent": self.spent.value}

    def __str__(self) -> str:
        if self.shared is None:
            return f"{self.spent} on crowd {self.crowd}, counted as the same people because not all are known by name"
        return f"{self.spent} on crowd {self.crowd}, which has {self.shared:,} of these people"


@dataclass(frozen=True)
class Account:
    """The privacy that the people of one crowd have lost, in it or in other crowds, and what they may still lose."""

    crowd: int
    voters: int
    named: bool
    """Whether the ledger knows who is in the crowd. If not, anybody in its study may be."""
    budget: Amount
    entries: tuple[LedgerEntry, ...]
    """The charges to exactly this crowd."""
    spent_by_line: Mapping[Unit, Amount]
    whole_voter: Amount
    """The most that all releases together, including those that protect less, can cost a person as a whole."""
    overlaps: tuple[Overlap, ...]

    def spent_on(self, line: Unit) -> Amount:
        """Return the most that anybody in the crowd, or one of their records, has lost, by sequential composition.

        A release that protects voters with epsilon protects their records with the same epsilon, so an entry is posted
        to the line of its own unit and to every weaker one.
        """
        return self.spent_by_line[line]

    @property
    def remaining(self) -> Amount:
        """The largest charge, of any unit, that still fits: every charge is posted to the weakest line."""
        return self.budget - self.spent

    @property
    def spent(self) -> Amount:
        """The cost of all releases together, on the weakest line."""
        return self.spent_on(LINES[-1])

    @property
    def undelivered(self) -> tuple[LedgerEntry, ...]:
        """Charges without a known release. They count as spent because noise may have been drawn."""
        return tuple(entry for entry in self.entries if entry.delivered_at is None)

    def __repr__(self) -> str:
        who = f"{self.voters:,} {plural(self.voters, 'voter')}" if self.named else "voters without names"
        return f"<crowd {self.crowd}, {who}: {self.spent} of {self.budget} spent>"

    def as_dict(self) -> dict[str, Any]:
        """Return the account as plain data, with amounts as numbers."""
        return {
            "crowd": self.crowd,
            "voters": self.voters,
            "known_by_name": self.named,
            "budget": self.budget.value,
            "spent": {line.value: self.spent_on(line).value for line in LINES},
            "remaining": self.remaining.value,
            "whole_voter_loses_at_most": self.whole_voter.value,
            "charged_not_delivered": [entry.id for entry in self.undelivered],
            "entries": [entry.as_dict() for entry in self.entries],
            "overlaps": [overlap.as_dict() for overlap in self.overlaps],
        }


@dataclass(frozen=True)
class Statement:
    """The whole ledger at one moment."""

    ledger: str
    created_at: str
    budget: Amount
    """The most that each person in the ledger may lose."""
    raises: tuple[BudgetRaise, ...]
    accounts: tuple[Account, ...]
    delta: float | None = None
    """The delta of a zCDP ledger, whose amounts are rhos; None for a pure one, whose amounts are epsilons."""

    @property
    def measure(self) -> PrivacyMeasure:
        """The unit of the ledger's amounts."""
        return PrivacyMeasure.EPSILON if self.delta is None else PrivacyMeasure.RHO

    def __repr__(self) -> str:
        accounts = "".join(f"\n  {account!r}" for account in self.accounts)
        return f"<statement: nobody may lose more than {self.measure} {self.budget}{accounts}>"

    def as_dict(self) -> dict[str, Any]:
        """Return the statement as plain data, with amounts as numbers."""
        return {
            "ledger": self.ledger,
            "created_at": self.created_at,
            **({} if self.delta is None else {"measure": self.measure.value, "delta": self.delta}),
            "budget": self.budget.value,
            "raises": [step.as_dict() for step in self.raises],
            "accounts": [account.as_dict() for account in self.accounts],
        }


@dataclass(frozen=True)
class ChargePreview:
    """The effect that a charge would have now."""

    unit: Unit
    requested: Amount
    budget: Amount
    remaining: Amount
    """The budget that remains before the charge for the person in the crowd who has lost the most."""
    overlaps: tuple[Overlap, ...] = ()
    """Crowds that were charged already and that contain, or may contain, some of these people."""
    caution: str | None = None
    """The reason for charging the crowd as if anybody could be in it; None if its people are known."""
    measure: PrivacyMeasure = PrivacyMeasure.EPSILON

    @property
    def fits(self) -> bool:
        """Whether the charge would be accepted."""
        return self.requested <= self.remaining

    def check(self, what: str) -> None:
        """Raise ``BudgetExceeded`` if the charge, which pays for ``what``, would be refused."""
        if not self.fits:
            raise BudgetExceeded(
                f"the budget does not cover {what}: requested {self.measure} {self.requested}, remaining "
                f"{self.remaining} of {self.budget}, difference {self.missing}; nothing was spent",
                self.requested.decimal,
                self.remaining.decimal,
            )

    @property
    def remaining_after(self) -> Amount:
        """The budget that remains after the charge. A refused charge takes nothing."""
        return self.remaining - self.requested if self.fits else self.remaining

    @property
    def missing(self) -> Amount:
        """The amount by which the request is too large; 0 if it fits."""
        return NOTHING if self.fits else self.requested - self.remaining

    def __str__(self) -> str:
        cost = (
            "" if self.measure is PrivacyMeasure.EPSILON else f"The ledger adds up rhos, and this is {self.requested}. "
        )
        short = "" if self.fits else f", which is {self.missing} too little"
        return f"{cost}Remaining: {self.remaining} of {self.budget}{short}."

    def as_dict(self) -> dict[str, Any]:
        """Return the preview as plain data, with amounts as numbers."""
        return {
            "unit": self.unit.value,
            "fits": self.fits,
            **({} if self.measure is PrivacyMeasure.EPSILON else {"measure": self.measure.value}),
            "requested": self.requested.value,
            "budget": self.budget.value,
            "remaining": self.remaining.value,
            "remaining_after": self.remaining_after.value,
            "missing": self.missing.value,
            "overlaps": [overlap.as_dict() for overlap in self.overlaps],
            "caution": self.caution,
        }
