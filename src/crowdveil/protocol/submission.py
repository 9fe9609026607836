"""A submission: what one voter's device hands to the server, under a token that lets it count once.

In a distributed poll it is a report, with the noise in it already; in a central poll a ballot, for a trusted host.
The server keeps the id that follows from a token, never the token itself.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from enum import StrEnum

TOKEN_HEADER = "Crowdveil-Ballot"
"""The HTTP header that carries a ballot token."""

_TOKEN = re.compile(r"[A-Za-z0-9_-]{21}[AQgw]")


class Kind(StrEnum):
    """The kinds of submission: private already, exact, or private already and sealed for the way through a relay."""

    REPORT = "report"
    BALLOT = "ballot"
    SEALED = "sealed"


@dataclass(frozen=True)
class Submission:
    """A vote that is ready to be sent: the exact bytes, and its token. It may be sent again, and counts once."""

    poll: str
    kind: Kind
    token: str
    body: bytes
    relay: str | None = None
    """Where a sealed report is sent; anything else goes to the host."""


class Status(StrEnum):
    """The two outcomes that have a receipt."""

    STORED = "stored"
    ALREADY_STORED = "already-stored"


@dataclass(frozen=True)
class Receipt:
    """The server's word that a submission is stored."""

    id: str
    """The report id, which follows from the token."""
    status: Status
    completion_code: str | None
    return_url: str | None


def new_token() -> str:
    """Draw a ballot token: 16 random bytes as 22 base64url characters."""
    return secrets.token_urlsafe(16)


def is_token(text: str) -> bool:
    """Whether a text is a token in its only spelling (the last character carries two bits)."""
    return _TOKEN.fullmatch(text) is not None


def report_id(token: str) -> str:
    """Return the id under which the submission of a token is stored, from which nobody gets back to the token."""
    return hashlib.sha256(f"crowdveil report {token}".encode("ascii")).hexdigest()[:32]
