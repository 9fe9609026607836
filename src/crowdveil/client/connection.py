"""Requests to a website of crowdveil: sent again, the same bytes, when the connection is lost."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from typing import Any

import httpx

from crowdveil.errors import CrowdveilError, Reason, Refusal
from crowdveil.protocol.submission import TOKEN_HEADER

TRIES = 6
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 10.0
BUSY = frozenset({429, 502, 503, 504})
"""Answers after which the same request may be served a little later."""


class Unreachable(CrowdveilError):
    """The server did not answer, however often it was asked."""


class Connection:
    """A server's address, and how to ask it.

    Every request of the API has the same effect once or twice, so one that got lost is sent again as it was.
    """

    def __init__(self, http: httpx.Client, pause: float = FIRST_PAUSE) -> None:
        self._http = http
        self._pause = pause

    def ask(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        token: str | None = None,
        kind: str = "application/json",
        more_headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Send a request and return the JSON of the answer, None where there is none. ``kind`` is the body's."""
        headers = {**({} if body is None else {"Content-Type": kind}), **(more_headers or {})}
        if token is not None:
            headers[TOKEN_HEADER] = token
        answer = self._answer(httpx.Request(method, self._http.base_url.join(path), headers=headers, content=body))
        if answer.is_success:
            return self._json(answer) if answer.content else None
        said = self._json(answer)
        error = said.get("error") if isinstance(said, dict) else None
        if not isinstance(error, dict) or not isinstance(error.get("message"), str):
            raise CrowdveilError(
                f"{answer.request.url} answered {answer.status_code}, not as a website of crowdveil does"
            )
        raise Refusal(_reason(error.get("reason")), error["message"])

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def _answer(self, request: httpx.Request) -> httpx.Response:
        pause = self._pause
        lost = "no answer"
        for final in (False,) * (TRIES - 1) + (True,):
            wait = pause * random.uniform(0.5, 1)  # so that a crowd does not come back all at once
            try:
                answer = self._http.send(request)
                if final or answer.status_code not in BUSY:
                    return answer
                wait = max(wait, _asked_to_wait(answer))
            except httpx.TransportError as error:
                lost = str(error) or type(error).__name__
            if not final:
                time.sleep(min(wait, LONGEST_PAUSE))
            pause *= 2
        raise Unreachable(f"cannot reach {self._http.base_url} ({lost}): is `crowdveil serve` running there?")

    @staticmethod
    def _json(answer: httpx.Response) -> Any:
        try:
            return answer.json()
        except ValueError:
            raise CrowdveilError(
                f"{answer.request.url} answered {answer.status_code} without JSON: it is not a website of crowdveil"
            ) from None


def _asked_to_wait(answer: httpx.Response) -> float:
    seconds = answer.headers.get("Retry-After", "0")
    return float(seconds) if seconds.isdecimal() else 0.0


def _reason(given: Any) -> Reason:
    """Return the server's reason; one that this version does not know is a bad request."""
    return Reason(given) if given in list(Reason) else Reason.BAD_REQUEST
