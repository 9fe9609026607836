"""Accuracy against the settings of personal epsilons (Figures 6 and 9): Algorithm 3, as the paper has it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from crowdveil.estimation.fit import fit_voters
from crowdveil.evaluation.paper.crowds import NORM_BOUND, Source
from crowdveil.evaluation.paper.curves import CUT, PRINTED, RAW_REPAIRED, REPAIRED, algorithm3, papers_settings
from crowdveil.evaluation.paper.experiment import rows
from crowdveil.evaluation.paper.groups import Groups
from crowdveil.evaluation.paper.seeds import generator, noise

PERSONAL_VARIANTS = (PRINTED, REPAIRED, CUT, RAW_REPAIRED)


@dataclass(frozen=True)
class AcrossPersonalEpsilons:
    """One panel: the same crowds under each setting of the voters' groups."""

    source: Source
    voters: int
    panel: str
    settings: tuple[tuple[float, Groups], ...]

    @property
    def name(self) -> str:
        """Source, N, and every setting in full."""
        return f"personal epsilons, {self.panel}, {self.source.name} N={self.voters} {self.settings}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Draw the voters' epsilons anew for every setting and crowd."""
        drawn = self.source.draw(self.voters, crowds)
        public = papers_settings(drawn.study, NORM_BOUND)
        own = drawn.by_crowd(fit_voters(drawn.ballots, NORM_BOUND, threads=1).values).mean(axis=1)
        points = tuple(point for point, _ in self.settings)
        levels = np.stack(
            [
                np.concatenate([groups.draw(self.voters, generator(self.name, point, crowd)) for crowd in crowds])
                for point, groups in self.settings
            ]
        )
        tables = []
        for variant in PERSONAL_VARIANTS:
            learned, _ = algorithm3(drawn, variant, public, levels, noise(self.name, crowds, variant.name))
            tables += rows(crowds, variant.name, points, drawn.judge(learned, own))
        return pl.concat(tables)
