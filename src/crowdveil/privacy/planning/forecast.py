"""Forecast a release from public numbers only: its error bars, its predictive accuracy, the dilemmas it decides.

We assume a crowd of a given **agreement**: the share of choices that its preference gamma would predict if it were
known exactly. Along the k axes of the study's public design gamma is N(0, tau^2), with tau such that the margins of
dilemmas imply that agreement. The rest follows in closed form, or by averages over the study's own dilemmas:

- The error of a release is that of the recommended mechanism (its ``expected_errors``), which holds for an indifferent
  crowd. If a crowd agrees more, each answer carries less information, and the error grows. A mechanism whose reports
  saturate knows the errors of a few typical crowds (``of_crowds``), over which the forecast is averaged.
- The released preference m is a shrunken estimate of gamma with error e: m = W (gamma + e), W = P (P + V)^-1 with the
  prior P of ``estimation.prior`` and V the covariance of e. For a dilemma x, m . x and the latent utility gamma . x + z
  of a respondent (z standard normal) are jointly normal with correlation r, so their signs agree with probability
  1/2 + arcsin(r) / pi (Sheppard 1899).
- A dilemma is decided if the estimated margin, minus the bound on model error, exceeds the quantile of the noise.

This is a forecast for a typical crowd, not a promise for yours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from crowdveil.arrays import FloatArray
from crowdveil.errors import CrowdveilError, plural
from crowdveil.estimation.design import Design, public_design
from crowdveil.estimation.dilemmas import GENERATOR
from crowdveil.estimation.prior import prior_deviation, rest_deviation
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.guarantee import Paradigm
from crowdveil.privacy.mechanisms.expected_errors import CROWD, ExpectedErrors
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings, uncertainty_along
from crowdveil.privacy.mechanisms.registry import (
    CENTRAL,
    central,
    distributed,
    recommended,
    recommended_along,
)
from crowdveil.study.study import Study

AGREEMENT = 0.75
"""Default agreement: about that of people in the Moral Machine's dilemmas."""
_LOOKED_AT = 4000
"""Dilemmas of the public sample used for averages."""
_FIRST_DOUBT = 0.1
"""Approximate relative error of a first step's estimate, due to clipping and to the dilemmas."""
_BAR = 0.95
_SEED = 20_190_607


@dataclass(frozen=True)
class Forecast:
    """The expected quality of a release with these numbers, for a typical crowd."""

    study: str
    paradigm: str
    mechanism: str
    along: str | None
    """The better choice for devices, "factors" or "features"; None if the mechanism chooses, or there is no choice."""
    voters: int
    records: int
    epsilon: float
    agreement: float
    certainty: float
    drawn: bool
    """Whether the study's generator draws the dilemmas: in a poll, or of a file released with --design study."""
    bars: dict[str, float | None]
    """95 % error bar of the preference along each factor; None if it will not be known."""
    predicted: float
    """Share of other people's choices that the release predicts; at most the agreement."""
    decided: float
    """Share of the study's dilemmas that are decided as the crowd would, with the required certainty."""

    def __repr__(self) -> str:
        return (
            f"<forecast: {self.study}, {self.paradigm} by {self.mechanism}, {self.voters:,} "
            f"{plural(self.voters, 'voter')} with {self.records:,} {plural(self.records, 'record')} at epsilon "
            f"{self.epsilon:g}: {self.predicted:.1%} predicted, {self.decided:.0%} decided>"
        )

    @property
    def widest(self) -> float:
        """The widest bar of any factor; infinite if one is not known."""
        return max(math.inf if bar is None else bar for bar in self.bars.values())

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "study": self.study,
            "paradigm": self.paradigm,
            "mechanism": self.mechanism,
            "along": self.along,
            "voters": self.voters,
            "records": self.records,
            "epsilon": self.epsilon,
            "agreement": self.agreement,
            "design": GENERATOR if self.drawn else None,
            "error_bars": self.bars,
            "predicted": self.predicted,
            "certainty": self.certainty,
            "decided": self.decided,
        }


def forecast(
    study: Study,
    paradigm: Paradigm,
    voters: int,
    records: int,
    epsilon: Epsilon,
    agreement: float = AGREEMENT,
    certainty: float = 0.9,
    *,
    drawn: bool = False,
) -> Forecast:
    """Forecast a release by the recommended mechanism: of a file, or of dilemmas ``drawn`` by the study's generator."""
    name = recommended(paradigm, study, Epsilons.same(epsilon, min(voters, CROWD)))
    settings = MechanismSettings(study, study.norm_bound, drawn=drawn)
    along = recommended_along(name, settings, voters, epsilon)
    crowd = _typical(study, agreement)
    settings = replace(settings, study=replace(study, along=along))
    errors = _expected_errors(name, settings, voters, records, epsilon)
    if errors.of_crowds is None:
        typical = [_CrowdErrors(errors, crowd, 1 / crowd.information)]
    else:
        typical = [_CrowdErrors(one, crowd, 1.0) for one in errors.of_crowds(crowd.deviation)]
    return Forecast(
        study=study.name,
        paradigm=paradigm.name,
        mechanism=name,
        along=along,
        voters=voters,
        records=records,
        epsilon=epsilon.value,
        agreement=agreement,
        certainty=certainty,
        drawn=drawn,
        bars=_bars(study, typical),
        predicted=float(np.mean([_predicted(one) for one in typical])),
        decided=float(np.mean([_decided(one, certainty) for one in typical])),
    )


@dataclass(frozen=True)
class _Typical:
    """Crowds of an agreement: gamma is N(0, deviation^2) along each axis of a factor."""

    design: Design
    deviation: float

    @cached_property
    def differences(self) -> FloatArray:
        return self.design.differences[:_LOOKED_AT]

    @cached_property
    def along(self) -> FloatArray:
        return np.asarray(self.differences @ self.design.basis, np.float64)

    @cached_property
    def information(self) -> float:
        """The information of an answer about gamma, relative to an indifferent crowd.

        It is the mean of phi^2 / (Phi (1 - Phi)) over margins t, divided by its value 2 / pi at t = 0.
        """
        squares = np.square(self.along).sum(axis=1)
        nodes, weights = np.polynomial.hermite_e.hermegauss(31)
        margins = self.deviation * np.sqrt(squares)[:, None] * nodes
        told = np.exp(-(margins**2)) / (4 * ndtr(margins) * ndtr(-margins))
        return float(squares @ (told @ weights) / (squares.sum() * weights.sum()))


@lru_cache(maxsize=32)
def _typical(study: Study, agreement: float) -> _Typical:
    """Find the standard deviation at which the preference, if known exactly, predicts this share of choices."""
    design = public_design(study)
    lengths = np.linalg.norm(_Typical(design, 1.0).along, axis=1)
    lengths = lengths[lengths > 0]

    def predicts(deviation: float) -> float:
        return float(np.mean(0.5 + np.arctan(deviation * lengths) / math.pi)) - agreement

    return _Typical(design, float(brentq(predicts, 0.0, 1e6)))


@dataclass(frozen=True)
class _CrowdErrors:
    """The errors of a release of a typical crowd."""

    errors: ExpectedErrors
    crowd: _Typical
    grown: float
    """The factor by which variances grow, because the crowd's answers carry less information than were supposed."""

    @cached_property
    def noise(self) -> FloatArray:
        return self.errors.noise * self.grown

    @cached_property
    def sampling(self) -> FloatArray:
        return self.errors.sampling * self.grown

    @cached_property
    def first_look(self) -> float | None:
        return None if self.errors.first_look is None else self.errors.first_look * self.grown

    @cached_property
    def of_all_steps(self) -> FloatArray:
        """The covariance of the error along the factors' axes, given all steps."""
        k = self.crowd.design.directions
        last = self.noise[:k, :k] + self.sampling[:k, :k]
        if self.first_look is None:
            return last
        earlier = 1 / (self.first_look + (_FIRST_DOUBT * self.crowd.deviation) ** 2)
        return np.asarray(np.linalg.inv(np.linalg.inv(last) + earlier * np.eye(k)), np.float64)

    @cached_property
    def doubts(self) -> FloatArray:
        """The expected bound along every axis: a fraction of the preference there, which is about normal."""
        k = self.crowd.design.directions
        left_out = self.crowd.design.rest.shape[1]
        sizes = np.repeat([self.crowd.deviation, rest_deviation(left_out)], [k, left_out])
        fraction = self.errors.doubt * math.sqrt(2 / math.pi)
        return np.asarray(fraction * np.sqrt(np.diag(self.noise) + sizes**2), np.float64)

    @cached_property
    def turned(self) -> float:
        """The typical bound on the length of an error of any direction."""
        k = self.crowd.design.directions
        left_out = self.crowd.design.rest.shape[1]
        way = (self.first_look or 0.0) + (_FIRST_DOUBT * self.crowd.deviation) ** 2
        rest = left_out * rest_deviation(left_out) ** 2 if self.errors.rest_known else 0.0
        turn = self.errors.turn * self.crowd.deviation * math.sqrt(k)
        return turn + self.errors.step_doubt * math.sqrt(k * way + rest)

    def reach(self, certainty: float) -> float:
        """Return the margin that this certainty requires, in standard deviations of the noise."""
        hoeffding = self.errors.hoeffding
        return math.sqrt(-2 * math.log(1 - certainty)) if hoeffding else NormalDist().inv_cdf(certainty)


def _expected_errors(
    name: str, settings: MechanismSettings, voters: int, records: int, epsilon: Epsilon
) -> ExpectedErrors:
    """Ask the mechanism; the study's generator draws the dilemmas of a poll, and a file's are less well known."""
    mechanism = central(name, settings.study) if name in CENTRAL else distributed(name, settings.study)
    errors = mechanism.expected_errors(settings, voters, records, epsilon)
    if errors is None:
        raise CrowdveilError(f"a release by {name} cannot be forecast")
    return errors


def _bars(study: Study, typical: list[_CrowdErrors]) -> dict[str, float | None]:
    """Return the median bar of each factor, or None if it spans all possible values."""
    middle = np.median([_bars_of(study, errors) for errors in typical], axis=0).tolist()
    return {factor.name: bar if math.isfinite(bar) else None for factor, bar in zip(study.factors, middle, strict=True)}


def _bars_of(study: Study, errors: _CrowdErrors) -> list[float]:
    """Return the expected bar of each factor, infinite if it spans all possible values."""
    crowd = errors.crowd
    k = crowd.design.directions
    basis = crowd.design.basis
    unknown = uncertainty_along(
        crowd.design,
        mean=np.zeros(k),
        covariance=np.eye(k),
        center=np.zeros(k),
        sampling=errors.sampling[:k, :k],
        doubt=errors.doubts[:k] + math.sqrt(2 / math.pi) * errors.errors.size * crowd.deviation,
        turn=errors.turned,
    )
    bars = []
    for row in study.factor_map:
        x = row @ basis
        noise = NormalDist().inv_cdf((1 + _BAR) / 2) * math.sqrt(float(x @ errors.noise[:k, :k] @ x))
        bar = unknown.interval(row, noise, _BAR, left_out=False)[1]
        bars.append(bar if 0 < bar < unknown.whole_range(row) else math.inf)
    return bars


def _predicted(errors: _CrowdErrors) -> float:
    """Return the share of choices that agree with the shrunk estimate, over dilemmas and crowds."""
    crowd = errors.crowd
    k = crowd.design.directions
    x = crowd.along
    error = errors.of_all_steps
    prior = prior_deviation(k) ** 2 * np.eye(k)
    shrinks = np.linalg.solve(prior + error, prior).T
    truth = crowd.deviation**2 * np.eye(k)
    both = np.einsum("ij,jl,il->i", x, shrinks @ truth, x)
    released = np.einsum("ij,jl,il->i", x, shrinks @ (truth + error) @ shrinks.T, x)
    inclined = 1 + crowd.deviation**2 * np.square(x).sum(axis=1)
    varying = released > 0
    correlation = both[varying] / np.sqrt(released[varying] * inclined[varying])
    return float(np.mean(0.5 + np.arcsin(np.clip(correlation, -1, 1)) / math.pi)) if varying.any() else 0.5


def _decided(errors: _CrowdErrors, certainty: float) -> float:
    """Return the share of dilemmas that are decided as the crowd would, with a new crowd for each dilemma."""
    crowd = errors.crowd
    rng = np.random.default_rng(_SEED)
    k = crowd.design.directions
    noise = errors.noise[:k, :k]
    x = crowd.along
    gamma = rng.normal(0.0, crowd.deviation, x.shape)
    center = gamma + rng.multivariate_normal(np.zeros(k), noise, len(x), method="eigh")
    margin = (center * x).sum(axis=1) * np.sign((gamma * x).sum(axis=1))
    variance = np.einsum("ij,jl,il->i", x, noise, x)
    doubts = errors.doubts
    bias = np.abs(x) @ doubts[:k]
    squares = np.square(x).sum(axis=1)
    if errors.errors.rest_known:
        rest = crowd.differences @ crowd.design.rest_basis
        variance = variance + np.einsum("ij,jl,il->i", rest, errors.noise[k:, k:], rest)
        bias = bias + np.abs(rest) @ doubts[k:]
        squares = squares + np.square(rest).sum(axis=1)
    else:
        unknown = uncertainty_along(
            crowd.design,
            mean=np.zeros(k),
            covariance=np.eye(k),
            center=np.zeros(k),
            sampling=np.zeros((k, k)),
            doubt=np.zeros(k),
            records=errors.errors.records,
        )
        bias = bias + unknown.bias_bounds(crowd.differences)
    bias = bias + (errors.turned + errors.errors.shift) * np.sqrt(squares)
    return float(np.mean((margin > 0) & (margin - bias >= errors.reach(certainty) * np.sqrt(variance))))
