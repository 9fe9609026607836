"""A source of bytes that are written down beforehand, to force rare events and to enumerate all outcomes."""

import numpy as np

ONES = 2**64 - 1


class Script:
    """A source that hands out given words, one list for each request, with ones behind."""

    def __init__(self, *requests):
        self.requests = list(requests)

    def take(self, count):
        words = self.requests.pop(0)
        assert len(words) * 8 <= count
        return np.array([*words, *[ONES] * (count // 8 - len(words))], dtype="<u8").view(np.uint8)


def word_of(p, index):
    """Binary digits 64 index + 1 to 64 index + 64 of p, a fraction."""
    return int(p * 2 ** (64 * (index + 1))) % 2**64
