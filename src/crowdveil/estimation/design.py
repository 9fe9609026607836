"""A study as public numbers: the law of its dilemmas, and axes along which to look at a record.

Which dilemmas a study draws is public (its generator is in the study file). So whatever is computed here costs no
privacy: the covariance of the differences, axes in which they are uncorrelated and of unit size, and what a
crowd of a given preference would choose on average.

A record is looked at along one axis for each factor of the study: the factor's contrast, made uncorrelated with the
others and of unit size over the study's dilemmas, and as near to the factor itself as that allows. The axes are vectors
of integers, and so are the values of a dilemma: a record's score along an axis is an integer, the same in every
language and on every machine. The remaining directions, in which features differ and no factor does, have axes of
their own, uncorrelated with the factors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import ndtr

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.study.drawing import draw_dilemmas
from crowdveil.study.study import Study

SAMPLE = 40_000
GRID = 2**20
"""Integer steps to a unit of an axis: scores of differences are uncorrelated and of mean square GRID^2."""
FINE = 2**10
"""Steps to a value of a feature that need not be whole."""
CLIP = 0.7
"""Scores of single records are kept within this many standard deviations of the design along each axis."""
AS_MANY = 300
"""Of the generator's dilemmas, so many are taken to be among those that were asked, where axes are made for these."""
_SEED = 20_190_606
_ROWS = 1024
"""Dilemmas multiplied at once: what a processor keeps close. All at once takes longer."""
_DEAD = 1e-6
"""A direction with less than this part of the largest one's variance never varies, but for rounding."""


@dataclass(frozen=True)
class Design:
    """A sample of dilemmas that are public, and the axes (columns) on which records are scored."""

    differences: FloatArray
    """In model units, a row a dilemma."""
    axes: IntArray
    """A row a feature: of integer values x - z, the score along each axis is (x - z) @ axes."""
    rest: IntArray
    """The same for the directions that no factor looks at."""
    units: FloatArray
    """Integer steps to a model unit of each feature: a difference v is the integer floor(v units + 1/2)."""
    left_out: int = 0
    """How many of the axes, the last ones, are of directions that no factor looks at."""

    @property
    def directions(self) -> int:
        """The number of axes: one for each factor, less those that the study never varies."""
        return len(self.axes.T)

    @cached_property
    def basis(self) -> FloatArray:
        """The axes in model units: a preference gamma along the axes is beta = basis @ gamma over the features."""
        return self.axes * self.units[:, None] / GRID

    @cached_property
    def rotated(self) -> Design:
        """The same design along axes that are rotated a little (``rotation``)."""
        return replace(self, axes=np.rint(self.axes @ rotation(self.directions)).astype(np.int64))

    @cached_property
    def mixed_basis(self) -> FloatArray:
        """The axes mixed, in model units: along these, scores are clipped (``mixing``)."""
        return np.asarray(self.basis @ self.sample.mixing, np.float64)

    @cached_property
    def rest_basis(self) -> FloatArray:
        """The axes of the remaining directions, in model units."""
        return self.rest * self.units[:, None] / GRID

    @cached_property
    def whole(self) -> Design:
        """The same design with an axis for every direction that varies: those of the factors first."""
        nothing = np.zeros((len(self.rest), 0), np.int64)
        return replace(
            self, axes=np.hstack([self.axes, self.rest]), rest=nothing, left_out=self.left_out + self.rest.shape[1]
        )

    @cached_property
    def along(self) -> FloatArray:
        """The sample along the axes, in units of an axis."""
        return self.differences @ self.basis

    @cached_property
    def sample(self) -> AxisSample:
        """The sample along the axes."""
        return AxisSample(self.along, self.left_out)


@dataclass(frozen=True, eq=False)
class PublicDilemmas:
    """Dilemmas that everybody may know, as they were given in place of a study's own."""

    differences: FloatArray | None
    """In model units, a row a dilemma; None for the generator's."""
    words: str
    """What was given."""

    def design(self, study: Study) -> Design:
        """Return the design of a study with these dilemmas."""
        return public_design(study) if self.differences is None else design_of(study, self.differences)


@dataclass(frozen=True)
class AxisSample:
    """Dilemmas along the axes of a design, and what a crowd of a given preference gamma would choose in them."""

    along: FloatArray
    """A row a dilemma: x, in units of an axis."""
    left_out: int = 0
    """How many of the axes, the last ones, are of directions that no factor looks at."""

    @cached_property
    def mixing(self) -> FloatArray:
        """The map to the mixed axes: those of factors among themselves, and the others among themselves.

        Every other axis is turned around before. Studies name the pole that most people prefer last, or first: without
        that, what a crowd prefers would gather along the one mixed axis that is the sum of all.
        """
        k = self.along.shape[1] - self.left_out
        blocks = np.zeros((k + self.left_out, k + self.left_out))
        blocks[:k, :k], blocks[k:, k:] = mixing(k), mixing(self.left_out)
        return np.asarray((-1.0) ** np.arange(len(blocks))[:, None] * blocks, np.float64)

    @cached_property
    def mean_squares(self) -> FloatArray:
        """The mean square along each axis: 1 for a study's own dilemmas."""
        return np.asarray(np.mean(self.along**2, axis=0), np.float64)

    @cached_property
    def mixed(self) -> FloatArray:
        """The dilemmas along the mixed axes."""
        return np.asarray(self.along @ self.mixing, np.float64)

    def expected_means(self, preference: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean of the chosen side along each axis, and its derivative.

        Of a dilemma x the chosen side is x or -x, and on average x (2 Phi(gamma . x) - 1).
        """
        return self.instrumented(self.along, preference)

    def expected_scores(self, preference: FloatArray, clip: float) -> tuple[FloatArray, FloatArray]:
        """Return the mean of the chosen side along the mixed axes, clipped, in units of the clip; and its derivative.

        Averaged over the design this corrects for clipping, for the curvature of the probit and for contrasts that
        vary together, all at once.
        """
        return self.instrumented(np.clip(self.mixed / clip, -1.0, 1.0), preference)

    def stretched(self, ratios: FloatArray) -> AxisSample:
        """Return dilemmas whose mean square along each axis is so many times as large."""
        return AxisSample(self.along * np.sqrt(ratios), self.left_out)

    def head(self, dilemmas: int) -> AxisSample:
        """Return the first of them."""
        return AxisSample(self.along[:dilemmas], self.left_out)

    def instrumented(self, scores: FloatArray, preference: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean of scores of the chosen side (rows: of each dilemma's first side), and its derivative."""
        margins = self.along @ preference
        slopes = np.exp(-0.5 * margins**2) * np.sqrt(2 / np.pi)
        mean = scores.T @ (2 * ndtr(margins) - 1) / len(margins)
        return mean, _weighted_products(scores, slopes, self.along)


@lru_cache(maxsize=64)
def mixing(size: int) -> FloatArray:
    """Return the orthogonal matrix of the discrete cosine transform, a column a frequency: it mixes axes (columns).

    A dilemma differs in few factors. Along the axis of a factor its score is mostly zero, and large otherwise; kept
    within bounds, it tells little for the noise that the bounds ask for. Along a mixture of all axes, with weights of
    about the same size, scores are nearly normal, and what is kept of them tells more. As the matrix is orthogonal,
    nothing is lost, and scores stay uncorrelated and of unit size.
    """
    places, frequencies = np.arange(size)[:, None] + 0.5, np.arange(size)
    waves = np.cos(np.pi / max(size, 1) * places * frequencies)
    return np.asarray(waves / np.linalg.norm(waves, axis=0), np.float64)


ROTATION = 0.2
"""How much of all other axes together is in a rotated one, for 1 of its own."""


@lru_cache(maxsize=64)
def rotation(size: int) -> FloatArray:
    """Return an orthogonal matrix near the identity, of which a column has a little of every axis.

    A single dilemma may not differ along the axis of a factor at all, and then its sign tells nothing. With a little of
    the others, it tells on which side these are; where it does differ along the axis, they hardly matter. So short
    ballots tell more by their signs, and long ones as much as before, which along mixed axes they do not (``python
    tests/statistics/one_bit_constants.py``). What is added of another axis has the sign of the Paley tournament, in
    which the signs of any two columns agree about as often as not.
    """
    prime = size
    while not (prime % 4 == 3 and all(prime % divisor for divisor in range(2, prime))):
        prime += 1
    squares = {number * number % prime for number in range(1, prime)}
    signs = np.array(
        [[0 if i == j else 1 if (j - i) % prime in squares else -1 for j in range(size)] for i in range(size)]
    )
    left, _, right = np.linalg.svd(np.eye(size) + ROTATION / math.sqrt(max(size - 1, 1)) * signs)
    return np.asarray(left @ right, np.float64)


def _weighted_products(left: FloatArray, weights: FloatArray, right: FloatArray) -> FloatArray:
    """Return the weighted mean of the outer products of rows."""
    total = np.zeros((left.shape[1], right.shape[1]))
    for start in range(0, len(weights), _ROWS):
        rows = slice(start, start + _ROWS)
        total += (left[rows] * weights[rows, None]).T @ right[rows]
    return total / len(weights)


@lru_cache(maxsize=32)
def public_design(study: Study) -> Design:
    """Draw the study's own dilemmas, always the same, and take the axes of its factors and of the rest."""
    ballots = -(-SAMPLE // study.drawing.dilemmas)
    left, right = draw_dilemmas(study, ballots, np.random.default_rng(_SEED))
    differences = (left - right).astype(np.float64) / study.units
    all_vary = all(contrast.any() for contrast in study.contrasts(differences).T)
    return _with_axes(study, differences, differences.T @ differences / len(differences), all_vary)


def design_of(study: Study, differences: FloatArray) -> Design:
    """Return the design of a study of which these dilemmas were asked, and not all that its generator draws.

    The axes are uncorrelated and of unit size over these, with AS_MANY of the generator's added: few dilemmas do not
    tell a covariance.
    """
    usual = public_design(study).differences
    moments = differences.T @ differences + usual.T @ usual * (AS_MANY / len(usual))
    all_vary = all(contrast.any() for contrast in study.contrasts(np.concatenate([usual, differences])).T)
    return _with_axes(study, differences, moments / (len(differences) + AS_MANY), all_vary)


def _with_axes(study: Study, differences: FloatArray, moments: FloatArray, all_vary: bool) -> Design:
    factors = study.factor_matrix.astype(np.float64)
    basis = factors @ _uncorrelated(factors.T @ moments @ factors, all_vary)
    everything = _principal(moments)
    # Of all directions that vary, those that are uncorrelated with every axis of a factor.
    left_out = everything @ _complement(everything.T @ moments @ basis)
    steps = _steps(study)
    return Design(differences, _integers(basis, steps), _integers(left_out, steps), steps)


def _uncorrelated(moments: FloatArray, all_vary: bool) -> FloatArray:
    """Return the map to contrasts that are uncorrelated, of unit size, and correlate best with the given ones.

    That is the inverse root of their correlations (Kessy, Lewin and Strimmer 2018: ZCA-cor). Where one of them never
    varies, or follows from the others, principal axes take its place.
    """
    if all_vary:
        sizes = np.sqrt(np.diag(moments))
        values, vectors = np.linalg.eigh(moments / np.outer(sizes, sizes))
        if values[0] > _DEAD * values[-1]:
            return np.asarray((vectors / np.sqrt(values)) @ vectors.T / sizes[:, None], np.float64)
    return _principal(moments)


def _principal(moments: FloatArray) -> FloatArray:
    """Return the principal axes that vary, each scaled to unit size and with its largest entry positive."""
    values, vectors = np.linalg.eigh(moments)
    kept = values > _DEAD * values[-1]
    axes = (vectors[:, kept] / np.sqrt(values[kept]))[:, ::-1]
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    return np.asarray(axes * np.sign(largest), np.float64)


def _complement(columns: FloatArray) -> FloatArray:
    """Return an orthonormal basis of what is orthogonal to these orthonormal columns."""
    vectors, sizes, _ = np.linalg.svd(columns, full_matrices=True)
    return np.asarray(vectors[:, np.count_nonzero(sizes > 0.5) :], np.float64)


def _steps(study: Study) -> FloatArray:
    """Return the steps to a model unit: one for each whole value, or FINE of them where values are not whole."""
    whole = [
        study.drawing.method == "moral-machine" or (bool(f.levels) and all(float(v).is_integer() for v in f.levels))
        for f in study.features
    ]
    return np.where(whole, study.units, FINE * study.units)


def _integers(basis: FloatArray, steps: FloatArray) -> IntArray:
    return np.rint(basis / steps[:, None] * GRID).astype(np.int64)
