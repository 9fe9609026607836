"""One report for each token, whoever sends what how often: decided by the database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from pathlib import Path

import pytest
from tests.service.voters import poll, sent_ballot, sent_report

from crowdveil.errors import CrowdveilError
from crowdveil.protocol.tokens import is_token, new_token, report_id
from crowdveil.service.store.participation import DayCount, RefusalCount
from crowdveil.service.store.sent import Outcome
from crowdveil.service.store.store import Store, open_store

TODAY = date(2026, 5, 4)
TOKEN = "AAAAAAAAAAAAAAAAAAAAAA"


def test_what_is_stored_is_there_after_the_store_was_closed(address: str) -> None:
    asked, sent = poll(), sent_report(poll())
    with open_store(address) as store:
        store.polls.add(asked)
        assert store.participation.put([sent], TODAY) == [Outcome.STORED]
    with open_store(address) as store:
        ((stored,),) = store.reports("p")
        assert (stored.id, stored.day) == (sent.id, TODAY)
        assert dict(stored.body)["epsilon_micro"] == sent.epsilon_micro
        assert store.polls.known("p") == asked


def test_a_token_counts_once(store: Store) -> None:
    store.polls.add(poll())
    first, other = sent_report(poll(), 0, TOKEN), sent_report(poll(), 1, TOKEN)
    assert store.participation.put([first], TODAY) == [Outcome.STORED]
    assert store.participation.put([first, other, first], TODAY) == [
        Outcome.ALREADY_STORED,
        Outcome.DIFFERENT,
        Outcome.ALREADY_STORED,
    ]
    assert [report.id for chunk in store.reports("p") for report in chunk] == [first.id]


def test_a_token_counts_once_within_one_transaction(store: Store) -> None:
    store.polls.add(poll())
    first, other = sent_report(poll(), 0, TOKEN), sent_report(poll(), 1, TOKEN)
    assert store.participation.put([first, first, other], TODAY) == [
        Outcome.STORED,
        Outcome.ALREADY_STORED,
        Outcome.DIFFERENT,
    ]
    standing = store.polls.get("p")
    assert standing is not None
    assert standing.participants == 1


def test_a_race_of_different_reports_has_one_winner(store: Store) -> None:
    store.polls.add(poll())
    sent = [sent_report(poll(), number % 4, TOKEN) for number in range(16)]
    with ThreadPoolExecutor(16) as threads:
        outcomes = list(threads.map(lambda one: store.participation.put([one], TODAY)[0], sent))
    assert outcomes.count(Outcome.STORED) == 1
    winner = sent[outcomes.index(Outcome.STORED)]
    same = [one.content == winner.content for one in sent]
    assert [o is not Outcome.DIFFERENT for o in outcomes] == same
    ((stored,),) = store.reports("p")
    assert stored.id == report_id(TOKEN)


def test_polls_are_apart(store: Store) -> None:
    store.polls.add(poll("a"))
    store.polls.add(poll("b", "vlcp"))
    sent = [sent_report(poll("a"), 0, TOKEN), sent_ballot(poll("b", "vlcp"), 0, TOKEN)]
    assert store.participation.put(sent, TODAY) == [Outcome.STORED] * 2
    assert store.participation.withdraw("a", report_id(TOKEN))
    assert [len(chunk) for chunk in store.ballots("b")] == [1]


def test_withdrawn_for_good(store: Store) -> None:
    store.polls.add(poll())
    sent = sent_report(poll(), 0, TOKEN)
    assert not store.participation.withdraw("p", sent.id)
    assert store.participation.put([sent], TODAY) == [Outcome.STORED]
    assert store.participation.withdraw("p", sent.id)
    assert list(store.reports("p")) == []
    assert store.participation.put([sent], TODAY) == [Outcome.WITHDRAWN]
    assert not store.participation.withdraw("p", sent.id)


def test_nothing_of_what_was_withdrawn_is_left_in_the_files(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path / 'crowdveil.sqlite'}") as store:
        store.polls.add(poll())
        sent, other = sent_report(poll(), 0), sent_report(poll(), 1)
        store.participation.put([sent, other], TODAY)
        assert sent.body.encode() in b"".join(file.read_bytes() for file in tmp_path.iterdir())
        store.participation.withdraw("p", sent.id)
        left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert sent.body.encode() not in left
    assert other.body.encode() in left


def test_a_quota_is_never_exceeded_and_a_withdrawal_makes_room(store: Store) -> None:
    asked = poll(quota=5)
    store.polls.add(asked)
    sent = [sent_report(asked, number) for number in range(12)]
    with ThreadPoolExecutor(12) as threads:
        outcomes = list(threads.map(lambda one: store.participation.put([one], TODAY)[0], sent))
    assert sorted(outcomes) == [Outcome.FULL] * 7 + [Outcome.STORED] * 5
    stored = sent[outcomes.index(Outcome.STORED)]
    assert store.participation.put([stored], TODAY) == [Outcome.ALREADY_STORED]
    store.participation.withdraw("p", stored.id)
    late = sent[outcomes.index(Outcome.FULL)]
    assert store.participation.put([late], TODAY) == [Outcome.STORED]


def test_dates_and_closing(store: Store) -> None:
    asked = poll(opens_on="2026-05-04", closes_on="2026-05-05")
    store.polls.add(asked)
    first, second, third = (sent_report(asked, number) for number in range(3))
    put, day = store.participation.put, timedelta(1)
    assert put([first], TODAY - day) == [Outcome.NOT_OPEN_YET]
    assert put([first], TODAY) == [Outcome.STORED]
    assert put([second], TODAY + day) == [Outcome.STORED]
    assert put([third], TODAY + 2 * day) == [Outcome.CLOSED]
    store.polls.close("p")
    assert put([third, first], TODAY) == [Outcome.CLOSED, Outcome.ALREADY_STORED]
    store.polls.reopen("p")
    assert put([third], TODAY) == [Outcome.STORED]


def test_links(store: Store) -> None:
    asked = poll(entry="links")
    store.polls.add(asked)
    tokens = store.participation.create_links("p", 3)
    assert len(set(tokens)) == 3
    assert all(is_token(token) for token in tokens)
    invited, stranger = sent_report(asked, 0, tokens[0]), sent_report(asked, 1, new_token())
    assert store.participation.put([invited, stranger], TODAY) == [Outcome.STORED, Outcome.UNKNOWN_BALLOT]
    assert store.participation.links("p") == 3


def test_no_token_of_a_link_is_in_the_database(store: Store) -> None:
    store.polls.add(poll(entry="links"))
    (token,) = store.participation.create_links("p", 1)
    with store.database.reading() as connection:
        kept = connection.exec_driver_sql("SELECT * FROM link").one()
    assert tuple(kept) == ("p", report_id(token))


def test_an_open_poll_takes_no_links(store: Store) -> None:
    store.polls.add(poll())
    with pytest.raises(CrowdveilError, match="takes no links"):
        store.participation.create_links("p", 1)


def test_counts_by_day_and_level(store: Store) -> None:
    store.polls.add(poll())
    store.participation.put([sent_report(poll(), number) for number in range(4)], TODAY)
    store.participation.put([sent_report(poll(), 4)], TODAY + timedelta(1))
    # The levels 0.5, 1 and 2 take turns in the reports.
    assert store.participation.by_day("p") == [
        DayCount(TODAY, 500_000, 2),
        DayCount(TODAY, 1_000_000, 1),
        DayCount(TODAY, 2_000_000, 1),
        DayCount(TODAY + timedelta(1), 1_000_000, 1),
    ]


def test_counts_by_day_of_a_central_poll(store: Store) -> None:
    central = poll(paradigm="vlcp")
    store.polls.add(central)
    store.participation.put([sent_ballot(central, seed) for seed in range(3)], TODAY)
    assert store.participation.by_day("p") == [DayCount(TODAY, None, 3)]


def test_refusals_are_counted(store: Store) -> None:
    store.polls.add(poll())
    store.participation.put([], TODAY, {("p", "malformed"): 2, ("p", "out-of-range"): 1})
    store.participation.put([], TODAY, {("p", "malformed"): 3})
    assert store.participation.refusals("p") == [
        RefusalCount(TODAY, "malformed", 5),
        RefusalCount(TODAY, "out-of-range", 1),
    ]


def test_a_poll_keeps_its_name(store: Store) -> None:
    store.polls.add(poll())
    with pytest.raises(CrowdveilError, match="another name"):
        store.polls.add(poll(paradigm="vlcp"))
    assert [standing.poll for standing in store.polls.all()] == [poll()]
