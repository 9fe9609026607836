"""Accuracy against epsilon of the recommended mechanism of every paradigm, on the crowds of the paper's figures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl

from crowdveil.arrays import FloatArray
from crowdveil.evaluation.paper.crowds import Source
from crowdveil.evaluation.paper.experiment import rows
from crowdveil.evaluation.paper.noised_crowd import noised_crowd
from crowdveil.evaluation.paper.seeds import noise
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.privacy.mechanisms.registry import recommended


@dataclass(frozen=True)
class AcrossParadigms:
    """One source, one crowd size, every paradigm at every epsilon: a series a paradigm, by its name.

    The crowds are those of ``AcrossEpsilons`` with the same source and size, so that curves can be compared crowd by
    crowd. Which mechanism is recommended may change along a curve.
    """

    source: Source
    voters: int
    epsilons: tuple[float, ...]

    @property
    def name(self) -> str:
        """Source, N, and the grid."""
        return f"paradigms {self.epsilons}, {self.source.name} N={self.voters}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Fit everybody once, then release each crowd under every promise."""
        drawn = self.source.draw(self.voters, crowds)
        released = [
            noised_crowd(drawn.ballots.of(slice(first, first + self.voters)))
            for first in range(0, drawn.ballots.voters, self.voters)
        ]
        own = np.array([crowd.society for crowd in released])
        levels = [np.full(self.voters, Epsilon(epsilon).micro) for epsilon in self.epsilons]

        @cache  # one release serves every paradigm that recommends its mechanism
        def learned(mechanism: str, point: int) -> FloatArray:
            source = noise(self.name, str(crowds), mechanism, self.epsilons[point])
            return np.array([crowd.release(mechanism, levels[point], 1, source)[0] for crowd in released])

        tables = []
        for paradigm in PARADIGMS.values():
            best = [learned(recommended(paradigm, drawn.study, level), i) for i, level in enumerate(levels)]
            tables += rows(crowds, paradigm.name, self.epsilons, drawn.judge(np.stack(best, axis=1), own))
        return pl.concat(tables)
