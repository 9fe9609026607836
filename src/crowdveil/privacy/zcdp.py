"""Zero-concentrated differential privacy (zCDP): the account that many releases of the same data are cheaper in.

Definition (Bun and Steinke 2016). A mechanism M is rho-zCDP if for all neighbours D, D' and all alpha > 1 the Renyi
divergence D_alpha(M(D) || M(D')) = 1 / (alpha - 1) ln E_{y ~ M(D')} [(P_D(y) / P_D'(y))^alpha] is at most alpha rho.

Composition. Releases that are rho_1-, ..., rho_k-zCDP, each chosen after seeing the earlier ones, are together
(rho_1 + ... + rho_k)-zCDP. A pure epsilon-DP release is (epsilon^2 / 2)-zCDP. So k equal releases within a total of rho
may each cost rho / k, and their noise grows with sqrt(k), where that of pure composition grows with k.

The price: at the end the promise is (epsilon, delta)-DP. With probability delta it may fail altogether, so delta has
to be far below 1 / voters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdveil.errors import CrowdveilError, is_number, shown
from crowdveil.privacy.epsilon import LEAST_MICRO, MICROS_PER_UNIT, Amount, AmountLike, Epsilon

GREATEST_RHO = 1250
"""The rho of the largest pure epsilon, 50."""

_ORDERS = np.linspace(-12.0, 40.0, 261)
"""ln(alpha - 1) where the search for the best order starts."""
_ROUNDING = 1e-9
"""Relative allowance for floating-point error in the conversions, on the safe side."""


@dataclass(frozen=True, init=False, repr=False)
class ZcdpBudget:
    """The privacy loss of a release with Gaussian noise: a rho, and the delta at which it is read as an epsilon.

    >>> ZcdpBudget("0.000468", 1e-6).epsilon.value < 0.12
    True
    """

    rho: Amount
    delta: float

    def __init__(self, rho: AmountLike, delta: float) -> None:
        amount = Amount.of(rho, "a rho", GREATEST_RHO)
        if not (is_number(delta) and 0 < delta < 1):
            raise CrowdveilError(f"delta must be between 0 and 1, got {shown(delta)}")
        object.__setattr__(self, "rho", amount)
        object.__setattr__(self, "delta", float(delta))

    def __repr__(self) -> str:
        return f"ZcdpBudget('{self.rho}', {self.delta:g})"

    @cached_property
    def epsilon(self) -> Epsilon:
        """The epsilon that goes with delta, rounded up to a millionth."""
        exact = epsilon_of(self.rho.value, self.delta) * MICROS_PER_UNIT
        return Epsilon.of_millionths(max(math.ceil(exact), LEAST_MICRO))


def epsilon_of(rho: float, delta: float) -> float:
    """Return an epsilon such that rho-zCDP implies (epsilon, delta)-DP.

    Theorem (Canonne, Kamath and Steinke 2020, Proposition 12). It does, for every alpha > 1 and

        epsilon = alpha rho - (ln delta + ln alpha) / (alpha - 1) + ln(1 - 1 / alpha).

    Since every alpha is allowed, the search for the best one cannot make the epsilon wrong, only larger.
    """
    _check(rho, delta, "rho")

    def at(order: float) -> float:
        alpha = 1 + math.exp(order)
        return alpha * rho + _price(order, delta)

    return max(_least(at), 0.0) * (1 + _ROUNDING)


def rho_of(epsilon: float, delta: float) -> float:
    """Return a rho, nearly the largest, such that rho-zCDP implies (epsilon, delta)-DP.

    The theorem of ``epsilon_of``, solved for rho: again every alpha is allowed, and the best is searched for.
    """
    _check(epsilon, delta, "epsilon")

    def at(order: float) -> float:
        alpha = 1 + math.exp(order)
        return (_price(order, delta) - epsilon) / alpha

    return -_least(at) * (1 - _ROUNDING)


def _price(order: float, delta: float) -> float:
    """The price of delta at an order: -(ln delta + ln alpha) / (alpha - 1) + ln(1 - 1 / alpha)."""
    above = math.exp(order)
    return -(math.log(delta) + math.log1p(above)) / above - math.log1p(1 / above)


def _least(at: Callable[[float], float]) -> float:
    """Search for the minimum over the order, ln(alpha - 1): on a coarse grid, then around its best point."""
    from scipy.optimize import minimize_scalar  # takes longer to load than all of a decision

    coarse = int(np.argmin([at(order) for order in _ORDERS]))
    around = _ORDERS[max(coarse - 1, 0)], _ORDERS[min(coarse + 1, len(_ORDERS) - 1)]
    found = minimize_scalar(at, bounds=around, method="bounded", options={"xatol": 1e-9})
    return min(float(found.fun), at(float(_ORDERS[coarse])))


def _check(amount: float, delta: float, name: str) -> None:
    if not 0 < amount < math.inf:
        raise CrowdveilError(f"{name} must be a positive number, got {amount}")
    if not 0 < delta < 1:
        raise CrowdveilError(f"delta must be between 0 and 1, and far below 1 / voters to mean anything, got {delta}")
