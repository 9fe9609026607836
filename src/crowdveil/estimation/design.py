"""The public design of a study: the distribution of its dilemmas, and the axes on which records are scored.

The generator of a study's dilemmas is public (it is in the study file). So everything computed here costs no privacy:
the covariance of the differences, axes along which they are uncorrelated and of unit size, and the expected choices of
a crowd with a given preference.

Records are scored along one axis for each factor of the study: the factor's contrast, made uncorrelated with the others
and of unit size over the study's dilemmas, and otherwise as close to the factor as possible. Axes and the values of a
dilemma are vectors of integers, so a record's score is an integer, the same in every language and on every machine. The
remaining directions, in which features differ and no factor does, have axes of their own, uncorrelated with the
factors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from scipy.linalg import block_diag

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.estimation.probit import leanings
from crowdveil.study.drawing import draw_dilemmas
from crowdveil.study.study import Study

SAMPLE = 40_000
GRID = 2**20
"""Integer steps per unit of an axis: scores of differences are uncorrelated and have mean square GRID^2."""
FINE = 2**10
"""Integer steps per unit of a feature whose values need not be whole."""
CLIP = 0.7
"""Clip of the scores of single records, in standard deviations of the design along each axis."""
AS_MANY = 300
"""Weight of the generator's dilemmas, as a number of dilemmas, when axes are computed for other dilemmas."""
_SEED = 20_190_606
_ROWS = 1024
"""Dilemmas multiplied at once. They fit into the processor's cache, which is faster than all at once."""
_DEAD = 1e-6
"""Fraction of the largest variance below which a direction's variance is rounding error."""


@dataclass(frozen=True)
class Design:
    """A public sample of dilemmas, and the axes (columns) on which records are scored."""

    differences: FloatArray
    """Differences in model units, one dilemma per row."""
    axes: IntArray
    """One row per feature: integer values x - z have the scores (x - z) @ axes."""
    rest: IntArray
    """The same for the directions that no factor covers."""
    units: FloatArray
    """Integer steps per model unit of each feature: a difference v becomes the integer floor(v units + 1/2)."""
    left_out: int = 0
    """Number of axes, at the end, for directions that no factor covers."""

    @property
    def directions(self) -> int:
        """The number of axes: one for each factor, except those that the study never varies."""
        return len(self.axes.T)

    @cached_property
    def basis(self) -> FloatArray:
        """The axes in model units: a preference gamma along the axes is basis @ gamma over the features."""
        return self.axes * self.units[:, None] / GRID

    @cached_property
    def rotated(self) -> Design:
        """The same design along slightly rotated axes (``rotation``): those of factors, and the others apart."""
        turned = block_diag(rotation(self.directions - self.left_out), rotation(self.left_out))
        return replace(self, axes=np.rint(self.axes @ turned).astype(np.int64))

    @cached_property
    def mixed_basis(self) -> FloatArray:
        """The mixed axes, along which scores are clipped (``mixing``), in model units."""
        return np.asarray(self.basis @ self.sample.mixing, np.float64)

    @cached_property
    def rest_basis(self) -> FloatArray:
        """The axes of the remaining directions, in model units."""
        return self.rest * self.units[:, None] / GRID

    @cached_property
    def whole(self) -> Design:
        """The same design with an axis for every direction that varies, factors first."""
        nothing = np.zeros((len(self.rest), 0), np.int64)
        return replace(
            self, axes=np.hstack([self.axes, self.rest]), rest=nothing, left_out=self.left_out + self.rest.shape[1]
        )

    @cached_property
    def along(self) -> FloatArray:
        """The sample along the axes, in units of an axis."""
        return self.differences @ self.basis

    @cached_property
    def norms(self) -> FloatArray:
        """The squared length of each dilemma of the sample along the axes of factors."""
        return np.asarray(np.square(self.along[:, : self.directions - self.left_out]).sum(axis=1), np.float64)

    @cached_property
    def sample(self) -> AxisSample:
        """The sample along the axes."""
        return AxisSample(self.along, self.left_out)


@dataclass(frozen=True, eq=False)
class PublicDilemmas:
    """Public dilemmas, supplied in place of a study's own."""

    differences: FloatArray | None
    """Differences in model units, one dilemma per row; None for the generator's."""
    words: str
    """Description of what was supplied."""

    def design(self, study: Study) -> Design:
        """Return the design of a study with these dilemmas."""
        return public_design(study) if self.differences is None else design_of(study, self.differences)


@dataclass(frozen=True)
class AxisSample:
    """Dilemmas along the axes of a design, and the expected choices of a crowd with a given preference gamma."""

    along: FloatArray
    """Dilemmas x in units of an axis, one per row."""
    left_out: int = 0
    """Number of axes, at the end, for directions that no factor covers."""

    @cached_property
    def mixing(self) -> FloatArray:
        """The map to the mixed axes. It mixes the axes of factors with each other, and the others with each other.

        It first negates every other axis. A study tends to put the pole that most people prefer always last, or always
        first. Otherwise a crowd's preference would concentrate on the one mixed axis that is the sum of all.
        """
        mixed = block_diag(mixing(self.along.shape[1] - self.left_out), mixing(self.left_out))
        return np.asarray((-1.0) ** np.arange(len(mixed))[:, None] * mixed, np.float64)

    @cached_property
    def mixed(self) -> FloatArray:
        """The dilemmas along the mixed axes."""
        return np.asarray(self.along @ self.mixing, np.float64)

    def expected_means(self, preference: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean of the chosen side along each axis, and its derivative.

        The chosen side of a dilemma x is x or -x, with expectation x (2 Phi(gamma . x) - 1).
        """
        return self.instrumented(self.along, preference)

    def expected_scores(self, preference: FloatArray, clip: float) -> tuple[FloatArray, FloatArray]:
        """Return the mean of the chosen side's clipped scores along the mixed axes, in units of the clip, and its
        derivative.

        The average over the design accounts for clipping, for the curvature of the probit and for correlated contrasts.
        """
        return self.instrumented(np.clip(self.mixed / clip, -1.0, 1.0), preference)

    def shaped(self, moments: FloatArray) -> AxisSample:
        """Return dilemmas with these mean products along the axes, where those of the sample are the identity."""
        sizes, vectors = np.linalg.eigh(moments)
        return AxisSample(self.along @ ((vectors * np.sqrt(sizes)) @ vectors.T), self.left_out)

    def head(self, dilemmas: int) -> AxisSample:
        """Return the first dilemmas of the sample."""
        return AxisSample(self.along[:dilemmas], self.left_out)

    def instrumented(self, scores: FloatArray, preference: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean score of the chosen side, and its derivative.

        A row of ``scores`` is that of a dilemma's first side.
        """
        leaning, slopes = leanings(self.along @ preference)
        mean = scores.T @ leaning / len(leaning)
        return mean, weighted_products(scores, slopes, self.along)


@lru_cache(maxsize=64)
def mixing(size: int) -> FloatArray:
    """Return the orthogonal matrix of the discrete cosine transform, one frequency per column, which mixes axes.

    A dilemma differs in few factors, so its score along the axis of a factor is mostly zero and otherwise large. After
    clipping, such scores carry little information for the noise that the clip requires. Along a mixture of all axes
    with weights of similar size, scores are nearly normal, and clipping loses less. The matrix is orthogonal, so the
    mixing itself loses nothing, and scores stay uncorrelated and of unit size.
    """
    places = np.arange(size)[:, None] + 0.5
    frequencies = np.arange(size)
    waves = np.cos(np.pi / max(size, 1) * places * frequencies)
    return np.asarray(waves / np.linalg.norm(waves, axis=0), np.float64)


ROTATION = 0.2
"""Norm of the other axes' weights in a rotated axis, relative to the weight of its own."""


@lru_cache(maxsize=64)
def rotation(size: int) -> FloatArray:
    """Return an orthogonal matrix near the identity whose columns each contain a little of every axis.

    A single dilemma may not differ along the axis of a factor at all, and then its sign carries no information. With a
    small weight on the other axes, the sign depends on these; if the dilemma does differ along the axis, they hardly
    matter. So the signs of short ballots become more informative, and those of long ones lose nothing, as they would
    along mixed axes (``python tests/statistics/one_bit_constants.py``). The weights of the other axes have the signs of
    the Paley tournament, in which the signs of any two columns agree about half the time.
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


def weighted_products(left: FloatArray, weights: FloatArray, right: FloatArray) -> FloatArray:
    """Return the weighted mean of the outer products of rows."""
    total = np.zeros((left.shape[1], right.shape[1]))
    for start in range(0, len(weights), _ROWS):
        rows = slice(start, start + _ROWS)
        total += (left[rows] * weights[rows, None]).T @ right[rows]
    return total / len(weights)


def weighted_squares(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted mean of the outer products of rows with themselves. Weights are not negative."""
    total = np.zeros((rows.shape[1], rows.shape[1]))
    roots = np.sqrt(weights)[:, None]
    for start in range(0, len(weights), _ROWS):
        some = rows[start : start + _ROWS] * roots[start : start + _ROWS]
        total += some.T @ some  # a symmetric product takes half the time
    return total / len(weights)


@lru_cache(maxsize=32)
def public_design(study: Study) -> Design:
    """Sample the study's dilemmas with a fixed seed, and compute the axes of its factors and of the rest."""
    ballots = -(-SAMPLE // study.drawing.dilemmas)
    left, right = draw_dilemmas(study, ballots, np.random.default_rng(_SEED))
    differences = (left - right).astype(np.float64) / study.units
    all_vary = all(contrast.any() for contrast in study.contrasts(differences).T)
    return _with_axes(study, differences, differences.T @ differences / len(differences), all_vary)


def leaves_out(study: Study) -> bool:
    """Whether features differ in directions in which no factor does."""
    return bool(public_design(study).rest.shape[1])


def measured_design(study: Study) -> Design:
    """Return the public design along whose axes devices report: every one, if the study says so, or the factors'."""
    design = public_design(study)
    return design.whole if study.along == "features" else design


def design_of(study: Study, differences: FloatArray) -> Design:
    """Return the design of a study that asked these dilemmas rather than the generator's.

    The axes are uncorrelated and of unit size over these dilemmas plus AS_MANY of the generator's, which regularise the
    covariance of a few dilemmas.
    """
    usual = public_design(study).differences
    moments = differences.T @ differences + usual.T @ usual * (AS_MANY / len(usual))
    all_vary = all(contrast.any() for contrast in study.contrasts(np.concatenate([usual, differences])).T)
    return _with_axes(study, differences, moments / (len(differences) + AS_MANY), all_vary)


def _with_axes(study: Study, differences: FloatArray, moments: FloatArray, all_vary: bool) -> Design:
    factors = study.factor_matrix.astype(np.float64)
    basis = factors @ _uncorrelated(factors.T @ moments @ factors, all_vary)
    everything = _principal(moments)
    # The directions that vary and are uncorrelated with every axis of a factor.
    left_out = everything @ _complement(everything.T @ moments @ basis)
    steps = _steps(study)
    return Design(differences, _integers(basis, steps), _integers(left_out, steps), steps)


def _uncorrelated(moments: FloatArray, all_vary: bool) -> FloatArray:
    """Return the map to contrasts that are uncorrelated, of unit size, and correlate best with the given ones.

    It is the inverse square root of their correlation matrix (ZCA-cor: Kessy, Lewin and Strimmer 2018). If a contrast
    never varies, or is a linear combination of the others, principal axes are used instead.
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
    """Return an orthonormal basis of the orthogonal complement of these orthonormal columns."""
    vectors, sizes, _ = np.linalg.svd(columns, full_matrices=True)
    return np.asarray(vectors[:, np.count_nonzero(sizes > 0.5) :], np.float64)


def _steps(study: Study) -> FloatArray:
    """Return the integer steps per model unit: one per unit of a feature if its values are whole, else FINE."""
    whole = [
        study.drawing.method == "moral-machine" or (bool(f.levels) and all(float(v).is_integer() for v in f.levels))
        for f in study.features
    ]
    return np.where(whole, study.units, FINE * study.units)


def _integers(basis: FloatArray, steps: FloatArray) -> IntArray:
    return np.rint(basis / steps[:, None] * GRID).astype(np.int64)
