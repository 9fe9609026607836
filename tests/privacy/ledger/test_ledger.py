"""The rules of the account book, in one process."""

from __future__ import annotations

import json
import pickle
import re
import sqlite3
import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.ledger.posting import charge_of, post

from crowdveil.errors import BudgetExceeded, CrowdveilError
from crowdveil.privacy.epsilon import Amount
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.ledger.entries import Account
from crowdveil.privacy.ledger.ledger import Ledger

EPSILON = 1_000_000
CATS, DOGS = "c" * 64, "d" * 64
DIGEST, OTHER_DIGEST = "0" * 64, "1" * 64


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "budget.ledger", Amount(1 * EPSILON))


def account(ledger: Ledger, dataset: str = CATS) -> Account:
    (found,) = [
        account for account in ledger.statement().accounts if {entry.dataset for entry in account.entries} == {dataset}
    ]
    return found


@given(st.integers(0, 10**18))
def test_decimal_text_is_the_exact_number(micro: int) -> None:
    assert Decimal(str(Amount(micro))) == Decimal(micro) / EPSILON
    assert str(Amount(micro)) == format(Decimal(str(Amount(micro))), "f")


@pytest.mark.parametrize(
    ("micro", "text"),
    [(0, "0"), (1, "0.000001"), (1_300_000, "1.3"), (10_000_000, "10"), (-500_000, "-0.5")],
)
def test_decimal_text_has_no_needless_digits(micro: int, text: str) -> None:
    assert str(Amount(micro)) == text


def test_ten_times_a_tenth_is_one(ledger: Ledger) -> None:
    assert sum([0.1] * 10) != 1.0  # what a ledger of floats would have to live with
    for _ in range(10):
        post(ledger, CATS, EPSILON // 10, Unit.VOTER, 5, "vlcp algorithm-1")
    assert account(ledger).remaining.micro == 0
    with pytest.raises(BudgetExceeded):
        post(ledger, CATS, 1, Unit.VOTER, 5, "vlcp algorithm-1")


def test_a_refusal_has_the_numbers_and_spends_nothing(ledger: Ledger) -> None:
    post(ledger, CATS, 700_000, Unit.VOTER, 5, "first")
    before = ledger.statement()
    with pytest.raises(BudgetExceeded) as refusal:
        post(ledger, CATS, 500_000, Unit.RECORD, 5, "second")
    error = refusal.value
    assert (error.requested, error.remaining, error.missing) == (Decimal("0.5"), Decimal("0.3"), Decimal("0.2"))
    assert str(error) == (
        "the budget does not cover this release: requested epsilon 0.5, remaining 0.3 of 1, difference 0.2 "
        "(spent before: 0.7 on crowd 1, which has 1 of these people); ask for at most 0.3, "
        "or raise the budget deliberately: "
        f"crowdveil ledger raise {ledger.path} --budget 1.2 --note WHY"
    )
    assert ledger.statement() == before


def test_what_a_refusal_advises_works(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded, match=r"raise .*ledger --budget 2\.5 --note"):
        post(ledger, CATS, 2_500_000, Unit.VOTER, 5, "too much")
    assert ledger.statement().accounts == ()
    ledger.raise_budget(Amount(2_500_000), "the board agreed")
    post(ledger, CATS, 2_500_000, Unit.VOTER, 5, "enough")
    with pytest.raises(BudgetExceeded) as refusal:
        post(ledger, CATS, 1, Unit.VOTER, 5, "one more")
    assert "remaining 0 of 2.5, difference 0.000001 (spent before: 2.5 on crowd 1," in str(refusal.value)
    assert "); raise the budget deliberately: " in str(refusal.value)


def test_a_refusal_travels_between_processes(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded) as refusal:
        post(ledger, CATS, 2 * EPSILON, Unit.VOTER, 5, "too much")
    copy = pickle.loads(pickle.dumps(refusal.value))
    assert (str(copy), copy.missing) == (str(refusal.value), 1)


def test_disjoint_crowds_have_separate_budgets(ledger: Ledger) -> None:
    post(ledger, CATS, EPSILON, Unit.VOTER, 5, "all of it")
    post(ledger, DOGS, EPSILON, Unit.VOTER, 5, "all of it")
    assert [[e.dataset for e in one.entries] for one in ledger.statement().accounts] == [[CATS], [DOGS]]
    assert [one.overlaps for one in ledger.statement().accounts] == [(), ()]


@pytest.mark.parametrize(
    ("unit", "lines"),
    [
        (Unit.VOTER, {Unit.VOTER: 1, Unit.RECORD: 1}),
        (Unit.RECORD, {Unit.VOTER: 0, Unit.RECORD: 1}),
    ],
)
def test_a_charge_is_posted_to_its_own_line_and_the_weaker_ones(
    ledger: Ledger, unit: Unit, lines: dict[Unit, int]
) -> None:
    post(ledger, CATS, 250_000, unit, 5, "one")
    spent = {line: account(ledger).spent_on(line).micro for line in lines}
    assert spent == {line: 250_000 * posted for line, posted in lines.items()}


def test_a_whole_voter_pays_for_each_of_its_records(ledger: Ledger) -> None:
    post(ledger, CATS, 100_000, Unit.VOTER, 11, "voters")
    post(ledger, CATS, 30_000, Unit.RECORD, 11, "records")
    post(ledger, CATS, 7_000, Unit.RECORD, 13, "more records")
    assert account(ledger).whole_voter.micro == 100_000 + 11 * 30_000 + 13 * 7_000


def test_preview_agrees_with_charge_and_changes_nothing(ledger: Ledger) -> None:
    post(ledger, CATS, 700_000, Unit.RECORD, 5, "first")
    before = ledger.path.read_bytes()
    exact = ledger.preview(charge_of(CATS, 300_000, Unit.VOTER))
    over = ledger.preview(charge_of(CATS, 300_001, Unit.VOTER))
    fresh = ledger.preview(charge_of(DOGS, EPSILON, Unit.VOTER))
    assert ledger.path.read_bytes() == before
    assert (exact.fits, exact.remaining.micro, exact.remaining_after.micro) == (True, 300_000, 0)
    assert (over.fits, over.missing.micro, over.remaining_after.micro) == (False, 1, 300_000)
    assert (fresh.fits, fresh.remaining.micro, fresh.missing.micro) == (True, EPSILON, 0)
    assert over.as_dict() == {
        "unit": "voter",
        "fits": False,
        "requested": 0.300001,
        "budget": 1.0,
        "remaining": 0.3,
        "remaining_after": 0.3,
        "missing": 0.000001,
        "overlaps": [{"crowd": 1, "people_in_both": 1, "spent": 0.7}],
        "caution": None,
    }


def test_an_entry_names_its_ledger_and_its_time(ledger: Ledger) -> None:
    entry = post(ledger, CATS, 1, Unit.VOTER, 5, "vlcp algorithm-1")
    assert (entry.ledger, entry.id) == (ledger.id, 1)
    assert uuid.UUID(entry.ledger).version == 4
    age = datetime.now(UTC) - datetime.fromisoformat(entry.charged_at)
    assert timedelta(seconds=-1) <= age < timedelta(minutes=5)
    assert account(Ledger.open(ledger.path)).entries == (entry,)


def test_delivery_is_noted_once(ledger: Ledger) -> None:
    first = post(ledger, CATS, 1, Unit.VOTER, 5, "first")
    second = post(ledger, CATS, 1, Unit.VOTER, 5, "second")
    assert [entry.state for entry in account(ledger).undelivered] == ["charged, not delivered"] * 2
    ledger.deliver(first.id, DIGEST)
    noted = ledger.statement()
    ledger.deliver(first.id, DIGEST)
    assert ledger.statement() == noted
    with pytest.raises(CrowdveilError, match="entry 1 was already delivered as release 000000000000, not 1111"):
        ledger.deliver(first.id, OTHER_DIGEST)
    assert account(ledger).entries[0].release_digest == DIGEST
    assert account(ledger).entries[0].state == "delivered"
    assert account(ledger).undelivered == (second,)
    assert account(ledger).remaining.micro == EPSILON - 2


def test_delivery_needs_an_entry(ledger: Ledger) -> None:
    with pytest.raises(CrowdveilError, match="has no entry 7"):
        ledger.deliver(7, DIGEST)


def test_budgets_only_rise_and_say_why(ledger: Ledger) -> None:
    post(ledger, CATS, 1, Unit.VOTER, 5, "first")
    for not_more in (EPSILON, EPSILON - 1):
        with pytest.raises(CrowdveilError, match="the budget is 1 and can only be raised, got "):
            ledger.raise_budget(Amount(not_more), "oops")
    with pytest.raises(CrowdveilError, match="needs a note"):
        ledger.raise_budget(Amount(2 * EPSILON), " ")
    ledger.raise_budget(Amount(2 * EPSILON), "second wave")
    ledger.raise_budget(Amount(3 * EPSILON), "third wave")
    steps = [(step.old.micro, step.new.micro, step.note) for step in ledger.statement().raises]
    assert steps == [(EPSILON, 2 * EPSILON, "second wave"), (2 * EPSILON, 3 * EPSILON, "third wave")]
    assert account(ledger).budget.micro == 3 * EPSILON


@pytest.mark.parametrize("dataset", ["", "c" * 63, "C" * 64, "c" * 64 + "\n", f"sha256:{'c' * 57}"])
def test_a_fingerprint_has_one_spelling(ledger: Ledger, dataset: str) -> None:
    with pytest.raises(CrowdveilError, match="dataset must be 64 lower-case hexadecimal digits"):
        post(ledger, dataset, 1, Unit.VOTER, 5, "x")
    with pytest.raises(CrowdveilError, match="dataset must be"):
        ledger.preview(charge_of(dataset, 1, Unit.VOTER))
    with pytest.raises(CrowdveilError, match="release digest must be"):
        ledger.deliver(1, dataset)


@pytest.mark.parametrize("amount", [0, -1, 10**18 + 1, 2**64])
def test_amounts_are_positive_and_bounded(ledger: Ledger, tmp_path: Path, amount: int) -> None:
    with pytest.raises(CrowdveilError, match=r"epsilon must be 0\.000001 to 1000000000000, got "):
        post(ledger, CATS, amount, Unit.VOTER, 5, "x")
    with pytest.raises(CrowdveilError, match="epsilon must be"):
        ledger.preview(charge_of(CATS, amount, Unit.VOTER))
    with pytest.raises(CrowdveilError, match="records per voter must be 1 or more"):
        post(ledger, CATS, 1, Unit.RECORD, amount, "x")
    with pytest.raises(CrowdveilError, match="the budget must be"):
        ledger.raise_budget(Amount(amount), "x")
    with pytest.raises(CrowdveilError, match="the budget must be"):
        Ledger.create(tmp_path / "other.ledger", Amount(amount))
    assert not (tmp_path / "other.ledger").exists()


def test_the_largest_amounts_add_up(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "huge.ledger", Amount(10**18))
    post(ledger, CATS, 10**18, Unit.RECORD, 10**18, "everything")
    assert account(ledger).whole_voter.micro == 10**36
    assert not ledger.preview(charge_of(CATS, 10**18, Unit.VOTER)).fits


def test_an_unknown_unit_never_gets_into_the_book(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="village"):
        post(ledger, CATS, 1, cast(Unit, "village"), 5, "x")
    assert ledger.statement().accounts == ()


def test_counts_may_come_from_numpy_but_never_from_floats(ledger: Ledger) -> None:
    counts = np.array([3, 11, 7])
    post(ledger, CATS, cast(int, np.int64(1000)), Unit.RECORD, counts.max(), "numpy")
    assert account(ledger).entries[0].records_per_voter == 11
    assert json.loads(json.dumps(ledger.statement().as_dict()))["accounts"][0]["spent"]["record"] == 0.001
    with pytest.raises(TypeError):
        post(ledger, CATS, cast(int, 1.0), Unit.RECORD, 11, "float")


def test_a_statement_in_plain_words(ledger: Ledger) -> None:
    entry = post(ledger, CATS, 400_000, Unit.RECORD, 3, "rlcp pooled score")
    ledger.deliver(entry.id, DIGEST)
    post(ledger, CATS, 100_000, Unit.VOTER, 3, "vlcp algorithm-1")
    ledger.raise_budget(Amount(2 * EPSILON), "second wave")
    statement = ledger.statement()
    (plain,) = statement.as_dict()["accounts"]
    first, second = plain.pop("entries")
    (step,) = statement.as_dict()["raises"]
    assert plain == {
        "crowd": 1,
        "voters": 1,
        "known_by_name": True,
        "budget": 2.0,
        "spent": {"voter": 0.1, "record": 0.5, "choice": 0.5},
        "remaining": 1.5,
        "whole_voter_loses_at_most": 1.3,
        "charged_not_delivered": [2],
        "overlaps": [],
    }
    assert first == {
        "ledger": ledger.id,
        "entry": 1,
        "crowd": 1,
        "dataset": CATS,
        "unit": "record",
        "epsilon": 0.4,
        "records_per_voter": 3,
        "purpose": "rlcp pooled score",
        "charged_at": entry.charged_at,
        "state": "delivered",
        "delivered_at": first["delivered_at"],
        "release_digest": DIGEST,
    }
    assert (second["state"], second["delivered_at"]) == ("charged, not delivered", None)
    assert (step["old_budget"], step["new_budget"], step["note"]) == (1.0, 2.0, "second wave")
    assert json.loads(json.dumps(statement.as_dict()))["budget"] == 2.0


@pytest.mark.parametrize(
    "tampering",
    [
        f"INSERT INTO entry VALUES (9, 1, '{CATS}', 'voter', 600001, 400000, 5, 'over budget', 'now')",
        f"INSERT INTO entry VALUES (9, 1, '{CATS}', 'voter', 600000, 399999, 5, 'less than was spent', 'now')",
        f"INSERT INTO entry VALUES (9, 2, '{DOGS}', 'voter', 1, 0, 5, 'without a crowd', 'now')",
        "UPDATE entry SET epsilon = 1",
        "DELETE FROM entry",
        "UPDATE ledger SET opening_budget = 9000000",
        "UPDATE crowd SET people = NULL",
        "DELETE FROM crowd",
        "DELETE FROM delivery",
        f"INSERT INTO delivery VALUES (1, '{OTHER_DIGEST}', 'now')",
        "INSERT INTO budget_raise VALUES (9, 1000000, 999999, 'lower', 'now')",
    ],
)
def test_the_tables_refuse_what_the_rules_forbid(ledger: Ledger, tampering: str) -> None:
    ledger.deliver(post(ledger, CATS, 400_000, Unit.VOTER, 5, "first").id, DIGEST)
    before = ledger.statement()
    connection = sqlite3.connect(ledger.path)
    connection.execute("PRAGMA foreign_keys = ON")
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(tampering)
    connection.close()
    assert ledger.statement() == before


def test_open_creates_once_and_checks_the_budget(tmp_path: Path) -> None:
    path = tmp_path / "study.ledger"
    made = Ledger.open(path, budget=0.3)
    assert Ledger.open(path) == Ledger.open(path, budget="0.3") == made
    assert str(made.statement().budget) == "0.3"
    with pytest.raises(CrowdveilError, match=r"has a budget of 0\.3, not 4: open it without a budget, or raise it"):
        Ledger.open(path, budget=4)
    with pytest.raises(CrowdveilError, match=r"not 0\.2: open it without a budget; it is never lowered") as refusal:
        Ledger.open(path, budget=0.2)
    assert "ledger raise" not in str(refusal.value)
    with pytest.raises(CrowdveilError, match="adds up pure epsilons, not delta 1e-06"):
        Ledger.open(path, budget=0.3, delta=1e-6)
    weekly = Ledger.open(tmp_path / "weekly.ledger", budget=1, delta=1e-6)
    assert Ledger.open(weekly.path, 1, 1e-6) == Ledger.open(weekly.path, 1) == weekly
    with pytest.raises(CrowdveilError, match="has delta 1e-06, not delta 1e-05"):
        Ledger.open(weekly.path, 1, 1e-5)


@pytest.mark.parametrize("budget", ["much", -1, 0, 0.0000001, None, True, float("nan"), "1e999999", [3]])
def test_a_budget_is_a_number(tmp_path: Path, budget: Any) -> None:
    with pytest.raises(CrowdveilError, match=r"a budget is a number from 0\.000001"):
        Ledger.create(tmp_path / "l", budget)
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_shows_itself_in_a_few_lines(ledger: Ledger) -> None:
    post(ledger, CATS, 300_000, Unit.VOTER, 5, "first")
    assert repr(ledger) == f"<ledger {ledger.path.name}: budget 1, spent 0.3>"
    assert repr(ledger.statement()) == (
        "<statement: nobody may lose more than epsilon 1\n  <crowd 1, 1 voter: 0.3 of 1 spent>>"
    )
    weekly = Ledger.create(ledger.path.with_name("weekly"), 1, 1e-6)
    assert re.fullmatch(r"<ledger weekly: budget rho 0\.\d+, spent rho 0, delta 1e-06>", repr(weekly))
    weekly.path.unlink()
    assert repr(weekly) == "<ledger weekly: it cannot be read>"
