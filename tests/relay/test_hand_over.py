"""Reports through a relay, on both databases: batches of a public size, once each, and nothing of who sent them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import inspect, select
from tests.relay.conftest import SQLITE, Pair, Start, relay_poll
from tests.service.voters import reports

from crowdveil.errors import CrowdveilError, Reason, Refusal
from crowdveil.protocol.relay import (
    DIGEST_HEADER,
    LARGEST_HAND_OVER,
    SEALED_LENGTH,
    SIGNATURE_HEADER,
    Batch,
    KeyConfiguration,
)
from crowdveil.protocol.submission import SubmissionStatus, new_token, report_id
from crowdveil.relay import schema
from crowdveil.relay.store import SealedRow, _lock, due
from crowdveil.service.store import schema as host_schema
from crowdveil.study.plain_data import canonical_json


def batch_put(pair: Pair, batch: Batch, headers: Mapping[str, str]) -> httpx.Response:
    url = f"{pair.host_url}/api/polls/{batch.poll}/batches/{batch.id}"
    return pair.http.put(url, content=batch.body, headers=headers)


def signed(pair: Pair, batch: Batch) -> httpx.Response:
    return batch_put(pair, batch, batch.headers(pair.relay.signing_key()))


def test_until_the_poll_closes_a_batch_stays_back_and_the_rest_joins_the_last_one(start: Start) -> None:
    pair = start(batch=10)
    pair.vote(19)
    assert pair.forwarder.round() == 0
    assert pair.stored() == []
    pair.vote(14)
    assert pair.forwarder.round() == 1
    assert (len(pair.stored()), pair.relay.waiting(pair.name)) == (23, 10)
    assert pair.forwarder.round() == 0
    pair.vote(4)
    pair.host.polls.close(pair.name)
    assert pair.forwarder.round() == 1
    assert (len(pair.stored()), pair.relay.waiting(pair.name)) == (37, 0)
    assert pair.host.batches.sizes(pair.name) == [14, 23]
    status = pair.host.polls.get(pair.name)
    assert status is not None
    assert status.participants == 37


def test_whatever_waits_no_batch_is_below_its_size_and_none_is_left_behind_that_fills_one() -> None:
    most = 12
    for size in range(2, most // 2 + 1):
        for waiting in range(60):
            going = due(waiting, size, over=False, most=most)
            assert going == 0 or size <= going <= most
            assert going == 0 or waiting - going >= size
            assert (going == 0) == (waiting < 2 * size)
            left = waiting
            while (going := due(left, size, over=True, most=most)) > 0:
                assert size <= going <= most
                left -= going
            assert left == (waiting if waiting < size else 0)
    assert due(1573, 500, over=False) == 1073
    assert due(10**6, 500, over=False) == LARGEST_HAND_OVER


@SQLITE
def test_a_rest_smaller_than_a_batch_is_never_handed_over_and_says_so(start: Start) -> None:
    pair = start(batch=10)
    pair.vote(9)
    pair.host.polls.close(pair.name)
    assert pair.forwarder.round() == 0
    told = pair.http.get(f"{pair.relay_url}/api/polls/{pair.name}").json()
    assert (told["state"], told["never_released"]) == ("closed", 9)
    assert pair.stored() == []


def test_every_report_arrives_once_sorted_and_the_relay_erases_it(start: Start, tmp_path: Path) -> None:
    pair = start(batch=10)
    sealed, tokens = pair.sealed(12), [new_token() for _ in range(12)]
    for token, body in zip(tokens, sealed, strict=True):
        pair.send(body, token)
    pair.host.polls.close(pair.name)
    pair.forwarder.round()
    sent = Counter(canonical_json(report) for report in reports(pair.poll, 64)[:12])
    assert Counter(canonical_json(body) for body in pair.stored()) == sent
    assert [canonical_json(body) for body in pair.stored()] == sorted(sent.elements())
    with pair.relay.database.reading() as connection:
        assert connection.execute(select(schema.sealed)).all() == []
        spent = connection.execute(select(schema.spent)).all()
    assert sorted(row.id for row in spent) == sorted(report_id(token) for token in tokens)
    assert not any(row.withdrawn for row in spent)
    for path in tmp_path.rglob("*.sqlite*"):  # the log of changes included
        content = path.read_bytes()
        assert not any(body in content or body[65:97] in content for body in sealed), path


@SQLITE
def test_a_batch_that_comes_again_is_answered_and_not_stored_again(start: Start) -> None:
    pair = start(batch=10)
    pair.vote(20)
    batch = pair.relay.next_batch(pair.name, pair.forwarder.today())
    assert batch is not None
    first = signed(pair, batch)
    assert first.status_code == 200
    pair.vote(10)  # What comes in between joins the next batch.
    again = pair.relay.next_batch(pair.name, pair.forwarder.today())
    assert again is not None
    assert again.id == batch.id
    assert sorted(again.sealed) == sorted(batch.sealed)
    assert signed(pair, again).json() == first.json() == {"batch": batch.id, "accepted": 10, "refused": {}}
    assert pair.forwarder.round() == 2
    assert pair.host.batches.sizes(pair.name) == [10, 10]


@SQLITE
def test_orders_are_drawn_anew(start: Start) -> None:
    pair = start(batch=20)
    pair.vote(40)
    orders = set()
    for _ in range(8):
        batch = pair.relay.next_batch(pair.name, pair.forwarder.today())
        assert batch is not None
        orders.add(batch.sealed)
    assert len(orders) == 8  # by chance less than once in 10^16 runs


def test_a_sealed_report_counts_once_and_a_foreign_one_not_at_all(start: Start) -> None:
    pair = start(batch=10)
    good = pair.sealed(10)
    other = KeyConfiguration.from_dict({**pair.host.batches.key(pair.poll).configuration.as_dict(), "batch": 11})
    report = reports(pair.poll, 64)[0]
    key = pair.host.batches.key(pair.poll).configuration
    bad = [other.seal(report), bytes(SEALED_LENGTH), key.seal({"not": "a report"}), key.seal({**report, "bits": [3]})]
    bad += [key.seal({**report, "epsilon_micro": 1}), good[0]]
    answer = signed(pair, Batch(pair.name, "0" * 32, (*good, *bad))).json()
    refused = {"unreadable": 2, "malformed": 1, "out-of-range": 1, "wrong-epsilon": 1, "replayed": 1}
    assert answer == {"batch": "0" * 32, "accepted": 10, "refused": refused}
    later = signed(pair, Batch(pair.name, "1" * 32, tuple(good))).json()
    assert later == {"batch": "1" * 32, "accepted": 0, "refused": {"replayed": 10}}
    assert len(pair.stored()) == 10
    counted: Counter[str] = Counter()
    for one in pair.host.submissions.refusals(pair.name):
        counted[one.reason] += one.times
    assert counted == refused | {"replayed": 11}


@SQLITE
def test_the_host_takes_batches_of_its_relay_only_and_none_that_is_too_small(start: Start) -> None:
    pair = start(batch=10)
    batch = Batch(pair.name, "0" * 32, tuple(pair.sealed(10)))
    good, foreign = batch.headers(pair.relay.signing_key()), batch.headers(bytes(32))
    other = Batch(pair.name, "0" * 32, batch.sealed[::-1]).headers(pair.relay.signing_key())
    for headers in (
        {},
        foreign,
        *({**good, SIGNATURE_HEADER: signature} for signature in ("", "AAAA", other[SIGNATURE_HEADER])),
        {**good, DIGEST_HEADER: ""},
        {**foreign, SIGNATURE_HEADER: good[SIGNATURE_HEADER][::-1]},
        other,  # another body than was announced and signed
    ):
        answer = batch_put(pair, batch, headers)
        assert (answer.status_code, answer.json()["error"]["reason"]) == (403, "bad-signature")
    moved = Batch(pair.name, "1" * 32, batch.sealed)
    assert batch_put(pair, moved, good).json()["error"]["reason"] == "bad-signature"
    assert batch_put(pair, Batch(pair.name, "1" * 31, ()), good).json()["error"]["reason"] == "malformed"
    for sealed, reason in ((batch.sealed[:9], "batch-too-small"), ((*batch.sealed, b"x"), "wrong-size")):
        assert signed(pair, Batch(pair.name, "2" * 32, sealed)).json()["error"]["reason"] == reason
    assert pair.stored() == []


@SQLITE
def test_a_large_body_that_nobody_signed_is_refused_by_its_reason(start: Start) -> None:
    pair = start(batch=10)
    batch = Batch(pair.name, "0" * 32, (bytes(20 << 20),))
    answer = batch_put(pair, batch, batch.headers(bytes(32)))
    assert (answer.status_code, answer.json()["error"]["reason"]) == (403, "bad-signature")


def test_withdrawal_before_the_hand_over_and_not_after(start: Start) -> None:
    pair = start(batch=10)
    tokens = pair.vote(21)
    url = f"{pair.relay_url}/api/polls/{pair.name}/participation"

    def status(token: str) -> str:
        answer = pair.http.get(url, headers={"Crowdveil-Ballot": token}).json()
        return str(answer["status"] if "status" in answer else answer["error"]["reason"])

    assert (status(new_token()), status(tokens[0])) == ("unused", "stored")
    assert pair.http.delete(url, headers={"Crowdveil-Ballot": tokens[0]}).status_code == 204
    assert status(tokens[0]) == "withdrawn"
    assert pair.forwarder.round() == 1
    gone = [token for token in tokens if status(token) == "handed-over"]
    assert len(gone) == 10
    refused = pair.http.delete(url, headers={"Crowdveil-Ballot": gone[0]})
    assert (refused.status_code, refused.json()["error"]["reason"]) == (410, "handed-over")
    assert pair.http.delete(url, headers={"Crowdveil-Ballot": new_token()}).status_code == 404
    assert pair.send(pair.sealed(1)[0], tokens[0]).json()["error"]["reason"] == "withdrawn"
    assert pair.send(pair.sealed(1)[0], gone[0]).status_code == 200


@SQLITE
def test_who_may_take_part_is_the_relays_to_check(start: Start) -> None:
    pair = start(batch=2, entry="links", quota=2)
    tokens = pair.relay.create_links(pair.name, 4)
    sealed = pair.sealed(4)
    assert pair.send(sealed[0], new_token()).json()["error"]["reason"] == "unknown-ballot"
    assert pair.send(sealed[0], tokens[0]).status_code == 201
    assert pair.send(sealed[0], tokens[0]).status_code == 200
    assert pair.send(sealed[1], tokens[0]).json()["error"]["reason"] == "different-report"
    assert pair.send(sealed[1], tokens[1]).status_code == 201
    assert pair.send(sealed[2], tokens[2]).json()["error"]["reason"] == "full"
    assert pair.send(sealed[3][:-1], tokens[3]).json()["error"]["reason"] == "wrong-size"
    assert pair.send(sealed[3], "x").json()["error"]["reason"] == "bad-ballot"
    pair.host.polls.close(pair.name)
    pair.forwarder.round()
    assert pair.send(sealed[3], tokens[3]).json()["error"]["reason"] == "closed"


def test_a_report_that_waits_past_midnight_of_the_last_day_is_refused_and_not_left_behind(start: Start) -> None:
    """It comes on the last day, and the last batch is drawn before it gets its turn."""
    pair = start(batch=2, closes_on="2126-03-01")
    clock = [date(2126, 3, 1)]
    first, second, late = [SealedRow(pair.name, report_id(new_token()), sealed) for sealed in pair.sealed(3)]
    assert pair.relay.put([first, second], lambda: clock[0]) == [SubmissionStatus.STORED] * 2
    with ThreadPoolExecutor(1) as pool, ExitStack() as turn:
        _lock(turn.enter_context(pair.relay.database.writing()), pair.name)
        sent = pool.submit(pair.relay.put, [late], lambda: clock[0])
        clock[0] = date(2126, 3, 2)
        turn.close()
        last = pair.relay.next_batch(pair.name, clock[0])
        assert sent.result(60) == [Reason.CLOSED]
    assert last is not None
    assert len(last.sealed) == 2
    assert pair.relay.waiting(pair.name) == 0


@SQLITE
def test_the_host_speaks_of_no_token_and_the_relay_of_no_report(start: Start) -> None:
    pair = start(batch=10)
    url, token = f"{pair.host_url}/api/polls/{pair.name}", {"Crowdveil-Ballot": new_token()}
    body = json.dumps(reports(pair.poll, 64)[0]).encode()
    for answer in (
        pair.http.put(f"{url}/report", content=body, headers=token),
        pair.http.get(f"{url}/participation", headers=token),
        pair.http.delete(f"{url}/participation", headers=token),
    ):
        assert (answer.status_code, answer.json()["error"]["reason"]) == (409, "wrong-place")
    pair.host.polls.add(relay_poll(pair.relay_url, entry="links", name="linked"))
    with pytest.raises(CrowdveilError, match="made by its relay"):
        pair.host.submissions.create_links("linked", 1)
    with pytest.raises(CrowdveilError, match="nobody can tell whose"):
        pair.host.submissions.withdraw(pair.name, "0" * 32)
    columns = {c["name"] for t in schema.metadata.tables for c in inspect(pair.relay.database.engine).get_columns(t)}
    assert not columns & {"address", "time", "day", "order", "report"}


@SQLITE
def test_a_host_that_tells_other_terms_gets_nothing(start: Start) -> None:
    pair = start(batch=10)
    pair.vote(25)
    known = pair.relay.status(pair.name).poll
    with pair.host.database.writing() as connection:
        connection.execute(host_schema.relay_key.update().values(private_key=f"{7:064x}"))
    pair.host.batches._keys.clear()
    assert pair.forwarder.round() == 0
    assert pair.relay.waiting(pair.name) == 25
    for changed in ({"batch": 2}, {"public_key": known.configuration.public_key[:-4] + "AAAA"}):
        told = {**known.as_dict(), "configuration": {**known.as_dict()["configuration"], **changed}}
        with pytest.raises(CrowdveilError):
            pair.relay.adopt(type(known).from_dict(told))


@SQLITE
def test_a_poll_that_the_relay_does_not_carry(start: Start) -> None:
    pair = start(batch=10)
    with pytest.raises(Refusal) as refused:
        pair.relay.known("other")
    assert refused.value.reason is Reason.UNKNOWN_POLL
    assert pair.http.get(f"{pair.relay_url}/api/polls/other").status_code == 404
    page = pair.http.get(pair.relay_url)
    assert "cannot read what" in page.text


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({"paradigm": "rldp"}, "vldp"),
        ({"levels": {"a": 1, "b": 2}}, "one level"),
        ({"relay": "http://relay.example"}, "https://"),
        ({"relay": "https://relay.example/path"}, "https://"),
        ({"batch": 1}, "from 2"),
        ({"batch": "many"}, "no default"),
        ({"delta": 0}, "delta"),
        ({"honest": 1.5}, "honest"),
        ({"completion_code": "x"}, "leave it out"),
        ({"questions": [{"id": "q", "text": "?", "options": [{"id": o, "text": o} for o in "ab"]}]}, "question"),
    ],
)
def test_terms_that_no_relay_can_keep_are_refused(rules: dict[str, Any], told: str) -> None:
    more = {"about_epsilon": 1} if "questions" in rules else {}
    with pytest.raises(CrowdveilError, match=told):
        relay_poll("https://relay.example", **{**rules, **more})


def test_a_batch_without_a_relay_means_nothing() -> None:
    with pytest.raises(CrowdveilError, match="batch belongs to a relay"):
        relay_poll("https://relay.example", relay=None)


@SQLITE
def test_the_relay_s_front_page_is_as_wide_as_a_phone(start: Start) -> None:
    pair = start()
    front = pair.http.get(f"{pair.relay_url}/").text
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in front
    assert "<h1>A crowdveil relay</h1>" in front


@SQLITE
def test_host_and_relay_answer_head_over_a_connection_that_stays_open(start: Start) -> None:
    pair = start()
    for page in (f"{pair.relay_url}/", f"{pair.relay_url}/healthz", f"{pair.host_url}/api/polls/{pair.name}"):
        head, whole = pair.http.head(page), pair.http.get(page)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == whole.headers["content-length"]
