"""Groups of voters who said which is theirs through randomised response: how much of each answer belongs to which."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.privacy.epsilon import Epsilon


@dataclass(frozen=True)
class ReportedGroups:
    """A question that voters answered through randomised response: its options, and the epsilon of each answer."""

    question: str
    options: tuple[str, ...]
    epsilon: Epsilon

    @property
    def correction(self) -> FloatArray:
        """The inverse of the probabilities with which an option (columns) is reported as another (rows)."""
        count = len(self.options)
        spread = np.exp(self.epsilon.value) + count - 1
        reported = np.full((count, count), 1 / spread) + np.eye(count) * (np.expm1(self.epsilon.value) / spread)
        return np.asarray(np.linalg.inv(reported), np.float64)
