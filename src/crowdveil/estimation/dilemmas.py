"""The dilemmas of ballots without their choices: how they differ from the generator's, and public designs.

People choose which dilemmas to answer, sites show some more often than others, and files are filtered. This module
measures exactly how a file's dilemmas differ from the generator's, which biases mechanisms that assume the latter. The
exact result protects nobody.

Mechanisms that see the dilemmas of secret records only through noise assume those of the study's generator, with doubt.
Anyone who knows which dilemmas were asked can say so before any record is read. Then nothing about them is in doubt,
and no budget is spent on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from crowdveil.arrays import FloatArray, IntArray, ValueArray
from crowdveil.ballots.ballots import Ballots, BallotSource, census
from crowdveil.engines.batches import map_batches
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.design import SAMPLE, PublicDilemmas, public_design
from crowdveil.study.study import Study


@dataclass(frozen=True)
class Variation:
    """How one factor or feature varies over the pairs of a file and of the generator, and which side was chosen."""

    name: str
    label: str
    pairs: int
    """Number of pairs in which the two sides differ."""
    chosen_had_more: float | None
    """Share of these in which the chosen side had more; None if there are none."""
    share: float
    """Share of all pairs in which the two sides differ."""
    mean_square: float
    """Mean square of the difference over all pairs."""
    drawn_share: float
    """Share of the generator's dilemmas in which the two sides differ."""
    drawn_mean_square: float

    def as_dict(self) -> dict[str, Any]:
        """Return the variation as plain data."""
        return {
            "pairs_that_differ": self.pairs,
            "chosen_had_more": self.chosen_had_more,
            "share_that_differ": self.share,
            "mean_square": self.mean_square,
            "generator": {"share_that_differ": self.drawn_share, "mean_square": self.drawn_mean_square},
        }


@dataclass(frozen=True)
class Correlation:
    """How the differences in two factors go together, in a file and in the generator's dilemmas."""

    factors: tuple[str, str]
    """Their labels."""
    correlation: float
    """The mean product of the two differences, divided by the roots of their mean squares."""
    drawn: float


@dataclass(frozen=True)
class DilemmaVariation:
    """How all factors and all features of a file vary."""

    factors: tuple[Variation, ...]
    features: tuple[Variation, ...]
    furthest_together: Correlation | None
    """The two factors that go together least as in the generator's dilemmas; None if only one varies."""


def dilemma_variation(source: BallotSource) -> DilemmaVariation:
    """Count in one pass how a crowd's dilemmas vary; every pair counts once."""
    study = source.study
    found = reduce(_add, map_batches(source, _count_batch))
    drawn = public_design(study).differences
    features = [(feature.name, feature.label) for feature in study.features]
    poles = [(factor.name, f"{factor.title}: {factor.poles[1]}") for factor in study.factors]
    factors = features if study.factors_are_features else poles
    along = _count(study.contrasts(drawn))
    return DilemmaVariation(
        _variations(factors, found[0], along),
        _variations(features, found[1], _count(drawn)),
        _furthest_together([factor.title for factor in study.factors], found[0], along),
    )


class _Counts(NamedTuple):
    """For columns of differences (chosen minus other): counts of positive and non-zero entries, and all products."""

    pairs: int
    more: IntArray
    differ: IntArray
    products: FloatArray

    @property
    def squares(self) -> FloatArray:
        return np.diag(self.products)

    @property
    def correlations(self) -> FloatArray:
        """Correlations of the columns; those of a column that never differs are not numbers."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.products / np.sqrt(np.outer(self.squares, self.squares)), np.float64)


def _count(differences: ValueArray) -> _Counts:
    numbers = differences.astype(np.float64)
    return _Counts(len(numbers), (numbers > 0).sum(axis=0), (numbers != 0).sum(axis=0), numbers.T @ numbers)


def _count_batch(ballots: Ballots, before: int) -> tuple[_Counts, _Counts]:
    if ballots.study.indifference is not None:
        ballots = ballots.decided()
    return _count(ballots.study.contrasts(ballots.differences)), _count(ballots.differences)


def _add(one: tuple[_Counts, _Counts], other: tuple[_Counts, _Counts]) -> tuple[_Counts, _Counts]:
    factors, features = (
        _Counts(a.pairs + b.pairs, a.more + b.more, a.differ + b.differ, a.products + b.products)
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


def _furthest_together(labels: Sequence[str], found: _Counts, drawn: _Counts) -> Correlation | None:
    here, there = found.correlations, drawn.correlations
    distances = np.triu(np.nan_to_num(np.abs(here - there), nan=-1.0) + 1, k=1)
    one, other = divmod(int(distances.argmax()), len(labels))
    if distances[one, other] == 0:
        return None
    return Correlation((labels[one], labels[other]), float(here[one, other]), float(there[one, other]))


FEWEST = 100
"""Minimum number of dilemmas from which their distribution can be estimated."""
GENERATOR = "study"
"""Given in place of a file: the study's own generator drew the dilemmas."""


def oriented(ballots: Ballots) -> tuple[ValueArray, IntArray]:
    """Split records into public dilemmas (first non-zero entry positive) and secret choices (+1 or -1).

    The dilemmas are byte for byte the same for any choices: if a feature does not differ, negating a record would leave
    a floating-point -0.0, which + 0 turns into 0.0.
    """
    first = (ballots.differences != 0).argmax(axis=1)
    choices = np.where(ballots.differences[np.arange(ballots.records), first] < 0, -1, 1)
    return ballots.differences * choices[:, None].astype(ballots.differences.dtype) + 0, choices


def shown_dilemmas(source: BallotSource) -> FloatArray:
    """Return the dilemmas of ballots without their choices, or a sample if they are many."""
    shown: list[FloatArray] = []
    kept = 0
    for ballots in source.batches():
        shown.append(oriented(ballots)[0][: SAMPLE - kept].astype(np.float64))
        kept += len(shown[-1])
        if kept == SAMPLE:
            break
    return np.concatenate(shown)


def public_dilemmas(given: BallotSource | str, study: Study, dataset: str) -> PublicDilemmas:
    """Check a design supplied for a data set of a study (named by its fingerprint)."""
    if isinstance(given, str):
        if given != GENERATOR:
            raise CrowdveilError(
                f"the design is {given!r}: give ballots whose dilemmas are public, or {GENERATOR!r} if the study's own "
                "generator drew them"
            )
        return PublicDilemmas(None, "The study's own generator drew the dilemmas, as whoever released this says.")
    if given.study.feature_names != study.feature_names:
        raise CrowdveilError(
            f"the design is of study {given.study.name}, the ballots of {study.name}: give dilemmas of the same study"
        )
    counted = census(given)
    if counted.fingerprint == dataset:
        raise CrowdveilError(
            "the design is the ballots themselves, whose dilemmas are protected: give some that everybody may know, "
            "or, if these are public and only the choices are secret, release with --paradigm alcp"
        )
    if counted.records < FEWEST:
        raise CrowdveilError(f"the design has {counted.records} dilemmas: give at least {FEWEST}")
    differences = shown_dilemmas(given)
    if not (differences != 0).any():
        raise CrowdveilError("the design has no dilemma in which anything differs: give those that were asked")
    words = f"{len(differences)} public dilemmas were given in place of the study's own."
    return PublicDilemmas(differences, words)
