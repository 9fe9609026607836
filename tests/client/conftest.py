"""A release that was really made, and a server that answers as it is told."""

import json

import httpx
import numpy as np
import pytest

from crowdveil.client.client import Client
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.publish.release import publish
from crowdveil.publish.request import Request
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study


@pytest.fixture(scope="module", autouse=True)
def _few_crowds(few_crowds):
    """No test here asks how good a release's probabilities are."""


@pytest.fixture(scope="session")
def release_file(tmp_path_factory):
    """A release of a simulated kidney crowd, with little noise."""
    folder = tmp_path_factory.mktemp("released")
    (ballots,) = simulated_batches(load_study("kidney"), 400, np.random.default_rng(5))
    ledger = Ledger.create(folder / "ledger", 20)
    request = Request(PARADIGMS["vlcp"], Epsilon("20"), mechanism="algorithm-1")
    publish(ballots, request, ledger, folder / "release.json")
    return folder / "release.json"


@pytest.fixture
def talking():
    """A client whose server is a list of answers (or exceptions), one after the other; it notes what it was sent."""

    def start(*answers):
        heard, left = [], list(answers)

        def serve(request):
            heard.append((request.method, request.url.raw_path.decode(), dict(request.headers), request.content))
            answer = left.pop(0)
            if isinstance(answer, Exception):
                raise answer
            status, body, *headers = answer
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            return httpx.Response(status, content=content, headers=headers[0] if headers else {})

        http = httpx.Client(transport=httpx.MockTransport(serve))
        return Client("https://crowd.example", http=http, first_pause=0.001), heard

    return start
