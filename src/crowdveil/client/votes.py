"""A vote on its way: sealed before it is sent, and with a receipt afterwards."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass


@dataclass(frozen=True)
class Sealed:
    """A vote that is ready to be sent: the exact bytes, and the token that lets them count once."""

    poll: str
    kind: str
    """``report`` (noise is in it already) or ``ballot`` (exact answers, for a trusted host)."""
    token: str
    body: bytes


@dataclass(frozen=True)
class Receipt:
    """What the server said about a vote. The token withdraws it, so keep it."""

    id: str
    status: str
    token: str
    completion_code: str | None
    return_url: str | None


def new_token() -> str:
    """Draw a ballot token: 16 random bytes as 22 characters."""
    return base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()
