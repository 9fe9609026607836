"""Publishing the same crowd's mean again and again: how wide the error bars get, and which noise is better when.

k releases share one promise (epsilon, delta) about all of them together. Pure composition gives each epsilon / k, with
Laplace noise of scale b = 2B k / (N epsilon), and does not use delta. zCDP gives each rho / k, with Gaussian noise of
standard deviation sigma = 2B / (N sqrt(2 rho / k)). Both are noise on the mean of the preferences, whose sensitivity
is 2B / N in l1 and in l2 alike, so Gaussian noise has nothing to gain from the number of features: it pays only when
there are releases enough for k / epsilon to outgrow sqrt(k / (2 rho)).

(Laplace noise may be charged as (epsilon_j^2 / 2)-zCDP, too. It then has the scale b = sigma, and so an error bar that
is 1.5 times wider than that of the Gaussian noise at the same charge: it is never the better of the three.)
"""

from __future__ import annotations

import math
import operator
from dataclasses import asdict, dataclass
from typing import Any

from scipy.special import ndtri

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.amount import MICROS_PER_UNIT, Amount
from crowdveil.privacy.zcdp import rho_of

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Bars:
    """The error bars of one release with one kind of noise."""

    charge: float
    """The cost of each release: epsilon for Laplace noise, rho for Gaussian noise."""
    standard_deviation: float
    error_bar: float
    """The most by which the noise moves a coordinate, with 95 % probability."""
    largest_error: float
    """The most by which the noise moves any coordinate, with 95 % probability."""


@dataclass(frozen=True)
class Repeated:
    """The two ways to publish k times under one promise, side by side."""

    releases: int
    epsilon: float
    delta: float
    rho: float
    """The budget of zCDP for all releases."""
    laplace: Bars
    gaussian: Bars
    gaussian_better_from: int
    """The least number of releases at which the error bar of a coordinate is smaller with Gaussian noise."""

    @property
    def better(self) -> str:
        """The noise with the smaller error bar of a coordinate."""
        return "gaussian" if self.releases >= self.gaussian_better_from else "laplace"

    @property
    def rho_each(self) -> Amount:
        """The largest charge that fits into the budget so many times."""
        return Amount(math.floor(self.rho * MICROS_PER_UNIT) // self.releases)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**asdict(self), "better": self.better}


def repeated(releases: int, epsilon: float, delta: float, voters: int, features: int, norm_bound: float) -> Repeated:
    """Compare pure composition (Laplace noise) and zCDP (Gaussian noise) for so many releases of one crowd's mean."""
    for what, count in (("releases", releases), ("voters", voters), ("features", features)):
        if not operator.index(count) >= 1:
            raise CrowdveilError(f"the number of {what} must be 1 or more, got {count}")
    for what, amount in (("epsilon", epsilon), ("norm bound B", norm_bound)):
        if not 0 < amount < math.inf:
            raise CrowdveilError(f"the {what} must be a positive number, got {amount}")
    rho = rho_of(epsilon, delta)
    reach = 2 * norm_bound / voters
    # Each coordinate stays below its own bound with this probability, so that all of them do with 95 %.
    each = CONFIDENCE ** (1 / features)
    scale, sigma = reach * releases / epsilon, reach / math.sqrt(2 * rho / releases)
    laplace = Bars(
        epsilon / releases, math.sqrt(2) * scale, -scale * math.log1p(-CONFIDENCE), -scale * math.log1p(-each)
    )
    gaussian = Bars(rho / releases, sigma, sigma * _normal_half_width(CONFIDENCE), sigma * _normal_half_width(each))
    # The bars are proportional to k and to sqrt(k): they cross where sqrt(k) is their quotient at k = 1.
    crossing = (gaussian.error_bar / laplace.error_bar) ** 2 * releases
    return Repeated(releases, epsilon, delta, rho, laplace, gaussian, math.floor(crossing) + 1)


def _normal_half_width(probability: float) -> float:
    return float(ndtri((1 + probability) / 2))
