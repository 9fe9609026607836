"""The society's preference without privacy: the mean of its voters'. For comparison only, never to release."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from veil.ballots import BallotSource
from veil.errors import ImpossibleEstimate
from veil.preference.fit import fit_voters, fit_voters_unbounded


@dataclass(frozen=True)
class Society:
    """A mean preference that protects nobody."""

    parameter: npt.NDArray[np.float64]
    voters: int
    left_out: int
    """Voters who have no unconstrained estimate, and so are not in the mean."""
    largest_gap: float | None
    """The worst certificate of all voters; None for the unconstrained estimate."""


def society(source: BallotSource, norm_bound: float | None) -> Society:
    """Average all voters' preferences; ``norm_bound=None`` takes the unconstrained estimates."""
    total, voters, left_out, gap = np.zeros(source.study.dimension), 0, 0, 0.0
    for chunk in source.chunks():
        if norm_bound is None:
            free = fit_voters_unbounded(chunk)
            total += free.values[free.exists].sum(axis=0)
            voters += int(free.exists.sum())
            left_out += int((~free.exists).sum())
        else:
            bounded = fit_voters(chunk, norm_bound)
            total += bounded.values.sum(axis=0)
            voters += chunk.voters
            gap = max(gap, bounded.largest_gap)
    if voters == 0:
        raise ImpossibleEstimate(
            f"none of the {left_out} voters has an unconstrained estimate (each voter's answers are separable): "
            "give a norm bound instead"
        )
    return Society(total / voters, voters, left_out, None if norm_bound is None else gap)
