"""Taking part through the API: one report for each token, and every refusal with its reason."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from tests.kinds_of_question import NOISY, TEXT
from tests.service.voters import ballot, poll, report_row, reports

from crowdveil.protocol.submission import new_token, report_id
from crowdveil.service.api.models import BallotBody, ReportBody
from crowdveil.service.poll import HostedPoll as Poll
from crowdveil.service.poll import poll_from_dict
from crowdveil.service.service import Service

DISTRIBUTED = [
    ("vldp", "algorithm-2"),
    ("rldp", "algorithm-3"),
    ("aldp", "algorithm-3-choices"),
    ("vldp", "one-bit"),
    ("vldp", "subset-selection"),
    ("rldp", "score"),
    ("aldp", "randomised-response"),
    ("aldp", "one-choice"),
]
QUESTION = {"id": "age", "text": "How old?", "options": [{"id": "young", "text": "30"}, {"id": "old", "text": "31"}]}


def put(client: TestClient, kind: str, body: Any, token: str | None = None, name: str = "p") -> Response:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Crowdveil-Ballot": new_token() if token is None else token} if token != "" else {}
    return client.put(f"/api/polls/{name}/{kind}", content=raw, headers=headers)


def reason(answer: Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["reason"]


def refused(service: Service, name: str = "p") -> dict[str, int]:
    return {count.reason: count.times for count in service.store.submissions.refusals(name)}


@pytest.mark.parametrize(("paradigm", "mechanism"), DISTRIBUTED)
def test_every_mechanism_is_taken_once(client: TestClient, service: Service, paradigm: str, mechanism: str) -> None:
    asked = poll(paradigm=paradigm, mechanism=mechanism)
    service.store.polls.add(asked)
    body, other, token = reports(asked, 12)[0], reports(asked, 12)[3], new_token()
    ReportBody.model_validate_json(json.dumps(body))  # As OpenAPI describes it.
    first = put(client, "report", body, token)
    assert first.status_code == 201
    assert first.json() == {"id": report_id(token), "status": "stored", "completion_code": None, "return_url": None}
    respelled = json.dumps(body, indent=3, sort_keys=True).encode()
    again = put(client, "report", respelled, token)
    assert (again.status_code, again.json()["status"]) == (200, "already-stored")
    if other != body:
        assert reason(put(client, "report", other, token)) == (409, "different-report")
    ((stored,),) = service.store.submissions.reports("p")
    assert dict(stored.body) == body


def test_a_ballot_is_taken_once(client: TestClient, service: Service) -> None:
    asked = poll(paradigm="vlcp", completion_code="C0DE", return_url="https://example.org/")
    service.store.polls.add(asked)
    body, token = ballot(asked, 1), new_token()
    BallotBody.model_validate_json(json.dumps(body))
    first = put(client, "ballot", body, token)
    assert (first.status_code, first.json()["completion_code"]) == (201, "C0DE")
    assert put(client, "ballot", body, token).status_code == 200
    assert reason(put(client, "ballot", ballot(asked, 2), token)) == (409, "different-report")
    ((stored,),) = service.store.submissions.ballots("p")
    assert list(stored.records) == body["records"]


def test_an_answer_is_refused_where_noise_must_be_added_first(client: TestClient, service: Service) -> None:
    service.store.polls.add(poll())
    service.store.polls.add(poll("c", "vlcp"))
    assert reason(put(client, "ballot", ballot(poll(), 1))) == (409, "wrong-place")
    assert reason(put(client, "report", reports(poll(), 12)[0], name="c")) == (409, "wrong-place")


def test_tokens(client: TestClient, service: Service) -> None:
    service.store.polls.add(poll())
    body = reports(poll(), 12)[0]
    assert reason(put(client, "report", body, "")) == (400, "missing-ballot")
    for bad in ("short", "x" * 23, "!" * 22, "A" * 21 + "B"):
        assert reason(put(client, "report", body, bad)) == (400, "bad-ballot")
    assert reason(put(client, "report", body, name="nobody")) == (404, "unknown-poll")


def changed(**change: Any) -> dict[str, Any]:
    return {**reports(poll(), 12)[0], **change}


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: b"", "malformed"),
        (lambda: b"\xff\xfe", "malformed"),
        (lambda: b"[]", "malformed"),
        (lambda: b"[" * 50_000, "malformed"),
        (lambda: b'{"epsilon_micro": 1' + b"0" * 5000 + b"}", "malformed"),
        (lambda: changed(extra=1), "malformed"),
        (lambda: changed(format="crowdveil report 2"), "malformed"),
        (lambda: changed(values=["1"]), "malformed"),
        (lambda: changed(values=None), "malformed"),
        (lambda: changed(study="0" * 64), "wrong-study"),
        (lambda: changed(mechanism="algorithm-3"), "wrong-mechanism"),
        (lambda: changed(epsilon_micro=500_001), "wrong-epsilon"),
        (lambda: changed(epsilon_micro=True), "wrong-epsilon"),
        (lambda: changed(records=1), "wrong-size"),
        (lambda: changed(values=[2**63 - 1] * len(changed()["values"])), "out-of-range"),
        (lambda: changed(values=[2**70] * len(changed()["values"])), "out-of-range"),
        (lambda: changed(about={"age": "young"}), "wrong-about"),
        (lambda: changed(about=[]), "wrong-about"),
    ],
)
def test_what_no_device_sends_is_refused_and_counted(
    client: TestClient, service: Service, make: Any, expected: str
) -> None:
    service.store.polls.add(poll())
    assert reason(put(client, "report", make())) == (422, expected)
    assert put(client, "report", changed()).status_code == 201  # Commits the count, too.
    assert refused(service) == {expected: 1}
    assert len(next(service.store.submissions.reports("p"))) == 1


def answers(change: dict[str, Any]) -> dict[str, Any]:
    body = ballot(poll(paradigm="vlcp"), 1)
    return {**body, "records": [{**body["records"][0], **change}, *body["records"][1:]]}


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: answers({"chosen": "middle"}), "malformed"),
        (lambda: answers({"more": 1}), "malformed"),
        (lambda: answers({"left": [True] * 5}), "malformed"),
        (lambda: answers({"left": [0.0]}), "wrong-size"),
        (lambda: answers({"left": [1e9] * 5}), "out-of-range"),
        (lambda: json.dumps(answers({"left": [float("nan")] * 5})).encode(), "out-of-range"),
        (lambda: {**answers({}), "records": []}, "wrong-size"),
        (lambda: {**answers({}), "records": answers({})["records"] * 2}, "wrong-size"),
        (lambda: {**answers({}), "records": 1}, "malformed"),
        (lambda: {**answers({}), "study": "x"}, "wrong-study"),
        (lambda: {**answers({}), "format": "crowdveil ballot 2"}, "malformed"),
    ],
)
def test_ballots_that_the_study_does_not_have_are_refused(
    client: TestClient, service: Service, make: Any, expected: str
) -> None:
    service.store.polls.add(poll(paradigm="vlcp"))
    assert reason(put(client, "ballot", make())) == (422, expected)
    assert list(service.store.submissions.ballots("p")) == []


def asking(**rules: Any) -> Poll:
    rules = {"name": "p", "study": "kidney", "questions": [QUESTION], "about_epsilon": 1, **rules}
    return poll_from_dict(rules)


def test_about_you(client: TestClient, service: Service) -> None:
    asked = asking()
    service.store.polls.add(asked)
    body = reports(asked, 12)[0]
    assert put(client, "report", {**body, "about": {"age": "old"}}).status_code == 201
    assert put(client, "report", body).status_code == 201  # Nobody has to answer.
    for wrong in ({"age": "older"}, {"shoe": "old"}, {"age": ["old"]}, "old"):
        assert reason(put(client, "report", {**body, "about": wrong})) == (422, "wrong-about")
    assert sorted(str(report.about) for report in next(service.store.submissions.reports("p"))) == [
        "{'age': 'old'}",
        "{}",
    ]


def test_answers_of_every_kind_are_stored_as_they_were_sent(client: TestClient, service: Service) -> None:
    service.store.polls.add(asking(paradigm="vlcp", about_epsilon=None, questions=[*NOISY, TEXT]))
    about = {"travel": ["bus", "bike"], "years": 28, "trust": 4, "why": 'So\n"it" is, ☃'}
    body = {**ballot(service.store.polls.known("p"), 3), "about": about}
    BallotBody.model_validate_json(json.dumps(body))
    assert put(client, "ballot", body).status_code == 201
    assert [one.about for one in next(service.store.submissions.ballots("p"))] == [about]
    told = put(client, "ballot", {**body, "about": {"trust": 4}}).json()["error"]
    assert (told["reason"], told["message"]) == ("wrong-about", "question years has to be answered")


def test_links_closing_and_withdrawing(client: TestClient, service: Service) -> None:
    asked = poll(entry="links", quota=2)
    service.store.polls.add(asked)
    first, second, third = service.store.submissions.create_links("p", 3)
    body = reports(asked, 12)[0]
    assert reason(put(client, "report", body)) == (403, "unknown-ballot")
    assert put(client, "report", body, first).status_code == 201
    assert put(client, "report", body, second).status_code == 201
    assert reason(put(client, "report", body, third)) == (410, "full")
    service.store.polls.close("p")
    assert reason(put(client, "report", body, third)) == (410, "closed")
    assert put(client, "report", body, first).status_code == 200  # A resend is still answered.
    gone = client.delete("/api/polls/p/participation", headers={"Crowdveil-Ballot": first})
    assert (gone.status_code, gone.content) == (204, b"")
    assert reason(client.delete("/api/polls/p/participation", headers={"Crowdveil-Ballot": first})) == (
        404,
        "nothing-stored",
    )
    assert reason(client.delete("/api/polls/p/participation")) == (400, "missing-ballot")
    service.store.polls.reopen("p")
    assert reason(put(client, "report", body, first)) == (410, "withdrawn")


def test_too_large(client: TestClient, service: Service) -> None:
    service.store.polls.add(poll())
    largest = service.settings.largest_report
    assert reason(put(client, "report", b" " * largest)) == (422, "malformed")
    assert reason(put(client, "report", b" " * (largest + 1))) == (413, "too-large")
    in_pieces = client.put(
        "/api/polls/p/report", content=iter([b" " * 1000] * 100), headers={"Crowdveil-Ballot": new_token()}
    )
    assert reason(in_pieces) == (413, "too-large")


def test_the_largest_honest_report_is_small_enough(service: Service) -> None:
    wide = poll(study="synthetic-30", mechanism="algorithm-3")
    assert max(len(json.dumps(body)) for body in reports(wide, 12)) < service.settings.largest_report / 2


def test_a_link_is_checked_before_its_voter_answers_anything(client: TestClient, service: Service) -> None:
    asked = poll("links", entry="links")
    service.store.polls.add(asked)
    fresh, used, gone = service.store.submissions.create_links("links", 3)
    for token in (used, gone):
        service.store.submissions.put([report_row(asked, 0, token)], date(2026, 5, 4))
    service.store.submissions.withdraw("links", report_id(gone))

    def check(token: str | None, name: str = "links") -> tuple[int, str]:
        headers = {} if token is None else {"Crowdveil-Ballot": token}
        answer = client.get(f"/api/polls/{name}/participation", headers=headers)
        body = answer.json()
        return answer.status_code, body.get("status") or body["error"]["reason"]

    assert check(fresh) == (200, "unused")
    assert check(used) == (200, "stored")
    assert check(gone) == (410, "withdrawn")
    assert check(new_token()) == (403, "unknown-ballot")
    assert check("A" * 21) == (400, "bad-ballot")
    assert check(None) == (400, "missing-ballot")
    assert check(fresh, "nobody") == (404, "unknown-poll")
    assert service.store.submissions.refusals("links") == []  # Asking is not voting.
