"""Seeds from names: the same name always draws the same numbers, whoever draws them and in whatever order."""

from __future__ import annotations

import hashlib

import numpy as np

from crowdveil.privacy.noise.float_noise import FloatNoiseForExperiments


def seed(*name: object) -> int:
    """Return a seed for this name: 128 bits of its SHA-256."""
    return int.from_bytes(hashlib.sha256("|".join(map(str, name)).encode()).digest()[:16], "big")


def generator(*name: object) -> np.random.Generator:
    """Return the random numbers of this name."""
    return np.random.default_rng(np.random.SeedSequence(seed(*name)))


def noise(*name: object) -> FloatNoiseForExperiments:
    """Return the noise of this name. It protects nobody."""
    return FloatNoiseForExperiments(seed(*name))
