"""Everything that is put on trial: each mechanism, and each mistake beside the mechanism it would break."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from crowdveil.arrays import IntArray
from crowdveil.audit.approximate import ApproximateSubject
from crowdveil.audit.forked import Forked, can_fork
from crowdveil.audit.gaussian import GaussianTrial, TooNarrow
from crowdveil.audit.neighbours import Neighbours, on_two_axes, turned, worst_neighbours
from crowdveil.audit.sabotage import (
    NoisePerCoordinate,
    OneDrawForTwo,
    SeededOnce,
    SignedZeros,
    TooLittleNoise,
    UnclippedVoterScore,
    WholeBudgetForEach,
    WrongOdds,
)
from crowdveil.audit.shuffled import ShuffledTrial
from crowdveil.audit.subjects import Central, Distributed, Subject
from crowdveil.ballots import Ballots
from crowdveil.estimation.society import fit_voters
from crowdveil.privacy.epsilon import MICROS_PER_UNIT, Epsilon
from crowdveil.privacy.grid import to_steps
from crowdveil.privacy.guarantee import paradigm
from crowdveil.privacy.mechanisms.mechanism import Sensitivity, Settings
from crowdveil.privacy.mechanisms.randomised_response import FLIP
from crowdveil.privacy.mechanisms.registry import CENTRAL, DISTRIBUTED
from crowdveil.privacy.mechanisms.subset_selection import subset_size
from crowdveil.privacy.noise.bulk_noise import BulkNoise
from crowdveil.privacy.noise.odds import Odds
from crowdveil.privacy.noise.source import Noise
from crowdveil.privacy.zcdp import OpenDPGaussian, rho_of
from crowdveil.study.bundled import synthetic_study

_DILEMMAS = 4
_KNOWN_VOTER = ((1.0, 1.0, 0.0),)
_CHOICES = np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 1.0], [2.0, 1.0, 0.0]])
"""Dilemmas whose alternatives agree in a feature: such a zero must not tell which side was chosen."""


@dataclass(frozen=True)
class Target:
    """A subject with a noise source, how its neighbours are found, and the mistake in it, if there is one."""

    subject: Subject
    noise: Callable[[], Noise] = BulkNoise
    neighbours: Callable[[Subject, int, int], Neighbours] = worst_neighbours
    bug: str | None = None


@dataclass(frozen=True)
class CurveTarget:
    """A subject that promises an epsilon for every delta, and the mistake in it, if there is one."""

    subject: ApproximateSubject
    bug: str | None = None


def _small(features: int, **choices: Any) -> Settings:
    study = synthetic_study(features, _DILEMMAS)
    return Settings(study, study.norm_bound, **choices)


def _grid_preferences(ballots: Ballots, settings: Settings) -> IntArray:
    return to_steps(fit_voters(ballots, settings.norm_bound).values, settings.norm_bound)


def _central(name: str, of: str, epsilon: Epsilon) -> Central:
    return Central(CENTRAL[name], paradigm(of), _small(3), epsilon)


def _algorithm_2(epsilon: Epsilon) -> Distributed:
    return Distributed(DISTRIBUTED["algorithm-2"], paradigm("vldp"), _small(3), epsilon)


def _in_workers(epsilon: Epsilon) -> Forked:
    return Forked(_algorithm_2(epsilon), _KNOWN_VOTER)


def _algorithm_3(epsilon: Epsilon, features: int, sensitivity: Sensitivity = "tight") -> Distributed:
    remark = f"d = {features}" + ("" if sensitivity == "tight" else ", the paper's Delta")
    return Distributed(
        DISTRIBUTED["algorithm-3"], paradigm("rldp"), _small(features, sensitivity=sensitivity), epsilon, None, remark
    )


def _subset_selection(epsilon: Epsilon, remark: str = "") -> Distributed:
    return Distributed(
        DISTRIBUTED["subset-selection"],
        paradigm("vldp"),
        _small(4),
        epsilon,
        hidden=_grid_preferences,
        remark=f"{subset_size(4, epsilon.value)} of 4 signs{remark}",
    )


def _linear_part(epsilon: Epsilon, features: int) -> Distributed:
    remark = f"d = {features}"
    return Distributed(DISTRIBUTED["algorithm-3-choices"], paradigm("aldp"), _small(features), epsilon, None, remark)


def _choices(name: str, epsilon: Epsilon, remark: str = "") -> Distributed:
    return Distributed(DISTRIBUTED[name], paradigm("aldp"), _small(3), epsilon, remark=remark)


def _one_turned(subject: Subject, restarts: int, rounds: int) -> Neighbours:
    right = np.concatenate([turned(_CHOICES[:1]), _CHOICES[1:]])
    return Neighbours(_CHOICES, right, "one choice turned over: all pairs are alike")


def _all_turned(subject: Subject, restarts: int, rounds: int) -> Neighbours:
    return Neighbours(_CHOICES, turned(_CHOICES), "all choices turned over: all pairs are alike")


SOME_SIGNS = Epsilon("1.6")
"""At which subset selection keeps 2 of 4 signs; at smaller epsilons it sends all of them."""
TWO_CHOICES = Epsilon("4")
"""At which the voter-level randomised response splits its epsilon between two choices."""
LITTLE = Epsilon("0.1")
"""At which the wrong flip probability e^-epsilon gives choices away: it turns nearly all of them over."""


GAUSSIAN_DELTA = 0.01
"""At which the Gaussian mean's rho promises the epsilon that is audited."""
SHUFFLED, SHUFFLED_SIGNS = Epsilon("1"), Epsilon("2")
"""Of each shuffled report: of one sign, and of one sign out of two features."""
SHUFFLED_VOTERS = 10


def promises(epsilon: Epsilon) -> list[Target]:
    """All mechanisms, at this epsilon, and some once more where they do something different at another one."""
    return [
        Target(_central("algorithm-1", "vlcp", epsilon)),
        Target(_central("voter-score", "vlcp", epsilon)),
        Target(_central("pooled-score", "rlcp", epsilon)),
        Target(_central("pooled-choices", "alcp", epsilon)),
        Target(_algorithm_2(epsilon)),
        *([Target(_in_workers(epsilon))] if can_fork() else []),
        Target(_algorithm_3(epsilon, 1)),
        Target(_algorithm_3(epsilon, 5)),
        Target(_algorithm_3(epsilon, 5, sensitivity="paper")),
        Target(_subset_selection(epsilon)),
        Target(_subset_selection(SOME_SIGNS)),
        Target(_subset_selection(SOME_SIGNS, ", two axes"), neighbours=on_two_axes),
        Target(Distributed(DISTRIBUTED["score"], paradigm("rldp"), _small(3), epsilon)),
        Target(_linear_part(epsilon, 1)),
        Target(_linear_part(epsilon, 3)),
        Target(_choices("randomised-response", epsilon), neighbours=_one_turned),
        Target(_choices("one-choice", epsilon, "all choices"), neighbours=_all_turned),
        Target(_choices("one-choice", TWO_CHOICES, "all choices, two sent"), neighbours=_all_turned),
    ]


def curves(epsilon: Epsilon, search: tuple[int, int]) -> list[CurveTarget]:
    """All promises with a delta, each followed by the mistakes in it; ``search`` says how hard to look for neighbours."""
    crowd = Central(CENTRAL["algorithm-1"], paradigm("vlcp"), _small(2), epsilon)
    rho = Fraction(rho_of(epsilon.value, GAUSSIAN_DELTA)).limit_denominator(MICROS_PER_UNIT)
    gaussian = GaussianTrial(crowd, rho, OpenDPGaussian(), search)
    flipped = ShuffledTrial(_small(1), SHUFFLED, SHUFFLED_VOTERS, others=(0, -1))
    signs = ShuffledTrial(_small(2), SHUFFLED_SIGNS, SHUFFLED_VOTERS, others=(0, -1))
    return [
        CurveTarget(gaussian),
        CurveTarget(flipped),
        CurveTarget(signs),
        CurveTarget(replace(gaussian, noise=TooNarrow()), "deviation halved"),
        CurveTarget(replace(flipped, claimed_voters=10 * SHUFFLED_VOTERS), "bound of a larger crowd"),
        CurveTarget(replace(flipped, forget_delta=True), "delta forgotten"),
        CurveTarget(replace(flipped, shuffle=False), "not shuffled"),
    ]


def mistakes(epsilon: Epsilon) -> list[Target]:
    """Mistakes that must be caught, at this epsilon or where they do harm."""
    size = subset_size(4, SOME_SIGNS.value)
    among = Odds(size, size, size, 2 * 4 - size)
    voter_score = _central("voter-score", "vlcp", epsilon)
    return [
        Target(_central("algorithm-1", "vlcp", epsilon), lambda: TooLittleNoise(2), bug="factor 2 missing"),
        Target(_central("algorithm-1", "vlcp", epsilon), OneDrawForTwo, bug="one draw for two coordinates"),
        Target(voter_score, lambda: TooLittleNoise(math.sqrt(2)), bug="scale too small by sqrt 2"),
        Target(replace(voter_score, mechanism=UnclippedVoterScore()), bug="clipping left out"),
        Target(_central("pooled-score", "rlcp", epsilon), NoisePerCoordinate, bug="sensitivity per coordinate"),
        *(
            [Target(_in_workers(epsilon), lambda: BulkNoise(SeededOnce()), bug="same noise after a fork")]
            if can_fork()
            else []
        ),
        Target(_algorithm_3(epsilon, 5), lambda: TooLittleNoise(2), bug="Delta halved"),
        Target(_linear_part(epsilon, 1), lambda: TooLittleNoise(2), bug="one side of a choice forgotten"),
        Target(
            _subset_selection(SOME_SIGNS, ", two axes"),
            lambda: WrongOdds(among, Odds(size, size, size, 4)),
            on_two_axes,
            bug="wrong odds of k",
        ),
        Target(
            _choices("randomised-response", LITTLE),
            lambda: WrongOdds(FLIP, Odds(0, 1, 1, 0)),
            _one_turned,
            "flips with e^-epsilon",
        ),
        Target(
            replace(_choices("randomised-response", epsilon), mechanism=SignedZeros()),
            neighbours=_one_turned,
            bug="a zero keeps its sign",
        ),
        Target(
            _choices("one-choice", TWO_CHOICES, "all choices, two sent"),
            WholeBudgetForEach,
            _all_turned,
            "epsilon not split",
        ),
    ]
