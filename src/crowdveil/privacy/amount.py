"""Exact amounts of privacy, in epsilon or in rho: numbers as people write them, added up without rounding."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Integral
from typing import TypeAlias

from crowdveil.errors import CrowdveilError

MICROS_PER_UNIT = 1_000_000

AmountLike: TypeAlias = "str | int | float | Decimal | Fraction | Amount"
"""How people write an amount: 0.1 is one tenth exactly."""


@dataclass(frozen=True, order=True)
class Amount:
    """An amount of epsilon or of rho, exact to the millionth.

    >>> print(Amount.of(0.1) + Amount.of("0.2"))
    0.3
    """

    micro: int
    """The exact value in millionths: for the integers of ``privacy/``, and for nobody else."""

    def __post_init__(self) -> None:
        # Also of NumPy's integers; never of a float, however whole.
        object.__setattr__(self, "micro", operator.index(self.micro))

    @classmethod
    def of(cls, value: AmountLike, what: str = "an amount", most: int = 10**12) -> Amount:
        """Read an amount exactly as it is written."""
        if isinstance(value, Amount):
            return value
        allowed = f"is a number from 0.000001 to {most} with at most six decimals, like 3 or 0.5"
        number = as_written(value)
        # The range is checked before the number becomes a fraction: the fraction of 1e999999 fills the memory.
        if number is None or not Decimal("0.000001") <= number <= most:
            raise CrowdveilError(f"{what} {allowed}, got {value!r}")
        micro = Fraction(number) * MICROS_PER_UNIT
        if micro.denominator != 1:
            raise CrowdveilError(f"{what} {allowed}, got {value!r}: round it")
        return cls(micro.numerator)

    @property
    def value(self) -> float:
        """The double nearest to the exact value: it prints as the exact decimal."""
        return self.micro / MICROS_PER_UNIT

    @property
    def fraction(self) -> Fraction:
        """The exact value, for the laws of noise."""
        return Fraction(self.micro, MICROS_PER_UNIT)

    @property
    def decimal(self) -> Decimal:
        """The exact value, for people's programs."""
        return Decimal(str(self))

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.micro + other.micro)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.micro - other.micro)

    def __mul__(self, times: int) -> Amount:
        return Amount(self.micro * times)

    def __bool__(self) -> bool:
        return self.micro != 0

    def __str__(self) -> str:
        whole, millionths = divmod(abs(self.micro), MICROS_PER_UNIT)
        sign = "-" if self.micro < 0 else ""
        return f"{sign}{whole}.{millionths:06d}".rstrip("0").rstrip(".")


NOTHING = Amount(0)


def as_written(value: object) -> Decimal | Fraction | None:
    """Return the finite number that somebody wrote, or None where it is no such number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, Fraction):
        return value
    if isinstance(value, Integral):
        return Fraction(int(value))
    if isinstance(value, float):
        # A numpy double is a float too, but its own repr is not a number.
        value = repr(float(value))
    if not isinstance(value, str | Decimal):
        return None
    try:
        number = Decimal(value)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
