"""Accuracy against epsilon: all three algorithms on the same crowds, beside no privacy at all (Figures 1-5, 8, 10)."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from crowdveil.estimation.fit import fit_voters
from crowdveil.evaluation.paper.crowds import NORM_BOUND, Source
from crowdveil.evaluation.paper.curves import (
    VARIANTS,
    algorithm1,
    algorithm2,
    algorithm3,
    papers_settings,
    same_for_all,
)
from crowdveil.evaluation.paper.experiment import NO_PRIVACY_AT, rows
from crowdveil.evaluation.paper.seeds import noise

ALGORITHM_1, ALGORITHM_2 = "algorithm 1", "algorithm 2"
NO_PRIVACY = "no privacy, B = 2"
WITHOUT_MAXIMUM = "voters whose objective has no maximum"


@dataclass(frozen=True)
class AcrossEpsilons:
    """One source, one crowd size, every algorithm at every epsilon of the paper."""

    source: Source
    voters: int
    epsilons: tuple[float, ...]

    @property
    def name(self) -> str:
        """Source, N, and the grid."""
        return f"epsilons {self.epsilons}, {self.source.name} N={self.voters}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Fit everybody once, then noise each epsilon."""
        drawn = self.source.draw(self.voters, crowds)
        settings = papers_settings(drawn.study, NORM_BOUND)
        preferences = fit_voters(drawn.ballots, NORM_BOUND, threads=1).values
        own = drawn.by_crowd(preferences).mean(axis=1)
        levels = same_for_all(self.epsilons, drawn)

        def seeded(series: str) -> tuple[str, str, str]:
            return self.name, str(crowds), series

        tables = rows(crowds, NO_PRIVACY, (NO_PRIVACY_AT,), drawn.judge(own[:, None], own))
        learned = algorithm1(drawn, preferences, settings, self.epsilons, noise(*seeded(ALGORITHM_1)))
        tables += rows(crowds, ALGORITHM_1, self.epsilons, drawn.judge(learned, own))
        learned = algorithm2(drawn, preferences, settings, levels, noise(*seeded(ALGORITHM_2)))
        tables += rows(crowds, ALGORITHM_2, self.epsilons, drawn.judge(learned, own))
        for variant in VARIANTS:
            learned, without = algorithm3(drawn, variant, settings, levels, noise(*seeded(variant.name)))
            tables += rows(crowds, variant.name, self.epsilons, drawn.judge(learned, own))
            tables += rows(crowds, variant.name, self.epsilons, {WITHOUT_MAXIMUM: without})
        return pl.concat(tables)
