"""The crowd's preference, exactly and without privacy: what every recommended release estimates.

It is the beta for which Phi(beta . (x - z)) is the share of the crowd that prefers x to z, over dilemmas like those
that were answered: the maximiser of the mean over voters of her mean ln Phi(beta . V) over her decided choices V
(chosen minus other). Every voter counts once, however many dilemmas she answered; with ``weighting="choices"`` every
choice counts once. Along given directions A it is the best beta = A theta.

The function is concave, and Newton's method finds its maximum from sums over batches: a crowd of any size takes a few
passes. A coordinate may be undetermined for two reasons, and the result reports both:

- No answered dilemma distinguishes it from the others (a feature that never differs, two that always differ together).
  A ridge on exactly these combinations picks the shortest of the many maximisers. What is added to all levels of a
  category alike is such a combination, but nothing is lost with it: the shortest effects are those that sum to zero.
- All choices that depend on it agree (separation). The likelihood then increases without bound, and the size of the
  estimate is arbitrary. The ascent stops when the mean can rise by only 1e-17, and at the latest at the edge of a ball:
  measured by what a typical difference in one coordinate alone adds to the margin, the coordinates are at most
  ``REACH`` (root mean square), where 99.99997 % of people agree.

The covariance is that of sampling voters: the sandwich H^-1 J H^-1, where J is the sum over voters of the outer product
of her whole gradient, which allows for any correlation between her choices, times N / (N - 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Literal, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

from crowdveil.arrays import BoolArray, FloatArray
from crowdveil.ballots.ballots import Ballots, BallotSource, check_source
from crowdveil.engines.batches import map_batches
from crowdveil.errors import CrowdveilError, ImpossibleEstimate, plural, shown
from crowdveil.estimation.probit import slopes_and_weights
from crowdveil.study.study import Study

Weighting = Literal["voters", "choices"]
"""Whether every voter counts once (a choice weighs one over her number of choices), or every choice does."""

WEIGHTINGS: tuple[Weighting, ...] = ("voters", "choices")

REACH = 5.0
_NEVER_VARIES = 1e-9
"""Variation below which a combination does not vary, relative to that of one coordinate."""
_ALL_AGREE = 1e-5
"""Average Newton weight below which choices are separated: their margins are beyond 5 and none dissents."""
_INVOLVED = 1e-3
"""Coefficient below which a coordinate has no part in a combination."""
_LEAST_GAIN = 1e-17
_MOST_STEPS = 200


@dataclass(frozen=True, eq=False)
class CrowdPreference:
    """The exact preference of a crowd. It protects nobody."""

    preference: FloatArray
    """beta, one number per feature."""
    coordinates: FloatArray
    """theta along the directions; the same as the preference if none were given."""
    directions: FloatArray
    """A (features x coordinates): the preference is A theta."""
    covariance: FloatArray
    """Sampling covariance of the coordinates; zero in rows of undetermined ones."""
    identified: BoolArray
    """Whether the answered dilemmas distinguish a coordinate from the others."""
    separated: BoolArray
    """Whether a coordinate takes part in a combination on which all choices agree, so that its size is arbitrary."""
    voters: int
    """Number of voters with at least one decided choice."""
    choices: int
    weighting: Weighting

    @cached_property
    def known(self) -> BoolArray:
        """Whether the choices determine each coordinate."""
        return self.identified & ~self.separated

    @cached_property
    def standard_errors(self) -> FloatArray:
        """The standard error of each coordinate; infinite if it is undetermined, or if there is only one voter."""
        return np.where(self.known & (self.voters > 1), np.sqrt(np.diag(self.covariance)), np.inf)

    def __repr__(self) -> str:
        of_whom = f"{self.voters:,} {plural(self.voters, 'voter')}, {self.choices:,} {plural(self.choices, 'choice')}"
        return f"<crowd preference: {of_whom}, weighted by {self.weighting}>"


def crowd_preference(
    source: BallotSource, *, weighting: Weighting = "voters", directions: FloatArray | None = None
) -> CrowdPreference:
    """Return the exact preference of a crowd, in all features or along ``directions`` (features x coordinates)."""
    if not isinstance(weighting, str) or weighting not in WEIGHTINGS:
        raise CrowdveilError(f"the weighting is {shown(weighting)}: use 'voters' or 'choices'")
    check_source(source)
    features = source.study.dimension
    try:
        axes = np.eye(features) if directions is None else np.asarray(directions, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise CrowdveilError(
            f"the directions are {shown(directions)}: give numbers, a row for each of the {features} features"
        ) from None
    if axes.ndim != 2 or axes.shape[0] != features or not axes.size or not np.isfinite(axes).all():
        raise CrowdveilError(
            f"directions of shape {axes.shape}: give finite numbers, a row for each of the {features} features"
        )
    look = _sum(map_batches(source, partial(_look, axes, weighting)))
    voters, choices, total = look.numbers[:3].tolist()
    if not choices:
        raise ImpossibleEstimate("no choice was decided: a crowd's preference needs at least one")
    # In units of a typical difference, the root mean square over the pairs that differ, all coordinates are alike.
    differ = look.numbers[3:]
    units = np.sqrt(np.divide(np.diag(look.matrix), differ, out=np.ones(len(differ)), where=differ > 0))
    scaled = axes / units
    moments = look.matrix / np.outer(units, units) / total
    never = _never_varying(moments)
    ridge = never @ never.T

    def derivatives(theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        summed = _sum(map_batches(source, partial(_derivatives, scaled, weighting, theta)))
        return summed.numbers / total - ridge @ theta, summed.matrix / total + ridge

    theta, curvature = _maximise(derivatives, len(units))
    scatter: FloatArray = reduce(np.add, map_batches(source, partial(_scatter, scaled, weighting, theta)))
    weights, combinations = eigh(curvature, moments + ridge)
    agreed = combinations[:, weights < _ALL_AGREE]
    rest = combinations[:, weights >= _ALL_AGREE] / np.sqrt(weights[weights >= _ALL_AGREE])
    inverse = rest @ rest.T
    spread = scatter / total**2 * (voters / max(1.0, voters - 1))
    identified, separated = ~_involved(_without(_common(source.study, scaled), never)), _involved(agreed)
    known = identified & ~separated
    covariance = np.where(np.outer(known, known), inverse @ spread @ inverse, 0.0) / np.outer(units, units)
    return CrowdPreference(
        preference=np.asarray(scaled @ theta, np.float64),
        coordinates=theta / units,
        directions=axes,
        covariance=covariance,
        identified=identified,
        separated=separated,
        voters=int(voters),
        choices=int(choices),
        weighting=weighting,
    )


class _Sums(NamedTuple):
    """The sums of one pass: some numbers, and a matrix over the coordinates."""

    numbers: FloatArray
    matrix: FloatArray


def _sum(batches: Iterable[_Sums]) -> _Sums:
    return reduce(lambda one, other: _Sums(one.numbers + other.numbers, one.matrix + other.matrix), batches)


def _contrasts(axes: FloatArray, weighting: Weighting, ballots: Ballots) -> tuple[Ballots, FloatArray, FloatArray]:
    """Return the decided ballots, their differences (chosen minus other) along the axes, and their weights."""
    decided = ballots.decided()
    weights = np.ones(decided.records) if weighting == "choices" else np.repeat(1 / decided.counts, decided.counts)
    return decided, decided.differences @ axes, weights


def _look(axes: FloatArray, weighting: Weighting, ballots: Ballots, before: int) -> _Sums:
    """Sum voters, choices, weights, the weights of pairs that differ in each coordinate, and the second moments."""
    decided, contrasts, weights = _contrasts(axes, weighting, ballots)
    numbers = np.array([decided.voters, decided.records, weights.sum(), *(weights @ (contrasts != 0))])
    return _Sums(numbers, (contrasts * weights[:, None]).T @ contrasts)


def _derivatives(axes: FloatArray, weighting: Weighting, theta: FloatArray, ballots: Ballots, before: int) -> _Sums:
    """Sum the gradient and the negated second derivatives."""
    _, contrasts, weights = _contrasts(axes, weighting, ballots)
    slopes, curvatures = slopes_and_weights(contrasts @ theta)
    return _Sums(contrasts.T @ (weights * slopes), (contrasts * (weights * curvatures)[:, None]).T @ contrasts)


def _scatter(axes: FloatArray, weighting: Weighting, theta: FloatArray, ballots: Ballots, before: int) -> FloatArray:
    """Sum the outer products of the voters' gradients."""
    decided, contrasts, weights = _contrasts(axes, weighting, ballots)
    if not decided.voters:
        return np.zeros((len(theta), len(theta)))
    slopes, _ = slopes_and_weights(contrasts @ theta)
    gradients = np.add.reduceat(contrasts * (weights * slopes)[:, None], decided.offsets[:-1], axis=0)
    return np.asarray(gradients.T @ gradients)


def _never_varying(moments: FloatArray) -> FloatArray:
    """Return the combinations (orthonormal columns) in which no answered dilemma differs."""
    deviations = np.where(np.diag(moments) > 0, np.sqrt(np.diag(moments)), 1.0)
    sizes, vectors = np.linalg.eigh(moments / np.outer(deviations, deviations))
    never = vectors[:, sizes <= _NEVER_VARIES] / deviations[:, None]
    return np.asarray(np.linalg.qr(never)[0], np.float64)


def _common(study: Study, axes: FloatArray) -> FloatArray:
    """Return what adds the same to all levels of a category, as orthonormal columns; the axes may not reach it."""
    alike = np.zeros((len(axes), len(study.level_columns)))
    for k, levels in enumerate(study.level_columns):
        alike[levels, k] = 1
    reached = np.linalg.pinv(axes) @ alike
    return np.asarray(np.linalg.qr(reached[:, np.isclose(axes @ reached, alike).all(axis=0)])[0], np.float64)


def _without(known: FloatArray, combinations: FloatArray) -> FloatArray:
    """Return the part of a space that is orthogonal to another; both are orthonormal columns."""
    vectors, sizes, _ = np.linalg.svd(combinations - known @ (known.T @ combinations), full_matrices=False)
    return np.asarray(vectors[:, sizes > 0.5], np.float64)


def _involved(combinations: FloatArray) -> BoolArray:
    """Return which coordinates (rows) take part in any of the combinations (columns)."""
    shares = np.abs(combinations) / np.linalg.norm(combinations, axis=0)
    return np.asarray((shares > _INVOLVED).any(axis=1))


def _maximise(
    derivatives: Callable[[FloatArray], tuple[FloatArray, FloatArray]], dimension: int
) -> tuple[FloatArray, FloatArray]:
    """Find the maximum of a concave function in the ball by Newton's method, and return its negated second derivatives.

    Every step goes to the maximum of the quadratic model in the ball, and is halved while it overshoots the maximum
    along its line.
    """
    theta = np.zeros(dimension)
    gradient, curvature = derivatives(theta)
    for _ in range(_MOST_STEPS):
        step = _top(gradient + curvature @ theta, curvature, REACH * np.sqrt(dimension)) - theta
        gain = float(gradient @ step)
        gradient, curvature = derivatives(theta + step)
        while gain > _LEAST_GAIN and gradient @ step < -0.5 * gain:
            step, gain = step / 2, gain / 2
            gradient, curvature = derivatives(theta + step)
        theta = theta + step
        if gain <= _LEAST_GAIN:
            return theta, curvature
    raise ArithmeticError(f"the crowd's preference was not found in {_MOST_STEPS} steps")


def _top(linear: FloatArray, curvature: FloatArray, radius: float) -> FloatArray:
    """Maximise linear . x - x . curvature x / 2 in a ball: (curvature + m) x = linear with the least m >= 0."""
    sizes, vectors = np.linalg.eigh(curvature)
    sizes = np.maximum(sizes, 0.0)
    along = vectors.T @ linear

    def excess(multiplier: float) -> float:
        return float(np.linalg.norm(along / (sizes + multiplier))) - radius

    tiny = 1e-140  # its inverse can still be squared
    most = float(np.linalg.norm(along)) / radius + tiny
    multiplier = tiny if excess(tiny) <= 0 else brentq(excess, tiny, most, xtol=tiny)
    return np.asarray(vectors @ (along / (sizes + multiplier)), np.float64)
