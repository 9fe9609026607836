"""Random bytes in bulk: the operating system's randomness, stretched by AES-256 in counter mode."""

import os
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from crowdveil.arrays import ByteArray, WordArray

KEY_BYTES = 32


class ByteSource(Protocol):
    """Where a sampler's random bytes come from."""

    def take(self, count: int) -> ByteArray:
        """Return `count` bytes, uniform, independent of each other and of all bytes taken before."""
        ...


def take_words(source: ByteSource, count: int) -> WordArray:
    """Return `count` uniform words of 64 bits, eight bytes of the source for each."""
    return source.take(8 * count).view(np.dtype("<u8"))


class AesStream:
    """Bytes that nobody can tell from uniform ones, at several gigabytes a second.

    Each `take` asks the operating system for a fresh 256-bit key, expands it into the bytes that were asked
    for and forgets it. Nothing is kept from one call to the next. So there is no keystream to be used twice,
    not by a forked process, not by another thread and not by a restored snapshot of the machine, and nobody
    who reads the memory later finds a key that would give away the noise of earlier releases.

    The promise rests on AES-256 being a pseudorandom permutation: to tell n blocks of 16 bytes from uniform
    ones succeeds with an advantage of at most n^2 / 2^129 beyond an attack on AES, which for the few
    megabytes of one call is below 2^-90.
    """

    def take(self, count: int) -> ByteArray:
        """Return `count` fresh random bytes."""
        stream = np.empty(count, dtype=np.uint8)
        # The key serves this one call, so the counter may start at zero.
        cipher = Cipher(algorithms.AES(os.urandom(KEY_BYTES)), modes.CTR(bytes(16)))
        cipher.encryptor().update_into(bytes(count), stream.data)
        return stream
