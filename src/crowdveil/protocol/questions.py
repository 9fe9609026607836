"""About-you questions: what may be asked, what counts as an answer, and what of it leaves a voter's device."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from crowdveil.errors import CrowdveilError
from crowdveil.study.translations import OWN_LANGUAGE

MOST_LETTERS = 1000
"""Of a free text."""
MOST_OPTIONS = 50
MOST_POINTS = 11
"""Of a scale."""
MOST_NOISY_LEVELS = 100
"""Of a number in a distributed poll: among more, coin tosses would leave nothing to see."""
FURTHEST = 10**9

Texts = Mapping[str, str]
"""Language -> text."""

Answer = str | int | list[str] | dict[str, bool]
"""An option, a number, the options that were ticked, a free text; or, noisy, one option and whether it was ticked."""


def host_words(texts: Texts) -> str:
    """Return a text as its host reads it: in English, or in whatever language there is."""
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
    """One answer to choose from."""

    id: str
    text: Texts


@dataclass(frozen=True)
class Question:
    """An about-you question.

    Of a number only the range of ``step`` numbers that it is in ever leaves the device, named by its first number; with
    a step of 1 that is the number itself.
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
    """What the lowest and the highest point of a scale mean."""
    expected: Answer | None = None
    """An attention check: what whoever reads the question answers. Where the server judges, it tells nobody."""

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
        """All that can be reported of it, in order: options by id, or the first number of each range."""
        if self.low is None or self.high is None:
            return tuple(option.id for option in self.options)
        return range(self.low, self.high + 1, self.step)

    def range_words(self, level: int) -> str:
        """Name the range that begins with a number: ``30``, or ``30 to 39``."""
        last = min(level + self.step - 1, level if self.high is None else self.high)
        return str(level) if last == level else f"{level} to {last}"

    def exact(self, given: Any) -> Answer:
        """Return what leaves the device of an answer, without noise; a ValueError says what an answer must be."""
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
        """Raise a ValueError if no honest device of a central poll sends this."""
        if self.exact(answer) != answer:
            numbers = f"be the first number of its range of {self.step}, from {self.low}"
            wanted = "list its options once each, in their order" if isinstance(answer, list) else numbers
            raise ValueError(f"must {wanted}, got {answer!r}")

    def check_noisy(self, answer: Any) -> None:
        """Raise a ValueError if no honest device of a distributed poll reports this."""
        if self.kind is not QuestionKind.SEVERAL:
            return self.check_exact(answer)
        if isinstance(answer, dict) and len(answer) == 1:
            ((option, ticked),) = answer.items()
            if option in self.levels and isinstance(ticked, bool):
                return None
        raise ValueError(f"must be one of {', '.join(map(str, self.levels))} and whether it was ticked, got {answer!r}")

    def passed(self, answer: Answer | None) -> bool:
        """Whether an attention check was passed; a question that is left open was not."""
        return answer is not None and self.expected is not None and answer == self.exact(self.expected)

    def as_dict(self, *, expected: bool = True) -> dict[str, Any]:
        """Return the question as plain data; ``expected`` says whether to tell what passes a check."""
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
        """Read what ``as_dict`` wrote; what is missing is as it comes."""
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
    """The attention checks of a poll, as voters are told of them before they begin."""

    checks: int
    left_out: bool = False
    """Whether releases leave out whoever failed one; central polls only, and from the first vote on."""


def _writable(words: str) -> bool:
    """Whether every database can keep a text: no halves of characters, and no control characters beside new lines."""
    return all(character in "\n\r\t" or unicodedata.category(character) not in ("Cc", "Cs") for character in words)
