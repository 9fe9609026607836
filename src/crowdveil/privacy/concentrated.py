"""A promise of rho-zCDP, with the delta at which it is read as (epsilon, delta)-differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import LEAST_MICRO, MICROS_PER_UNIT, Epsilon
from crowdveil.privacy.zcdp import epsilon_of

GREATEST_RHO_MICRO = 1250 * MICROS_PER_UNIT
"""The rho of the largest pure epsilon, 50."""

_ALLOWED = "a rho is a number from 0.000001 to 1250 with at most six decimals"


@dataclass(frozen=True)
class ZcdpBudget:
    """What is asked of a release with Gaussian noise: a whole number of millionths of rho.

    >>> ZcdpBudget.parse("0.000468", 1e-6).epsilon.value < 0.12
    True
    """

    rho_micro: int
    delta: float

    def __post_init__(self) -> None:
        if not 1 <= self.rho_micro <= GREATEST_RHO_MICRO:
            raise CrowdveilError(f"rho is {self.rho_micro / MICROS_PER_UNIT}: {_ALLOWED}")
        if not 0 < self.delta < 1:
            raise CrowdveilError(f"delta must be between 0 and 1, got {self.delta}")

    @classmethod
    def parse(cls, rho: str, delta: float) -> ZcdpBudget:
        """Read a rho exactly as it is written."""
        try:
            micro = Decimal(rho) * MICROS_PER_UNIT
            whole = int(micro) if 1 <= micro <= GREATEST_RHO_MICRO else 0
        except ArithmeticError:
            raise CrowdveilError(f"rho is {rho!r}: {_ALLOWED}") from None
        if whole != micro or not whole:
            raise CrowdveilError(f"rho is {rho!r}: {_ALLOWED}")
        return cls(whole, delta)

    @property
    def rho(self) -> Fraction:
        """The exact value."""
        return Fraction(self.rho_micro, MICROS_PER_UNIT)

    @cached_property
    def epsilon(self) -> Epsilon:
        """The epsilon that goes with delta, rounded up to a millionth."""
        return Epsilon.of_millionths(
            max(math.ceil(epsilon_of(float(self.rho), self.delta) * MICROS_PER_UNIT), LEAST_MICRO)
        )
