"""Charges: written down in a ledger before noise is drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from crowdveil.privacy.amount import Amount
from crowdveil.privacy.guarantee import Unit


@dataclass(frozen=True)
class Crowd:
    """Whose records a release is about."""

    study: str
    """Tells studies apart by their features alone: another title, order or bound is the same study."""
    voters: int
    digests: bytes | None = field(default=None, repr=False)
    """A digest of each voter's name, 16 bytes each; None where there are no names."""

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
    """Of a zCDP release, which has no pure epsilon."""


class PostedCharge(Protocol):
    """A charge that is on disk."""

    @property
    def ledger(self) -> str:
        """The id of the ledger that holds it."""

    @property
    def id(self) -> int:
        """Its number there."""


class ChargeableLedger(Protocol):
    """Where the cost of a release is written down before its noise is drawn: a ledger file, or a poll's budget."""

    @property
    def delta(self) -> float | None:
        """Of a zCDP ledger; None for a pure one."""

    def charge(self, charge: Charge) -> PostedCharge:
        """Spend, durably, or raise ``BudgetExceeded`` and spend nothing."""
