"""What a client does when the network or the server fails it."""

import httpx
import pytest

from crowdveil.client.client import TRIES, Client, Unreachable
from crowdveil.errors import CrowdveilError, Refusal
from crowdveil.protocol.submission import Submission

VOTE = Submission("kidney", "report", "A" * 22, b'{"values":[9007199254740993]}')
STORED = {"id": "0" * 32, "status": "stored", "completion_code": None, "return_url": None}


def test_a_lost_connection_resends_the_same_bytes_and_token(talking):
    client, heard = talking(httpx.ConnectError("refused"), httpx.ReadTimeout("lost"), (201, STORED))
    assert client.send(VOTE).status == "stored"
    assert len(heard) == 3
    assert {body for *_, body in heard} == {VOTE.body}
    assert {headers["crowdveil-ballot"] for _, _, headers, _ in heard} == {VOTE.token}
    assert {(method, path) for method, path, *_ in heard} == {("PUT", "/api/polls/kidney/report")}


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_again(talking, status):
    busy = {"error": {"reason": "too-many-requests", "message": "later"}}
    client, heard = talking((status, busy, {"Retry-After": "0"}), (200, {**STORED, "status": "already-stored"}))
    assert client.send(VOTE).status == "already-stored"
    assert len(heard) == 2


def test_a_server_that_never_answers_is_given_up(talking):
    client, heard = talking(*[httpx.ConnectError("refused")] * TRIES)
    with pytest.raises(Unreachable, match=r"cannot reach https://crowd\.example.*refused"):
        client.send(VOTE)
    assert len(heard) == TRIES


def test_a_refusal_is_raised_in_the_servers_words_and_not_repeated(talking):
    client, heard = talking((409, {"error": {"reason": "different-report", "message": "another one is stored"}}))
    with pytest.raises(Refusal) as refusal:
        client.send(VOTE)
    assert refusal.value.reason == "different-report"
    assert str(refusal.value) == "another one is stored"
    assert len(heard) == 1


@pytest.mark.parametrize(
    "answer",
    [(404, b"<html>not found</html>"), (404, {"detail": "Not Found"}), (200, b"<html>hello</html>"), (500, [])],
)
def test_another_kind_of_server_is_recognised(talking, answer):
    client, _ = talking(answer)
    with pytest.raises(CrowdveilError, match=r"crowdveil"):
        client.polls()


def test_an_address_must_be_one():
    with pytest.raises(CrowdveilError, match="must begin with http"):
        Client("crowd.example")


def test_a_name_cannot_leave_its_place_in_the_address(talking):
    client, heard = talking((404, {"error": {"reason": "unknown-release", "message": "none"}}))
    with pytest.raises(Refusal):
        client.release("../polls?x=1#")
    assert heard[0][1] == "/api/releases/..%2Fpolls%3Fx%3D1%23"


def test_a_withdrawal_says_whether_something_was_there(talking):
    gone = (404, {"error": {"reason": "nothing-stored", "message": "nothing is stored"}})
    client, heard = talking((204, b""), gone, (404, {"error": {"reason": "unknown-poll", "message": "no poll"}}))
    assert client.withdraw("kidney", VOTE.token) is True
    assert client.withdraw("kidney", VOTE.token) is False
    with pytest.raises(Refusal, match="no poll"):
        client.withdraw("other", VOTE.token)
    assert heard[0][:2] == ("DELETE", "/api/polls/kidney/participation")
