"""How far noise on a mean preference reaches, in closed form: for one release, and for many of the same crowd.

The utility theorems are solved for whatever is unknown: "how many voters do I need?"

Theorem 2 (Algorithm 1): with probability at least 1 - gamma, no coordinate of the released mean is off by more
than alpha = 2B / (N epsilon) ln(d / gamma). Theorem 4 (Algorithm 2): the same for one voter's report, N = 1.
Both are union bounds. The coordinates are independent, so the exact probability is (1 - e^(-alpha/b))^d with
b = 2B / (N epsilon); a bound shows that too.

Published again and again, k releases share one promise (epsilon, delta) about all of them together. Pure composition
gives each epsilon / k, with Laplace noise of scale b = 2B k / (N epsilon), and does not use delta. zCDP gives each rho
/ k, with Gaussian noise of standard deviation sigma = 2B / (N sqrt(2 rho / k)). Both are noise on the mean of the
preferences, whose sensitivity is 2B / N in l1 and in l2 alike, so Gaussian noise has nothing to gain from the number of
features: it pays only when there are releases enough for k / epsilon to outgrow sqrt(k / (2 rho)).

(Laplace noise may be charged as (epsilon_j^2 / 2)-zCDP, too. It then has the scale b = sigma, and so an error bar that
is 1.5 times wider than that of the Gaussian noise at the same charge: it is never the better of the three.)
"""

from __future__ import annotations

import math
import operator
from dataclasses import asdict, dataclass, replace
from typing import Any

from scipy.special import ndtri

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import MICROS_PER_UNIT, Amount
from crowdveil.privacy.zcdp import rho_of

_MEANING = {
    "voters": "number of voters N",
    "features": "number of features d",
    "norm_bound": "norm bound B",
    "epsilon": "privacy parameter epsilon",
    "confidence": "confidence 1 - gamma",
    "error": "largest error alpha of any coordinate",
}


@dataclass(frozen=True)
class Bound:
    """Six numbers tied together by Theorem 2, or by Theorem 4 for one voter."""

    voters: float
    features: float
    norm_bound: float
    epsilon: float
    confidence: float
    error: float

    @property
    def exact_confidence(self) -> float:
        """The probability that no coordinate is off by more than the error, without the union bound."""
        return math.pow(-math.expm1(-self.error * self.voters * self.epsilon / (2 * self.norm_bound)), self.features)

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers in plain words."""
        numbers = {name: getattr(self, name) for name in _MEANING}
        return {**numbers, "exact_confidence": self.exact_confidence}


def solve_bound(
    *,
    voters: float | None = None,
    features: float | None = None,
    norm_bound: float | None = None,
    epsilon: float | None = None,
    confidence: float | None = None,
    error: float | None = None,
) -> Bound:
    """Solve Theorem 2 for the one number that is left out; whole numbers round to the safe side.

    >>> solve_bound(features=10, norm_bound=2, epsilon=1, confidence=0.95, error=0.1).voters
    212
    """
    known = {
        "voters": voters,
        "features": features,
        "norm_bound": norm_bound,
        "epsilon": epsilon,
        "confidence": confidence,
        "error": error,
    }
    unknown = [name for name, value in known.items() if value is None]
    if len(unknown) != 1:
        given = "none was" if not unknown else f"{', '.join(unknown)} were"
        raise CrowdveilError(f"leave out exactly one of {', '.join(_MEANING)} and it is computed; {given} left out")
    for name, value in known.items():
        top = 1.0 if name == "confidence" else math.inf
        if value is not None and not 0 < value < top:
            limits = "between 0 and 1" if name == "confidence" else "a positive number"
            raise CrowdveilError(f"the {_MEANING[name]} must be {limits}, got {value}")
    # The unknown one reads 1 here; the formula that solves for it does not look at it.
    given_numbers = Bound(**{name: 1.0 if value is None else value for name, value in known.items()})
    return replace(given_numbers, **{unknown[0]: _solve(unknown[0], given_numbers)})


def error_bound(voters: float, features: float, norm_bound: float, epsilon: float, confidence: float) -> float:
    """Theorem 2's alpha; with ``voters=1`` it is Theorem 4's."""
    return 2 * norm_bound / (voters * epsilon) * math.log(features / (1 - confidence))


def _solve(unknown: str, p: Bound) -> float:
    exponent = p.error * p.voters * p.epsilon / (2 * p.norm_bound)
    if unknown == "features":
        if (features := math.floor((1 - p.confidence) * math.exp(min(exponent, 700)))) >= 1:
            return features
        raise CrowdveilError("not even one feature can be estimated to this error: allow a larger one, or more voters")
    if unknown == "confidence":
        if (confidence := 1 - p.features * math.exp(-exponent)) > 0:
            return confidence
        raise CrowdveilError("the theorem promises nothing here: the noise is larger than the error asked for")
    # alpha is proportional to B and inversely to N and epsilon, so each of these follows from alpha at 1.
    at_one = error_bound(p.voters, p.features, p.norm_bound, p.epsilon, p.confidence)
    match unknown:
        case "voters":
            return math.ceil(at_one / p.error)
        case "epsilon":
            return at_one / p.error
        case "norm_bound":
            return p.error / at_one
        case _:
            return at_one


CONFIDENCE = 0.95


@dataclass(frozen=True)
class ErrorBars:
    """The error bars of one release with one kind of noise."""

    charge: float
    """The cost of each release: epsilon for Laplace noise, rho for Gaussian noise."""
    error_bar: float
    """The most by which the noise moves a coordinate, with 95 % probability."""
    largest_error: float
    """The most by which the noise moves any coordinate, with 95 % probability."""


@dataclass(frozen=True)
class RepeatedReleases:
    """The two ways to publish k times under one promise, side by side."""

    releases: int
    epsilon: float
    delta: float
    rho: float
    """The budget of zCDP for all releases."""
    laplace: ErrorBars
    gaussian: ErrorBars
    gaussian_better_from: int
    """The least number of releases at which the error bar of a coordinate is smaller with Gaussian noise."""

    @property
    def better(self) -> str:
        """The noise with the smaller error bar of a coordinate."""
        return "gaussian" if self.releases >= self.gaussian_better_from else "laplace"

    @property
    def rho_each(self) -> Amount:
        """The largest charge that fits into the budget once per release."""
        return Amount(math.floor(self.rho * MICROS_PER_UNIT) // self.releases)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**asdict(self), "better": self.better}


def compare_repeated(
    releases: int, epsilon: float, delta: float, voters: int, features: int, norm_bound: float
) -> RepeatedReleases:
    """Compare pure composition (Laplace noise) and zCDP (Gaussian noise) for repeated releases of a crowd's mean."""
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
    scale = reach * releases / epsilon
    sigma = reach / math.sqrt(2 * rho / releases)
    laplace = ErrorBars(epsilon / releases, -scale * math.log1p(-CONFIDENCE), -scale * math.log1p(-each))
    gaussian = ErrorBars(rho / releases, sigma * _normal_half_width(CONFIDENCE), sigma * _normal_half_width(each))
    # The bars are proportional to k and to sqrt(k): they cross where sqrt(k) is their quotient at k = 1.
    crossing = (gaussian.error_bar / laplace.error_bar) ** 2 * releases
    return RepeatedReleases(releases, epsilon, delta, rho, laplace, gaussian, math.floor(crossing) + 1)


def _normal_half_width(probability: float) -> float:
    return float(ndtri((1 + probability) / 2))
