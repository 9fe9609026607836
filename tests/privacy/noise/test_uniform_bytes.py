import threading

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from crowdveil.privacy.noise import uniform as aes_stream
from crowdveil.privacy.noise.uniform import AesStream


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 1000])
def test_the_bytes_are_the_keystream_of_a_fresh_key(monkeypatch, count):
    """Block i of the keystream is the encryption of the number i, here by AES without any mode."""
    keys = [bytes(range(32)), bytes(range(1, 33))]
    drawn = iter(keys)
    monkeypatch.setattr(aes_stream.os, "urandom", lambda size: next(drawn) if size == 32 else None)
    stream = AesStream()
    for key in keys:
        blocks = b"".join(i.to_bytes(16, "big") for i in range(count // 16 + 1))
        expected = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(blocks)[:count]
        assert stream.take(count).tobytes() == expected


def test_nothing_is_handed_out_twice():
    """Among 2^18 words of 64 bits an accidental repetition has a chance below 2^-28."""
    stream, taken = AesStream(), []
    threads = [threading.Thread(target=lambda: taken.append(stream.take(2**18))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = np.concatenate(taken).view(np.uint64)
    assert len(words) == len(np.unique(words)) == 2**18
