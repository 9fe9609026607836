"""Charges in a few words, amounts in millionths."""

from crowdveil.privacy.amount import Amount
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.ledger.charge import Charge
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.privacy.ledger.statement import Entry


def charge_of(
    dataset: str, micro: int, unit: Unit, records: int = 5, purpose: str = "x", rho_micro: int | None = None
) -> Charge:
    return Charge(dataset, unit, Amount(micro), records, purpose, None if rho_micro is None else Amount(rho_micro))


def post(
    ledger: Ledger, dataset: str, micro: int, unit: Unit, records: int, purpose: str, rho_micro: int | None = None
) -> Entry:
    return ledger.charge(charge_of(dataset, micro, unit, records, purpose, rho_micro))
