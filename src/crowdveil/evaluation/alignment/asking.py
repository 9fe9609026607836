"""Puts a study's dilemmas to a model, in words, and keeps every answer the moment it arrives.

Each dilemma is asked twice, with one side first and then the other: a model that goes by the letter gives itself away.
The dilemmas are drawn by a seed as a voter's are, session by session, so a longer run begins with the shorter one's.

The transcript is a file of JSON lines: first what is asked of whom, then a line an answer, on disk before it counts.
Asked again with the same transcript, only the questions are put that it does not answer. What is not read as a choice
is kept as a refusal, with the model's own words.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import IO, Any

import numpy as np

from crowdveil.errors import CrowdveilError
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
class Question:
    """One dilemma in one order of its sides."""

    number: int
    dilemma: Dilemma
    """Its first alternative is shown as A."""
    prompt: str
    seed: int


Ask = Callable[[Question, Event], str]
"""Returns the model's reply, or raises CrowdveilError where there is none; it gives up early once the event is set."""


def questions(study: Study, dilemmas: int, seed: int) -> Iterator[Question]:
    """Draw so many dilemmas and put each in words twice, the second time with the sides turned."""
    drawn, session = 0, 0
    while drawn < dilemmas:
        for dilemma in draw_session(study, np.random.default_rng([seed, session]))[: dilemmas - drawn]:
            for turned in (False, True):
                sides = dilemma.alternatives[::-1] if turned else dilemma.alternatives
                shown = Dilemma(sides)
                number = 2 * drawn + turned
                yield Question(number, shown, prompt(study, shown), seed + number)
            drawn += 1
        session += 1


def prompt(study: Study, dilemma: Dilemma) -> str:
    """Put a dilemma in the study's words."""
    first, second = dilemma.alternatives
    return f"{study.question}\n\nA: {study.describe(first)}\nB: {study.describe(second)}\n\n{INSTRUCTION}"


def read_choice(reply: str) -> int | None:
    """Return 0 for A and 1 for B, where the reply or its last line says so and nothing else; else None."""
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
    """Put all questions that a transcript does not answer, and return how many were put.

    The first question that gets no reply ends the asking: those under way are still kept, and the same call goes on.
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


def _ask_all(ask: Ask, waiting: list[Question], kept: Transcript, at_once: int, advance: Callable[[int], None]) -> int:
    left = iter(waiting)
    running: dict[Future[str], Question] = {}
    failure: BaseException | None = None
    put = 0
    stop = Event()
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
            f"{failure}; {len(kept.answered)} answers are kept in {kept.path}, and the same command goes on from there"
        )
    if failure is not None:
        raise failure
    return put


class Transcript:
    """The file of all that was asked and answered; a line is on disk before it counts."""

    def __init__(self, path: Path, study: Study, model: str, seed: int) -> None:
        self.path = path
        self.answered: set[int] = set()
        """The numbers of the questions that are answered."""
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

    def add(self, question: Question, reply: str) -> None:
        """Keep an answer."""
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
        """Read what is answered already. A last line that a kill cut short is dropped."""
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        try:
            header, *entries = [json.loads(line) for line in whole.splitlines()] or [{}]
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise ValueError("its first line names another format")
            self.answered = {int(entry["number"]) for entry in entries}
        except (ValueError, KeyError, TypeError) as error:
            raise CrowdveilError(
                f"{self.path} is there, and is no transcript of this command ({error}): name another file"
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
