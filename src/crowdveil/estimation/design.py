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

    @property
    def directions(self) -> int:
        """The number of axes: one for each factor, less those that the study never varies."""
        return len(self.axes.T)

    @cached_property
    def basis(self) -> FloatArray:
        """The axes in model units: a preference gamma along the axes is beta = basis @ gamma over the features."""
        return self.axes * self.units[:, None] / GRID

    @cached_property
    def rest_basis(self) -> FloatArray:
        """The axes of the remaining directions, in model units."""
        return self.rest * self.units[:, None] / GRID

    @cached_property
    def whole(self) -> Design:
        """The same design with an axis for every direction that varies: those of the factors first."""
        nothing = np.zeros((len(self.rest), 0), np.int64)
        return replace(self, axes=np.hstack([self.axes, self.rest]), rest=nothing)

    @cached_property
    def along(self) -> FloatArray:
        """The sample along the axes, in units of an axis."""
        return self.differences @ self.basis

    @cached_property
    def sample(self) -> AxisSample:
        """The sample along the axes."""
        return AxisSample(self.along)


@dataclass(frozen=True, eq=False)
class PublicDilemmas:
    """Dilemmas that everybody may know, as they were given in place of a study's own."""

    differences: FloatArray | None
    """In model units, a row a dilemma; None for the generator's."""
    words: str
    """What was given."""

    def in_place_of(self, design: Design) -> Design:
        """Return the design with these dilemmas; the axes stay those of the study."""
        return design if self.differences is None else replace(design, differences=self.differences)


@dataclass(frozen=True)
class AxisSample:
    """Dilemmas along the axes of a design, and what a crowd of a given preference gamma would choose in them."""

    along: FloatArray
    """A row a dilemma: x, in units of an axis."""

    @cached_property
    def mean_squares(self) -> FloatArray:
        """The mean square along each axis: 1 for a study's own dilemmas."""
        return np.asarray(np.mean(self.along**2, axis=0), np.float64)

    def expected_means(self, preference: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean of the chosen side along each axis, and its derivative.

        Of a dilemma x the chosen side is x or -x, and on average x (2 Phi(gamma . x) - 1).
        """
        return self.instrumented(self.along, preference)

    def expected_scores(self, preference: FloatArray, clip: float) -> tuple[FloatArray, FloatArray]:
        """Return the mean of the chosen side clipped to ``clip``, in units of it, and its derivative.

        Averaged over the design this corrects for clipping, for the curvature of the probit and for contrasts that
        vary together, all at once.
        """
        return self.instrumented(np.clip(self.along / clip, -1.0, 1.0), preference)

    def stretched(self, ratios: FloatArray) -> AxisSample:
        """Return dilemmas whose mean square along each axis is so many times as large."""
        return AxisSample(self.along * np.sqrt(ratios))

    def head(self, dilemmas: int) -> AxisSample:
        """Return the first of them."""
        return AxisSample(self.along[:dilemmas])

    def instrumented(self, scores: FloatArray, preference: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean of scores of the chosen side (rows: of each dilemma's first side), and its derivative."""
        margins = self.along @ preference
        slopes = np.exp(-0.5 * margins**2) * np.sqrt(2 / np.pi)
        mean = scores.T @ (2 * ndtr(margins) - 1) / len(margins)
        return mean, _weighted_products(scores, slopes, self.along)


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
    moments = differences.T @ differences / len(differences)
    factors = study.factor_matrix.astype(np.float64)
    all_vary = all(contrast.any() for contrast in study.contrasts(differences).T)
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
