"""The privacy parameter, counted in millionths so that budgets add up exactly."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Integral
from typing import Self, TypeAlias

from crowdveil.errors import CrowdveilError

MICROS_PER_UNIT = 1_000_000
LEAST_MICRO = 100
GREATEST_MICRO = 50 * MICROS_PER_UNIT

EpsilonLike: TypeAlias = "str | int | float | Decimal | Fraction | Epsilon"
"""How people write an epsilon: 0.1 is one tenth exactly."""

_ALLOWED = (
    "an epsilon is a number from 0.0001 to 50 with at most six decimals "
    "(below 0.0001 a release is nothing but noise, above 50 it has no privacy to speak of)"
)


@dataclass(frozen=True, order=True, init=False, repr=False)
class Epsilon:
    """A privacy parameter: a number from 0.0001 to 50, held exactly as it was written.

    >>> Epsilon(1)
    Epsilon('1')
    >>> Epsilon(0.1) == Epsilon("0.1")
    True
    """

    micro: int
    """The exact value in millionths: for the integers of ``privacy/``, and for nobody else."""

    def __init__(self, value: EpsilonLike) -> None:
        number = _as_written(value)
        least, greatest = Fraction(LEAST_MICRO, MICROS_PER_UNIT), Fraction(GREATEST_MICRO, MICROS_PER_UNIT)
        # The range is checked before the number becomes a fraction: the fraction of 1e999999 fills the memory.
        if not least <= number <= greatest:
            raise CrowdveilError(f"epsilon is {value!r}: {_ALLOWED}. Choose one in that range.")
        micro = Fraction(number) * MICROS_PER_UNIT
        if micro.denominator != 1:
            raise CrowdveilError(f"epsilon is {value!r}, which has more than six decimals: {_ALLOWED}. Round it.")
        object.__setattr__(self, "micro", micro.numerator)

    @classmethod
    def of_millionths(cls, micro: int) -> Self:
        """Return the epsilon of so many millionths."""
        if isinstance(micro, bool) or not isinstance(micro, int):
            raise CrowdveilError(f"epsilon in millionths is {micro!r}, and must be a whole number.")
        return cls(str(Decimal(micro) / MICROS_PER_UNIT))

    @property
    def value(self) -> float:
        """The double nearest to the exact value, for formulas that are not part of a guarantee."""
        return self.micro / MICROS_PER_UNIT

    def __repr__(self) -> str:
        return f"Epsilon('{self}')"

    def __str__(self) -> str:
        whole, millionths = divmod(self.micro, MICROS_PER_UNIT)
        return f"{whole}.{millionths:06d}".rstrip("0").rstrip(".")


def _as_written(value: object) -> Decimal | Fraction:
    """Return the finite number that was written, or refuse."""
    refusal = CrowdveilError(f"epsilon is {value!r}, which is not a finite number: {_ALLOWED}.")
    if isinstance(value, bool):
        raise refusal
    if isinstance(value, Epsilon):
        return Fraction(value.micro, MICROS_PER_UNIT)
    if isinstance(value, Fraction):
        return value
    if isinstance(value, Integral):
        return Fraction(int(value))
    if isinstance(value, float):
        # A numpy double is a float too, but its own repr is not a number.
        value = repr(float(value))
    if not isinstance(value, str | Decimal):
        raise refusal
    try:
        number = Decimal(value)
    except InvalidOperation:
        raise refusal from None
    if not number.is_finite():
        raise refusal
    return number
