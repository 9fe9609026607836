"""Personal epsilons by groups of voters: conservative, moderate and liberal (the paper's Section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdveil.arrays import IntArray
from crowdveil.privacy.epsilon import MICROS_PER_UNIT


@dataclass(frozen=True)
class Groups:
    """The paper's defaults: how large each group is, and where its epsilons begin and end."""

    conservative: float = 0.54
    moderate: float = 0.36
    epsilon_c: float = 0.01
    epsilon_m: float = 0.2
    epsilon_l: float = 1.0

    def sizes(self, voters: int) -> tuple[int, int, int]:
        """How many of the voters are conservative, moderate and liberal: the fractions, rounded."""
        conservative = round(self.conservative * voters)
        moderate = min(round(self.moderate * voters), voters - conservative)
        return conservative, moderate, voters - conservative - moderate

    def draw(self, voters: int, rng: np.random.Generator) -> IntArray:
        """Draw each voter's epsilon, rounded to hundredths, in millionths; who is in which group is random."""
        conservative, moderate, liberal = self.sizes(voters)
        drawn = np.concatenate(
            [
                rng.uniform(self.epsilon_c, self.epsilon_m, conservative),
                rng.uniform(self.epsilon_m, self.epsilon_l, moderate),
                np.full(liberal, self.epsilon_l),
            ]
        )
        hundredths = np.rint(drawn * 100).astype(np.int64)
        return rng.permutation(hundredths) * (MICROS_PER_UNIT // 100)
