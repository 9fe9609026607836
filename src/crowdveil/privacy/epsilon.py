"""Amounts of privacy, counted in millionths so that budgets add up exactly: an amount, an epsilon, and everybody's.

Numbers are taken as people write them: 0.1 is one tenth. An amount is an epsilon or a rho, or a sum of either.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from fractions import Fraction
from numbers import Integral
from typing import Any, Self, TypeAlias

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.errors import CrowdveilError, check_whole, is_list, plural, shown

MICROS_PER_UNIT = 1_000_000

AmountLike: TypeAlias = "str | int | float | Decimal | Fraction | Amount"
"""How people write an amount: 0.1 is one tenth exactly."""


class PrivacyMeasure(StrEnum):
    """The measure in which privacy is lost, and amounts of it add up."""

    EPSILON = "epsilon"
    """Pure differential privacy."""
    RHO = "rho"
    """Zero-concentrated differential privacy."""


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
            raise CrowdveilError(f"{what} {allowed}, got {shown(value)}")
        micro = Fraction(number) * MICROS_PER_UNIT
        if micro.denominator != 1:
            raise CrowdveilError(f"{what} {allowed}, got {shown(value)}: round it")
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
    if not isinstance(value, str | Decimal) or "_" in str(value):  # Python reads 1_0 as 10, which nobody means
        return None
    try:
        number = Decimal(value)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


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
        number = as_written(value) if not isinstance(value, Epsilon) else value.amount.fraction
        if number is None:
            raise CrowdveilError(f"epsilon is {shown(value)}, which is not a finite number: {_ALLOWED}.")
        least, greatest = Fraction(LEAST_MICRO, MICROS_PER_UNIT), Fraction(GREATEST_MICRO, MICROS_PER_UNIT)
        # The range is checked before the number becomes a fraction: the fraction of 1e999999 fills the memory.
        if not least <= number <= greatest:
            raise CrowdveilError(f"epsilon is {shown(value)}: {_ALLOWED}. Choose one in that range.")
        micro = Fraction(number) * MICROS_PER_UNIT
        if micro.denominator != 1:
            raise CrowdveilError(f"epsilon is {shown(value)}, which has more than six decimals: {_ALLOWED}. Round it.")
        object.__setattr__(self, "micro", micro.numerator)

    @classmethod
    def of_millionths(cls, micro: int) -> Self:
        """Return the epsilon of this many millionths."""
        if isinstance(micro, bool) or not isinstance(micro, int):
            raise CrowdveilError(f"epsilon in millionths is {micro!r}, and must be a whole number.")
        if not LEAST_MICRO <= micro <= GREATEST_MICRO:
            raise CrowdveilError(
                f"epsilon is '{Decimal(micro) / MICROS_PER_UNIT}': {_ALLOWED}. Choose one in that range."
            )
        epsilon = cls.__new__(cls)  # Every report of a batch names one: what a number may look like needs no reading.
        object.__setattr__(epsilon, "micro", micro)
        return epsilon

    @property
    def value(self) -> float:
        """The double nearest to the exact value, for formulas that are not part of a guarantee."""
        return self.micro / MICROS_PER_UNIT

    @property
    def amount(self) -> Amount:
        """The epsilon as an amount that a ledger adds up."""
        return Amount(self.micro)

    def split(self, share: float) -> tuple[Epsilon, Epsilon]:
        """Divide it into a share between 0 and 1, to the nearest millionth, and the rest: exactly the whole together.

        >>> Epsilon(1).split(0.3)
        (Epsilon('0.3'), Epsilon('0.7'))
        """
        part = round(self.micro * share)
        if not LEAST_MICRO <= part <= self.micro - LEAST_MICRO:
            raise CrowdveilError(f"epsilon {self} is too small to be split {share:g} to {1 - share:g}")
        return Epsilon.of_millionths(part), Epsilon.of_millionths(self.micro - part)

    def __repr__(self) -> str:
        return f"Epsilon('{self}')"

    def __str__(self) -> str:
        return str(self.amount)


LEAST = Epsilon.of_millionths(LEAST_MICRO)
GREATEST = Epsilon.of_millionths(GREATEST_MICRO)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Epsilons:
    """Everybody's epsilon, in the voters' order, each as it was written.

    >>> Epsilons(["0.5", 1, 2]).largest
    Epsilon('2')
    """

    micro: IntArray
    """The exact values in millionths: for the integers of ``privacy/``, and for nobody else."""

    def __init__(self, epsilons: Iterable[EpsilonLike]) -> None:
        if not is_list(epsilons):
            raise CrowdveilError(
                f"personal epsilons are {shown(epsilons)}, and must be a list of numbers, one for each voter."
            )
        self._hold(_millionths(epsilons))

    def _hold(self, micro: IntArray) -> None:
        if micro.size and not (micro.min() >= LEAST_MICRO and micro.max() <= GREATEST_MICRO):
            least, greatest = (int(end) / MICROS_PER_UNIT for end in (micro.min(), micro.max()))
            raise CrowdveilError(f"the epsilons run from {least} to {greatest}: {_ALLOWED}. Choose all in that range.")
        object.__setattr__(self, "micro", micro)

    @classmethod
    def same(cls, epsilon: EpsilonLike, voters: int) -> Self:
        """Return one epsilon for all."""
        check_whole(voters, "the number of voters", 0)
        return cls.of_millionths(np.full(voters, Epsilon(epsilon).micro, np.int64))

    @classmethod
    def of_millionths(cls, micro: IntArray | Iterable[int]) -> Self:
        """Return the epsilons given in millionths."""
        given = micro if isinstance(micro, np.ndarray) else np.array(list(micro), np.int64)
        if given.dtype != np.int64 or given.ndim != 1:
            raise CrowdveilError(
                f"the epsilons are {given.dtype} of shape {given.shape}, and must be a one-dimensional int64 array of "
                "millionths."
            )
        epsilons = cls.__new__(cls)
        epsilons._hold(given)
        return epsilons

    @classmethod
    def joined(cls, parts: Iterable[Epsilons]) -> Self:
        """Return the epsilons of several crowds, one crowd after the other."""
        return cls.of_millionths(np.concatenate([part.micro for part in parts]))

    def __len__(self) -> int:
        return len(self.micro)

    def __getitem__(self, voters: slice | IntArray) -> Epsilons:
        """Return the epsilons of some of the voters."""
        return Epsilons.of_millionths(self.micro[voters])

    def __iter__(self) -> Iterator[Epsilon]:
        return map(Epsilon.of_millionths, self.micro.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Epsilons) and np.array_equal(self.micro, other.micro)

    def __repr__(self) -> str:
        if not len(self):
            return "<epsilons of nobody>"
        span = f"{self.smallest}" if self.common else f"{self.smallest} to {self.largest}"
        return f"<epsilons of {len(self)} {plural(len(self), 'voter')}: {span}>"

    def __reduce__(self) -> tuple[Callable[..., Epsilons], tuple[Any, ...]]:
        """Travel to workers as one number where all have the same."""
        one = self.common
        return (Epsilons.of_millionths, (self.micro,)) if one is None else (Epsilons.same, (str(one), len(self)))

    @property
    def smallest(self) -> Epsilon:
        """The strongest protection that anybody has."""
        return Epsilon.of_millionths(int(self.micro.min()))

    @property
    def largest(self) -> Epsilon:
        """The protection that everybody has at least."""
        return Epsilon.of_millionths(int(self.micro.max()))

    @property
    def common(self) -> Epsilon | None:
        """The epsilon that all voters share; None if they have different ones."""
        if not len(self) or (self.micro != self.micro[0]).any():
            return None
        return self.smallest

    @property
    def distinct(self) -> tuple[Epsilon, ...]:
        """The different ones, from the smallest to the largest."""
        return tuple(map(Epsilon.of_millionths, np.unique(self.micro).tolist()))

    @property
    def values(self) -> FloatArray:
        """The doubles nearest to the exact values, for formulas that are not part of a guarantee."""
        return np.asarray(self.micro / MICROS_PER_UNIT)

    def repeat(self, counts: IntArray) -> Epsilons:
        """Return each voter's epsilon as often as she has records."""
        return Epsilons.of_millionths(np.repeat(self.micro, counts))

    def split(self, ways: IntArray) -> Epsilons:
        """Divide each voter's epsilon into ``ways`` parts, rounded down so that they never add up to more than it."""
        return Epsilons.of_millionths(self.micro // ways)


def _millionths(epsilons: Iterable[EpsilonLike]) -> IntArray:
    """Read epsilons exactly as they are written."""
    if isinstance(epsilons, np.ndarray) and epsilons.ndim == 1 and epsilons.dtype.kind in "iuf":
        micro = np.rint(epsilons.astype(np.float64) * MICROS_PER_UNIT)
        # As each is written: a number with six decimals is the double nearest to its millionths.
        if (micro / MICROS_PER_UNIT == epsilons).all() and (np.abs(micro) <= GREATEST_MICRO).all():
            return micro.astype(np.int64)
    return np.array([Epsilon(epsilon).micro for epsilon in epsilons], np.int64)
