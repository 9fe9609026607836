"""Programs that vote through a relay: the client, a simulated crowd, and whoever checks the page."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.relay.conftest import SQLITE, Pair, Start

from crowdveil.client.client import Client
from crowdveil.client.page_check import check_page
from crowdveil.errors import CrowdveilError, Reason, Refusal
from crowdveil.protocol.relay import configuration_of
from crowdveil.simulated_voters import send_crowd, tokens_of_links


def left(_: object) -> str:
    return "left"


@SQLITE
def test_a_crowd_votes_through_the_relay_and_the_host_gets_batches(start: Start) -> None:
    pair = start(batch=5, entry="links")
    tokens = pair.relay.create_links(pair.name, 12)
    status = pair.relay.status(pair.name).poll
    links = [status.voters_address(pair.host_url, token) for token in tokens]
    assert tokens_of_links(links) == tokens
    with Client(pair.host_url) as client:
        poll = client.poll(pair.name, key=status.configuration.fingerprint)
        turnout = send_crowd(client, poll, 12, connections=2, tokens=tokens, seed=1)
    assert turnout.stored == 12
    assert pair.forwarder.round() == 1
    assert (len(pair.stored()), pair.relay.waiting(pair.name)) == (7, 5)


@SQLITE
def test_a_voter_sends_again_withdraws_and_comes_too_late(start: Start) -> None:
    pair = start(batch=2)
    with Client(pair.host_url) as client:
        poll = client.poll(pair.name)
        made = client.submission(poll, left)
        assert made.relay == pair.relay_url
        receipt = client.send(made)
        assert client.send(made).status == "already-stored"
        assert client.withdraw(poll, receipt.token)
        assert not client.withdraw(poll, client.submission(poll, left).token)
        receipts = [client.vote(poll, left) for _ in range(2)]
        pair.host.polls.close(pair.name)
        pair.forwarder.round()
        with pytest.raises(Refusal) as refused:
            client.withdraw(poll, receipts[0].token)
        assert refused.value.reason is Reason.HANDED_OVER
        with pytest.raises(Refusal, match="through its relay"):
            client.withdraw(pair.name, receipts[0].token)


def lying(pair: Pair, change: Callable[[str, Any], None]) -> Client:
    """A client whose host and relay answer as they do, but for what is changed on the way."""
    real = httpx.Client(timeout=60)

    def serve(request: httpx.Request) -> httpx.Response:
        url = str(request.url).replace("http://host.example", pair.host_url)
        answer = real.request(request.method, url, content=request.content, headers=dict(request.headers))
        told = json.loads(answer.content)
        change(url, told)
        return httpx.Response(answer.status_code, json=told)

    return Client("http://host.example", http=httpx.Client(transport=httpx.MockTransport(serve)), first_pause=0.001)


@SQLITE
def test_a_key_or_promise_that_does_not_fit_is_not_voted_with(start: Start) -> None:
    pair = start(batch=5)

    def other_key(url: str, told: Any) -> None:
        if url.startswith(pair.host_url) and "relay" in told:
            told["relay"]["configuration"]["batch"] = 2

    def other_promise(url: str, told: Any) -> None:
        if url.startswith(pair.host_url) and "relay" in told:
            told["relay"]["promise"]["epsilon"] = 0.01

    def other_relay_key(url: str, told: Any) -> None:
        if url.startswith(pair.relay_url):
            told["fingerprint"] = "0" * 64

    def other_relay_promise(url: str, told: Any) -> None:
        if url.startswith(pair.relay_url):
            told["epsilon"] = 0.01

    for change, told in ((other_key, "other terms"), (other_promise, "does not follow")):
        with lying(pair, change) as client, pytest.raises(CrowdveilError, match=told):
            client.poll(pair.name)
    for change, told in ((other_relay_key, "its relay knows"), (other_relay_promise, "another promise")):
        with lying(pair, change) as client:
            poll = client.poll(pair.name)
            with pytest.raises(CrowdveilError, match=told):
                client.vote(poll, left)
    with Client(pair.host_url) as client, pytest.raises(CrowdveilError, match="address names 0000"):
        client.poll(pair.name, key="0" * 64)


@SQLITE
def test_whoever_checks_the_page_learns_the_fingerprint(start: Start) -> None:
    pair = start(batch=5)
    with httpx.Client(timeout=60) as http, Client(pair.host_url) as client:
        found = check_page(http, pair.host_url, pair.name)
        assert found.different == ()
        assert found.fingerprint == configuration_of(client.poll(pair.name)).fingerprint
