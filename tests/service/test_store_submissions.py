"""One report for each token, whoever sends what how often: decided by the database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from pathlib import Path

import pytest
from tests.service.voters import ballot_row, poll, report_row

from crowdveil.errors import CrowdveilError, Reason
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.protocol.submission import SubmissionStatus, is_token, new_token, report_id
from crowdveil.service.store.store import Store, open_store
from crowdveil.service.store.submissions import DayCount, RefusalCount
from crowdveil.study.plain_data import canonical_json

TODAY = date(2026, 5, 4)
TOKEN = "AAAAAAAAAAAAAAAAAAAAAA"


def test_what_is_stored_is_there_after_the_store_was_closed(address: str) -> None:
    asked, sent = poll(), report_row(poll())
    with open_store(address) as store:
        store.polls.add(asked)
        assert store.submissions.put([sent], TODAY) == [SubmissionStatus.STORED]
    with open_store(address) as store:
        ((stored,),) = store.submissions.reports("p")
        assert (stored.id, stored.day) == (sent.id, TODAY)
        assert canonical_json(stored.body) == sent.content
        assert store.polls.known("p") == asked


def test_a_token_counts_once(store: Store) -> None:
    store.polls.add(poll())
    first, other = report_row(poll(), 0, TOKEN), report_row(poll(), 1, TOKEN)
    assert store.submissions.put([first], TODAY) == [SubmissionStatus.STORED]
    assert store.submissions.put([first, other, first], TODAY) == [
        SubmissionStatus.ALREADY_STORED,
        Reason.DIFFERENT_REPORT,
        SubmissionStatus.ALREADY_STORED,
    ]
    assert [report.id for batch in store.submissions.reports("p") for report in batch] == [first.id]


def test_a_token_counts_once_within_one_transaction(store: Store) -> None:
    store.polls.add(poll())
    first, other = report_row(poll(), 0, TOKEN), report_row(poll(), 1, TOKEN)
    assert store.submissions.put([first, first, other], TODAY) == [
        SubmissionStatus.STORED,
        SubmissionStatus.ALREADY_STORED,
        Reason.DIFFERENT_REPORT,
    ]
    status = store.polls.get("p")
    assert status is not None
    assert status.participants == 1


def test_a_race_of_different_reports_has_one_winner(store: Store) -> None:
    store.polls.add(poll())
    sent = [report_row(poll(), number % 4, TOKEN) for number in range(16)]
    with ThreadPoolExecutor(16) as threads:
        outcomes = list(threads.map(lambda one: store.submissions.put([one], TODAY)[0], sent))
    assert outcomes.count(SubmissionStatus.STORED) == 1
    winner = sent[outcomes.index(SubmissionStatus.STORED)]
    same = [one.content == winner.content for one in sent]
    assert [o is not Reason.DIFFERENT_REPORT for o in outcomes] == same
    ((stored,),) = store.submissions.reports("p")
    assert stored.id == report_id(TOKEN)


def test_polls_are_apart(store: Store) -> None:
    store.polls.add(poll("a"))
    store.polls.add(poll("b", "vlcp"))
    sent = [report_row(poll("a"), 0, TOKEN), ballot_row(poll("b", "vlcp"), 0, TOKEN)]
    assert store.submissions.put(sent, TODAY) == [SubmissionStatus.STORED] * 2
    assert store.submissions.withdraw("a", report_id(TOKEN))
    assert [len(batch) for batch in store.submissions.ballots("b")] == [1]


def test_withdrawn_for_good(store: Store) -> None:
    store.polls.add(poll())
    sent = report_row(poll(), 0, TOKEN)
    assert not store.submissions.withdraw("p", sent.id)
    assert store.submissions.put([sent], TODAY) == [SubmissionStatus.STORED]
    assert store.submissions.withdraw("p", sent.id)
    assert list(store.submissions.reports("p")) == []
    assert store.submissions.put([sent], TODAY) == [Reason.WITHDRAWN]
    assert not store.submissions.withdraw("p", sent.id)


def test_nothing_of_what_was_withdrawn_is_left_in_the_files(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path / 'crowdveil.sqlite'}") as store:
        store.polls.add(poll())
        sent, other = report_row(poll(), 0), report_row(poll(), 1)
        store.submissions.put([sent, other], TODAY)
        assert sent.content.encode() in b"".join(file.read_bytes() for file in tmp_path.iterdir())
        store.submissions.withdraw("p", sent.id)
        left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert sent.content.encode() not in left
    assert other.content.encode() in left


def test_a_quota_is_never_exceeded_and_a_withdrawal_makes_room(store: Store) -> None:
    asked = poll(quota=5)
    store.polls.add(asked)
    sent = [report_row(asked, number) for number in range(12)]
    with ThreadPoolExecutor(12) as threads:
        outcomes = list(threads.map(lambda one: store.submissions.put([one], TODAY)[0], sent))
    assert sorted(outcomes) == [Reason.FULL] * 7 + [SubmissionStatus.STORED] * 5
    stored = sent[outcomes.index(SubmissionStatus.STORED)]
    assert store.submissions.put([stored], TODAY) == [SubmissionStatus.ALREADY_STORED]
    store.submissions.withdraw("p", stored.id)
    late = sent[outcomes.index(Reason.FULL)]
    assert store.submissions.put([late], TODAY) == [SubmissionStatus.STORED]


def test_dates_and_closing(store: Store) -> None:
    asked = poll(opens_on="2026-05-04", closes_on="2026-05-05")
    store.polls.add(asked)
    first, second, third = (report_row(asked, number) for number in range(3))
    put, day = store.submissions.put, timedelta(1)
    assert put([first], TODAY - day) == [Reason.NOT_OPEN_YET]
    assert put([first], TODAY) == [SubmissionStatus.STORED]
    assert put([second], TODAY + day) == [SubmissionStatus.STORED]
    assert put([third], TODAY + 2 * day) == [Reason.CLOSED]
    store.polls.close("p")
    assert put([third, first], TODAY) == [Reason.CLOSED, SubmissionStatus.ALREADY_STORED]
    store.polls.reopen("p")
    assert put([third], TODAY) == [SubmissionStatus.STORED]


def test_links(store: Store) -> None:
    asked = poll(entry="links")
    store.polls.add(asked)
    tokens = store.submissions.create_links("p", 3)
    assert len(set(tokens)) == 3
    assert all(is_token(token) for token in tokens)
    invited, stranger = report_row(asked, 0, tokens[0]), report_row(asked, 1, new_token())
    assert store.submissions.put([invited, stranger], TODAY) == [SubmissionStatus.STORED, Reason.UNKNOWN_BALLOT]
    assert store.submissions.links("p") == 3


def test_no_token_of_a_link_is_in_the_database(store: Store) -> None:
    store.polls.add(poll(entry="links"))
    (token,) = store.submissions.create_links("p", 1)
    with store.database.reading() as connection:
        kept = connection.exec_driver_sql("SELECT * FROM link").one()
    assert tuple(kept) == ("p", report_id(token))


def test_an_open_poll_takes_no_links(store: Store) -> None:
    store.polls.add(poll())
    with pytest.raises(CrowdveilError, match="takes no links"):
        store.submissions.create_links("p", 1)


def test_counts_by_day_and_level(store: Store) -> None:
    store.polls.add(poll())
    store.submissions.put([report_row(poll(), number) for number in range(4)], TODAY)
    store.submissions.put([report_row(poll(), 4)], TODAY + timedelta(1))
    # The levels 0.5, 1 and 2 take turns in the reports.
    assert store.submissions.by_day("p") == [
        DayCount(TODAY, Epsilon("0.5"), 2),
        DayCount(TODAY, Epsilon(1), 1),
        DayCount(TODAY, Epsilon(2), 1),
        DayCount(TODAY + timedelta(1), Epsilon(1), 1),
    ]


def test_counts_by_day_of_a_central_poll(store: Store) -> None:
    central = poll(paradigm="vlcp")
    store.polls.add(central)
    store.submissions.put([ballot_row(central, seed) for seed in range(3)], TODAY)
    assert store.submissions.by_day("p") == [DayCount(TODAY, None, 3)]


def test_refusals_are_counted(store: Store) -> None:
    store.polls.add(poll())
    store.submissions.put([], TODAY, {("p", "malformed"): 2, ("p", "out-of-range"): 1})
    store.submissions.put([], TODAY, {("p", "malformed"): 3})
    assert store.submissions.refusals("p") == [
        RefusalCount(TODAY, "malformed", 5),
        RefusalCount(TODAY, "out-of-range", 1),
    ]


def test_a_poll_keeps_its_name(store: Store) -> None:
    store.polls.add(poll())
    with pytest.raises(CrowdveilError, match="another name"):
        store.polls.add(poll(paradigm="vlcp"))
    assert [status.poll for status in store.polls.all()] == [poll()]
