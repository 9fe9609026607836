"""All that a release of a crowd's preference does not know, apart by cause.

A release estimates gamma, the crowd's preference along the axes of a study's public design (``Design``), and from it
beta = basis @ gamma over the features. Four things stand between the estimate and the truth:

- the privacy **noise**, whose law is known (``privacy.noise.distribution``; kept beside this, over the features);
- the **sampling** of voters: another crowd from the same population would have said something else;
- **doubt**: clipping, the model of how loud voters are, and dilemmas drawn otherwise than the study's generator does:
  a bound along each axis, one on how far the preference may have been turned as a whole, and one on how far its
  **size** may be off. A preference of another size prefers the same side of every dilemma: so bars allow for the size,
  and certainty need not;
- the **rest**: directions in which features differ and no factor does. They were not measured. A priori they move the
  margin of a dilemma, all together, by a tenth of what the factors may move it by (``estimation.prior``).

The unshrunk ``center`` serves error bars and certainty: around it the noise is symmetric, whatever the truth. The
posterior mean and covariance serve the probability: what is not known makes it less sure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.arrays import FloatArray
from crowdveil.privacy.noise.distribution import NoiseDistribution

REACH = 3.0
"""No crowd's preference along an axis of unit size is larger: there, nobody disagrees with anybody."""
REST_CONFIDENCE = 0.999
"""The rest is taken to lie in the ellipsoid that its prior gives this probability."""
_FAR = 4.0
"""Moved by more deviations than this, an interval is exceeded to one side only."""
_HALVINGS = 20


@dataclass(frozen=True)
class Unknown:
    """The posterior of a crowd's preference along k axes, its unshrunk estimate, and what that does not know."""

    basis: FloatArray
    """A row a feature, a column an axis: beta = basis @ gamma."""
    rest: FloatArray
    """A row a feature, a column a direction left out, scaled by its prior standard deviation."""
    mean: FloatArray
    covariance: FloatArray
    center: FloatArray
    sampling: FloatArray
    """Covariance of the center over the draw of voters; where a bound, at least that."""
    doubt: FloatArray
    """A bound along each axis."""
    freedom: int | None = None
    """Degrees of freedom, where the sampling covariance was estimated from that many reports and one more."""
    drawn_rest: float = 1.0
    """The crowd's own rest is so many times as large as its prior: which voters were drawn adds to it."""
    drawn_shift: float = 0.0
    """How far leaving directions out may have moved the crowd's own preference, for a unit of length along the axes."""
    left_out: int = 0
    """How many of the axes, the last ones, are of directions that no factor looks along."""
    turn: float = 0.0
    """A bound on the length, along all axes, of an error whose direction is not known."""
    size: float = 0.0
    """A bound on how far the center is too long or too short, relatively."""

    def along_factors(self, directions: FloatArray) -> FloatArray:
        """Return directions (rows) that see a preference as these do, but for the axes that no factor looks along.

        What is left is the preference that explains the crowd by its factors alone: the other axes are uncorrelated
        with theirs.
        """
        if not self.left_out:
            return directions
        x = directions @ self.basis
        x[:, len(self.mean) - self.left_out :] = 0.0
        return np.asarray(x @ np.linalg.pinv(self.basis), np.float64)

    def predictive_margins(self, differences: NDArray[Any]) -> FloatArray:
        """Return m for each difference x - z (rows): given all that is known and not known, Phi(m) prefer x to z.

        Of gamma . x + noise > 0 with gamma ~ N(mean, covariance) and standard normal noise, the probability is
        Phi(mean . x / sqrt(1 + x' covariance x)).
        """
        means, variances = self.predictive(differences)
        return np.asarray(means / np.sqrt(1 + variances), np.float64)

    def predictive(self, differences: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        """Return the mean and the variance of the margin of each difference (rows), given all that is known."""
        x, left_out = differences @ self.basis, differences @ self.rest
        variances = ((x @ self.covariance) * x).sum(axis=-1) + (left_out * left_out).sum(axis=-1)
        return np.asarray(x @ self.mean, np.float64), np.asarray(variances, np.float64)

    def margin(self, difference: FloatArray) -> float:
        """Return the unshrunk estimate of the margin of a dilemma."""
        return float(self.center @ (difference @ self.basis))

    def bias_bound(self, difference: FloatArray) -> float:
        """Return how far doubt and the rest may have moved the margin of a dilemma, but for its size.

        The error whose direction is not known may lie along any dilemma: that counts whole.
        """
        x = difference @ self.basis
        turned = (self.turn + self.drawn_shift) * math.sqrt(float(x @ x))
        return float(self.doubt @ np.abs(x)) + turned + self.rest_bound(difference)

    def rest_bound(self, difference: FloatArray) -> float:
        """Return how far the directions that were not measured may have moved the margin of a dilemma."""
        left_out = difference @ self.rest
        return self._rest_reach * self.drawn_rest * math.sqrt(float(left_out @ left_out))

    def size_bound(self, difference: FloatArray) -> float:
        """Return how far an error of the size may have moved the margin of a dilemma."""
        return self.size * abs(self.margin(difference))

    def sampling_deviation(self, difference: FloatArray) -> float:
        """Return the standard deviation of the margin over the draw of voters."""
        x = difference @ self.basis
        return math.sqrt(max(float(x @ self.sampling @ x), 0.0))

    def half_width(self, difference: FloatArray, noise: float, confidence: float, *, left_out: bool) -> float:
        """Return how far the margin may be off with this confidence, given how far the noise reaches with it.

        Independent errors add up by their squares; a bound along an axis is added whole. An error of the size, or one
        whose direction is not known, moves the center by at most so much, to one side: the interval is as wide as
        covers then (``_covering``). Of an error whose direction is not known, along k axes, a direction that was given
        before has a part of at most 2 / sqrt(k) in all but one of twenty cases. The directions left out count where all
        features are asked about, and not where the preference along the factors is.
        """
        x = difference @ self.basis
        sampling = self._quantile(confidence) * self.sampling_deviation(difference)
        rest = self.rest_width(difference, confidence) if left_out else 0.0
        turned = self.turn * math.sqrt(float(x @ x)) * min(1.0, 2 / math.sqrt(max(len(x), 1)))
        reach = math.sqrt(noise**2 + sampling**2 + rest**2)
        moved = math.hypot(turned, self.size_bound(difference))
        return _covering(reach, moved, confidence) + float(self.doubt @ np.abs(x))

    def rest_width(self, difference: FloatArray, confidence: float) -> float:
        """Return how far the directions left out may move the margin, by their prior."""
        left_out = difference @ self.rest
        return NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(float(left_out @ left_out))

    def _quantile(self, confidence: float) -> float:
        if self.freedom is None:
            return NormalDist().inv_cdf((1 + confidence) / 2)
        from scipy.stats import t  # here, and not above: a decision needs no error bar

        return float(t.ppf((1 + confidence) / 2, max(self.freedom, 1)))

    def whole_range(self, difference: FloatArray) -> float:
        """Return the largest margin that any crowd could have along the axes."""
        x = difference @ self.basis
        return REACH * math.sqrt(float(x @ x))

    @property
    def _rest_reach(self) -> float:
        """The radius of the ellipsoid of the rest: a root of the chi-squared quantile (Wilson and Hilferty 1931).

        For the confidence above it lies above the exact one, by at most two per cent.
        """
        dimensions = self.rest.shape[1]
        if not dimensions:
            return 0.0
        part = 2 / (9 * dimensions)
        return math.sqrt(dimensions * (1 - part + NormalDist().inv_cdf(REST_CONFIDENCE) * math.sqrt(part)) ** 3)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "basis": self.basis.tolist(),
            "rest": self.rest.tolist(),
            "mean": self.mean.tolist(),
            "covariance": self.covariance.tolist(),
            "center": self.center.tolist(),
            "sampling": self.sampling.tolist(),
            "doubt": self.doubt.tolist(),
            "freedom": self.freedom,
            "drawn_rest": self.drawn_rest,
            "drawn_shift": self.drawn_shift,
            "left_out": self.left_out,
            "turn": self.turn,
            "size": self.size,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], dimension: int) -> Unknown:
        """Read it from a release file, and check that its parts fit together."""
        arrays = {
            name: np.array(data[name], np.float64)
            for name in ("basis", "rest", "mean", "covariance", "center", "sampling", "doubt")
        }
        arrays["rest"] = arrays["rest"].reshape(dimension, -1)
        k = len(arrays["mean"])
        shapes = {"basis": (dimension, k), "mean": (k,), "center": (k,), "doubt": (k,)}
        shapes |= {"covariance": (k, k), "sampling": (k, k)}
        wrong = [name for name, shape in shapes.items() if arrays[name].shape != shape]
        if wrong or not all(np.isfinite(array).all() for array in arrays.values()):
            raise ValueError(
                f"what is not known has the wrong shape, or is not finite: {', '.join(wrong) or 'numbers'}"
            )
        freedom = None if data["freedom"] is None else int(data["freedom"])
        drawn = np.array([float(data["drawn_rest"]) - 1, float(data["drawn_shift"])])
        sizes = [arrays["doubt"], np.diag(arrays["covariance"]), np.diag(arrays["sampling"]), np.array(freedom or 0)]
        more = np.array([*drawn, float(data["turn"]), float(data["size"])])
        if not np.isfinite(more).all() or any((size < 0).any() for size in [*sizes, more]):
            raise ValueError("what is not known has a size below what is possible, or none")
        left_out = int(data["left_out"])
        if not 0 <= left_out <= k:
            raise ValueError(f"of {k} axes, {left_out} cannot be left out by factors")
        return cls(
            **arrays,
            freedom=freedom,
            drawn_rest=float(drawn[0]) + 1,
            drawn_shift=float(drawn[1]),
            left_out=left_out,
            turn=float(more[2]),
            size=float(more[3]),
        )


def _covering(reach: float, moved: float, confidence: float) -> float:
    """Return how wide to each side an interval has to be around a center that may be moved by so much.

    ``reach`` is how wide it is where nothing moves it. Its error is taken as normal; moved by b deviations, it is
    within w with probability Phi(w - b) - Phi(-w - b), which is at least the confidence for a w between b and the
    quantile of one side, b + z(confidence), and b and that of two sides (Armstrong and Kolesar 2018).
    """
    if not (reach > 0 and moved > 0):
        return reach + moved
    normal = NormalDist()
    two_sided = normal.inv_cdf((1 + confidence) / 2)
    deviation = reach / two_sided
    bias = moved / deviation
    low, high = max(two_sided, bias + normal.inv_cdf(confidence)), bias + two_sided
    if bias > _FAR:
        return low * deviation
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if normal.cdf(middle - bias) - normal.cdf(-middle - bias) < confidence:
            low = middle
        else:
            high = middle
    return high * deviation


ERROR_BAR = 0.95


def intervals(unknown: Unknown, noise: NoiseDistribution, directions: FloatArray, *, left_out: bool) -> FloatArray:
    """Return the ends of the interval along each direction (rows), cut off where no crowd could be.

    The directions that factors leave out count where all features are asked about (``left_out``).
    """
    rows = []
    for direction in directions:
        width = unknown.half_width(direction, noise.half_width(direction, ERROR_BAR), ERROR_BAR, left_out=left_out)
        center = unknown.margin(direction)
        range_ = unknown.whole_range(direction)
        range_ += unknown.rest_width(direction, ERROR_BAR) if left_out else 0.0
        low, high = np.clip([center - width, center + width], -range_, range_)
        rows.append([low, high] if low < high else [-range_, range_])
    return np.array(rows)
