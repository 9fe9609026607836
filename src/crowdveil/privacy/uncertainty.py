"""The uncertainty of a released crowd preference, by cause.

A release estimates gamma, the crowd's preference along the axes of a study's public design (``Design``), and from it
beta = basis @ gamma over the features. The estimate has four sources of error:

- **Noise** for privacy, whose distribution is known (``privacy.noise.distribution``; kept separately, over the
  features).
- **Sampling** of voters: another crowd from the same population would have answered differently.
- **Doubt**: bias from clipping, from the model of voters, and from dilemmas that the study's generator did not draw. It
  is bounded along each axis, by the length of an error in any direction (**turn**), and by the relative error of the
  preference's **size**. Where nobody knows how features go together in the dilemmas, these may have **shown** more or
  less of it than the estimate supposes. A preference of another size prefers the same side of every dilemma, so error
  bars allow for an error of the size, and certainty need not.
- The **rest**: directions in which features differ and no factor does. They were not measured. Under their prior, they
  together move the margin of a dilemma by a tenth of what the factors may move it by (``estimation.prior``).

Error bars and certainty use the unshrunk ``center``, around which the noise is symmetric whatever the truth. The
probability of a choice uses the posterior mean and covariance: uncertainty draws it toward 1/2.
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
"""Largest preference of any crowd along an axis of unit size: at this size people practically all agree."""
REST_CONFIDENCE = 0.999
"""Prior probability of the ellipsoid in which the rest is assumed to lie."""
_FAR = 4.0
"""Bias, in standard deviations, beyond which only one tail of an interval matters."""
_HALVINGS = 20


@dataclass(frozen=True)
class ErrorParts:
    """The causes of an error bar. Each part is the half-width of the bar if there were no other cause."""

    noise: float
    sampling: float
    left_out: float
    """Of the directions left out, by their prior."""
    moved: float
    """Bound on the bias from an error of the size, or of unknown direction."""
    doubt: float
    """Bound on the bias along the axes."""
    confidence: float

    @property
    def model(self) -> float:
        """The half-width from clipping, from the model of voters and from the dilemmas together."""
        return self.moved + self.doubt

    @property
    def half_width(self) -> float:
        """The half-width from all causes.

        Independent errors add in quadrature; bounds along the axes are added in full. An error of the size, or of
        unknown direction, is a bounded bias: the interval is widened to cover it (``_covering``). So it is at least the
        root of the sum of the squares of noise, sampling and left out, and at most that plus the model's part.
        """
        reach = math.sqrt(self.noise**2 + self.sampling**2 + self.left_out**2)
        return _covering(reach, self.moved, self.confidence) + self.doubt


@dataclass(frozen=True)
class Uncertainty:
    """The posterior of a crowd's preference along k axes, its unshrunk estimate, and the errors of that."""

    basis: FloatArray
    """One row per feature, one column per axis: beta = basis @ gamma."""
    rest: FloatArray
    """One row per feature, one column per direction left out, scaled by its prior standard deviation."""
    mean: FloatArray
    covariance: FloatArray
    center: FloatArray
    sampling: FloatArray
    """Covariance of the center due to the sampling of voters, or an upper bound on it."""
    doubt: FloatArray
    """Bound on the bias along each axis."""
    freedom: int | None = None
    """Degrees of freedom of the sampling covariance, if reports told it: their effective number, less one."""
    drawn_rest: float = 1.0
    """Scale of the crowd's own rest relative to the prior: the sampling of voters adds to it."""
    drawn_shift: float = 0.0
    """Bound on how far the crowd's own preference is from the noiseless estimate, per unit of length along the axes:
    because the directions left out correlate with the factors in its dilemmas, and because the two weight its records
    differently."""
    left_out: int = 0
    """Number of axes, at the end, for directions that no factor covers."""
    turn: float = 0.0
    """Bound on the length, along all axes, of an error of unknown direction."""
    size: float = 0.0
    """Bound on the relative error of the center's length."""
    disagreement: float = 0.0
    """Supposed standard deviation of voters' own preferences along the axis of each factor."""
    common: float = 1.0
    """Size of the preference that voters have in common, in dilemmas of the usual length, relative to gamma."""
    divided: FloatArray | None = None
    """Bound on the sampling covariance along any one direction, if voters differ in that direction alone. None if
    ``sampling`` was measured along every direction."""
    shown: tuple[float, float] = (1.0, 1.0)
    """Bounds on how much of the preference its dilemmas show, relative to those that the estimate supposes. In
    trade-offs they show less: the preference is the estimate divided by a number between these."""

    def along_factors(self, directions: FloatArray) -> FloatArray:
        """Return directions (rows) with the axes that no factor covers projected out.

        Since these axes are uncorrelated with those of the factors, what remains is the preference fitted to the
        factors alone.
        """
        if not self.left_out:
            return directions
        x = directions @ self.basis
        x[:, len(self.mean) - self.left_out :] = 0.0
        return np.asarray(x @ np.linalg.pinv(self.basis), np.float64)

    def predictive_margins(self, differences: NDArray[Any]) -> FloatArray:
        """Return m for each difference x - z (rows), where Phi(m) is the predictive probability of x over z.

        With gamma ~ N(mean, covariance) and standard normal noise, the probability of gamma . x + noise > 0 is
        Phi(mean . x / sqrt(1 + x' covariance x)). In place of x stands what voters see of it (``seen``).
        """
        means, variances = self.predictive(differences)
        return np.asarray(means / np.sqrt(1 + variances), np.float64)

    def predictive(self, differences: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        """Return the posterior mean and variance of the margin of each difference (rows), as voters see it."""
        differences = self.seen(differences)
        x, left_out = differences @ self.basis, differences @ self.rest
        variances = ((x @ self.covariance) * x).sum(axis=-1) + (left_out * left_out).sum(axis=-1)
        return np.asarray(x @ self.mean, np.float64), np.asarray(variances, np.float64)

    def seen(self, differences: NDArray[Any]) -> FloatArray:
        """Return each difference (rows) times c sqrt((1 + k t^2) / (1 + t^2 |x|^2)), x along the axes of k factors.

        Voters' own preferences differ by t along each axis, so the longer x is, the more its margin differs between
        voters, and the smaller is the share that prefers its better side (``estimation.disagreement``): Phi(gamma . x)
        is too high for long dilemmas and too low for short ones. It fits the average dilemma, which makes c.
        """
        x = (differences @ self.basis)[..., : len(self.mean) - self.left_out]
        t = self.disagreement**2
        scales = self.common * np.sqrt((1 + t * x.shape[-1]) / (1 + t * np.square(x).sum(axis=-1)))
        return np.asarray(differences * scales[..., None], np.float64)

    def margin(self, difference: FloatArray) -> float:
        """Return the unshrunk estimate of the margin of a dilemma."""
        return float(self.center @ (difference @ self.basis))

    def bias_bound(self, difference: FloatArray) -> float:
        """Return a bound on the bias of a dilemma's margin from doubt and the rest, the size aside.

        An error of unknown direction may lie along this dilemma, so it counts in full.
        """
        return float(self.bias_bounds(difference))

    def bias_bounds(self, differences: FloatArray) -> FloatArray:
        """Return ``bias_bound`` of many dilemmas (rows)."""
        x = differences @ self.basis
        turned = (self.turn + self.drawn_shift) * np.sqrt(np.square(x).sum(axis=-1))
        return np.asarray(np.abs(x) @ self.doubt + turned + self._rest_bounds(differences), np.float64)

    def rest_bound(self, difference: FloatArray) -> float:
        """Return a bound on the contribution of the unmeasured directions to the margin of a dilemma."""
        return float(self._rest_bounds(difference))

    def _rest_bounds(self, differences: FloatArray) -> FloatArray:
        left_out = differences @ self.rest
        return np.asarray(self._rest_reach * self.drawn_rest * np.sqrt(np.square(left_out).sum(axis=-1)), np.float64)

    @property
    def furthest_size(self) -> float:
        """Bound on the relative error of the center's length, whatever its cause."""
        least, most = self.shown
        return max((1 + self.size) / least - 1, 1 - (1 - self.size) / most)

    def size_bound(self, difference: FloatArray) -> float:
        """Return a bound on the effect of an error of the size on the estimated margin of a dilemma."""
        return self.size * abs(self.margin(difference))

    def sampling_deviation(self, difference: FloatArray) -> float:
        """Return the standard deviation of the margin due to the sampling of voters."""
        x = difference @ self.basis
        return math.sqrt(max(float(x @ self.sampling @ x), 0.0))

    def divided_deviation(self, difference: FloatArray) -> float:
        """Return the largest standard deviation of the margin due to the sampling of voters, however they differ."""
        if self.divided is None:
            return self.sampling_deviation(difference)
        x = difference @ self.basis
        return max(self.sampling_deviation(difference), math.sqrt(max(float(x @ self.divided @ x), 0.0)))

    def error_parts(self, difference: FloatArray, noise: float, confidence: float, *, left_out: bool) -> ErrorParts:
        """Return the causes of an interval for the margin at this confidence, given the half-width of the noise alone.

        The component of a randomly directed error along a given direction, in k dimensions, is at most 2 / sqrt(k) of
        its length in 19 of 20 cases. The directions left out count if the margin is over all features (``left_out``),
        and not if it is along the factors.
        """
        x = difference @ self.basis
        turned = self.turn * math.sqrt(float(x @ x)) * min(1.0, 2 / math.sqrt(max(len(x), 1)))
        return ErrorParts(
            noise=noise,
            sampling=self._quantile(confidence) * self.sampling_deviation(difference),
            left_out=self.rest_width(difference, confidence) if left_out else 0.0,
            moved=math.hypot(turned, self.size_bound(difference)),
            doubt=float(self.doubt @ np.abs(x)),
            confidence=confidence,
        )

    def interval(
        self, difference: FloatArray, noise: float, confidence: float, *, left_out: bool
    ) -> tuple[float, float]:
        """Return an interval for the margin at this confidence, given the half-width of the noise alone."""
        center = self.margin(difference)
        width = self.error_parts(difference, noise, confidence, left_out=left_out).half_width
        return self.as_shown(center - width, center + width)

    def as_shown(self, low: float, high: float) -> tuple[float, float]:
        """Return the ends of an interval for the estimate, divided by any number between the bounds of ``shown``.

        Each end is divided by the bound that moves it outward, so an interval that excludes zero still does.
        """
        return min(low / shows for shows in self.shown), max(high / shows for shows in self.shown)

    def rest_width(self, difference: FloatArray, confidence: float) -> float:
        """Return the half-width of the prior interval for the contribution of the directions left out."""
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
        """The radius of the ellipsoid of the rest."""
        return ellipsoid_radius(self.rest.shape[1], REST_CONFIDENCE)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain data."""
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
            "disagreement": self.disagreement,
            "common": self.common,
            "divided": None if self.divided is None else self.divided.tolist(),
            "shown": list(self.shown),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], dimension: int) -> Uncertainty:
        """Read the fields of a release file, and check that they are consistent."""
        k = len(data["mean"])
        covariances = ["covariance", "sampling"] if data["divided"] is None else ["covariance", "sampling", "divided"]
        shapes: dict[str, tuple[int, ...]] = {"basis": (dimension, k), "mean": (k,), "center": (k,), "doubt": (k,)}
        shapes |= dict.fromkeys(covariances, (k, k))
        arrays = {name: np.array(data[name], np.float64) for name in shapes}
        wrong = [name for name, shape in shapes.items() if arrays[name].shape != shape]
        arrays["rest"] = np.array(data["rest"], np.float64).reshape(dimension, -1)
        if wrong or not all(np.isfinite(array).all() for array in arrays.values()):
            raise ValueError(
                f"what is not known has the wrong shape, or is not finite: {', '.join(wrong) or 'numbers'}"
            )
        freedom = None if data["freedom"] is None else int(data["freedom"])
        drawn = np.array([float(data["drawn_rest"]) - 1, float(data["drawn_shift"])])
        sizes = [arrays["doubt"], *(np.diag(arrays[name]) for name in covariances), np.array(freedom or 0)]
        more = np.array([*drawn, *(float(data[name]) for name in ("turn", "size", "disagreement", "common"))])
        if not np.isfinite(more).all() or any((size < 0).any() for size in [*sizes, more]):
            raise ValueError("what is not known has a size below what is possible, or none")
        left_out = int(data["left_out"])
        if not 0 <= left_out <= k:
            raise ValueError(f"of {k} axes, {left_out} cannot be left out by factors")
        least, most = map(float, data["shown"])
        if not 0 < least <= most < math.inf:
            raise ValueError(f"dilemmas cannot show between {least:g} and {most:g} times what was supposed")
        return cls(
            **arrays,
            freedom=freedom,
            drawn_rest=float(drawn[0]) + 1,
            drawn_shift=float(drawn[1]),
            left_out=left_out,
            turn=float(more[2]),
            size=float(more[3]),
            disagreement=float(more[4]),
            common=float(more[5]),
            shown=(least, most),
        )


def ellipsoid_radius(dimensions: int, confidence: float) -> float:
    """Return the length within which a standard normal vector lies with this probability.

    It is the root of a chi-squared quantile (Wilson and Hilferty 1931). At a confidence of 0.99 or 0.999 the
    approximation is off by at most 2 %.
    """
    if not dimensions:
        return 0.0
    part = 2 / (9 * dimensions)
    return math.sqrt(dimensions * (1 - part + NormalDist().inv_cdf(confidence) * math.sqrt(part)) ** 3)


def _covering(reach: float, moved: float, confidence: float) -> float:
    """Return the half-width of an interval around an estimate whose bias is at most ``moved``.

    ``reach`` is the half-width without bias. The error is taken as normal. With a bias of b standard deviations, it is
    within w of them with probability Phi(w - b) - Phi(-w - b). The least w at which that reaches the confidence lies
    between b plus the one-sided quantile and b plus the two-sided one (Armstrong and Kolesar 2018).
    """
    if not (reach > 0 and moved > 0):
        return reach + moved
    normal = NormalDist()
    two_sided = normal.inv_cdf((1 + confidence) / 2)
    deviation = reach / two_sided
    bias = moved / deviation
    low = max(two_sided, bias + normal.inv_cdf(confidence))
    high = bias + two_sided
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


def intervals(unknown: Uncertainty, noise: NoiseDistribution, directions: FloatArray, *, left_out: bool) -> FloatArray:
    """Return the ends of the interval along each direction (rows), truncated to the range of possible margins.

    With ``left_out``, the intervals cover the directions that factors leave out, too.
    """
    rows = []
    for direction in directions:
        ends = unknown.interval(direction, noise.half_width(direction, ERROR_BAR), ERROR_BAR, left_out=left_out)
        range_ = unknown.whole_range(direction)
        range_ += unknown.rest_width(direction, ERROR_BAR) if left_out else 0.0
        low, high = np.clip(ends, -range_, range_)
        rows.append([low, high] if low < high else [-range_, range_])
    return np.array(rows)
