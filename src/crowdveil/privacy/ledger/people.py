"""The people in a crowd, and the largest loss that any of them has had.

A ledger identifies people by numbers that can be computed from their names only with its key: AES under the key, of the
16-byte digest of a name, cut to 8 bytes. Without the key nobody can look up a name in a ledger. Two people with the
same number (for ten million people this happens with probability 3e-6) would be charged as one, which charges them too
much and never too little.

Theorem (who pays for what). Let each release be eps_i-differentially private for the voters of its crowd, and let
membership in the crowds not depend on anything that is protected. Then all releases together are E-differentially
private for a voter v, where E is the sum of the eps_i over the crowds that v is in: releases about other crowds do not
change at all when v's records do, and the rest is sequential composition. The same holds for rhos. So a release may be
made if, for everybody in its crowd, E plus the new epsilon stays within the budget.

A crowd without names, or one that was charged while the key was missing, may contain anybody in its study: all other
crowds of the study count as overlapping it as much as they can, and so do crowds of other studies for the people whom
the ledger knows in both.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.ledger.entries import Crowd

PersonArray = npt.NDArray[np.uint64]

KEY_BYTES = 32


@dataclass(frozen=True)
class KnownCrowd:
    """A crowd as a ledger knows it."""

    id: int
    study: str
    voters: int
    people: PersonArray | None = field(repr=False, compare=False)
    """The sorted numbers of its people; None if they are unknown."""

    def shared_with(self, other: KnownCrowd) -> int | None:
        """Return the number of people in both crowds; None if it is unknown."""
        if self.people is None or other.people is None:
            return None
        return len(np.intersect1d(self.people, other.people, assume_unique=True))

    def meets(self, other: KnownCrowd, crowds: Sequence[KnownCrowd]) -> bool:
        """Return whether anybody may be in both crowds."""
        if self.study == other.study and (self.people is None or other.people is None):
            return True
        return len(_in_both(_candidates(self, crowds), _candidates(other, crowds))) > 0


def most_spent(crowd: KnownCrowd, spent_on: Mapping[int, int], crowds: Sequence[KnownCrowd]) -> int:
    """Return the largest loss of anybody in a crowd, given the amount spent on each crowd, by its id."""
    charged = [(other, spent_on[other.id]) for other in crowds if spent_on.get(other.id)]
    everybody = _candidates(crowd, crowds)
    exact = np.int64 if sum(amount for _, amount in charged) < 2**63 else object
    spent = np.zeros(len(everybody), exact)
    anywhere = 0
    for other, amount in charged:
        if other.people is None and other.study == crowd.study:  # includes people whom the ledger does not know
            anywhere += amount
        else:
            spent[_in_both(everybody, _candidates(other, crowds))] += amount
    return anywhere + (int(spent.max()) if len(spent) else 0)


def _candidates(crowd: KnownCrowd, crowds: Iterable[KnownCrowd]) -> PersonArray:
    """Return the people who may be in a crowd: its own or, if it has no names, everybody known in its study."""
    if crowd.people is not None:
        return crowd.people
    known = [other.people for other in crowds if other.people is not None and other.study == crowd.study]
    return np.unique(np.concatenate(known)) if known else np.zeros(0, np.uint64)


def _in_both(everybody: PersonArray, some: PersonArray) -> npt.NDArray[np.intp]:
    """Return the positions in the first array of the people in both arrays; both are sorted."""
    if everybody is some:
        return np.arange(len(some))
    _, positions, _ = np.intersect1d(everybody, some, assume_unique=True, return_indices=True)
    return positions


def people_of(crowd: Crowd, key: bytes) -> PersonArray | None:
    """Return the sorted numbers of a crowd's people; None if it has no names."""
    # Loaded here: a program that only looks at a ledger needs no cipher.
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    if crowd.digests is None:
        return None
    # ECB reveals only which blocks are equal. Each voter is one block, and no two digests are equal, so none are.
    cipher = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()
    numbers = np.frombuffer(cipher.update(crowd.digests) + cipher.finalize(), "<u8")[::2]
    return np.unique(numbers)


def key_path(ledger: Path) -> Path:
    """Return the path of a ledger's key."""
    return ledger.with_name(f"{ledger.name}.key")


def create_key(ledger: Path) -> str:
    """Create the key of a new ledger, readable only by its owner, and return the digest that identifies the key."""
    path = key_path(ledger)
    key = os.urandom(KEY_BYTES)
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise CrowdveilError(
            f"{path} already exists, the key of a ledger that was here: move it back to its ledger, or remove it"
        ) from None
    except OSError as error:
        raise CrowdveilError(f"cannot create {path}: {error.strerror}") from None
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{key.hex()}\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise CrowdveilError(f"cannot write {path}: {error.strerror or error}") from None
    return _recognise(key)


def read_key(ledger: Path, recognised_by: str) -> bytes | None:
    """Read the key of a ledger; None if it is missing. Refuse another ledger's key."""
    path = key_path(ledger)
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CrowdveilError(f"cannot read {path}, the key of the ledger: {error}") from None
    if _recognise(key) != recognised_by:
        raise CrowdveilError(f"{path} is not the key of {ledger}: bring its own key back, or move this one away")
    return key


def _recognise(key: bytes) -> str:
    return hashlib.sha256(b"crowdveil ledger key " + key).hexdigest()
