"""Effects: how often the side with more of a factor was preferred, less how often the other was.

An effect is a difference of shares, (plus - minus) / (plus + minus), over the pairs that are the factor's contrast: the
pairs of the type of scenario that the study designates for it, where types are known, and elsewhere all pairs that
differ in the factor (the average marginal component effect of Awad et al. 2018, Figure 2). Here is which pairs count
and how; their counts are released under noise elsewhere.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from crowdveil.arrays import FloatArray, IntArray, SmallIntArray, ValueArray
from crowdveil.ballots.ballots import Ballots
from crowdveil.ballots.columns import CODE, Categories
from crowdveil.errors import CrowdveilError
from crowdveil.study.drawing import draw_typed
from crowdveil.study.study import Study

DIFFER = "pairs that differ in it"
_PUBLIC_PAIRS = 50_000
_SEED = 20_180_724


def contrasts(study: Study, scenarios: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return for each factor, in words, the pairs that its effect is read from, given the known types of scenario."""
    return tuple(
        DIFFER if label is None else f"pairs of the scenario {label}" for label in _designated(study, scenarios)
    )


def pair_signs(study: Study, dilemmas: ValueArray, scenarios: Categories | None = None) -> SmallIntArray:
    """Return for each dilemma (rows) and factor +1 if the first side has more of it, -1 if the second; 0: left out."""
    signs = np.sign(study.contrasts(dilemmas)).astype(np.int8)
    if scenarios is not None:
        for k, label in enumerate(_designated(study, scenarios.labels)):
            if label is not None:
                signs[scenarios.codes != scenarios.labels.index(label), k] = 0
    return signs


def chosen_signs(ballots: Ballots) -> SmallIntArray:
    """Return for each record and factor +1 if the side with more of it was chosen, -1 if the other; 0: left out."""
    return pair_signs(ballots.study, ballots.dilemmas, ballots.scenarios) * ballots.choices[:, None]


def counts_of_voters(ballots: Ballots) -> tuple[IntArray, IntArray]:
    """Return how often each voter (rows) chose the side with more of each factor, and how often the other."""
    if not ballots.choices.all():
        raise CrowdveilError(
            "in some records neither side was chosen, which the study does not allow: leave them out on import, or "
            "with ballots.decided()"
        )
    signs = chosen_signs(ballots)
    starts = ballots.offsets[:-1]
    plus = np.add.reduceat(signs > 0, starts, axis=0, dtype=np.int64)
    return plus, np.add.reduceat(signs < 0, starts, axis=0, dtype=np.int64)


def scenario_labels(ballots: Ballots) -> tuple[str, ...] | None:
    """Return the types of scenario that these ballots tell apart."""
    return None if ballots.scenarios is None else ballots.scenarios.labels


def _designated(study: Study, scenarios: tuple[str, ...] | None) -> list[str | None]:
    """Return the type of scenario of each factor's contrast, where these types are told apart."""
    return [factor.scenario if factor.scenario in (scenarios or ()) else None for factor in study.factors]


@lru_cache(maxsize=16)
def public_pairs(study: Study, typed: bool) -> tuple[FloatArray, SmallIntArray]:
    """Return dilemmas as the study draws them, always the same, and which are a contrast of each factor.

    Types of scenario count where they are known (``typed``).
    """
    voters = -(-_PUBLIC_PAIRS // study.drawing.dilemmas)
    left, right, types = draw_typed(study, voters, np.random.default_rng(_SEED))
    scenarios = None if types is None or not typed else Categories(types[0], types[1].astype(CODE))
    differences = np.subtract(left, right, dtype=np.float64) / study.units
    return differences, pair_signs(study, differences, scenarios)


def public_shares(study: Study, *, typed: bool) -> FloatArray:
    """Return the share of the study's dilemmas that are a contrast of each factor."""
    return np.asarray(np.abs(public_pairs(study, typed)[1]).mean(axis=0), np.float64)
