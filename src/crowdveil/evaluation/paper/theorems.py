"""How often Theorems 2 and 4 keep their promise: the share of releases and reports within the stated error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from crowdveil.estimation.fit import fit_voters
from crowdveil.evaluation.paper.across_epsilons import ALGORITHM_1, ALGORITHM_2
from crowdveil.evaluation.paper.crowds import NORM_BOUND, Source
from crowdveil.evaluation.paper.curves import papers_settings
from crowdveil.evaluation.paper.experiment import rows
from crowdveil.evaluation.paper.seeds import noise
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.grid import from_steps, to_steps
from crowdveil.privacy.mechanisms.algorithm1 import Algorithm1
from crowdveil.privacy.mechanisms.algorithm2 import Algorithm2
from crowdveil.privacy.mechanisms.mechanism import Measurement
from crowdveil.privacy.planning.accuracy import error_bound

WITHIN = "within the stated error"
GAMMAS = (0.5, 0.2, 0.1)
RELEASES = 2000
"""Releases per crowd, and (about) as many reports."""


@dataclass(frozen=True)
class UtilityTheorems:
    """Algorithms 1 and 2, run again and again on the same crowds."""

    source: Source
    voters: int
    epsilon: float

    @property
    def name(self) -> str:
        """Source, N and epsilon."""
        return f"theorems 2 and 4, {self.source.name} N={self.voters} epsilon={self.epsilon}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Count, for each gamma, how many errors stay within the theorem's alpha."""
        drawn = self.source.draw(self.voters, crowds)
        settings, level = papers_settings(drawn.study, NORM_BOUND), Epsilon(self.epsilon)
        d = drawn.study.dimension
        everyone = to_steps(fit_voters(drawn.ballots, NORM_BOUND, threads=1).values, NORM_BOUND)
        central, distributed = noise(self.name, crowds, ALGORITHM_1), noise(self.name, crowds, ALGORITHM_2)
        errors1, errors2 = [], []
        for preferences in from_steps(drawn.by_crowd(everyone), NORM_BOUND):
            total = to_steps(preferences, NORM_BOUND).sum(axis=0)
            measured = Measurement(total, self.voters, drawn.ballots.records // len(crowds))
            exact = preferences.mean(axis=0)
            releases = [Algorithm1().release(measured, settings, level, central).parameter for _ in range(RELEASES)]
            errors1.append(np.abs(np.array(releases) - exact).max(axis=1))
            repeated = np.tile(preferences, (RELEASES // self.voters, 1))
            levels = np.full(len(repeated), level.micro)
            reports = Algorithm2().perturb(repeated, settings, levels, distributed)
            errors2.append(np.abs(from_steps(reports.values, NORM_BOUND) - repeated).max(axis=1))
        tables = []
        for series, voters, errors in ((ALGORITHM_1, self.voters, errors1), (ALGORITHM_2, 1, errors2)):
            alphas = [error_bound(voters, d, NORM_BOUND, self.epsilon, 1 - gamma) for gamma in GAMMAS]
            within = np.array([[np.mean(crowd <= alpha) for alpha in alphas] for crowd in errors])
            tables += rows(crowds, series, GAMMAS, {WITHIN: within})
        return pl.concat(tables)
