"""The life of a poll in the database: tried out, opened, put away, deleted; and answers destroyed on their day."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete, func, select, text
from tests.service.voters import ballot_row, poll, report_row

from crowdveil.errors import CrowdveilError, Reason, Refusal
from crowdveil.protocol.polls import PollState
from crowdveil.protocol.submission import SubmissionStatus
from crowdveil.service.poll import HostedPoll, poll_from_dict
from crowdveil.service.poll_release import make_release
from crowdveil.service.service import Service, destroy_due
from crowdveil.service.settings import ServiceSettings
from crowdveil.service.store import schema
from crowdveil.service.store.backup import back_up, check_backup, destroy_in_backup, restore
from crowdveil.service.store.batches import OpenedReport
from crowdveil.service.store.polls import MOST_WAITING, OF_A_POLL, OPENED, STARTED
from crowdveil.service.store.store import Store, open_store
from crowdveil.service.store.submissions import RefusalCount

TODAY = date(2026, 5, 4)


def test_votes_of_a_pilot_are_marked_and_never_counted(store: Store) -> None:
    asked = poll("tried", quota=2, opens_on=str(TODAY + timedelta(days=5)))
    store.polls.add(asked, pilot=True)
    pilots = [report_row(asked, number) for number in range(4)]
    assert (
        store.submissions.put(pilots, TODAY) == [SubmissionStatus.STORED] * 4
    )  # Neither the day nor the quota is heeded.
    assert store.submissions.pilots("tried") == 4
    assert [store.polls.get("tried").participants, store.submissions.by_day("tried")] == [0, []]
    assert list(store.submissions.reports("tried")) == []
    with pytest.raises(CrowdveilError):
        make_release(store, "tried", TODAY)
    store.polls.end_pilot("tried")
    opening = TODAY + timedelta(days=5)
    assert store.submissions.put([report_row(asked, 4)], TODAY) == [Reason.NOT_OPEN_YET]
    counted = [report_row(asked, number) for number in range(5, 8)]
    assert store.submissions.put(counted, opening) == [SubmissionStatus.STORED, SubmissionStatus.STORED, Reason.FULL]
    (stored,) = store.submissions.reports("tried")
    assert {one.id for one in stored} == {row.id for row in counted[:2]}
    assert store.submissions.put(pilots[:1], opening) == [
        SubmissionStatus.ALREADY_STORED
    ]  # A pilot's token counts no more.
    assert store.submissions.withdraw("tried", pilots[0].id)
    assert (store.polls.get("tried").participants, store.submissions.pilots("tried")) == (2, 3)
    assert store.submissions.withdraw("tried", counted[0].id)
    assert store.polls.get("tried").participants == 1


def test_a_poll_with_a_relay_cannot_be_tried_out(store: Store) -> None:
    terms = {"mechanism": "one-bit", "relay": "https://relay.example", "batch": 1000}
    relayed = poll_from_dict({"name": "r", "study": "kidney", "paradigm": "vldp", "levels": {"only": "1"}, **terms})
    with pytest.raises(CrowdveilError, match="nobody can tell votes of a trial from others"):
        store.polls.add(relayed, pilot=True)
    store.polls.add(relayed)


def test_pilot_ballots_stay_out_of_the_crowd(store: Store) -> None:
    asked = poll("trusted", "vlcp")
    store.polls.add(asked, pilot=True)
    store.submissions.put([ballot_row(asked, seed) for seed in range(3)], TODAY)
    store.polls.end_pilot("trusted")
    store.submissions.put([ballot_row(asked, seed) for seed in range(3, 8)], TODAY)
    assert len(store.submissions.crowd("trusted")) == 5


def test_a_poll_is_put_away_and_taken_out(store: Store) -> None:
    store.polls.add(poll("old"))
    store.polls.archive("old")
    status = store.polls.get("old")
    assert (status.archived, status.listed, status.state(TODAY)) == (True, False, PollState.CLOSED)
    with pytest.raises(CrowdveilError, match="take it out of the archive first"):
        store.polls.reopen("old")
    assert store.polls.get("old").state(TODAY) is PollState.CLOSED
    store.polls.archive("old", False)
    status = store.polls.get("old")
    assert (status.listed, status.closed_by_host) == (True, True)
    store.polls.reopen("old")
    assert store.polls.get("old").state(TODAY) is PollState.OPEN


def test_a_deleted_poll_leaves_nothing_but_its_name(store: Store) -> None:
    asked, other = poll("gone", entry="links"), poll("stays")
    for one in (asked, other):
        store.polls.add(one)
    (token, *_) = store.submissions.create_links("gone", 12)
    store.submissions.put([report_row(asked, 0, token), report_row(asked, 1)], TODAY, {("gone", "malformed"): 2})
    store.submissions.put([report_row(other, number) for number in range(3)], TODAY)
    store.steps.count("gone", OPENED, TODAY)
    store.steps.write(TODAY)
    make_release(store, "stays", TODAY)
    told = store.polls.contents("gone")
    assert (told["report"], told["link"], told["release"], told["refusal"]) == (1, 12, 0, 1)
    store.polls.delete("gone")
    with store.database.reading() as connection:
        for table in OF_A_POLL:
            left = select(func.count()).select_from(table).where(table.c.poll == "gone")
            assert connection.execute(left).scalar_one() == 0, table.name
    assert store.polls.get("gone") is None
    assert store.polls.definition("gone") is None
    assert store.polls.get("stays").participants == 3
    with pytest.raises(CrowdveilError, match="a name counts once"):
        store.polls.add(asked)


def test_a_vote_that_comes_while_the_poll_is_deleted_elsewhere_is_refused(store: Store) -> None:
    asked = poll("gone")
    store.polls.add(asked)
    assert store.polls.definition("gone") == asked  # This process knows it.
    known = dict(store.polls._known)
    store.polls.delete("gone")
    store.polls._known.update(known)  # As in another process, which has not heard of it.
    assert store.submissions.put([report_row(asked)], TODAY) == [Reason.CLOSED]


def test_a_poll_deleted_in_the_meantime_takes_no_other_polls_votes_with_it(store: Store) -> None:
    """A refusal is counted with the next commit, and a vote may wait for one while its poll is deleted."""
    asked, other = poll("gone"), poll("stays")
    for one in (asked, other):
        store.polls.add(one)
    store.polls.delete("gone")
    refused = {("gone", "closed"): 1, ("stays", "malformed"): 2}
    outcomes = store.submissions.put([report_row(asked), report_row(other)], TODAY, refused)
    assert outcomes == [Reason.CLOSED, SubmissionStatus.STORED]
    assert store.submissions.refusals("gone") == []
    assert store.submissions.refusals("stays") == [RefusalCount(TODAY, "malformed", 2)]


@pytest.mark.parametrize("new_address", ["postgresql"], indirect=True)
def test_polls_are_locked_by_name_also_where_only_refusals_are_counted(store: Store) -> None:
    """Two commits that each store a vote to one poll and a refusal of the other would wait for each other forever."""
    asked = {name: poll(name) for name in ("a", "b")}
    for one in asked.values():
        store.polls.add(one)
    lock = "SELECT id FROM poll WHERE id = '{}' FOR UPDATE {}"
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with ThreadPoolExecutor(1) as other, store.database.engine.connect() as holding:
        with holding.begin():
            holding.execute(text(lock.format("a", "")))
            stored = other.submit(store.submissions.put, [report_row(asked["b"])], TODAY, {("a", "malformed"): 1})
            while not holding.execute(waiting).scalar_one():
                assert not stored.done()
            holding.execute(text(lock.format("b", "NOWAIT")))  # Nobody who waits for "a" has locked "b".
        assert stored.result() == [SubmissionStatus.STORED]
    assert store.submissions.refusals("a") == [RefusalCount(TODAY, "malformed", 1)]


RELAYED = poll_from_dict(
    {
        "name": "gone",
        "study": "kidney",
        "paradigm": "vldp",
        "levels": {"only": "1"},
        "mechanism": "one-bit",
        "relay": "https://relay.example",
        "batch": 1000,
    }
)


def count_steps(store: Store) -> None:
    for name in ("gone", "stays"):
        store.steps.count(name, OPENED, TODAY)
    store.steps.write(TODAY)


WRITERS: dict[str, tuple[HostedPoll, Callable[[Store], object]]] = {
    "steps": (poll("gone"), count_steps),
    "batch": (
        RELAYED,
        lambda store: store.batches.put(RELAYED, "ab" * 16, 1, [OpenedReport("cd" * 32, "{}")], Counter(), TODAY),
    ),
    "relay's key": (RELAYED, lambda store: store.batches.pin_relay_key("gone", "key")),
    "links": (poll("gone", entry="links"), lambda store: store.submissions.create_links("gone", 3)),
    "release": (poll("gone"), lambda store: store.releases.put("gone", store.releases.all("stays")[0].read(), TODAY)),
    "account": (poll("gone", "vlcp"), lambda store: store.releases.account("gone")),
    "deletion": (poll("gone"), lambda store: store.polls.delete("gone")),
}
"""What may be written to a poll that was there a moment ago; all but steps, which nobody waits for, are refused."""


def check_writer(writer: str, store: Store, write: Callable[[], object]) -> None:
    if writer == "steps":
        write()
        assert store.steps.reached("stays", TODAY) == {OPENED: 1}
        assert store.steps.reached("gone", TODAY) == {}
    else:
        with pytest.raises(Refusal, match="there is no poll 'gone' any more") as refused:
            write()
        assert refused.value.reason is Reason.UNKNOWN_POLL
    assert sum(store.polls.contents("gone").values()) == 0


def open_two(store: Store, writer: str) -> None:
    """Open the poll that will be gone and one that stays, with a release where that is what is written."""
    asked, other = WRITERS[writer][0], poll("stays")
    for one in (asked, other):
        store.polls.add(one)
    store.submissions.put([report_row(other, number) for number in range(3)], TODAY)
    if writer == "release":
        make_release(store, "stays", TODAY)


@pytest.mark.parametrize("writer", WRITERS)
def test_what_is_written_to_a_poll_deleted_elsewhere_is_refused_in_one_line(writer: str, store: Store) -> None:
    _, write = WRITERS[writer]
    open_two(store, writer)
    known = {"gone": store.polls.known("gone")}
    store.polls.delete("gone")
    store.polls._known.update(known)  # As in another process, which has not heard of it.
    check_writer(writer, store, lambda: write(store))


@pytest.mark.parametrize("new_address", ["postgresql"], indirect=True)
@pytest.mark.parametrize("writer", [name for name in WRITERS if name != "account"])
def test_who_writes_to_a_poll_waits_for_its_deletion(writer: str, store: Store) -> None:
    asked, write = WRITERS[writer]
    open_two(store, writer)
    assert store.polls.known("gone") == asked
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with ThreadPoolExecutor(1) as other, store.database.engine.connect() as deleting:
        with deleting.begin():
            deleting.execute(text("SELECT id FROM poll WHERE id = 'gone' FOR UPDATE"))
            written = other.submit(write, store)
            while not deleting.execute(waiting).scalar_one():
                assert not written.done()
            for table in OF_A_POLL:
                deleting.execute(delete(table).where(table.c.poll == "gone"))
            deleting.execute(delete(schema.poll).where(schema.poll.c.id == "gone"))
        check_writer(writer, store, written.result)


def test_exact_answers_are_destroyed_on_their_day_and_releases_stay(address: str, tmp_path: Path) -> None:
    asked = poll("brief", "vlcp", destroy_on="2026-05-10")
    kept = poll("kept", "vlcp")
    file = tmp_path / "backups" / "b.crowdveil.gz"
    file.parent.mkdir()
    with open_store(address) as store:
        for one in (asked, kept):
            store.polls.add(one)
            store.submissions.put([ballot_row(one, seed) for seed in range(5)], TODAY)
        made = make_release(store, "brief", TODAY, asked.budget)
    back_up(address, file)
    assert destroy_in_backup(file, date(2026, 5, 9)) == 0
    assert check_backup(file).rows["ballot"] == 10
    with open_store(address) as store:
        assert store.polls.destroy_answers(date(2026, 5, 9)) == []
        service = _On(store, ServiceSettings(backups=str(file.parent)))
        destroy_due(service)
        status = store.polls.get("brief")
        assert (status.destroyed_on, status.participants, status.state(TODAY)) == (
            date(2026, 5, 10),
            5,
            PollState.CLOSED,
        )
        assert list(store.submissions.ballots("brief")) == []
        assert len(store.submissions.crowd("kept")) == 5
        assert store.releases.get(made.id) == made
        assert [entry.action for entry in store.audit_log.latest()] == [
            "destroyed 5 ballots in a backup",
            "destroyed the exact answers",
        ]
        destroy_due(service)
        assert len(store.audit_log.latest()) == 2
    assert check_backup(file).rows["ballot"] == 5
    assert '["ballot",["brief"' not in gzip.decompress(file.read_bytes()).decode()


def test_no_exact_answer_comes_after_the_day_of_destruction(store: Store) -> None:
    asked, day = poll("brief", "vlcp", destroy_on="2026-05-10"), date(2026, 5, 10)
    store.polls.add(asked, pilot=True)
    assert store.submissions.put([ballot_row(asked, 1)], TODAY) == [SubmissionStatus.STORED]
    assert store.submissions.put([ballot_row(asked, 2)], day) == [Reason.CLOSED]  # Also before it was destroyed.
    assert store.polls.destroy_answers(day) == ["brief"]
    with pytest.raises(CrowdveilError, match=r"'brief' were destroyed on 2026-05-10, .* stays closed"):
        store.polls.reopen("brief")
    assert store.polls.get("brief").state(day + timedelta(days=1)) is PollState.CLOSED
    assert store.submissions.put([ballot_row(asked, 3)], day + timedelta(days=1)) == [Reason.CLOSED]
    assert store.polls.contents("brief")["ballot"] == 0
    with pytest.raises(CrowdveilError, match="there is no poll 'gone'"):
        store.polls.reopen("gone")


class _On(Service):
    """A service on the day of destruction."""

    def today(self) -> date:
        return date(2026, 5, 10)


def test_a_backup_from_before_brings_no_destroyed_answer_back(address: str, tmp_path: Path) -> None:
    asked = poll("brief", "vlcp", destroy_on="2026-05-10")
    with open_store(address) as store:
        store.polls.add(asked)
        store.submissions.put([ballot_row(asked, seed) for seed in range(5)], TODAY)
    back_up(address, tmp_path / "b.gz")
    restored = f"sqlite:///{tmp_path / 'new.sqlite'}"
    restore(tmp_path / "b.gz", restored, date(2026, 5, 11))
    with open_store(restored) as store:
        assert list(store.submissions.ballots("brief")) == []


def test_only_a_central_poll_has_answers_to_destroy() -> None:
    with pytest.raises(CrowdveilError, match="no exact answers"):
        poll("p", "rldp", destroy_on="2026-05-10")


def test_steps_are_counted_without_anything_else(store: Store) -> None:
    store.polls.add(poll())
    for step in (OPENED, OPENED, STARTED):
        store.steps.count("p", step, TODAY)
    store.steps.count("nowhere", OPENED, TODAY)
    assert store.steps.reached("p", TODAY) == {OPENED: 2, STARTED: 1}
    for _ in range(MOST_WAITING):
        store.steps.count("p", OPENED, TODAY + timedelta(days=1))
    with store.database.reading() as connection:  # So many are written without being asked for.
        rows = connection.execute(select(schema.step.c.day, schema.step.c.step, schema.step.c.times)).all()
    assert sorted(map(tuple, rows)) == [
        (TODAY, OPENED, 2),
        (TODAY, STARTED, 1),
        (TODAY + timedelta(days=1), OPENED, MOST_WAITING),
    ]


def test_whoever_tries_a_poll_out_is_not_among_those_who_came(store: Store) -> None:
    store.polls.add(poll(), pilot=True)
    store.steps.count("p", OPENED, TODAY)
    assert store.steps.reached("p", TODAY) == {}
