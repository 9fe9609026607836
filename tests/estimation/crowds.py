"""Voters to fit: of the Moral Machine's shape, of the paper's synthetic shape, and awkward ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.arrays import IntArray

Crowd = tuple[NDArray[Any], IntArray]


def even_offsets(voters: int, records: int) -> IntArray:
    return np.arange(voters + 1, dtype=np.int64) * records


def answered(rng: np.random.Generator, differences: NDArray[Any], voters: int) -> NDArray[Any]:
    """Turn each difference the way that a voter of the probit model, drawn at random, would choose."""
    records, features = differences.shape[0] // voters, differences.shape[1]
    beta = np.repeat(rng.normal(size=(voters, features)), records, axis=0)
    utility = np.einsum("ij,ij->i", differences, beta) + rng.normal(size=differences.shape[0])
    return np.where(utility[:, None] < 0, -differences, differences)


def moral_machine(voters: int, seed: int = 0) -> Crowd:
    """13 dilemmas a voter, 23 features: three of the scenario and 20 counts of characters, 1 to 5 a side."""
    rng = np.random.default_rng(seed)
    dilemmas = 13 * voters
    sides = [np.zeros((dilemmas, 20), dtype=np.int64) for _ in range(2)]
    for side in sides:
        size = rng.integers(1, 6, dilemmas)
        for i in range(5):
            present = np.flatnonzero(size > i)
            side[present, rng.integers(0, 20, present.size)] += 1
    scenario = rng.integers(-1, 2, (dilemmas, 3))
    differences = np.hstack([scenario, sides[0] - sides[1]])
    return answered(rng, differences, voters).astype(np.int8), even_offsets(voters, 13)


def gaussian(voters: int, records: int = 50, features: int = 10, seed: int = 0) -> Crowd:
    """The paper's synthetic records: differences of two standard normal outcomes."""
    rng = np.random.default_rng(seed)
    differences = rng.normal(scale=np.sqrt(2.0), size=(voters * records, features))
    return answered(rng, differences, voters), even_offsets(voters, records)


def awkward(records: int, features: int, seed: int = 0) -> dict[str, Crowd]:
    """20 voters of each awkward kind."""
    rng = np.random.default_rng(seed)
    voters = 20
    rows = voters * records
    normal = rng.normal(size=(rows, features))
    hidden = np.repeat(rng.normal(size=(voters, features)), records, axis=0)
    side = np.where(np.einsum("ij,ij->i", normal, hidden) < 0, -1.0, 1.0)[:, None]
    wrong = np.where(rng.random((rows, 1)) < 0.1, -1.0, 1.0)
    signs = rng.integers(-1, 2, (rows, features)).astype(np.int8)
    kinds: dict[str, NDArray[Any]] = {
        "separable": normal * side,
        "one in ten wrong": normal * side * wrong,
        "no pattern": normal,
        "signs": signs,
        "all in favour": np.abs(signs),
        "one feature, copied": np.repeat(signs[:, :1], features, axis=1),
        "mostly zero": signs * (rng.random((rows, 1)) < 0.3).astype(np.int8),
        "every record twice": np.repeat(normal[: (rows + 1) // 2], 2, axis=0)[:rows],
        "contradictory": normal * np.where(np.arange(rows) % 2, 1.0, -1.0)[:, None],
        "rank two": rng.normal(size=(rows, 2)) @ rng.normal(size=(2, features)),
        "units of all sizes": normal * side * wrong * 10.0 ** rng.integers(-3, 3, features),
    }
    return {kind: (differences, even_offsets(voters, records)) for kind, differences in kinds.items()}
