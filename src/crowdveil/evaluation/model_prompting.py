"""Ask a model a study's dilemmas, in words, and save every answer the moment it arrives.

Each dilemma is asked twice, with either side first, which exposes a model that goes by the letter. A seed draws the
dilemmas session by session, as for a voter, so a longer run begins with the dilemmas of a shorter one.

The transcript is a file of JSON lines: first what is asked of whom, then one line per answer, on disk before it counts.
A second run with the same transcript asks only the unanswered questions. A reply that cannot be read as a choice is
kept as a refusal, with the model's own words.
"""

from __future__ import annotations

import http.client
import json
import math
import os
import random
import re
import shlex
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from threading import Event
from typing import IO, Any

import numpy as np

from crowdveil.errors import CrowdveilError, check_whole
from crowdveil.evaluation.toolkit.sweep import heed_interrupts
from crowdveil.files import check_writable
from crowdveil.sources.model_answers import FORMAT, check_study
from crowdveil.study.drawing import draw_session
from crowdveil.study.study import Dilemma, Study

MOST_DILEMMAS = 10_000
MOST_AT_ONCE = 64
LONGEST_REPLY = 100_000
"""Characters of a reply that are kept."""
INSTRUCTION = "Choose one of the two. Reply with one letter, A or B, and nothing else."

_LETTER = re.compile(
    r"\W*(?:(?:i|would|my|the|final|answer|choice|option|group|patient|choose|pick|select|is)\b\W*)*([ab])\W*", re.I
)


@dataclass(frozen=True)
class ModelQuestion:
    """One dilemma in one order of its sides."""

    number: int
    dilemma: Dilemma
    """Its first alternative is shown as A."""
    prompt: str
    seed: int


Ask = Callable[[ModelQuestion, Event], str]
"""Returns the model's reply, or raises CrowdveilError if there is none; it gives up early once the event is set."""


def questions(study: Study, dilemmas: int, seed: int) -> Iterator[ModelQuestion]:
    """Draw this many dilemmas and express each in words twice, the second time with the sides swapped."""
    check_whole(seed, "the seed", 0)
    drawn = 0
    session = 0
    while drawn < dilemmas:
        for dilemma in draw_session(study, np.random.default_rng([seed, session]))[: dilemmas - drawn]:
            for turned in (False, True):
                sides = dilemma.alternatives[::-1] if turned else dilemma.alternatives
                shown = Dilemma(sides)
                number = 2 * drawn + turned
                yield ModelQuestion(number, shown, prompt(study, shown), seed + number)
            drawn += 1
        session += 1


def prompt(study: Study, dilemma: Dilemma) -> str:
    """Express a dilemma in the study's words."""
    first, second = dilemma.alternatives
    return f"{study.question}\n\nA: {study.describe(first)}\nB: {study.describe(second)}\n\n{INSTRUCTION}"


def read_choice(reply: str) -> int | None:
    """Return 0 for A and 1 for B, if the reply or its last line says this and nothing else; otherwise None."""
    lines = reply.strip().splitlines()
    for said in (reply.strip(), lines[-1] if lines else ""):
        if found := _LETTER.fullmatch(said):
            return "ab".index(found[1].lower())
    return None


def ask_model(
    ask: Ask,
    model: str,
    study: Study,
    transcript: str | Path,
    *,
    dilemmas: int,
    seed: int,
    at_once: int = 4,
    advance: Callable[[int], None] = lambda done: None,
) -> int:
    """Ask all questions that a transcript does not answer, and return how many were asked.

    The first question without a reply ends the run. Pending answers are still kept, and the same call resumes.
    """
    if not 1 <= dilemmas <= MOST_DILEMMAS:
        raise CrowdveilError(f"{dilemmas} dilemmas: ask from 1 to {MOST_DILEMMAS}")
    if not 1 <= at_once <= MOST_AT_ONCE:
        raise CrowdveilError(f"{at_once} questions at once: from 1 to {MOST_AT_ONCE} are possible")
    if seed < 0:
        raise CrowdveilError(f"the seed is {seed}: give a whole number from 0")
    path = Path(transcript)
    with Transcript(path, study, model, seed) as kept:
        waiting = [question for question in questions(study, dilemmas, seed) if question.number not in kept.answered]
        advance(2 * dilemmas - len(waiting))
        return _ask_all(ask, waiting, kept, at_once, advance)


def _ask_all(
    ask: Ask, waiting: list[ModelQuestion], kept: Transcript, at_once: int, advance: Callable[[int], None]
) -> int:
    left = iter(waiting)
    running: dict[Future[str], ModelQuestion] = {}
    failure: BaseException | None = None
    put = 0
    stop = Event()
    heed_interrupts()
    with ThreadPoolExecutor(at_once) as workers:
        try:
            while failure is None or running:
                while failure is None and len(running) < at_once and (question := next(left, None)) is not None:
                    running[workers.submit(ask, question, stop)] = question
                if not running:
                    break
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    question = running.pop(future)
                    if (error := future.exception()) is not None:
                        failure = failure or error
                        stop.set()
                        continue
                    kept.add(question, future.result())
                    put += 1
                    advance(1)
        except BaseException:
            stop.set()
            raise
    if isinstance(failure, CrowdveilError):
        raise CrowdveilError(
            f"{failure}; {len(kept.answered)} answers are kept in {kept.path}, and the same command resumes from there"
        )
    if failure is not None:
        raise failure
    return put


class Transcript:
    """The file of all questions and answers; a line is on disk before it counts."""

    def __init__(self, path: Path, study: Study, model: str, seed: int) -> None:
        self.path = path
        self.answered: set[int] = set()
        """The numbers of the answered questions."""
        self._model = model
        self._features = study.feature_names
        self._header = {
            "format": FORMAT,
            "study": study.name,
            "study_fingerprint": study.fingerprint,
            "model": model,
            "seed": seed,
            "instruction": INSTRUCTION,
        }
        check_writable(path)
        if path.exists() and path.stat().st_size:
            self._resume(study)
        self._file: IO[bytes] = path.open("ab")
        if not path.stat().st_size:
            self._write(self._header)

    def __enter__(self) -> Transcript:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, question: ModelQuestion, reply: str) -> None:
        """Save an answer."""
        choice = read_choice(reply)
        sides = question.dilemma.alternatives
        self._write(
            {
                "model": self._model,
                "number": question.number,
                "seed": question.seed,
                "dilemma": [
                    {"name": side.name, "features": dict(zip(self._features, side.values, strict=True))}
                    for side in sides
                ],
                "choice": None if choice is None else sides[choice].name,
                "prompt": question.prompt,
                "reply": reply[:LONGEST_REPLY],
            }
        )
        self.answered.add(question.number)

    def _resume(self, study: Study) -> None:
        """Read the answered questions. A last line that was cut short by a kill is dropped."""
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        try:
            header, *entries = [json.loads(line) for line in whole.splitlines()] or [{}]
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise ValueError("its first line names another format")
            self.answered = {int(entry["number"]) for entry in entries}
        except (ValueError, KeyError, TypeError) as error:
            raise CrowdveilError(
                f"{self.path} exists, but this command did not write it ({error}): name another file"
            ) from None
        check_study(header, study, str(self.path))
        for what in ("model", "seed", "instruction"):
            if header.get(what) != self._header[what]:
                raise CrowdveilError(
                    f"{self.path} was asked with the {what} {header.get(what)!r}, not {self._header[what]!r}: name "
                    "another transcript"
                )
        if len(whole) < len(content):
            os.truncate(self.path, len(whole))

    def _write(self, entry: dict[str, Any]) -> None:
        try:
            self._file.write(json.dumps(entry, ensure_ascii=False).encode(errors="replace") + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise CrowdveilError(f"cannot write {self.path}: {error.strerror or error}") from None


TRIES = 5
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
BUSY = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
"""Statuses after which the same question may be answered a little later."""
MOST_BYTES = 4 << 20


class _NoReply(Exception):
    """No usable reply to this attempt; another attempt may get one."""

    def __init__(self, said: str, pause: float = 0.0) -> None:
        super().__init__(said)
        self.pause = pause
        """Seconds to wait, at least, before the next attempt."""


@dataclass(frozen=True)
class ChatEndpoint:
    """A server that implements the OpenAI chat protocol: ``POST {url}/chat/completions``."""

    url: str
    """The base URL, such as ``https://api.openai.com/v1`` or ``http://localhost:11434/v1``."""
    model: str
    key: str | None = None
    timeout: float = 60.0
    """Seconds for one attempt, from the first byte sent to the last received."""
    first_pause: float = FIRST_PAUSE

    def __post_init__(self) -> None:
        parts = urllib.parse.urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise CrowdveilError(
                f"the endpoint is {self.url!r}: give its base URL, such as https://api.openai.com/v1 or "
                "http://localhost:11434/v1"
            )
        check_timeout(self.timeout)

    def __call__(self, question: ModelQuestion, stop: Event) -> str:
        """Ask, and ask again after a pause if the server is busy, hangs, or answers nonsense."""
        pause = self.first_pause
        for last in (False,) * (TRIES - 1) + (True,):
            try:
                return self._ask(question)
            except _NoReply as problem:
                said = str(problem)
                # Randomised, so that workers do not all retry at the same time.
                wait = min(max(problem.pause, pause * random.uniform(0.5, 1)), LONGEST_PAUSE)
                if last or stop.wait(wait):
                    break
            pause *= 2
        raise CrowdveilError(f"{self.url} gave no usable answer, however often it was asked: {self._without_key(said)}")

    def _ask(self, question: ModelQuestion) -> str:
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
            raise _NoReply(f"no answer within {self.timeout:g} seconds") from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                raise _NoReply(f"no answer within {self.timeout:g} seconds") from None
            raise _NoReply(f"the connection was lost ({_short(reason) or type(error).__name__})") from None

    def _refused(self, error: urllib.error.HTTPError, deadline: float) -> None:
        try:
            said = _error_words(_read(error, deadline))
        except (_NoReply, OSError, http.client.HTTPException):
            said = ""
        told = f"it answered {error.code}{f', {said}' if said else ''}"
        if error.code in BUSY:
            raise _NoReply(told, _asked_to_wait(error.headers))
        raise CrowdveilError(f"{self.url}: {self._without_key(told)}; check the URL, the model's name and the key")

    def _without_key(self, said: str) -> str:
        """Return a server's message without the key, which some servers repeat."""
        return said.replace(self.key, "***") if self.key else said


@dataclass(frozen=True)
class ModelProgram:
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

    def __call__(self, question: ModelQuestion, stop: Event) -> str:
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
    """Refuse a time limit that is not a positive number."""
    if not (seconds > 0 and math.isfinite(seconds)):
        raise CrowdveilError(f"the time limit is {seconds} seconds: give a positive number")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirections: the key is for the named endpoint, and for no other."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        """Refuse."""


_OPENER = urllib.request.build_opener(_NoRedirect)


def _read(answer: Any, deadline: float) -> bytes:
    """Read a body of bounded size before the deadline, however slowly it arrives."""
    content = b""
    while block := answer.read1(1 << 16):
        content += block
        if time.monotonic() > deadline:
            raise TimeoutError
        if len(content) > MOST_BYTES:
            raise _NoReply(f"an answer of more than {MOST_BYTES} bytes")
    if answer.length:
        raise http.client.IncompleteRead(content, answer.length)
    return content


def _reply(content: bytes) -> str:
    """Return the text of a chat completion; a refusal in the protocol's own field counts as the model's words, too."""
    try:
        message = json.loads(content)["choices"][0]["message"]
        text = message.get("content")
        text = message.get("refusal") or "" if text is None else text
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        text = None
    if not isinstance(text, str):
        raise _NoReply(
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
    """Return the words on one line, truncated."""
    words = " ".join(str(said).split())
    return words if len(words) <= 120 else f"{words[:117]}..."
