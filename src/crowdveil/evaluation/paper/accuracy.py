"""The paper's accuracy: the share of test pairs on which two parameters choose the same side (Section 5.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crowdveil.arrays import FloatArray


def sides(pairs: npt.NDArray[Any], learned: FloatArray) -> FloatArray:
    """Return which side of each pair (rows) each learned parameter (rows) chooses: 1, -1, or 0 where indifferent."""
    result: FloatArray = np.sign(pairs @ learned.T)
    return result


def share(chosen: FloatArray, expected: FloatArray | float) -> FloatArray:
    """Return the share of pairs on which each parameter chose the expected side.

    Where either is indifferent it is counted as half right: a coin would be.
    """
    result: FloatArray = (1 + np.mean(chosen * expected, axis=0)) / 2
    return result


def same_side(pairs: npt.NDArray[Any], truth: FloatArray, learned: FloatArray) -> FloatArray:
    """Return, for each learned parameter (rows), the share of pairs decided as the truth decides them."""
    return share(sides(pairs, learned), sides(pairs, truth[None]))


def on_all_gaussian_pairs(truth: FloatArray, learned: FloatArray) -> FloatArray:
    """Return what ``same_side`` tends to as Gaussian pairs become many: 1 - angle / pi.

    A Gaussian difference has a uniformly random direction; it lies between the two hyperplanes with probability
    angle / pi. Parameters are along the last axis. A parameter of length zero decides nothing: one half.
    """
    lengths = np.linalg.norm(truth, axis=-1) * np.linalg.norm(learned, axis=-1)
    product = np.sum(truth * learned, axis=-1)
    cosine = np.divide(product, lengths, out=np.zeros_like(product), where=lengths > 0)
    result: FloatArray = 1 - np.arccos(np.clip(cosine, -1, 1)) / np.pi
    return result
