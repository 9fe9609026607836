"""Forecast a release from public numbers only: its error bars, its predictive accuracy, the dilemmas it decides.

We assume a crowd of a given **agreement**: the share of choices that its preference gamma would predict if it were
known exactly. Along the k axes of the study's public design gamma is N(0, tau^2), with tau such that the margins of
dilemmas imply that agreement. The rest follows in closed form, or by averages over the study's own dilemmas:

- The error of a release is that of the recommended mechanism (its ``expected_noise``, and how voters differ), which
  holds for an indifferent crowd. If a crowd agrees more, each answer carries less information, and the error grows.
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
from crowdveil.estimation.clipped_means import SCORE_DISAGREEMENT, loudness, voter_clip
from crowdveil.estimation.design import Design, public_design
from crowdveil.estimation.disagreement import DISAGREEMENT
from crowdveil.estimation.flipped_choices import TELLING
from crowdveil.estimation.guess import DESIGN_BOUND, DESIGN_DEVIATION, ClipEffect, Units, most_alike
from crowdveil.estimation.prior import prior_deviation, rest_deviation
from crowdveil.estimation.record_axes import record_axes
from crowdveil.estimation.scoring_step import STEP_DOUBT, clip_doubts, clip_in_deviations
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.guarantee import Paradigm
from crowdveil.privacy.mechanisms.indifference import REPORTS_ONE_IN, threshold_split
from crowdveil.privacy.mechanisms.mechanism import Settings, unknown_along
from crowdveil.privacy.mechanisms.registry import CENTRAL, DISTRIBUTED, recommended
from crowdveil.privacy.mechanisms.reliability import ONE_IN as RELIABILITY_ONE_IN
from crowdveil.privacy.mechanisms.reliability import reliability_split
from crowdveil.privacy.mechanisms.score import coordinates_to_report
from crowdveil.privacy.mechanisms.score_plan import Plan
from crowdveil.privacy.mechanisms.scores import cube_variance, expected_square
from crowdveil.privacy.noise.distribution import Coins, CubeSum, Spread
from crowdveil.study.study import Study

AGREEMENT = 0.75
"""Default agreement: about that of people in the Moral Machine's dilemmas."""
_LOOKED_AT = 4000
"""Dilemmas of the public sample used for averages."""
_CROWD = 1000
"""Number of reports at which a distributed mechanism's noise is evaluated; its variance is inversely proportional."""
_DOUBTS = {"score": 0.03, "randomised-response": 0.02, "one-bit": 0.2}
"""Approximate doubt of distributed mechanisms along an axis, relative to the preference there, in simulated polls of
500 to 5,000 voters at epsilon 1 and 10. The study's generator draws a poll's dilemmas; a file's are less well known."""
_FIRST_DOUBT = 0.1
"""Approximate relative error of a first step's guess, due to clipping and to the dilemmas."""
_BAR = 0.95
_SEED = 20_190_607


@dataclass(frozen=True)
class Forecast:
    """The expected quality of a release with these numbers, for a typical crowd."""

    study: str
    paradigm: str
    mechanism: str
    voters: int
    records: int
    epsilon: float
    agreement: float
    certainty: float
    bars: dict[str, float | None]
    """95 % error bar of the preference along each factor; None if it will not be known."""
    predicted: float
    """Share of other people's choices that the release predicts; at most the agreement."""
    decided: float
    """Share of the study's dilemmas that are decided as the crowd would, with the required certainty."""

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
            "voters": self.voters,
            "records": self.records,
            "epsilon": self.epsilon,
            "agreement": self.agreement,
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
) -> Forecast:
    """Forecast a release by the recommended mechanism."""
    name = recommended(paradigm, study, Epsilons.same(epsilon, min(voters, _CROWD)))
    crowd = _typical(study, agreement)
    errors = _errors(name, study, voters, records, epsilon).for_crowd(crowd)
    return Forecast(
        study=study.name,
        paradigm=paradigm.name,
        mechanism=name,
        voters=voters,
        records=records,
        epsilon=epsilon.value,
        agreement=agreement,
        certainty=certainty,
        bars=_bars(study, crowd, errors),
        predicted=_predicted(crowd, errors),
        decided=_decided(crowd, errors, certainty),
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
class _Errors:
    """The errors of the unshrunk estimate along every axis of the design, those of the factors first."""

    noise: FloatArray
    sampling: FloatArray
    doubt: float
    """Bound on the model error along an axis, relative to the estimate there."""
    rest_known: bool
    """Whether the directions that factors leave out are measured, too."""
    first_look: float | None = None
    """Variance along each axis of an earlier step's estimate, its size aside."""
    step_doubt: float = 0.0
    """Bound on the length of an error of any direction, relative to the length of the last step."""
    turn: float = 0.0
    """The same, relative to the length of the preference."""
    size: float = 0.0
    """Bound on the relative error of the size."""
    hoeffding: bool = False
    """Whether certainty comes from Hoeffding's inequality rather than from the distribution of the noise."""
    records: int | None = None
    """Number of records that the crowd's own rest depends on (``unknown_along``)."""

    def for_crowd(self, crowd: _Typical) -> _Errors:
        """Return the errors for a crowd whose answers carry less information than an indifferent one's."""
        grown = 1 / crowd.information
        first_look = None if self.first_look is None else self.first_look * grown
        return replace(self, noise=self.noise * grown, sampling=self.sampling * grown, first_look=first_look)

    def of_all_steps(self, crowd: _Typical) -> FloatArray:
        """Return the covariance of the error along the factors' axes, given all steps."""
        k = crowd.design.directions
        last = self.noise[:k, :k] + self.sampling[:k, :k]
        if self.first_look is None:
            return last
        earlier = 1 / (self.first_look + (_FIRST_DOUBT * crowd.deviation) ** 2)
        return np.asarray(np.linalg.inv(np.linalg.inv(last) + earlier * np.eye(k)), np.float64)

    def doubts(self, crowd: _Typical) -> FloatArray:
        """Return the expected bound along every axis: a fraction of the preference there, which is about normal."""
        k, left_out = crowd.design.directions, crowd.design.rest.shape[1]
        sizes = np.repeat([crowd.deviation, rest_deviation(left_out)], [k, left_out])
        return np.asarray(self.doubt * math.sqrt(2 / math.pi) * np.sqrt(np.diag(self.noise) + sizes**2), np.float64)

    def turned(self, crowd: _Typical) -> float:
        """Return the typical bound on the length of an error of any direction."""
        k, left_out = crowd.design.directions, crowd.design.rest.shape[1]
        way = (self.first_look or 0.0) + (_FIRST_DOUBT * crowd.deviation) ** 2
        rest = left_out * rest_deviation(left_out) ** 2 if self.rest_known else 0.0
        return self.turn * crowd.deviation * math.sqrt(k) + self.step_doubt * math.sqrt(k * way + rest)

    def reach(self, certainty: float) -> float:
        """Return the margin that this certainty requires, in standard deviations of the noise."""
        return math.sqrt(-2 * math.log(1 - certainty)) if self.hoeffding else NormalDist().inv_cdf(certainty)


def _errors(name: str, study: Study, voters: int, records: int, epsilon: Epsilon) -> _Errors:
    settings = Settings(study, study.norm_bound)
    if study.repeat and name in CENTRAL:
        epsilon = reliability_split(epsilon)[0]
    elif study.repeat:
        voters = max(voters - voters // RELIABILITY_ONE_IN, 1)
    if study.indifference is not None and name in CENTRAL:
        epsilon = threshold_split(epsilon)[0]
    elif study.indifference is not None and name != "randomised-response":
        voters = max(voters - voters // REPORTS_ONE_IN, 1)
    if name in CENTRAL:
        return _central_errors(CENTRAL[name], settings, voters, records, epsilon)
    design = public_design(study)
    axes = design.directions
    usual = study.drawing.dilemmas
    if name == "randomised-response":
        # At indifference, a choice of which a part is left tells its square of the probit's 2 / pi along each axis.
        left = math.tanh(epsilon.value / 2) if study.indifference is None else 1 - 3 / (math.exp(epsilon.value) + 2)
        told = voters * records * left**2
        rest_known = told >= TELLING * design.whole.directions
        sampling = np.eye(axes) * DISAGREEMENT**2 / voters
        noise = np.eye(design.whole.directions if rest_known else axes) * math.pi / (2 * told)
        return _Errors(
            noise if rest_known else _among_all(noise, design),
            _among_all(sampling, design),
            _DOUBTS[name],
            rest_known=rest_known,
            records=voters * records,
        )
    law = DISTRIBUTED[name].expected_noise(replace(settings, drawn=True), Epsilons.same(epsilon, _CROWD))
    assert isinstance(law, Coins | Spread)
    covariance = _along_axes(law.matrix, design) * _CROWD / voters
    covariance *= _report_ratio(name, study, records, usual, epsilon)
    nothing = np.zeros_like(covariance)
    by_voter = name == "one-bit"
    return _Errors(
        covariance,
        nothing,
        _DOUBTS[name],
        rest_known=False,
        hoeffding=by_voter,
        records=voters if by_voter else voters * records,
    )


def _report_ratio(name: str, study: Study, records: int, usual: int, epsilon: Epsilon) -> float:
    """Return the ratio of the variance for this number of records per voter to that for whole ballots."""
    if name == "score":
        axes = record_axes(study)

        def variance(records: int) -> float:
            size = int(coordinates_to_report(axes, np.array([records]), Epsilons.same(epsilon, 1))[0])
            noise = cube_variance(2 / epsilon.value, 1.0, size)
            return (noise + expected_square(axes, float(records))) / (size * records**2)

        return variance(records) / variance(usual)
    return (_kept(voter_clip(usual), usual) / _kept(voter_clip(usual), records)) ** 2


def _kept(clip: float, records: int) -> float:
    """Return the slope of the mean clipped score in the mean score, if scores are normal."""
    return math.erf(clip / math.sqrt(2) / voter_clip(records))


def _central_errors(mechanism: Any, settings: Settings, voters: int, records: int, epsilon: Epsilon) -> _Errors:
    study = settings.study
    design = public_design(settings.study)
    usual = study.drawing.dilemmas
    by_voter = mechanism.by_voter
    units = Units(by_voter, voters, 0 if by_voter else voters * records, voters * records**2)
    plan = Plan.of(design, units.count, epsilon, by_voter=by_voter, design_known=mechanism.design_known)
    law: CubeSum = mechanism.expected_noise(settings, voters if by_voter else max(units.count // usual, 1), epsilon)
    first_cube = law.parts[0]
    variance = cube_variance(first_cube.scale, 1.0, first_cube.matrix.shape[1])
    first_clip = plan.first_clip(study)
    effect = ClipEffect.on_voters(first_clip) if by_voter else ClipEffect.on_records(first_clip)
    unsure = 0.0 if mechanism.design_known or plan.squares is not None else DESIGN_BOUND * DESIGN_DEVIATION
    kept = _kept(first_clip, records) if by_voter else _kept(first_clip, 1)
    # Later steps clip by how loud voters are; the first one by how loud they would be with whole ballots.
    if plan.second is None:
        longer = _kept(first_clip, usual) / kept if by_voter else 1.0
        spread, first_look = min(1.0, 1 / first_clip**2), None
        step_doubt, turn, size = 0.0, effect.turn, effect.size
    else:
        scatter = loudness(1 / records) if by_voter else None
        longer = voter_clip(records) / voter_clip(usual) if by_voter else 1.0
        deviations = clip_in_deviations(math.sqrt(variance), scatter, prior_deviation(design.directions))
        spread, (turn, size) = 1 / (deviations**2 * (scatter or 1.0)), clip_doubts(deviations)
        step_doubt, unsure = STEP_DOUBT, 0.0
        first_look = math.pi / 2 * (first_clip * plan.first_noise / kept) ** 2
    alike = SCORE_DISAGREEMENT**2 if plan.spread else most_alike(design.directions)
    sampling = float(units.sampling(np.array([spread]), 1 / records, alike)[0])
    along = longer * _from_features(design)
    gain = along @ np.hstack([part.matrix for part in law.parts])
    return _Errors(
        np.asarray(along @ law.covariance @ along.T, np.float64),
        np.asarray(sampling * gain @ gain.T, np.float64),
        unsure,
        rest_known=plan.rest is not None,
        first_look=first_look,
        step_doubt=step_doubt,
        turn=turn,
        size=size,
    )


def _from_features(design: Design) -> FloatArray:
    """Return the map from a preference over the features to the axes of factors and the rest."""
    return np.asarray(np.linalg.pinv(design.whole.basis), np.float64)


def _along_axes(covariance: FloatArray, design: Design) -> FloatArray:
    inverse = _from_features(design)
    return np.asarray(inverse @ covariance @ inverse.T, np.float64)


def _among_all(covariance: FloatArray, design: Design) -> FloatArray:
    """Extend a covariance along the axes of factors to every axis."""
    left_out = design.rest.shape[1]
    return np.pad(covariance, (0, left_out))


def _bars(study: Study, crowd: _Typical, errors: _Errors) -> dict[str, float | None]:
    """Return the expected bar of each factor, or None if it spans all possible values."""
    k, basis = crowd.design.directions, crowd.design.basis
    unknown = unknown_along(
        crowd.design,
        mean=np.zeros(k),
        covariance=np.eye(k),
        center=np.zeros(k),
        sampling=errors.sampling[:k, :k],
        doubt=errors.doubts(crowd)[:k] + math.sqrt(2 / math.pi) * errors.size * crowd.deviation,
        turn=errors.turned(crowd),
    )
    bars: dict[str, float | None] = {}
    for factor, row in zip(study.factors, study.factor_map, strict=True):
        x = row @ basis
        noise = NormalDist().inv_cdf((1 + _BAR) / 2) * math.sqrt(float(x @ errors.noise[:k, :k] @ x))
        bar = unknown.half_width(row, noise, _BAR, left_out=False)
        bars[factor.name] = bar if 0 < bar < unknown.whole_range(row) else None
    return bars


def _predicted(crowd: _Typical, errors: _Errors) -> float:
    """Return the share of choices that agree with the shrunk estimate, over dilemmas and crowds."""
    k = crowd.design.directions
    x = crowd.along
    error = errors.of_all_steps(crowd)
    prior = prior_deviation(k) ** 2 * np.eye(k)
    shrinks = np.linalg.solve(prior + error, prior).T
    truth = crowd.deviation**2 * np.eye(k)
    both = np.einsum("ij,jl,il->i", x, shrinks @ truth, x)
    released = np.einsum("ij,jl,il->i", x, shrinks @ (truth + error) @ shrinks.T, x)
    inclined = 1 + crowd.deviation**2 * np.square(x).sum(axis=1)
    varying = released > 0
    correlation = both[varying] / np.sqrt(released[varying] * inclined[varying])
    return float(np.mean(0.5 + np.arcsin(np.clip(correlation, -1, 1)) / math.pi)) if varying.any() else 0.5


def _decided(crowd: _Typical, errors: _Errors, certainty: float) -> float:
    """Return the share of dilemmas that are decided as the crowd would, with a new crowd for each dilemma."""
    rng = np.random.default_rng(_SEED)
    k = crowd.design.directions
    noise = errors.noise[:k, :k]
    x = crowd.along
    gamma = rng.normal(0.0, crowd.deviation, x.shape)
    center = gamma + rng.multivariate_normal(np.zeros(k), noise, len(x), method="eigh")
    margin = (center * x).sum(axis=1) * np.sign((gamma * x).sum(axis=1))
    variance = np.einsum("ij,jl,il->i", x, noise, x)
    doubts = errors.doubts(crowd)
    bias = np.abs(x) @ doubts[:k]
    squares = np.square(x).sum(axis=1)
    if errors.rest_known:
        rest = crowd.differences @ crowd.design.rest_basis
        variance = variance + np.einsum("ij,jl,il->i", rest, errors.noise[k:, k:], rest)
        bias = bias + np.abs(rest) @ doubts[k:]
        squares = squares + np.square(rest).sum(axis=1)
    else:
        unknown = unknown_along(
            crowd.design,
            mean=np.zeros(k),
            covariance=np.eye(k),
            center=np.zeros(k),
            sampling=np.zeros((k, k)),
            doubt=np.zeros(k),
            records=errors.records,
        )
        bias = bias + np.array([unknown.bias_bound(difference) for difference in crowd.differences])
    bias = bias + errors.turned(crowd) * np.sqrt(squares)
    return float(np.mean((margin > 0) & (margin - bias >= errors.reach(certainty) * np.sqrt(variance))))
