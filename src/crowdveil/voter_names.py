"""Voters' names, or digests of them: what tells whether two ballots are one person's."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from crowdveil.errors import CrowdveilError

DIGEST = pa.binary(16)
"""The type of a digest that stands for a voter's name."""


def as_digests(names: pa.Array) -> pa.Array:
    """Hash names to 16 bytes each (BLAKE2b). Digests stay as they are."""
    if names.type == DIGEST:
        return names
    return pa.array([hashlib.blake2b(name.encode(), digest_size=16).digest() for name in names.to_pylist()], DIGEST)


def digest_bytes(names: pa.Array) -> bytes:
    """Return the digests of names, 16 bytes each, as one string of bytes."""
    digests = as_digests(names)
    start = digests.offset * DIGEST.byte_width
    return bytes(digests.buffers()[1][start : start + len(digests) * DIGEST.byte_width])


def names_from_digests(digests: bytes) -> pa.ChunkedArray:
    """Return digests as names."""
    count = len(digests) // DIGEST.byte_width
    return pa.chunked_array([pa.Array.from_buffers(DIGEST, count, [None, pa.py_buffer(digests)])])


def join_names(names: Sequence[pa.Array | None]) -> pa.ChunkedArray | None:
    """Join the names of batches, as digests where some have only those; None where no batch has names."""
    known = [each for each in names if each is not None]
    if not known:
        return None
    if len(known) < len(names):
        raise CrowdveilError("some of the voters have names and others have none: nobody can tell who is there twice")
    mixed = len({each.type for each in known}) > 1
    return pa.chunked_array([as_digests(each) for each in known] if mixed else known)


def check_distinct(names: pa.ChunkedArray | None, where: str) -> None:
    """Refuse a crowd in which a voter occurs twice: what is promised for one ballot would not hold for two."""
    if names is None or len(names.unique()) == len(names):
        return
    whole = names.combine_chunks().dictionary_encode().indices.to_numpy()
    again = np.setdiff1d(np.arange(len(whole)), np.unique(whole, return_index=True)[1])
    doubled = len(np.unique(whole[again]))
    raise CrowdveilError(
        f"{where}: {doubled} of {len(whole) - len(again)} voters occur more than once, the first of them again at "
        f"position {again[0] + 1}: one voter is one ballot, so merge the records of each, or leave the copies out"
    )
