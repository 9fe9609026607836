"""What the bounds do: the norm bound B (Figure 7), and the record bound that Algorithm 3 scales records by."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from crowdveil.estimation.fit import fit_voters
from crowdveil.evaluation.paper.across_epsilons import ALGORITHM_1, ALGORITHM_2, NO_PRIVACY
from crowdveil.evaluation.paper.crowds import NORM_BOUND, Source
from crowdveil.evaluation.paper.curves import (
    REPAIRED,
    algorithm1,
    algorithm2,
    algorithm3,
    papers_settings,
    same_for_all,
)
from crowdveil.evaluation.paper.experiment import rows
from crowdveil.evaluation.paper.seeds import noise


@dataclass(frozen=True)
class AcrossNormBounds:
    """Algorithms 1 and 2 on the same crowds, fitted anew for each B."""

    source: Source
    voters: int
    bounds: tuple[float, ...]
    epsilon: float

    @property
    def name(self) -> str:
        """Source, N, epsilon and the grid."""
        return f"norm bounds {self.bounds}, {self.source.name} N={self.voters} epsilon={self.epsilon}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Fit, noise and judge at each bound."""
        drawn = self.source.draw(self.voters, crowds)
        one = (self.epsilon,)
        levels = same_for_all(one, drawn)
        tables = []
        for bound in self.bounds:
            settings = papers_settings(drawn.study, bound)
            preferences = fit_voters(drawn.ballots, bound, threads=1).values
            own = drawn.by_crowd(preferences).mean(axis=1)
            named = (self.name, crowds, bound)
            learned = {
                NO_PRIVACY: own[:, None],
                ALGORITHM_1: algorithm1(drawn, preferences, settings, one, noise(*named, ALGORITHM_1)),
                ALGORITHM_2: algorithm2(drawn, preferences, settings, levels, noise(*named, ALGORITHM_2)),
            }
            for series, parameters in learned.items():
                tables += rows(crowds, series, (bound,), drawn.judge(parameters, own))
        return pl.concat(tables)


@dataclass(frozen=True)
class AcrossRecordBounds:
    """Algorithm 3, repaired, with records scaled by a smaller public bound, and cut off at it where longer."""

    source: Source
    voters: int
    bounds: tuple[float, ...]
    epsilon: float

    @property
    def name(self) -> str:
        """Source, N, epsilon and the grid."""
        return f"record bounds {self.bounds}, {self.source.name} N={self.voters} epsilon={self.epsilon}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Noise and judge at each bound."""
        drawn = self.source.draw(self.voters, crowds)
        own = drawn.by_crowd(fit_voters(drawn.ballots, NORM_BOUND, threads=1).values).mean(axis=1)
        levels = same_for_all((self.epsilon,), drawn)
        tables = []
        for bound in self.bounds:
            settings = papers_settings(replace(drawn.study, record_norm=bound), NORM_BOUND)
            learned, _ = algorithm3(drawn, REPAIRED, settings, levels, noise(self.name, crowds, bound))
            tables += rows(crowds, REPAIRED.name, (bound,), drawn.judge(learned, own))
        return pl.concat(tables)
