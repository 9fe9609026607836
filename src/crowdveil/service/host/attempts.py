"""Attempts to sign in: after a few wrong ones, a visitor has to wait."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field

from crowdveil.service.server import hashed

MOST_ATTEMPTS = 5
"""Maximum number of attempts within WINDOW_SECONDS that are wrong, or not yet known to be right."""
WINDOW_SECONDS = 15 * 60
MOST_VISITORS = 10_000
"""Maximum number of visitors whose attempts are remembered."""


@dataclass(frozen=True)
class Attempts:
    """Attempts to sign in, by a keyed hash of the visitor's address.

    An attempt counts as wrong from its beginning until it succeeds: of many at the same time, no more than the allowed
    number is checked.
    """

    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _counted: dict[bytes, tuple[float, ...]] = field(default_factory=dict, repr=False)
    """Hashed address -> times of the latest attempts; whoever began last comes last."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def begin(self, address: str, now: float) -> int:
        """Count an attempt and return 0; if the visitor has to wait, count nothing and return the seconds."""
        key = hashed(address, self._key)
        with self._lock:
            recent = tuple(at for at in self._counted.get(key, ()) if at > now - WINDOW_SECONDS)
            if len(recent) >= MOST_ATTEMPTS:
                return max(1, int(recent[0] + WINDOW_SECONDS - now) + 1)
            self._counted.pop(key, None)
            self._counted[key] = (*recent, now)
            if len(self._counted) > MOST_VISITORS:
                self._counted.pop(next(iter(self._counted)))  # The visitor whose last attempt is the oldest.
        return 0

    def succeeded(self, address: str, began: float) -> None:
        """Take an attempt back: it was right."""
        key = hashed(address, self._key)
        with self._lock:
            times = list(self._counted.pop(key, ()))
            if began in times:
                times.remove(began)
            if times:
                self._counted[key] = tuple(times)
