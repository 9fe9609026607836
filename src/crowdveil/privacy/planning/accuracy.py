"""The utility theorems, solved for whatever is unknown: "how many voters do I need?"

Theorem 2 (Algorithm 1): with probability at least 1 - gamma, no coordinate of the released mean is off by more
than alpha = 2B / (N epsilon) ln(d / gamma). Theorem 4 (Algorithm 2): the same for one voter's report, N = 1.
Both are union bounds. The coordinates are independent, so the exact probability is (1 - e^(-alpha/b))^d with
b = 2B / (N epsilon); a bound shows that too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from crowdveil.errors import CrowdveilError

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


def solve_bound(**known: float | None) -> Bound:
    """Solve Theorem 2 for the one number of a ``Bound`` that is None; whole numbers round to the safe side.

    >>> solve_bound(voters=None, features=10, norm_bound=2, epsilon=1, confidence=0.95, error=0.1).voters
    212
    """
    unknown = [name for name in _MEANING if known.get(name) is None]
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
