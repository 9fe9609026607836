"""Random orders, every one equally likely."""

from __future__ import annotations

import numpy as np

from crowdveil.arrays import IntArray
from crowdveil.privacy.noise.source import Noise

_KEYS = 2**62


def random_orders(rows: int, places: int, noise: Noise) -> IntArray:
    """Return a uniformly random permutation of 0..places-1 in every row.

    Sorting independent keys gives each order with the same probability as long as no two keys are equal; a row with
    equal keys is drawn again, so that the law is exact.
    """
    keys = noise.uniform(_KEYS, rows, places)
    while True:
        ordered = np.sort(keys, axis=1)
        tied = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if len(tied) == 0:
            return np.argsort(keys, axis=1)
        keys[tied] = noise.uniform(_KEYS, len(tied), places)
