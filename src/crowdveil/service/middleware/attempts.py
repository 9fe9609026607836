"""How often somebody may try to sign in. Kept in memory only, and without addresses."""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
import threading
from collections import defaultdict, deque
from dataclasses import dataclass, field

MOST_ATTEMPTS = 5
WINDOW_SECONDS = 15 * 60
MOST_VISITORS = 10_000


@dataclass(frozen=True)
class Attempts:
    """Failed attempts to sign in, by a keyed hash of the visitor's address."""

    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _failed: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque), repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def wait(self, address: str, now: float) -> int:
        """Return how many seconds the visitor has to wait before the next attempt; mostly 0."""
        with self._lock:
            failed = self._recent(self._name(address), now)
            return 0 if len(failed) < MOST_ATTEMPTS else max(1, int(failed[0] + WINDOW_SECONDS - now) + 1)

    def failed(self, address: str, now: float) -> None:
        """Note a failed attempt."""
        with self._lock:
            if len(self._failed) >= MOST_VISITORS:
                self._forget(now)
            self._recent(self._name(address), now).append(now)

    def _recent(self, name: str, now: float) -> deque[float]:
        failed = self._failed[name]
        while failed and failed[0] <= now - WINDOW_SECONDS:
            failed.popleft()
        return failed

    def _forget(self, now: float) -> None:
        for name in list(self._failed):
            if not self._recent(name, now):
                del self._failed[name]

    def _name(self, address: str) -> str:
        return hashlib.blake2b(_network(address).encode(), key=self._key, digest_size=16).hexdigest()


def _network(address: str) -> str:
    """Return what one visitor cannot change at will: an IPv4 address, or the network (/64) of an IPv6 one."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    return address if parsed.version == 4 else str(ipaddress.ip_network((parsed, 64), strict=False))
