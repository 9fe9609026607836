"""What every published file has in common: a promise, and a checksum by which it is written and read again.

A file is JSON that a person can read and that needs nothing beside it. One that was edited by hand or cut short is
refused. (The checksum catches accidents; it is no signature.)
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from crowdveil.arguments import path_of
from crowdveil.errors import CrowdveilError
from crowdveil.files import write_text
from crowdveil.privacy.guarantee import Guarantee
from crowdveil.study.plain_data import canonical_json
from crowdveil.study.study import Study

EFFECTS_FORMAT = "crowdveil effects 1"
"""Of a file of effects (``effect_release``), which decides nothing."""


class Publication(ABC):
    """Numbers that may be published, with the promise that they were made under."""

    guarantee: Guarantee
    mechanism: str
    sampler: str
    """Where the noise came from, in words."""
    exact: bool
    """False for floating-point noise, which is for experiments and protects nobody."""
    facts: Mapping[str, Any]
    ledger: Mapping[str, Any] | None
    """The ledger's id and entry that it was charged to."""
    version: str
    on_save: Callable[[str], None] | None
    """Told the digest once the file is durably in place: the ledger that was charged notes the delivery."""

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """Return what the file says beside its promise: format, study and numbers."""

    def as_dict(self) -> dict[str, Any]:
        """Return the plain data of the file, checksum included."""
        content = self.content()
        noise = {**content.get("noise", {}), "sampler": self.sampler, "exact": self.exact}
        content |= {
            "guarantee": self.guarantee.as_dict(),
            "mechanism": self.mechanism,
            "noise": noise,
            "facts": dict(self.facts),
            "ledger": None if self.ledger is None else dict(self.ledger),
            "crowdveil": self.version,
        }
        return {**content, "checksum": checksum(content)}

    @property
    def digest(self) -> str:
        """The checksum: names this file and no other."""
        return str(self.as_dict()["checksum"])

    def save(self, path: str | PathLike[str]) -> None:
        """Write the file, whole or not at all."""
        write_text(path_of(path), json.dumps(self.as_dict(), indent=2, ensure_ascii=False) + "\n")
        if self.on_save is not None:
            self.on_save(self.digest)


def check_exact(published: Publication, allow_experiment: bool) -> None:
    """Refuse what protects nobody, unless it is allowed by name."""
    if not published.exact and not allow_experiment:
        raise CrowdveilError(
            "it was made with floating-point noise, which protects nobody: it is for experiments only "
            "(allow it by name with --allow-experiment)"
        )


def study_of(data: Mapping[str, Any]) -> Study:
    """Return the study in the plain data of a file, and refuse one that is not the one that the file names."""
    study = Study.from_dict(data["study"])
    if study.fingerprint != data["study_fingerprint"]:
        raise CrowdveilError("the study in it does not have the fingerprint that the file names")
    return study


def read_json(path: Path) -> Any:
    """Read the plain data of a file that was published."""
    if path.is_dir():
        raise CrowdveilError("it is a directory, not a release file")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CrowdveilError(f"cannot read the release file: {error.strerror or error}") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CrowdveilError(f"it is not a release file: it is not JSON ({error})") from None


def checked_content(data: Any, expected: str) -> None:
    """Refuse plain data of another format, or that was changed since it was made."""
    found = data.get("format") if isinstance(data, dict) else type(data).__name__
    if found != expected and found == EFFECTS_FORMAT:
        raise CrowdveilError(
            "it holds effects, which decide nothing: make a release of preferences with crowdveil release"
        )
    if found != expected:
        raise CrowdveilError(f"not a release that this version reads: its format is {found!r}, expected {expected!r}")
    content = {key: value for key, value in data.items() if key != "checksum"}
    try:
        right = checksum(content)
    except ValueError:
        raise CrowdveilError("it holds numbers that are not finite: the release is damaged") from None
    if data.get("checksum") != right:
        raise CrowdveilError(
            "its checksum does not match: it was edited or damaged after it was made; get the original"
        )


def checksum(content: Mapping[str, Any]) -> str:
    """Return what a published file is known by; it catches accidents, and is no signature."""
    return hashlib.sha256(canonical_json(content).encode(errors="surrogatepass")).hexdigest()
