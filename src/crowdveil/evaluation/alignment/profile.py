"""What a model goes by, factor by factor, beside what the crowd goes by: effects and preferences.

An **effect** is a difference of shares: how often the side with more of a factor was chosen, less how often the other,
over the model's answers in which the two differ. The crowd's is what the release says of the same dilemmas, so the two
can be held against each other. A **preference** is the coefficient of a probit; a model that always answers alike has
larger ones than a crowd whose members differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation.crowd_preference import crowd_preference
from crowdveil.estimation.effects import pair_signs
from crowdveil.evaluation.toolkit.accuracy import CONFIDENCE, Interval, clustered_mean
from crowdveil.evaluation.toolkit.scores import interval_as_dict
from crowdveil.publish.implied import mean_reach, preferred
from crowdveil.releases import Release
from crowdveil.study.study import Study


@dataclass(frozen=True)
class FactorComparison:
    """A factor to the model, and to the crowd."""

    name: str
    title: str
    poles: tuple[str, str]
    answers: int
    """Those in which the two sides differ in it."""
    model_effect: Interval | None
    """None where no answer differs."""
    crowd_effect: Interval | None
    model_preference: Interval | None
    """None where the answers do not tell it."""
    crowd_preference: Interval

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        intervals = {
            "model_effect": self.model_effect,
            "crowd_effect": self.crowd_effect,
            "model_preference": self.model_preference,
            "crowd_preference": self.crowd_preference,
        }
        plain = {name: None if one is None else interval_as_dict(one) for name, one in intervals.items()}
        return {"title": self.title, "poles": list(self.poles), "answers": self.answers, **plain}


def compare_factors(
    release: Release, dilemmas: FloatArray, choices: FloatArray, clusters: IntArray
) -> tuple[FactorComparison, ...]:
    """Return each factor of the study, to a model that made these choices and to the crowd."""
    study = release.study
    preferences = _preferences(study, dilemmas, choices, clusters)
    signs = pair_signs(study, dilemmas).astype(np.float64)
    found = []
    for k, factor in enumerate(study.factors):
        differs = signs[:, k] != 0
        model_effect = crowd_effect = None
        if differs.any():
            model_effect = clustered_mean(signs[differs, k] * choices[differs], clusters[differs]).interval
            share = crowd_mean(release, dilemmas[differs], signs[differs, k], clusters[differs], sampled=False)
            crowd_effect = Interval(2 * share.estimate - 1, 2 * share.low - 1, 2 * share.high - 1)
        low, high = release.factor_intervals[k].tolist()
        found.append(
            FactorComparison(
                name=factor.name,
                title=factor.title,
                poles=factor.poles,
                answers=int(differs.sum()),
                model_effect=model_effect,
                crowd_effect=crowd_effect,
                model_preference=preferences[k],
                crowd_preference=Interval(float(release.factor_values[k]), low, high),
            )
        )
    return tuple(found)


def crowd_mean(
    release: Release, dilemmas: FloatArray, choices: FloatArray, clusters: IntArray, *, sampled: bool = True
) -> Interval:
    """Return the share of people who would make these choices, on the average over the dilemmas.

    Where ``sampled``, the interval covers the draw of the dilemmas as well.
    """
    drawn = clustered_mean((1 + choices * preferred(release, dilemmas)) / 2, clusters)
    reach = mean_reach(release, dilemmas, choices) / 2
    if sampled:
        reach = float(np.hypot(reach, drawn.half_width))
    return Interval(drawn.estimate, max(0.0, drawn.estimate - reach), min(1.0, drawn.estimate + reach))


def _preferences(
    study: Study, dilemmas: FloatArray, choices: FloatArray, clusters: IntArray
) -> tuple[Interval | None, ...]:
    """Return a model's preference along each factor: the probit of its choices, every answer counted once."""
    order = np.argsort(clusters, kind="stable")
    counts = np.unique(clusters, return_counts=True)[1]
    # To the estimate, a dilemma is a voter: the answers to it are one draw.
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    once = replace(study, repeat=False)
    ballots = Ballots(once, offsets, dilemmas[order], choices[order].astype(np.int8))
    found = crowd_preference(ballots, weighting="choices", directions=study.factor_matrix.astype(np.float64))
    quantile = float(stdtrit(max(len(counts) - 1, 1), (1 + CONFIDENCE) / 2))
    return tuple(
        Interval(value, value - quantile * error, value + quantile * error) if np.isfinite(error) else None
        for value, error in zip(found.coordinates.tolist(), found.standard_errors.tolist(), strict=True)
    )
