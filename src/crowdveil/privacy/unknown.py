"""All that a release of a crowd's preference does not know, apart by cause.

A release estimates gamma, the crowd's preference along the axes of a study's public design (``Design``), and from it
beta = basis @ gamma over the features. Four things stand between the estimate and the truth:

- the privacy **noise**, whose law is known (``privacy.noise.distribution``; kept beside this, over the features);
- the **sampling** of voters: another crowd from the same population would have said something else;
- **doubt**: clipping, the model of how loud voters are, and dilemmas drawn otherwise than the study's generator does,
  as a bound along each axis;
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

REACH = 3.0
"""No crowd's preference along an axis of unit size is larger: there, nobody disagrees with anybody."""
REST_CONFIDENCE = 0.999
"""The rest is taken to lie in the ellipsoid that its prior gives this probability."""


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
        """Return how far doubt and the rest may have moved the margin of a dilemma."""
        x, left_out = difference @ self.basis, difference @ self.rest
        moved = self._rest_reach * self.drawn_rest * math.sqrt(float(left_out @ left_out))
        return float(self.doubt @ np.abs(x)) + moved + self.drawn_shift * math.sqrt(float(x @ x))

    def sampling_deviation(self, difference: FloatArray) -> float:
        """Return the standard deviation of the margin over the draw of voters."""
        x = difference @ self.basis
        return math.sqrt(max(float(x @ self.sampling @ x), 0.0))

    def half_width(self, difference: FloatArray, noise: float, confidence: float, *, left_out: bool) -> float:
        """Return how far the margin may be off with this confidence, given how far the noise reaches with it.

        Independent errors add up by their squares; a bound is added whole. The directions left out count where all
        features are asked about, and not where the preference along the factors is.
        """
        x = difference @ self.basis
        sampling = self._quantile(confidence) * self.sampling_deviation(difference)
        rest = self.rest_width(difference, confidence) if left_out else 0.0
        return math.sqrt(noise**2 + sampling**2 + rest**2) + float(self.doubt @ np.abs(x))

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
        if not np.isfinite(drawn).all() or any((size < 0).any() for size in [*sizes, drawn]):
            raise ValueError("what is not known has a size below what is possible, or none")
        return cls(**arrays, freedom=freedom, drawn_rest=float(drawn[0]) + 1, drawn_shift=float(drawn[1]))
