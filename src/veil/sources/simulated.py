"""Crowds that do not exist: for planning, for experiments and for trying everything out.

Everyone answers by the paper's model: alternative x is worth beta . x plus normal noise of variance 1/2, so the
left one is chosen with probability Phi(beta . (left - right)).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from veil.ballots import Ballots, Differences, smallest_type
from veil.drawing import draw_dilemmas
from veil.errors import VeilError
from veil.studies import synthetic_study
from veil.study import FloatArray, Study

VOTERS_PER_BLOCK = 16_384


@dataclass(frozen=True)
class SyntheticCrowd:
    """The paper's synthetic crowd (Section 5.1) and the truth that generated it."""

    ballots: Ballots
    social: FloatArray
    """m: the mean of the distribution that the voters' preferences come from."""
    preferences: FloatArray
    """beta_i: a row a voter."""


def synthetic_crowd(voters: int, records: int, features: int, rng: np.random.Generator) -> SyntheticCrowd:
    """Draw the crowd of Section 5.1: m ~ U(-1, 1)^d, beta_i ~ N(m, I), and alternatives x ~ N(0, I)."""
    _check_size(voters)
    study = synthetic_study(features, records)
    social = rng.uniform(-1, 1, features)
    preferences = rng.normal(social, 1, (voters, features))
    return SyntheticCrowd(_vote(study, preferences, rng), social, preferences)


def simulate_crowd(study: Study, voters: int, rng: np.random.Generator, spread: float = 0.3) -> Iterator[Ballots]:
    """Draw a crowd of any size around the study's own lean: beta_i ~ N(lean, spread^2 I), block by block.

    Each block of voters has a generator of its own, spawned from ``rng``: what a block holds depends on the seed
    and on nothing that its reader does.
    """
    _check_size(voters)
    if not (spread >= 0 and math.isfinite(spread)):
        raise VeilError(f"the spread of simulated preferences must be 0 or more, got {spread}")
    lean = np.array([f.lean for f in study.features])

    def blocks() -> Iterator[Ballots]:
        for start in range(0, voters, VOTERS_PER_BLOCK):
            (child,) = rng.spawn(1)
            size = (min(VOTERS_PER_BLOCK, voters - start), study.dimension)
            yield _vote(study, child.normal(lean, spread, size), child)

    return blocks()


def _vote(study: Study, preferences: FloatArray, rng: np.random.Generator) -> Ballots:
    """Let voters with these preferences answer dilemmas of the study."""
    voters, dimension = preferences.shape
    left, right = draw_dilemmas(study, voters, rng)
    differences = np.subtract(left, right) / study.units
    worth = differences.reshape(voters, -1, dimension) @ preferences[:, :, None]
    # The two utilities' noises have variance 1/2 each: their difference has variance 1.
    chose_left = worth.reshape(-1) + rng.standard_normal(len(differences)) > 0
    answers: Differences = np.where(chose_left[:, None], differences, -differences)
    if smallest_type(study) is np.int8:
        answers = answers.astype(np.int8)
    return Ballots(study, np.arange(voters + 1, dtype=np.int64) * study.drawing.dilemmas, answers)


def _check_size(voters: int) -> None:
    if not voters >= 1:
        raise VeilError(f"a crowd needs at least one voter, got {voters}")
