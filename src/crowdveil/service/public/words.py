"""The texts of the public pages in the ten languages, and the choice of a visitor's language."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from crowdveil.study.translations import INTERFACE_LANGUAGES, OWN_LANGUAGE

_NARROW_SPACE = "\u202f"


@dataclass(frozen=True)
class PageWords:
    """The texts of the public pages in one language."""

    language: str
    """The language of the study's words. The page's own words are English if it does not have this language."""
    said: Mapping[str, str]

    def __call__(self, key: str, **values: object) -> str:
        """Return the text of a key, with ``{name}`` replaced by the value of that name."""
        words = self.said[key]
        for name, value in values.items():
            words = words.replace(f"{{{name}}}", str(value))
        return words

    @property
    def direction(self) -> str:
        """The direction of writing: ``ltr`` or ``rtl``."""
        return self.said["direction"]

    def whole(self, number: int) -> str:
        """Format a whole number with separated thousands."""
        return f"{number:,}" if self.language == OWN_LANGUAGE else f"{number:,}".replace(",", _NARROW_SPACE)


def words_of(language: str) -> PageWords:
    """Return the texts for a language, in English if there are none."""
    primary = language.partition("-")[0]
    return PageWords(language, _file(primary if primary in INTERFACE_LANGUAGES else OWN_LANGUAGE))


def own_name(language: str) -> str:
    """Return a language's name for itself."""
    return _file(language)["own_name"] if language in INTERFACE_LANGUAGES else language


def pick_language(offered: Sequence[str], asked: str | None, header: str) -> str:
    """Choose a language: the one that the address asks for, else the one that the browser prefers, else the first.

    >>> pick_language(["en", "fr", "pt-BR"], None, "de;q=0.9, pt;q=0.8, en;q=0.1")
    'pt-BR'
    """
    for tag in (*([asked] if asked else []), *_accepted(header)):
        for same in (lambda one, tag=tag: one == tag, lambda one, tag=tag: _primary(one) == _primary(tag)):
            if found := next(filter(same, offered), None):
                return found
    return offered[0]


def _primary(tag: str) -> str:
    return tag.lower().partition("-")[0]


def _accepted(header: str) -> list[str]:
    """Return the languages that a browser accepts, the most preferred first."""
    weighted = []
    for place, part in enumerate(header.split(",")):
        tag, _, weight = part.strip().partition(";q=")
        try:
            weighted.append((-float(weight or 1), place, tag.strip()))
        except ValueError:
            continue
    return [tag for weight, _, tag in sorted(weighted) if tag and weight < 0]


@cache
def _file(language: str) -> dict[str, Any]:
    file = resources.files("crowdveil.service.public").joinpath("languages", f"{language}.json")
    read: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return read
