"""About-you questions: what may be asked, what counts as an answer, and which part of it leaves a voter's device."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from crowdveil.errors import CrowdveilError
from crowdveil.study.translations import OWN_LANGUAGE

MOST_LETTERS = 1000
"""Maximum length of a free text."""
MOST_OPTIONS = 50
MOST_POINTS = 11
"""Maximum number of points on a scale."""
MOST_NOISY_LEVELS = 100
"""Maximum number of ranges of a number in a distributed poll: among more, coin tosses would hide everything."""
FURTHEST = 10**9

Texts = Mapping[str, str]
"""Language -> text."""

Answer = str | int | list[str] | dict[str, bool]
"""An option, a number, the ticked options or a free text; or, with noise, one option and whether it was ticked."""


def host_words(texts: Texts) -> str:
    """Return a text for the host: in English if there is an English version, or else in the first language."""
    return texts.get(OWN_LANGUAGE) or next(iter(texts.values()), "")


class QuestionKind(StrEnum):
    """The kinds of question."""

    SINGLE = "single"
    SEVERAL = "several"
    NUMBER = "number"
    SCALE = "scale"
    TEXT = "text"


WITH_OPTIONS = (QuestionKind.SINGLE, QuestionKind.SEVERAL)
WITH_NUMBERS = (QuestionKind.NUMBER, QuestionKind.SCALE)


@dataclass(frozen=True)
class Option:
    """One of the answers that a question offers."""

    id: str
    text: Texts


@dataclass(frozen=True)
class Question:
    """An about-you question.

    A number never leaves the device, only the range of ``step`` numbers that contains it, named by its first number.
    With a step of 1 the range is the number itself.
    """

    id: str
    text: Texts
    options: tuple[Option, ...] = ()
    kind: QuestionKind = QuestionKind.SINGLE
    required: bool = False
    low: int | None = None
    high: int | None = None
    step: int = 1
    ends: tuple[Texts, Texts] | None = None
    """The meanings of the lowest and the highest point of a scale."""
    expected: Answer | None = None
    """The answer that passes an attention check. If the server judges the check, it keeps the answer secret."""

    def __post_init__(self) -> None:
        self._check_options()
        self._check_range()
        if self.ends is not None and self.kind is not QuestionKind.SCALE:
            raise CrowdveilError(
                f"question {self.id!r}: ends are the words of a scale, not of kind {self.kind.value!r}"
            )
        if self.expected is not None:
            if self.kind is QuestionKind.TEXT:
                raise CrowdveilError(f"question {self.id!r}: a free text cannot be an attention check: offer options")
            try:
                self.exact(self.expected)
            except ValueError as error:
                raise CrowdveilError(f"question {self.id!r}: expected {error}") from None

    def _check_options(self) -> None:
        ids = [option.id for option in self.options]
        if self.kind not in WITH_OPTIONS:
            if ids:
                raise CrowdveilError(f"question {self.id!r} of kind {self.kind.value!r} takes no options, got {ids}")
        elif not 2 <= len(ids) <= MOST_OPTIONS or len(set(ids)) < len(ids):
            raise CrowdveilError(
                f"question {self.id!r} needs two or more options with different ids (up to {MOST_OPTIONS}), got {ids}"
            )

    def _check_range(self) -> None:
        if self.kind not in WITH_NUMBERS:
            if self.low is not None or self.high is not None or self.step != 1:
                raise CrowdveilError(
                    f"question {self.id!r}: low, high and step are for kinds number and scale, not {self.kind.value!r}"
                )
            return
        if self.low is None or self.high is None or not -FURTHEST <= self.low < self.high <= FURTHEST:
            raise CrowdveilError(
                f"question {self.id!r} needs low and high, whole numbers with low < high, "
                f"got {self.low} and {self.high}"
            )
        if self.kind is QuestionKind.SCALE and (self.step != 1 or self.high - self.low >= MOST_POINTS):
            raise CrowdveilError(
                f"question {self.id!r}: a scale has 2 to {MOST_POINTS} points and no step, "
                f"got {self.low} to {self.high}, step {self.step}"
            )
        if not 1 <= self.step <= self.high - self.low:
            raise CrowdveilError(
                f"question {self.id!r}: step must be from 1 to {self.high - self.low} (high - low), got {self.step}"
            )

    @property
    def levels(self) -> tuple[str, ...] | range:
        """All values that can be reported, in order: options by id, or the first number of each range."""
        if self.low is None or self.high is None:
            return tuple(option.id for option in self.options)
        return range(self.low, self.high + 1, self.step)

    def range_words(self, level: int) -> str:
        """Name the range that begins with a number: ``30``, or ``30 to 39``."""
        last = min(level + self.step - 1, level if self.high is None else self.high)
        return str(level) if last == level else f"{level} to {last}"

    def exact(self, given: Any) -> Answer:
        """Return the part of an answer that leaves the device, before noise.

        For anything that is not an answer, raise a ValueError that says what an answer must be.
        """
        match self.kind:
            case QuestionKind.SINGLE:
                if isinstance(given, str) and given in self.levels:
                    return given
                raise ValueError(f"must be one of {', '.join(map(str, self.levels))}, got {given!r}")
            case QuestionKind.SEVERAL:
                if isinstance(given, list) and all(isinstance(one, str) and one in self.levels for one in given):
                    return [str(one) for one in self.levels if one in given]
                raise ValueError(f"must be a list of some of {', '.join(map(str, self.levels))}, got {given!r}")
            case QuestionKind.TEXT:
                if isinstance(given, str) and given.strip() and len(given) <= MOST_LETTERS and _writable(given):
                    return given
                raise ValueError(
                    f"must be a text of 1 to {MOST_LETTERS:,} characters, none of them a control character"
                )
        if type(given) is int and self.low is not None and self.high is not None and self.low <= given <= self.high:
            return given - (given - self.low) % self.step
        raise ValueError(f"must be a whole number from {self.low} to {self.high}, got {given!r}")

    def check_exact(self, answer: Any) -> None:
        """Raise a ValueError if no honest device in a central poll would send this."""
        if self.exact(answer) != answer:
            numbers = f"be the first number of its range of {self.step}, from {self.low}"
            wanted = "list its options once each, in their order" if isinstance(answer, list) else numbers
            raise ValueError(f"must {wanted}, got {answer!r}")

    def check_noisy(self, answer: Any) -> None:
        """Raise a ValueError if no honest device in a distributed poll would report this."""
        if self.kind is not QuestionKind.SEVERAL:
            return self.check_exact(answer)
        if isinstance(answer, dict) and len(answer) == 1:
            ((option, ticked),) = answer.items()
            if option in self.levels and isinstance(ticked, bool):
                return None
        raise ValueError(f"must be one of {', '.join(map(str, self.levels))} and whether it was ticked, got {answer!r}")

    def passed(self, answer: Answer | None) -> bool:
        """Return whether an attention check was passed; an unanswered one was not."""
        return answer is not None and self.expected is not None and answer == self.exact(self.expected)

    def as_dict(self, *, expected: bool = True) -> dict[str, Any]:
        """Return the question as plain data, with the answer that passes a check only if ``expected``."""
        return {
            "id": self.id,
            "kind": self.kind.value,
            "text": dict(self.text),
            "required": self.required,
            "options": [{"id": option.id, "text": dict(option.text)} for option in self.options],
            "low": self.low,
            "high": self.high,
            "step": self.step,
            "ends": None if self.ends is None else [dict(end) for end in self.ends],
            "expected": self.expected if expected else None,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Question:
        """Read what ``as_dict`` wrote; missing fields take their defaults."""
        ends = data.get("ends")
        return cls(
            id=data["id"],
            text=dict(data["text"]),
            options=tuple(Option(one["id"], dict(one["text"])) for one in data.get("options") or ()),
            kind=QuestionKind(data.get("kind", QuestionKind.SINGLE)),
            required=bool(data.get("required", False)),
            low=data.get("low"),
            high=data.get("high"),
            step=data.get("step", 1),
            ends=None if ends is None else (dict(ends[0]), dict(ends[1])),
            expected=data.get("expected"),
        )


@dataclass(frozen=True)
class Attention:
    """Notice about a poll's attention checks, which voters read before they begin."""

    checks: int
    left_out: bool = False
    """Whether releases leave out voters who failed a check. Central polls only, and from the first vote on."""


def _writable(words: str) -> bool:
    """Return whether every database can store a text: no surrogates, no control characters but tabs and newlines."""
    return all(character in "\n\r\t" or unicodedata.category(character) not in ("Cc", "Cs") for character in words)
