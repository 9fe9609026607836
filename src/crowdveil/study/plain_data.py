"""Plain data, as in TOML and JSON: written in one canonical form, and checked key by key when read."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from crowdveil.errors import CrowdveilError, is_number, shown


def canonical_json(data: Any) -> str:
    """Write exactly one text per value: sorted keys, no spaces, and no NaN."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def parse_json(text: str | bytes) -> Any:
    """Read JSON. Whatever is none, nests too deeply or has a number of too many digits is a ``ValueError``.

    So is an object that has a key twice: one of the two would be lost.
    """
    try:
        return json.loads(text, object_pairs_hook=_without_doubles)
    except (json.JSONDecodeError, UnicodeDecodeError, _DoubledKeyError):
        raise
    except (ValueError, RecursionError) as error:
        raise _too_much(error) from None


class _DoubledKeyError(ValueError):
    """A key that an object has twice."""


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _DoubledKeyError(f"{next(key for key in keys if keys.count(key) > 1)!r} is there twice in one object")
    return found


def parse_toml(text: str) -> dict[str, Any]:
    """Read TOML, with a byte-order mark or without one.

    Whatever is none, nests too deeply or has a number of too many digits is a ``ValueError``.
    """
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        raise _too_much(error) from None


def _too_much(error: Exception) -> ValueError:
    nested = isinstance(error, RecursionError)
    return ValueError("it is nested too deeply" if nested else "it has a number of too many digits")


def check_keys(data: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    """Refuse data with an unknown key."""
    known = sorted(known)
    unknown = sorted(str(key) for key in data if key not in known)
    if unknown:
        raise CrowdveilError(f"{where}: unknown setting {unknown[0]!r}; known are {', '.join(known)}")


def read_toml(path: Path, what: str, needs: str | None = None) -> dict[str, Any]:
    """Read a TOML file; if it must not be empty, ``needs`` says what belongs into it."""
    if not path.exists():
        raise CrowdveilError(f"there is no {what} {path}: check its name, and the folder that you are in")
    if path.is_dir():
        raise CrowdveilError(f"{path} is a directory, and not a {what}: name a file (TOML)")
    try:
        data = parse_toml(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise CrowdveilError(f"{path} is not a readable TOML file: {error}") from None
    if needs is not None and not data:
        raise CrowdveilError(f"{path} is empty, and not a {what}: {needs}")
    return data


def need(data: Mapping[str, Any], key: str, kind: type, where: str) -> Any:
    """Return a value that must be present and of this type."""
    if key not in data:
        raise CrowdveilError(f"{where}: {key!r} is missing")
    if not isinstance(data[key], kind):
        raise CrowdveilError(f"{where}: {key!r} must be a {kind.__name__}, got {data[key]!r}")
    return data[key]


def optional(data: Mapping[str, Any], key: str, default: Any, where: str) -> Any:
    """Return a value of the default's type, or the default."""
    return need({key: default, **data}, key, type(default), where)


def number(data: Mapping[str, Any], key: str, where: str, default: float | None = None) -> float:
    """Return a number, or the default if there is one."""
    value = data.get(key, default)
    if value is None:
        raise CrowdveilError(f"{where}: {key!r} is missing")
    if not is_number(value):
        raise CrowdveilError(f"{where}: {key!r} must be a number of at most 308 digits, got {shown(value)}")
    return float(value)


def text(data: Mapping[str, Any], key: str, where: str) -> str:
    """Return a text, which must not be empty."""
    value = data.get(key)
    if not isinstance(value, str) or not value.strip():
        raise CrowdveilError(f"{where}: {key!r} must be a text that is not empty, got {value!r}")
    return value
