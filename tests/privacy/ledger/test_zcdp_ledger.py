"""A ledger of rhos: what it charges, what it refuses, what it promises in all, and that races do not overspend it."""

from __future__ import annotations

import math
import sqlite3
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.ledger.posting import charge_of, post
from tests.privacy.ledger.races import DATASET, accepted_in_a_race, spent_by_processes

from crowdveil.errors import BudgetExceeded, CrowdveilError
from crowdveil.privacy.epsilon import Amount
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.ledger.ledger import Ledger

dp.enable_features("contrib")

DELTA = 1e-6


def opendp_epsilon(rho: float, delta: float) -> float:
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    gaussian = space >> dp.m.then_gaussian(scale=1.0)
    return float(dp.c.make_zCDP_to_approxDP(gaussian).map(math.sqrt(2 * rho)).epsilon(delta))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger", Amount(1_000_000), DELTA)


def test_the_budget_is_the_largest_rho_that_opendp_allows(ledger: Ledger) -> None:
    budget = ledger.statement().budget.micro
    assert opendp_epsilon(budget / 1e6, DELTA) <= 1
    assert opendp_epsilon((budget + 1) / 1e6, DELTA) > 1


def test_it_is_the_same_ledger_when_opened_again(ledger: Ledger) -> None:
    assert Ledger.open(ledger.path) == ledger
    assert ledger.delta == DELTA
    assert ledger.statement().as_dict()["delta"] == DELTA


@given(st.integers(100, 50_000_000))
def test_a_pure_release_costs_half_its_square_rounded_up(tmp_path_factory: pytest.TempPathFactory, micro: int) -> None:
    ledger = Ledger.create(tmp_path_factory.mktemp("ledger") / "ledger", Amount(50_000_000), DELTA)
    exact = Fraction(micro, 10**6) ** 2 / 2 * 10**6
    requested = ledger.preview(charge_of(DATASET, micro, Unit.VOTER)).requested.micro
    assert exact <= requested < exact + 1


def test_charges_of_both_kinds_add_up(ledger: Ledger) -> None:
    pure = post(ledger, DATASET, 30_000, Unit.VOTER, 5, "pure")
    gaussian = post(ledger, DATASET, 100_000, Unit.RECORD, 5, "gaussian", rho_micro=468)
    (account,) = ledger.statement().accounts
    assert (pure.charged.micro, gaussian.charged.micro) == (450, 468)
    assert account.budget.micro - account.remaining.micro == 450 + 468
    assert gaussian.as_dict()["rho"] == 0.000468
    assert "epsilon" not in gaussian.as_dict()
    # Five records of one voter: 25 times the rho.
    assert account.whole_voter.micro == 450 + 25 * 468
    assert account.entries == (pure, gaussian)


def test_charges_that_are_made_together_are_previewed_as_their_sum(ledger: Ledger) -> None:
    pure, gaussian = charge_of(DATASET, 30_000, Unit.VOTER), charge_of(DATASET, 1, Unit.VOTER, rho_micro=468)
    asked = ledger.preview(pure, with_others=[gaussian])
    assert asked.requested.micro == 450 + 468
    budget = ledger.statement().budget
    assert str(asked) == f"The ledger adds up rhos, and this is 0.000918. Remaining: {budget} of {budget}."
    elsewhere = replace(gaussian, crowd=replace(gaussian.crowd, voters=gaussian.crowd.voters + 1))
    with pytest.raises(CrowdveilError, match="must be about one crowd"):
        ledger.preview(pure, with_others=[elsewhere])
    assert ledger.statement().accounts == ()


def test_a_refusal_names_the_amounts_and_a_budget_that_is_enough(ledger: Ledger) -> None:
    budget = ledger.statement().budget.micro
    post(ledger, DATASET, 1, Unit.VOTER, 5, "most of it", rho_micro=budget - 400)
    with pytest.raises(BudgetExceeded) as refused:
        post(ledger, DATASET, 30_000, Unit.VOTER, 5, "too much")
    said = str(refused.value)
    assert f"requested rho 0.00045, remaining 0.0004 of {budget / 1e6:.6f}, difference 0.00005" in said
    # 0.028284^2 / 2 = 0.000399992..., and one millionth more would be 0.00040002.
    assert "ask for at most rho 0.0004 (epsilon 0.028284 of a pure release)" in said
    enough = round(float(said.split("--budget ")[1].split()[0]) * 1e6)
    assert len(ledger.statement().accounts[0].entries) == 1
    with pytest.raises(CrowdveilError, match="can only be raised"):
        ledger.raise_budget(Amount(999_999), "less")
    ledger.raise_budget(Amount(enough), "one more week")
    post(ledger, DATASET, 30_000, Unit.VOTER, 5, "now it fits")
    spent = sum(entry.charged.micro for entry in ledger.statement().accounts[0].entries)
    assert opendp_epsilon(spent / 1e6, DELTA) <= enough / 1e6


def test_a_year_of_weeks(tmp_path: Path) -> None:
    """With one promise of (1, 1e-6): 54 releases of epsilon 0.03, where a pure ledger has room for 33."""
    concentrated, pure = (
        Ledger.create(tmp_path / "z", Amount(1_000_000), DELTA),
        Ledger.create(tmp_path / "p", Amount(1_000_000)),
    )
    for ledger, releases in ((concentrated, 54), (pure, 33)):
        for _ in range(releases):
            post(ledger, DATASET, 30_000, Unit.VOTER, 5, "weekly")
        with pytest.raises(BudgetExceeded):
            post(ledger, DATASET, 30_000, Unit.VOTER, 5, "weekly")


def test_a_pure_ledger_refuses_gaussian_noise(tmp_path: Path) -> None:
    pure = Ledger.create(tmp_path / "pure", Amount(1_000_000))
    for attempt in (
        lambda: post(pure, DATASET, 100_000, Unit.VOTER, 5, "gaussian", rho_micro=468),
        lambda: pure.preview(charge_of(DATASET, 100_000, Unit.VOTER, rho_micro=468)),
    ):
        with pytest.raises(CrowdveilError, match="adds up pure epsilons"):
            attempt()
    assert pure.statement().accounts == ()


@pytest.mark.parametrize("rho", [0, -1, 10**19])
def test_rhos_out_of_range(ledger: Ledger, rho: int) -> None:
    with pytest.raises(CrowdveilError, match="rho must be"):
        post(ledger, DATASET, 100_000, Unit.VOTER, 5, "gaussian", rho_micro=rho)


def test_a_delta_may_be_written_as_a_fraction(tmp_path: Path) -> None:
    made = Ledger.open(tmp_path / "ledger", budget=3, delta=Fraction(1, 3))
    assert made.delta == 1 / 3
    assert Ledger.open(tmp_path / "ledger", budget=3, delta=Fraction(1, 3)) == made
    with pytest.raises(CrowdveilError, match=r"has delta 0\.333333, not delta 0\.25"):
        Ledger.open(tmp_path / "ledger", delta=Fraction(1, 4))
    pure = Ledger.create(tmp_path / "pure", 3)
    with pytest.raises(CrowdveilError, match=r"adds up pure epsilons, not delta 0\.333333"):
        Ledger.open(pure.path, budget=3, delta=Fraction(1, 3))


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-6, math.nan, Fraction(1, 10**400)])
def test_deltas_out_of_range(tmp_path: Path, delta: float) -> None:
    with pytest.raises(CrowdveilError, match="delta must be between 0 and 1"):
        Ledger.create(tmp_path / "ledger", Amount(1_000_000), delta)
    assert not (tmp_path / "ledger").exists()


def test_a_budget_too_small_for_any_rho(tmp_path: Path) -> None:
    with pytest.raises(CrowdveilError, match="the budget's rho must be"):
        Ledger.create(tmp_path / "ledger", Amount(100), DELTA)
    assert not (tmp_path / "ledger").exists()


def test_the_delta_cannot_be_changed_and_an_older_program_knows_the_format(ledger: Ledger) -> None:
    book = sqlite3.connect(ledger.path)
    assert book.execute("PRAGMA user_version").fetchone() == (4,)
    for change in ("UPDATE zcdp SET delta = 0.5", "DELETE FROM zcdp"):
        with pytest.raises(sqlite3.IntegrityError, match="only ever added to"):
            book.execute(change)
    book.close()


def test_twenty_threads_share_five_steps(ledger: Ledger) -> None:
    budget = ledger.statement().budget.micro
    step = budget // 5
    assert accepted_in_a_race(20, lambda: post(ledger, DATASET, 1, Unit.VOTER, 5, "race", rho_micro=step)) == 5
    (account,) = ledger.statement().accounts
    assert account.remaining.micro == budget - 5 * step


def test_twelve_processes_with_pure_and_gaussian_releases_never_overspend_rho(ledger: Ledger, tmp_path: Path) -> None:
    """Half of them pay 450 millionths (epsilon 0.03, squared and halved), half a step of their own."""
    budget = ledger.statement().budget.micro
    charges = [
        charge_of(DATASET, 30_000, Unit.VOTER, rho_micro=None if number % 2 == 0 else 1000 + number)
        for number in range(12)
    ]
    spent = spent_by_processes(ledger, tmp_path, charges)
    (account,) = ledger.statement().accounts
    assert spent == sum(entry.charged.micro for entry in account.entries)
    assert account.remaining.micro == budget - spent
    # Never over, and so far that even the smallest of the releases does not fit any more.
    assert budget - 450 < spent <= budget
    assert opendp_epsilon(spent / 1e6, DELTA) <= 1


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 200_000)), max_size=12))
def test_any_history_stays_within_the_budget(tmp_path_factory: pytest.TempPathFactory, history) -> None:
    ledger = Ledger.create(tmp_path_factory.mktemp("ledger") / "ledger", Amount(1_000_000), DELTA)
    budget, spent = ledger.statement().budget.micro, Fraction(0)
    for pure, amount in history:
        exact = Fraction(amount) ** 2 / 2 / 10**6 if pure else Fraction(amount)
        try:
            post(ledger, DATASET, amount, Unit.VOTER, 3, "any", rho_micro=None if pure else amount)
        except BudgetExceeded:
            # Each earlier charge was rounded up by less than a millionth, and this one too.
            assert spent + exact > budget - len(history)
        else:
            spent += exact
        assert spent <= budget
