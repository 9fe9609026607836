"""Ballot tokens and the report ids that follow from them. The server keeps ids, never tokens."""

from __future__ import annotations

import hashlib
import re
import secrets

_TOKEN = re.compile(r"[A-Za-z0-9_-]{21}[AQgw]")


def new_token() -> str:
    """Draw a ballot token: 16 random bytes as 22 base64url characters."""
    return secrets.token_urlsafe(16)


def is_token(text: str) -> bool:
    """Whether a text is a token in its only spelling (the last character carries two bits)."""
    return _TOKEN.fullmatch(text) is not None


def report_id(token: str) -> str:
    """Return the id under which the ballot of a token is stored, from which nobody gets back to the token."""
    return hashlib.sha256(f"crowdveil report {token}".encode("ascii")).hexdigest()[:32]
