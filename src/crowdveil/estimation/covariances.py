"""Estimated covariances: what is left of one when a known part is taken away."""

from __future__ import annotations

import numpy as np

from crowdveil.arrays import FloatArray


def at_least(covariance: FloatArray, least: FloatArray) -> FloatArray:
    """Return the nearest covariance without negative variances, with at least the variances of ``least``."""
    sizes, vectors = np.linalg.eigh(covariance)
    positive = (vectors * np.maximum(sizes, 0.0)) @ vectors.T
    return np.asarray(positive + np.diag(np.maximum(np.diag(least) - np.diag(positive), 0.0)), np.float64)
