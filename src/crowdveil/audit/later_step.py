"""A later step of Fisher scoring on trial: its sum of scores at a preference that is fixed, with its noise.

Where a step looks depends on what earlier ones released, which an attacker knows. So each step has to keep its share of
epsilon at every start; here at one where scores go as far as they can.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.audit.attack import Rows
from crowdveil.audit.setups import Central
from crowdveil.estimation.design import public_design
from crowdveil.estimation.scoring_step import Step
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import Paradigm
from crowdveil.privacy.mechanisms.mechanism import Settings
from crowdveil.privacy.mechanisms.score_sums import SENSITIVITY, step_sums
from crowdveil.privacy.noise.experimental_noise import Kind, NoiseRequest
from crowdveil.privacy.noise.source import Noise
from crowdveil.study.study import Study

_SIZE = 1.5
"""Of the preference that the step starts from, along the last axis: who chooses against it surprises."""
_SCATTER = 0.25
_DEVIATIONS = 2.0
_DILEMMAS = 2_000


@dataclass(frozen=True)
class LaterStep:
    """The crowd of a central mechanism, looked at in a later step that has this share of epsilon."""

    crowd: Central
    by_voter: bool

    remark = "a later step"

    @property
    def name(self) -> str:
        """The mechanism's name."""
        return self.crowd.name

    @property
    def paradigm(self) -> Paradigm:
        """Who is promised what."""
        return self.crowd.paradigm

    @property
    def settings(self) -> Settings:
        """The public choices."""
        return self.crowd.settings

    @property
    def epsilon(self) -> Epsilon:
        """The step's share."""
        return self.crowd.epsilon

    def request(self, records: FloatArray) -> NoiseRequest:
        """Return the noise of a step: for sums of scores and their scatter."""
        return NoiseRequest(Kind.CUBE, SENSITIVITY, self.epsilon, public_design(self.settings.study).directions + 1)

    def exact(self, records: FloatArray) -> IntArray:
        """Return the crowd's exact sums."""
        study = self.settings.study
        mixed = public_design(study).mixed_basis
        return step_sums(mixed, _step(study, self.by_voter), self.by_voter, True, self.crowd.with_voter(records))

    def sample(self, records: FloatArray, draws: int, noise: Noise) -> Rows:
        """Draw noisy sums."""
        return self.exact(records) + self.request(records).draw(noise, draws)

    def noisy(self, rows: Rows) -> tuple[IntArray, IntArray]:
        """Return all of it: every number is noisy."""
        return self.crowd.noisy(rows)

    def same_release(self, left: FloatArray, right: FloatArray) -> bool:
        """Check that both ask for the same noise: the rows hold all that leaves of a step."""
        return self.request(left) == self.request(right)


@lru_cache(maxsize=8)
def _step(study: Study, by_voter: bool) -> Step:
    sample = public_design(study).sample.head(_DILEMMAS)
    start = np.zeros(sample.along.shape[1])
    start[-1] = _SIZE
    return Step.at(start, sample, _SCATTER if by_voter else None, _DEVIATIONS)
