"""Axes on which single records are scored: those of the study's public design, mixed.

Why they are mixed, ``design.mixing`` tells. Noise on the mean of the clipped scores then shows in the preference with
half the variance on the Moral Machine's dilemmas (trace of (J J')^-1 at a clip of 0.7: 15.9 against 32.6), and with
about the same on dilemmas that differ in everything (kidney: 9.0 against 8.6).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.estimation.design import CLIP, GRID, Design, mixing, public_design
from crowdveil.study.study import Study


@dataclass(frozen=True)
class RecordAxes:
    """The axes (columns) on which records are scored, and what the scores of a design's sample are."""

    design: Design
    axes: IntArray
    """As ``Design.axes``: of integer values x - z, the score along each axis is (x - z) @ axes."""

    def over(self, differences: FloatArray) -> RecordAxes:
        """Return the same axes over other dilemmas than the study's own."""
        return replace(self, design=replace(self.design, differences=differences))

    @cached_property
    def scores(self) -> FloatArray:
        """The scores of the sample, kept within the clip and in units of it."""
        along = self.design.differences @ (self.axes * self.design.units[:, None] / GRID)
        return np.clip(along / CLIP, -1.0, 1.0)

    @cached_property
    def size(self) -> float:
        """The mean square of a score."""
        return float(np.mean(self.scores**2))

    @cached_property
    def signal(self) -> float:
        """The part of a small preference that shows in the scores, in the mean square; 1 without clipping."""
        shown = self.scores.T @ self.design.along / len(self.scores)
        return float(np.sqrt(self.design.directions / np.square(np.linalg.inv(shown)).sum()))


@lru_cache(maxsize=32)
def record_axes(study: Study) -> RecordAxes:
    """Mix the axes of a study's public design."""
    design = public_design(study)
    return RecordAxes(design, np.rint(design.axes @ mixing(design.directions)).astype(np.int64))
