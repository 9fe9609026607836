"""Axes on which single records are scored: those of the study's public design, mixed.

``design.mixing`` and ``AxisSample.mixing`` explain why. On the Moral Machine's dilemmas, mixing halves the variance
that noise on the mean clipped scores adds to the preference (trace of (J J')^-1 at a clip of 0.7: 16.3 against 32.6).
On dilemmas that differ in everything, it hardly changes it (kidney: 9.0 against 8.6). Negating every other axis before
that keeps a crowd's preference from saturating one mixed axis, on which any error of the model would weigh more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.estimation.design import CLIP, GRID, Design, measured_design
from crowdveil.study.study import Study


@dataclass(frozen=True)
class RecordAxes:
    """The axes (columns) on which records are scored, and the scores of a design's sample."""

    design: Design
    axes: IntArray
    """As ``Design.axes``: integer values x - z have the scores (x - z) @ axes."""

    def over(self, differences: FloatArray) -> RecordAxes:
        """Return the same axes over other dilemmas."""
        return replace(self, design=replace(self.design, differences=differences))

    @cached_property
    def scores(self) -> FloatArray:
        """The clipped scores of the sample, in units of the clip."""
        along = self.design.differences @ (self.axes * self.design.units[:, None] / GRID)
        return np.clip(along / CLIP, -1.0, 1.0)

    @cached_property
    def size(self) -> float:
        """The mean square of a score."""
        return float(np.mean(self.scores**2))

    @cached_property
    def signal(self) -> float:
        """The share of a small preference that the scores retain, as a root of the harmonic mean of squares over the
        directions; 1 / CLIP without clipping.
        """
        shown = self.scores.T @ self.design.along / len(self.scores)
        return float(np.sqrt(self.design.directions / np.square(np.linalg.inv(shown)).sum()))


@lru_cache(maxsize=32)
def record_axes(study: Study) -> RecordAxes:
    """Mix the axes of a study's public design along which devices report."""
    design = measured_design(study)
    return RecordAxes(design, np.rint(design.axes @ design.sample.mixing).astype(np.int64))
