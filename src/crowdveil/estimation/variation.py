"""How the dilemmas of a ballot file vary, beside those that the study's own generator draws. Exact: it protects nobody.

People choose which dilemmas to answer, sites show some more often than others, and files are filtered. Mechanisms that
take a file's dilemmas for the generator's are off by what is counted here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from crowdveil.arrays import FloatArray, IntArray, ValueArray
from crowdveil.ballots.ballots import Ballots, BallotSource
from crowdveil.engines.batches import map_batches
from crowdveil.estimation.design import public_design


@dataclass(frozen=True)
class Variation:
    """How one factor or feature varies over the pairs of a file and of the generator, and which side was chosen."""

    name: str
    label: str
    pairs: int
    """Those in which the two sides differ."""
    chosen_had_more: float | None
    """The share of them in which the chosen side had more; None where there are none."""
    share: float
    """Of all pairs, those in which the two sides differ."""
    mean_square: float
    """Of the difference, over all pairs."""
    drawn_share: float
    """The share of the generator's dilemmas that differ."""
    drawn_mean_square: float

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "pairs_that_differ": self.pairs,
            "chosen_had_more": self.chosen_had_more,
            "share_that_differ": self.share,
            "mean_square": self.mean_square,
            "generator": {"share_that_differ": self.drawn_share, "mean_square": self.drawn_mean_square},
        }


@dataclass(frozen=True)
class DilemmaVariation:
    """How all factors and all features of a file vary."""

    factors: tuple[Variation, ...]
    features: tuple[Variation, ...]


def dilemma_variation(source: BallotSource) -> DilemmaVariation:
    """Walk a crowd once and count how its dilemmas vary; every pair counts once."""
    study = source.study
    found = reduce(_add, map_batches(source, _count_batch))
    drawn = public_design(study).differences
    features = [(feature.name, feature.label) for feature in study.features]
    poles = [(factor.name, f"{factor.title}: {factor.poles[1]}") for factor in study.factors]
    factors = features if study.factors_are_features else poles
    return DilemmaVariation(
        _variations(factors, found[0], _count(study.contrasts(drawn))), _variations(features, found[1], _count(drawn))
    )


class _Counts(NamedTuple):
    """Of each column of differences (chosen minus other): how often it is positive, how often not zero; squares."""

    pairs: int
    more: IntArray
    differ: IntArray
    squares: FloatArray


def _count(differences: ValueArray) -> _Counts:
    squares = np.square(differences, dtype=np.float64).sum(axis=0)
    return _Counts(len(differences), (differences > 0).sum(axis=0), (differences != 0).sum(axis=0), squares)


def _count_batch(ballots: Ballots, before: int) -> tuple[_Counts, _Counts]:
    if ballots.study.indifference is not None:
        ballots = ballots.decided()
    return _count(ballots.study.contrasts(ballots.differences)), _count(ballots.differences)


def _add(one: tuple[_Counts, _Counts], other: tuple[_Counts, _Counts]) -> tuple[_Counts, _Counts]:
    factors, features = (
        _Counts(a.pairs + b.pairs, a.more + b.more, a.differ + b.differ, a.squares + b.squares)
        for a, b in zip(one, other, strict=True)
    )
    return factors, features


def _variations(names: Sequence[tuple[str, str]], found: _Counts, drawn: _Counts) -> tuple[Variation, ...]:
    return tuple(
        Variation(
            name=name,
            label=label,
            pairs=int(found.differ[k]),
            chosen_had_more=float(found.more[k] / found.differ[k]) if found.differ[k] else None,
            share=float(found.differ[k] / found.pairs),
            mean_square=float(found.squares[k] / found.pairs),
            drawn_share=float(drawn.differ[k] / drawn.pairs),
            drawn_mean_square=float(drawn.squares[k] / drawn.pairs),
        )
        for k, (name, label) in enumerate(names)
    )
