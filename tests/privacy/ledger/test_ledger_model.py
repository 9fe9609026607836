"""Random histories of a ledger, compared step by step with a few Python integers."""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.privacy.ledger.posting import charge_of, post

from crowdveil.errors import BudgetExceeded, CrowdveilError
from crowdveil.privacy.amount import Amount
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.ledger.ledger import Ledger

POSTED = {
    Unit.VOTER: (Unit.VOTER, Unit.RECORD, Unit.CHOICE),
    Unit.RECORD: (Unit.RECORD, Unit.CHOICE),
    Unit.CHOICE: (Unit.CHOICE,),
}

datasets = st.sampled_from(["a" * 64, "b" * 64])
digests = st.sampled_from(["0" * 64, "1" * 64])
units = st.sampled_from(Unit)
amounts = st.integers(1, 20).map(lambda tenths: tenths * 100_000)


class LedgerAgainstIntegers(RuleBasedStateMachine):
    """The rule as it is stated: each line that a charge is posted to stays within the budget."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.budget: dict[str, int] = {}
        self.spent: dict[tuple[str, Unit], int] = defaultdict(int)
        self.whole_voter: dict[str, int] = defaultdict(int)
        self.delivered: dict[int, str | None] = {}
        self.raises: dict[str | None, list[tuple[int, int]]] = defaultdict(list)

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @initialize(budget=amounts)
    def create(self, budget: int) -> None:
        self.default = budget
        self.ledger = Ledger.create(self.folder / "ledger", Amount(budget))

    def fits(self, dataset: str, epsilon: int, unit: Unit) -> bool:
        budget = self.budget.get(dataset, self.default)
        return all(self.spent[dataset, line] + epsilon <= budget for line in POSTED[unit])

    @rule(dataset=datasets, epsilon=amounts, unit=units, records=st.integers(1, 9))
    def charge(self, dataset: str, epsilon: int, unit: Unit, records: int) -> None:
        fits = self.fits(dataset, epsilon, unit)
        assert self.ledger.preview(charge_of(dataset, epsilon, unit)).fits == fits
        if not fits:
            with pytest.raises(BudgetExceeded):
                post(self.ledger, dataset, epsilon, unit, records, "refused")
            return
        entry = post(self.ledger, dataset, epsilon, unit, records, "accepted")
        assert entry.id == len(self.delivered) + 1
        self.budget.setdefault(dataset, self.default)
        for line in POSTED[unit]:
            self.spent[dataset, line] += epsilon
        self.whole_voter[dataset] += epsilon * (1 if unit == "voter" else records)
        self.delivered[entry.id] = None

    @rule(dataset=st.none() | datasets, budget=st.integers(1, 60).map(lambda tenths: tenths * 100_000))
    def raise_budget(self, dataset: str | None, budget: int) -> None:
        old = self.default if dataset is None else self.budget.get(dataset, self.default)
        if budget <= old:
            with pytest.raises(CrowdveilError, match="can only be raised"):
                self.ledger.raise_budget(dataset, Amount(budget), "lower")
            return
        self.ledger.raise_budget(dataset, Amount(budget), "higher")
        self.raises[dataset].append((old, budget))
        if dataset is None:
            self.default = budget
        else:
            self.budget[dataset] = budget

    @precondition(lambda self: self.delivered)
    @rule(data=st.data(), digest=digests)
    def deliver(self, data: st.DataObject, digest: str) -> None:
        entry = data.draw(st.sampled_from(sorted(self.delivered)))
        if self.delivered[entry] not in (None, digest):
            with pytest.raises(CrowdveilError, match="already delivered"):
                self.ledger.deliver(entry, digest)
            return
        self.ledger.deliver(entry, digest)
        self.delivered[entry] = digest

    @rule()
    def reopen(self) -> None:
        again = Ledger.open(self.ledger.path)
        assert again == self.ledger
        self.ledger = again

    @invariant()
    def the_statement_is_the_model(self) -> None:
        statement = self.ledger.statement()
        found = {account.dataset: account for account in statement.accounts}
        assert statement.default_budget.micro == self.default
        assert [(r.old.micro, r.new.micro) for r in statement.default_raises] == self.raises[None]
        assert {dataset: account.budget.micro for dataset, account in found.items()} == self.budget
        for dataset, account in found.items():
            for line in POSTED:
                assert account.spent_on(line).micro == self.spent[dataset, line] <= account.budget.micro
            assert account.whole_voter.micro == self.whole_voter[dataset]
            assert [(r.old.micro, r.new.micro) for r in account.raises] == self.raises[dataset]
        entries = [entry for account in found.values() for entry in account.entries]
        assert {entry.id: entry.release_digest for entry in entries} == self.delivered
        undelivered = {entry.id for account in found.values() for entry in account.undelivered}
        assert undelivered == {entry for entry, digest in self.delivered.items() if digest is None}


LedgerAgainstIntegers.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestLedgerAgainstIntegers = LedgerAgainstIntegers.TestCase
