"""A budget is never overspent, a charge comes before its release, and a release stays as it was."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from threading import Barrier

import pytest
from sqlalchemy import delete, text
from tests.service.voters import ballot_row, poll, report_row

from crowdveil.errors import BudgetExceeded, CrowdveilError
from crowdveil.privacy.epsilon import NOTHING, Amount, Epsilon
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.ledger.entries import Charge, Crowd
from crowdveil.service import poll_release
from crowdveil.service.poll_release import make_effects, make_release, preview_release
from crowdveil.service.store import schema
from crowdveil.service.store.store import Store, open_store

TODAY = date(2026, 5, 4)


def charge_of(micro: int, purpose: str) -> Charge:
    return Charge("", Crowd("", 1), Unit.VOTER, Amount(micro), 1, purpose)


def central(store: Store, voters: int = 5) -> None:
    asked = poll("c", "vlcp", budget=1)
    store.polls.add(asked)
    store.submissions.put([ballot_row(asked, seed) for seed in range(voters)], TODAY)


def test_forty_clients_never_overspend(address: str) -> None:
    processes = 1 if address.startswith("sqlite") else 4  # Each with connections of its own.
    with ExitStack() as opened:
        stores = [opened.enter_context(open_store(address)) for _ in range(processes)]
        stores[0].polls.add(poll("c", "vlcp", budget=1))

        def charge(client: int) -> bool:
            try:
                stores[client % processes].releases.ledger("c", TODAY).charge(charge_of(70_000, f"client {client}"))
            except BudgetExceeded:
                return False
            return True

        with ThreadPoolExecutor(40) as clients:
            paid = list(clients.map(charge, range(40)))
        account = stores[0].releases.account("c")
    assert account is not None
    assert paid.count(True) == 14  # 14 x 0.07 = 0.98, and 15 would be 1.05.
    assert account.spent == Amount(980_000)
    assert sorted(entry.purpose for entry in account.charges) == sorted(f"client {i}" for i in range(40) if paid[i])


def test_of_forty_clients_who_saw_the_same_amount_spent_one_pays(address: str) -> None:
    processes = 1 if address.startswith("sqlite") else 4  # Each with connections of its own.
    with ExitStack() as opened:
        stores = [opened.enter_context(open_store(address)) for _ in range(processes)]
        stores[0].polls.add(poll("c", "vlcp", budget=1))
        stores[0].releases.ledger("c", TODAY).charge(charge_of(10_000, "seen by all"))

        def charge(client: int) -> str:
            ledger = stores[client % processes].releases.ledger("c", TODAY, Amount(10_000))
            try:
                ledger.charge(charge_of(20_000, f"client {client}"))
            except CrowdveilError as error:
                return str(error)
            return "paid"

        with ThreadPoolExecutor(40) as clients:
            told = list(clients.map(charge, range(40)))
        account = stores[0].releases.account("c")
    assert told.count("paid") == 1
    assert sum("in the meantime" in words for words in told) == 39
    assert account is not None
    assert (account.spent, len(account.charges)) == (Amount(30_000), 2)


def test_the_last_millionth_can_be_spent(store: Store) -> None:
    store.polls.add(poll("c", "vlcp", budget=1))
    ledger = store.releases.ledger("c", TODAY)
    ledger.charge(charge_of(999_999, "most"))
    with pytest.raises(BudgetExceeded) as refused:
        ledger.charge(charge_of(2, "too much"))
    assert (refused.value.requested, refused.value.remaining) == (Decimal("0.000002"), Decimal("0.000001"))
    ledger.charge(charge_of(1, "rest"))


def test_a_distributed_poll_has_nothing_to_charge(store: Store) -> None:
    store.polls.add(poll("d"))
    assert store.releases.account("d") is None
    with pytest.raises(CrowdveilError, match="no central poll"):
        store.releases.ledger("d", TODAY).charge(charge_of(1, "x"))


def test_a_central_release_is_charged_stored_and_found(store: Store) -> None:
    central(store)
    planned = preview_release(store, "c", Epsilon("0.4"))
    assert (planned.voters, planned.cost, planned.remaining) == (5, Amount(400_000), Amount(1_000_000))
    assert planned.affordable
    account = store.releases.account("c")
    assert account is not None
    assert account.charges == ()
    stored = make_release(store, "c", TODAY, Epsilon("0.4"))
    release = stored.read()
    assert (release.guarantee.epsilon.micro, release.guarantee.voters, release.exact) == (400_000, 5, True)
    account = store.releases.account("c")
    assert account is not None
    (entry,) = account.charges
    assert (entry.cost, entry.release, account.remaining) == (Amount(400_000), stored.id, Amount(600_000))
    assert release.ledger == {"id": entry.ledger, "entry": entry.id}
    status = store.polls.get("c")
    assert status is not None
    assert status.latest_release == stored.id
    assert store.releases.get(stored.id) == stored


def test_a_release_beyond_the_budget_is_refused_before_noise_is_drawn(store: Store) -> None:
    central(store)
    make_release(store, "c", TODAY, Epsilon("0.7"))
    assert not preview_release(store, "c", Epsilon("0.4")).affordable
    with pytest.raises(BudgetExceeded, match=r"remaining 0\.3"):
        make_release(store, "c", TODAY, Epsilon("0.4"))
    assert len(store.releases.all("c")) == 1


def test_whoever_dies_after_the_charge_has_paid(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    central(store)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(store.releases), "put", die)
    with pytest.raises(KeyboardInterrupt):
        make_release(store, "c", TODAY, Epsilon("0.4"))
    account = store.releases.account("c")
    assert account is not None
    assert [(entry.cost, entry.release) for entry in account.charges] == [(Amount(400_000), None)]


def test_a_charge_is_durable_before_the_noise(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    central(store)
    spent = []
    drawn = poll_release.charged_release

    def watched(source: object, request: object, ledger: object) -> object:
        class Watching:
            delta = None

            def charge(self, *given: object) -> object:
                entry = ledger.charge(*given)
                with store.database.reading() as connection:
                    spent.append(connection.execute(text("SELECT spent_micro FROM poll")).scalar_one())
                return entry

        return drawn(source, request, Watching())

    monkeypatch.setattr(poll_release, "charged_release", watched)
    make_release(store, "c", TODAY, Epsilon("0.4"))
    assert spent == [400_000]


def test_reports_are_released_without_a_charge_and_the_same_again(store: Store) -> None:
    store.polls.add(poll("d"))
    store.submissions.put([report_row(poll("d"), number) for number in range(12)], TODAY)
    planned = preview_release(store, "d")
    assert (planned.voters, planned.cost, planned.remaining, planned.affordable) == (12, NOTHING, None, True)
    assert planned.error_bar is not None
    first, again = make_release(store, "d", TODAY), make_release(store, "d", TODAY)
    assert first.id == again.id
    assert [stored.id for stored in store.releases.all()] == [first.id]
    guarantee = first.read().guarantee
    assert (guarantee.smallest_epsilon.micro, guarantee.epsilon.micro, guarantee.voters) == (500_000, 2_000_000, 12)


def test_the_same_release_made_by_many_at_once_is_stored_once(store: Store) -> None:
    store.polls.add(poll("d"))
    store.submissions.put([report_row(poll("d"), number) for number in range(12)], TODAY)
    made = make_release(store, "d", TODAY).read()
    with store.database.writing() as connection:
        connection.execute(delete(schema.release))
    together = Barrier(12)

    def put(_: int) -> str:
        together.wait()
        return store.releases.put("d", made, TODAY).id

    with ThreadPoolExecutor(12) as processes:
        assert set(processes.map(put, range(12))) == {made.digest}
    assert [stored.id for stored in store.releases.all("d")] == [made.digest]


def test_a_release_that_is_made_again_is_the_newest(store: Store) -> None:
    asked = poll("d")
    store.polls.add(asked)
    store.polls.add(poll("other"))
    more = report_row(asked, 11)
    store.submissions.put([report_row(asked, number) for number in range(11)], TODAY)
    first, first_effects = make_release(store, "d", TODAY), make_effects(store, "d", TODAY)
    store.releases.describe(first.id, "first", "kept", 5)
    store.submissions.put([more], TODAY)
    second, second_effects = make_release(store, "d", TODAY), make_effects(store, "d", TODAY)
    store.submissions.withdraw("d", more.id)
    later = TODAY + timedelta(days=3)
    assert make_release(store, "d", later).id == first.id != second.id
    assert make_effects(store, "d", later).id == first_effects.id != second_effects.id
    assert [stored.id for stored in store.releases.all("d")] == [first.id, second.id]
    assert [stored.id for stored in store.effects.all("d")] == [first_effects.id, second_effects.id]
    assert store.polls.get("d").latest_release == first.id
    assert store.releases.get(first.id) == replace(first, made_on=later, name="first", note="kept", made_at=5)
    last = store.releases.put("d", second.read(), later)  # Numbers go on: no later one is taken already.
    assert [stored.id for stored in store.releases.all("d")] == [last.id, first.id]
    store.releases.put("other", first.read(), later)  # The row of one poll is not another's.
    assert store.releases.get(first.id).poll == "d"
    assert [stored.id for stored in store.releases.all()] == [last.id, first.id]


def test_releases_are_listed_newest_first(store: Store) -> None:
    central(store)
    made = [make_release(store, "c", TODAY, Epsilon("0.1")).id for _ in range(3)]
    assert [stored.id for stored in store.releases.all()] == made[::-1]
    assert store.releases.all("another") == []
    assert store.releases.get("0" * 64) is None


def test_one_voter_is_not_a_crowd(store: Store) -> None:
    central(store, voters=1)
    store.polls.add(poll("d"))
    for name, epsilon in (("c", Epsilon(1)), ("d", None)):
        with pytest.raises(CrowdveilError, match="at least 2"):
            preview_release(store, name, epsilon)
        with pytest.raises(CrowdveilError, match="at least 2"):
            make_release(store, name, TODAY, epsilon)


def test_what_is_spent_must_be_said_where_something_is_spent(store: Store) -> None:
    central(store)
    store.polls.add(poll("d"))
    with pytest.raises(CrowdveilError, match="how much of the budget"):
        make_release(store, "c", TODAY)
    with pytest.raises(CrowdveilError, match="chose their epsilons"):
        make_release(store, "d", TODAY, Epsilon(1))


def test_every_poll_numbers_its_own_charges(store: Store) -> None:
    for name in "ab":
        asked = poll(name, "vlcp", budget=1)
        store.polls.add(asked)
        store.submissions.put([ballot_row(asked, seed) for seed in range(3)], TODAY)
    made = {name: make_release(store, name[0], TODAY, Epsilon("0.1")) for name in ("a1", "b1", "a2")}
    accounts = {name: store.releases.account(name) for name in "ab"}
    noted = {
        f"{name}{charge.id}": charge.release
        for name, account in accounts.items()
        if account is not None
        for charge in account.charges
    }
    assert noted == {name: stored.id for name, stored in made.items()}
    traced = {(release.ledger or {})["id"]: None for release in (stored.read() for stored in made.values())}
    assert len(traced) == 2  # With an entry's number, the ledger's id names one charge in the world.
