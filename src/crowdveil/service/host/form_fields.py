"""Reading single fields of a form."""

from __future__ import annotations

import re
import unicodedata

from crowdveil.errors import CrowdveilError

Fields = dict[str, str]

_LANGUAGES = {
    "ar": "Arabic",
    "zh": "Chinese",
    "fr": "French",
    "de": "German",
    "ja": "Japanese",
    "ko": "Korean",
    "pt": "Portuguese",
    "ru": "Russian",
    "es": "Spanish",
}


def language_name(language: str) -> str:
    """Return the English name of a language of the interface."""
    return _LANGUAGES.get(language, language)


def slug(words: str) -> str:
    """Make a name of words: small letters, digits and -.

    >>> slug("Who gets the last café?"), slug("誰")
    ('who-gets-the-last-cafe', 'poll')
    """
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-") or "poll"


def whole(given: str, what: str) -> int:
    """Read a whole number."""
    if not re.fullmatch(r"-?\d{1,12}", given):
        raise CrowdveilError(f"{what}: give a whole number, got {given!r}")
    return int(given)


def decimal(given: str, what: str) -> float:
    """Read a number."""
    try:
        return float(given)
    except ValueError:
        raise CrowdveilError(f"{what}: give a number, got {given!r}") from None


def lines(given: str) -> list[str]:
    """Return the lines of a field that are not empty."""
    return [line.strip() for line in given.splitlines() if line.strip()]


def between_commas(given: str) -> list[str]:
    """Return what stands between the commas of a field."""
    return [value.strip() for value in given.split(",") if value.strip()]
