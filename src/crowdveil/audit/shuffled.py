"""Shuffled reports on trial: is a crowd of reports really as private as ``shuffling.amplified_epsilon`` computes?

The mechanism is signed subset selection, of which randomised response is the case of one feature. All voters but one
are known to hold one corner of the ball; the one in question holds this corner or that. What leaves a shuffler is how
often each report was sent, which is what the attack sees.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.audit.approximate import Point
from crowdveil.audit.attack import Rows, Score
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.mechanism import Settings
from crowdveil.privacy.mechanisms.subset_selection import SubsetSelection
from crowdveil.privacy.noise.bulk_noise import BulkNoise
from crowdveil.privacy.shuffling import amplified_epsilon

DELTAS = (0.01, 0.05, 0.1)
_REPORTS_AT_ONCE = 1_000_000


@dataclass(frozen=True)
class ShuffledTrial:
    """A small crowd, since in a large one no attack sees anything, and its promise: the computed bound."""

    settings: Settings
    local: Epsilon
    """What each report promises by itself."""
    voters: int
    others: tuple[int, int]
    """The corner (feature, sign) that everybody else holds. The one in question holds (0, 1) or (0, -1)."""
    claimed_voters: int | None = None
    """A mistake: the bound of a crowd of another size."""
    forget_delta: bool = False
    """A mistake: the bound is taken for a pure epsilon."""
    shuffle: bool = True
    """Without it, a mistake: the reports are passed on in the order of their voters."""

    name = SubsetSelection.name
    paradigm = "vldp"
    how = "opposite corners, all others at one"
    reach = None

    @property
    def remark(self) -> str:
        """Who is shuffled."""
        features = self.settings.study.dimension
        return f"shuffled, {self.voters} voters, d = {features}" + (" (randomised response)" if features == 1 else "")

    @property
    def promised(self) -> Sequence[Point]:
        """The computed bound, at some deltas."""
        voters = self.voters if self.claimed_voters is None else self.claimed_voters
        bounds = [(amplified_epsilon(self.local.value, voters, delta), delta) for delta in DELTAS]
        return [Point(epsilon, 0.0 if self.forget_delta else delta) for epsilon, delta in bounds if epsilon > 0]

    def sample(self, left: bool, draws: int) -> Rows:
        """Let the crowd report again and again, and count the reports (or keep the first voter's, if not shuffled)."""
        at_once = max(1, _REPORTS_AT_ONCE // self.voters)
        sizes = [min(at_once, draws - start) for start in range(0, draws, at_once)]
        return np.concatenate([self._runs(left, size) for size in sizes])

    def scores(self) -> Sequence[Score]:
        """The likelihood ratio of two shuffled crowds.

        With P the law of the report in question and Q that of all others, the shuffled reports r_1, ..., r_N are
        sum_i P(r_i) / Q(r_i) / N times as likely as if everybody's law were Q.
        """
        if not self.shuffle:
            return []
        others = self._law(*self.others)
        left, right = self._law(0, 1) / others, self._law(0, -1) / others
        return [lambda rows: np.asarray(np.log(rows @ left) - np.log(rows @ right))]

    def noise_p_value(self, rows: Rows) -> None:
        """No noise is added."""

    def same_release(self) -> bool:
        """The rows are all that leaves."""
        return True

    def _runs(self, left: bool, runs: int) -> IntArray:
        d = self.settings.study.dimension
        held = np.zeros((runs, self.voters, d))
        held[:, :, self.others[0]] = self.others[1] * self.settings.norm_bound
        held[:, 0] = 0.0
        held[:, 0, 0] = self.settings.norm_bound if left else -self.settings.norm_bound
        epsilons = Epsilons.same(self.local, runs * self.voters)
        reports = SubsetSelection().perturb(held.reshape(-1, d), self.settings, epsilons, BulkNoise())
        if not self.shuffle:
            return np.asarray(reports.values.reshape(runs, self.voters, d)[:, 0])
        codes = _codes(reports.values) + np.repeat(np.arange(runs) * 3**d, self.voters)
        return np.bincount(codes, minlength=runs * 3**d).reshape(runs, 3**d)

    def _law(self, feature: int, sign: int) -> FloatArray:
        """How likely each possible report is for a corner, up to a factor: e^epsilon or 1 (the mechanism's theorem)."""
        d = self.settings.study.dimension
        possible = np.stack(np.meshgrid(*[(-1, 0, 1)] * d, indexing="ij"), axis=-1).reshape(-1, d)
        law = np.empty(3**d)
        law[_codes(possible)] = np.where(possible[:, feature] == sign, math.exp(self.local.value), 1.0)
        return law


def _codes(reports: IntArray) -> IntArray:
    """Number reports of signs and zeros."""
    return np.asarray((reports + 1) @ 3 ** np.arange(reports.shape[1]))
