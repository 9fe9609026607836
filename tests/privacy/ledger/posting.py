"""Charges in a few words, amounts in millionths. A dataset stands for a crowd of its own."""

import hashlib

from crowdveil.privacy.epsilon import Amount
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.ledger.entries import Charge, Crowd, LedgerEntry
from crowdveil.privacy.ledger.ledger import Ledger


def crowd_of(*names: str, study: str = "s") -> Crowd:
    """The crowd of the people with these names."""
    digests = b"".join(hashlib.blake2b(name.encode(), digest_size=16).digest() for name in names)
    return Crowd.of([study], len(names), digests)


def charge_of(
    dataset: str, micro: int, unit: Unit, records: int = 5, purpose: str = "x", rho_micro: int | None = None
) -> Charge:
    crowd = crowd_of(f"somebody in {dataset}")
    rho = None if rho_micro is None else Amount(rho_micro)
    return Charge(dataset, crowd, unit, Amount(micro), records, purpose, rho)


def post(
    ledger: Ledger, dataset: str, micro: int, unit: Unit, records: int, purpose: str, rho_micro: int | None = None
) -> LedgerEntry:
    return ledger.charge(charge_of(dataset, micro, unit, records, purpose, rho_micro))
