"""The errors to expect of a mechanism's estimate, from public numbers only: what a forecast is computed from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.estimation.clipped_means import voter_clip
from crowdveil.estimation.design import Design
from crowdveil.estimation.prior import prior_deviations
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.noise.distribution import CoinSum, EmpiricalNormal

CROWD = 1000
"""Number of reports at which a distributed mechanism's noise is evaluated; its variance is inversely proportional."""


@dataclass(frozen=True)
class ExpectedErrors:
    """The errors of the unshrunk estimate along every axis of the design, those of the factors first.

    They hold for an indifferent crowd. If a crowd agrees more, each answer carries less information: unless
    ``of_crowds`` is given, that is all that changes.
    """

    noise: FloatArray
    """Covariance due to the noise."""
    sampling: FloatArray
    """Covariance because voters differ."""
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
    """Number of records that the crowd's own rest depends on (``uncertainty_along``)."""
    shift: float = 0.0
    """Bound, per unit of length, on how far a crowd's own preference is from the noiseless estimate."""
    of_crowds: Callable[[float], list[ExpectedErrors]] | None = None
    """The errors of a few crowds whose preferences have this standard deviation along each axis of a factor."""

    def margin_error(self, design: Design) -> float:
        """Return the mean squared error of a dilemma's margin, with the estimate shrunk as the prior asks for.

        Along an axis with prior variance p and error variance e it is p e / (p + e); what is not measured stays p.
        """
        left_out = design.rest.shape[1]
        prior = prior_deviations(design.directions + left_out, left_out) ** 2
        error = np.diag(self.noise) + np.diag(self.sampling)
        left = prior * error / (prior + error)
        return float(
            (left if self.rest_known else np.append(left[: design.directions], prior[design.directions :])).sum()
        )


def noise_of_reports(
    expected_noise: Callable[[Epsilons], CoinSum | EmpiricalNormal], design: Design, voters: int, epsilon: Epsilon
) -> FloatArray:
    """Return the covariance along every axis of the noise in an estimate from this many reports."""
    law = expected_noise(Epsilons.same(epsilon, CROWD))
    inverse = from_features(design)
    return np.asarray(inverse @ law.matrix @ inverse.T, np.float64) * CROWD / voters


def from_features(design: Design) -> FloatArray:
    """Return the map from a preference over the features to the axes of factors and the rest."""
    return np.asarray(np.linalg.pinv(design.whole.basis), np.float64)


def among_all(covariance: FloatArray, design: Design) -> FloatArray:
    """Extend a covariance along the axes of factors to every axis."""
    return np.pad(covariance, (0, design.rest.shape[1]))


def clipped_slope(clip: float, records: int) -> float:
    """Return the slope of the mean clipped score in the mean score of this many records, if scores are normal."""
    return math.erf(clip / math.sqrt(2) / voter_clip(records))
