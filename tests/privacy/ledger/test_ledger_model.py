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
from tests.privacy.ledger.posting import crowd_of

from crowdveil.errors import BudgetExceeded, CrowdveilError
from crowdveil.privacy.epsilon import Amount
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.ledger.entries import Charge, Crowd
from crowdveil.privacy.ledger.ledger import Ledger

POSTED = {
    Unit.VOTER: (Unit.VOTER, Unit.RECORD, Unit.CHOICE),
    Unit.RECORD: (Unit.RECORD, Unit.CHOICE),
    Unit.CHOICE: (Unit.CHOICE,),
}

DATASET = "a" * 64
PEOPLE = "abcde"
digests = st.sampled_from(["0" * 64, "1" * 64])
units = st.sampled_from(Unit)
amounts = st.integers(1, 20).map(lambda tenths: tenths * 100_000)
crowds = st.sets(st.sampled_from(PEOPLE), min_size=1).map(lambda names: crowd_of(*sorted(names)))


def names_in(crowd: Crowd) -> set[str]:
    return {name for name in PEOPLE if crowd.digests is None or crowd_of(name).digests in blocks(crowd.digests)}


def blocks(digests: bytes) -> set[bytes]:
    return {digests[start : start + 16] for start in range(0, len(digests), 16)}


class LedgerAgainstIntegers(RuleBasedStateMachine):
    """The model keeps what each of five people has lost. Who is in a crowd without names may be any of them."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.spent: dict[tuple[str, Unit], int] = defaultdict(int)
        self.whole_voter: dict[str, int] = defaultdict(int)
        self.delivered: dict[int, str | None] = {}
        self.raises: list[tuple[int, int]] = []
        self.charged: dict[frozenset[str] | None, int] = defaultdict(int)

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @initialize(budget=amounts)
    def create(self, budget: int) -> None:
        self.budget = budget
        self.ledger = Ledger.create(self.folder / "ledger", Amount(budget))

    @rule(
        crowd=crowds | st.just(Crowd(crowd_of("a").study, 3)),
        epsilon=amounts,
        unit=units,
        records=st.integers(1, 9),
    )
    def charge(self, crowd: Crowd, epsilon: int, unit: Unit, records: int) -> None:
        names = names_in(crowd)
        fits = all(self.spent[name, line] + epsilon <= self.budget for name in names for line in POSTED[unit])
        charge = Charge(DATASET, crowd, unit, Amount(epsilon), records, "x")
        assert self.ledger.preview(charge).fits == fits
        if not fits:
            with pytest.raises(BudgetExceeded):
                self.ledger.charge(charge)
            return
        entry = self.ledger.charge(charge)
        assert entry.id == len(self.delivered) + 1
        for name in names:
            for line in POSTED[unit]:
                self.spent[name, line] += epsilon
            self.whole_voter[name] += epsilon * (1 if unit == "voter" else records)
        self.charged[None if crowd.digests is None else frozenset(names)] += epsilon
        self.delivered[entry.id] = None

    @rule(budget=st.integers(1, 60).map(lambda tenths: tenths * 100_000))
    def raise_budget(self, budget: int) -> None:
        if budget <= self.budget:
            with pytest.raises(CrowdveilError, match="can only be raised"):
                self.ledger.raise_budget(Amount(budget), "lower")
            return
        self.ledger.raise_budget(Amount(budget), "higher")
        self.raises.append((self.budget, budget))
        self.budget = budget

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
        assert statement.budget.micro == self.budget
        assert [(r.old.micro, r.new.micro) for r in statement.raises] == self.raises
        assert sorted(sum(e.charged.micro for e in a.entries) for a in statement.accounts) == sorted(
            self.charged.values()
        )
        for account in statement.accounts:
            assert account.spent.micro <= account.budget.micro == self.budget
        if statement.accounts:
            # The one who lost most is in some crowd, and no crowd claims more than its people lost.
            for line in POSTED:
                most = max(self.spent[name, line] for name in PEOPLE)
                assert max(a.spent_on(line).micro for a in statement.accounts) == most
            assert max(a.whole_voter.micro for a in statement.accounts) == max(self.whole_voter.values())
        entries = [entry for account in statement.accounts for entry in account.entries]
        assert {entry.id: entry.release_digest for entry in entries} == self.delivered
        undelivered = {entry.id for account in statement.accounts for entry in account.undelivered}
        assert undelivered == {entry for entry, digest in self.delivered.items() if digest is None}


LedgerAgainstIntegers.TestCase.settings = settings(stateful_step_count=30)
TestLedgerAgainstIntegers = LedgerAgainstIntegers.TestCase
