"""A stand-in for an experiment: cheap, importable by worker processes, and slow enough to be interrupted."""

import time
from dataclasses import dataclass

import numpy as np

from crowdveil.evaluation.toolkit.sweep import rows


@dataclass(frozen=True)
class Counting:
    label: str
    seconds: float = 0.0
    fails: bool = False

    @property
    def name(self):
        return f"counting {self.label}"

    def measure(self, crowds):
        time.sleep(self.seconds)
        if self.fails:
            raise ArithmeticError("a bug in an experiment")
        values = np.stack([np.random.default_rng([crowd, *self.name.encode()]).normal(size=2) for crowd in crowds])
        return rows(crowds, "count", (0.0, 1.0), {"value": values})[0]
