"""Where a model is asked: a chat endpoint of the OpenAI protocol, or a program on this machine."""

from __future__ import annotations

import http.client
import json
import math
import os
import random
import shlex
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from threading import Event
from typing import Any

from crowdveil.errors import CrowdveilError
from crowdveil.evaluation.alignment.asking import Question

TRIES = 5
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
BUSY = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
"""Statuses after which the same question may be answered a little later."""
MOST_BYTES = 4 << 20


class _NotNow(Exception):
    """No usable reply to this try; another may have one."""

    def __init__(self, said: str, pause: float = 0.0) -> None:
        super().__init__(said)
        self.pause = pause
        """At least so many seconds are to pass first."""


@dataclass(frozen=True)
class ChatEndpoint:
    """A server that speaks the OpenAI chat protocol: ``POST {url}/chat/completions``."""

    url: str
    """The base, such as ``https://api.openai.com/v1`` or ``http://localhost:11434/v1``."""
    model: str
    key: str | None = None
    timeout: float = 60.0
    """Seconds for one try, from the first byte sent to the last received."""
    first_pause: float = FIRST_PAUSE

    def __post_init__(self) -> None:
        parts = urllib.parse.urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise CrowdveilError(
                f"the endpoint is {self.url!r}: give its base URL, such as https://api.openai.com/v1 or "
                "http://localhost:11434/v1"
            )
        check_timeout(self.timeout)

    def __call__(self, question: Question, stop: Event) -> str:
        """Ask, and ask again after a while where the server is busy, hangs, or answers nonsense."""
        pause = self.first_pause
        for last in (False,) * (TRIES - 1) + (True,):
            try:
                return self._ask(question)
            except _NotNow as problem:
                said = str(problem)
                # Of random length, so that workers do not come back together.
                wait = min(max(problem.pause, pause * random.uniform(0.5, 1)), LONGEST_PAUSE)
                if last or stop.wait(wait):
                    break
            pause *= 2
        raise CrowdveilError(f"{self.url} gave no usable answer, however often it was asked: {self._without_key(said)}")

    def _ask(self, question: Question) -> str:
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": question.prompt}],
            "seed": question.seed,
        }
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        request = urllib.request.Request(
            f"{self.url.rstrip('/')}/chat/completions", json.dumps(body).encode(), headers, method="POST"
        )
        deadline = time.monotonic() + self.timeout
        try:
            with _OPENER.open(request, timeout=self.timeout) as answer:
                return _reply(_read(answer, deadline))
        except urllib.error.HTTPError as error:
            with error:
                self._refused(error, deadline)
            raise AssertionError("unreachable") from None
        except TimeoutError:
            raise _NotNow(f"no answer within {self.timeout:g} seconds") from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                raise _NotNow(f"no answer within {self.timeout:g} seconds") from None
            raise _NotNow(f"the connection was lost ({_short(reason) or type(error).__name__})") from None

    def _refused(self, error: urllib.error.HTTPError, deadline: float) -> None:
        try:
            said = _error_words(_read(error, deadline))
        except (_NotNow, OSError, http.client.HTTPException):
            said = ""
        told = f"it answered {error.code}{f', {said}' if said else ''}"
        if error.code in BUSY:
            raise _NotNow(told, _asked_to_wait(error.headers))
        raise CrowdveilError(f"{self.url}: {self._without_key(told)}; check the URL, the model's name and the key")

    def _without_key(self, said: str) -> str:
        """Return a server's words without the key, which some repeat."""
        return said.replace(self.key, "***") if self.key else said


@dataclass(frozen=True)
class Program:
    """A program on this machine that reads a question from standard input and writes the reply to standard output."""

    command: str
    timeout: float = 60.0

    def __post_init__(self) -> None:
        check_timeout(self.timeout)
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise CrowdveilError(f"the command {self.command!r} cannot be read: {error}") from None
        if not words:
            raise CrowdveilError("the command to ask is empty: give a program and its arguments")

    def __call__(self, question: Question, stop: Event) -> str:
        """Run the program once."""
        try:
            done = subprocess.run(
                shlex.split(self.command),
                input=question.prompt.encode(),
                capture_output=True,
                timeout=self.timeout,
                env={**os.environ, "CROWDVEIL_SEED": str(question.seed)},
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise CrowdveilError(f"{self.command!r} gave no answer within {self.timeout:g} seconds") from None
        except OSError as error:
            raise CrowdveilError(f"cannot run {self.command!r}: {error.strerror or error}") from None
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            said = f": {_short(lines[-1])}" if lines else ""
            raise CrowdveilError(f"{self.command!r} ended with exit code {done.returncode}{said}")
        return done.stdout.decode(errors="replace")


def check_timeout(seconds: float) -> None:
    """Refuse a time limit that is none."""
    if not (seconds > 0 and math.isfinite(seconds)):
        raise CrowdveilError(f"the time limit is {seconds} seconds: give a positive number")


class _StayHere(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: the key is for the endpoint that was named, and for no other."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        """Refuse."""


_OPENER = urllib.request.build_opener(_StayHere)


def _read(answer: Any, deadline: float) -> bytes:
    """Read a body of bounded size before the deadline, however slowly it drips."""
    content = b""
    while block := answer.read1(1 << 16):
        content += block
        if time.monotonic() > deadline:
            raise TimeoutError
        if len(content) > MOST_BYTES:
            raise _NotNow(f"an answer of more than {MOST_BYTES} bytes")
    if answer.length:
        raise http.client.IncompleteRead(content, answer.length)
    return content


def _reply(content: bytes) -> str:
    """Return the text of a chat completion; a refusal in the protocol's own field is the model's words, too."""
    try:
        message = json.loads(content)["choices"][0]["message"]
        text = message.get("content")
        text = message.get("refusal") or "" if text is None else text
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        text = None
    if not isinstance(text, str):
        raise _NotNow(
            f"it does not speak the OpenAI chat protocol, it said {_short(content.decode(errors='replace'))!r}"
        )
    return text


def _error_words(content: bytes) -> str:
    try:
        said = json.loads(content)
        error = said.get("error", said)
        return _short(error.get("message", "") if isinstance(error, Mapping) else error)
    except (ValueError, AttributeError, RecursionError):
        return _short(content.decode(errors="replace"))


def _asked_to_wait(headers: Message) -> float:
    seconds = headers.get("Retry-After", "")
    return float(seconds) if seconds.isdecimal() else 0.0


def _short(said: object) -> str:
    """Return words on one line, cut off."""
    words = " ".join(str(said).split())
    return words if len(words) <= 120 else f"{words[:117]}..."
