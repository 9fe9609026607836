"""Arguments as people give them, checked where a public function is called: what was given, and what to do instead."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from crowdveil.errors import CrowdveilError


def check_type(given: object, expected: type, what: str, remedy: str) -> None:
    """Refuse an argument of another type, and say how to get the right one."""
    if not isinstance(given, expected):
        raise CrowdveilError(f"{what} is {given!r:.80}: {remedy}")


def check_whole(given: object, what: str, least: int) -> None:
    """Refuse what is not a whole number, or too small."""
    if not hasattr(given, "__index__") or isinstance(given, bool) or not given.__index__() >= least:
        raise CrowdveilError(f"{what} is {given!r:.80}: give a whole number from {least} up")


def path_of(given: object, what: str = "the path") -> Path:
    """Return a path that was given as text or as a Path."""
    if not isinstance(given, str | PathLike):
        raise CrowdveilError(f"{what} is {given!r:.80}: give a path, as text or as a Path")
    return Path(given)
