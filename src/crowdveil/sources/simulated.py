"""Simulated crowds: for planning, for experiments and for trying everything out.

Everyone answers by the paper's model: alternative x is worth beta . x plus normal noise of variance 1/2, so the left
one is chosen with probability Phi(beta . (left - right)). If a study allows a third answer, voters to whom the two are
worth the same, within a threshold tau, choose neither. If a study asks one dilemma twice, it is a uniformly random one
of the voter's dilemmas, answered with new noise; or a given share of the voters answers it alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from crowdveil.arrays import BoolArray, FloatArray, ValueArray
from crowdveil.ballots.ballots import Ballots, join_batches
from crowdveil.ballots.columns import CODE, Categories, dilemmas_between
from crowdveil.errors import CrowdveilError, check_type, check_whole, is_number, shown
from crowdveil.study.bundled import find_study, synthetic_study
from crowdveil.study.drawing import draw_typed
from crowdveil.study.study import Study

VOTERS_PER_BLOCK = 16_384
MOST_VOTERS = 10**10
"""Most simulated voters: more than there are people."""
TAU = 0.3
"""Threshold of simulated voters in studies that allow a third answer: a quarter of equal pairs are left to the coin."""


@dataclass(frozen=True)
class SyntheticCrowd:
    """The paper's synthetic crowd (Section 5.1) and the truth that generated it."""

    ballots: Ballots
    social: FloatArray
    """m: the mean of the distribution of the voters' preferences."""
    preferences: FloatArray
    """beta_i: one row per voter."""

    def __repr__(self) -> str:
        return f"<synthetic crowd: {self.ballots!r} and the preferences behind them>"


def synthetic_crowd(voters: int, records: int, features: int, rng: np.random.Generator) -> SyntheticCrowd:
    """Draw the crowd of Section 5.1: m ~ U(-1, 1)^d, beta_i ~ N(m, I), and alternatives x ~ N(0, I)."""
    _check_drawing(voters, rng)
    check_whole(records, "the number of records", 1)
    check_whole(features, "the number of features", 1)
    study = synthetic_study(features, records)
    social = rng.uniform(-1, 1, features)
    preferences = rng.normal(social, 1, (voters, features))
    return SyntheticCrowd(_vote(study, preferences, rng).ballots(), social, preferences)


@dataclass(frozen=True)
class Responses:
    """The dilemmas shown to some voters, in raw values, one per row, and the sides that they chose."""

    study: Study
    left: ValueArray
    right: ValueArray
    chose_left: BoolArray
    scenarios: Categories | None = None
    """Each dilemma's scenario type, if the study's drawing has types."""
    neither: BoolArray | None = None
    """Whether neither side was chosen, in a study that allows it."""
    alike: BoolArray | None = None
    """Which voters gave the same answer twice, in a study that asks one dilemma twice."""

    def ballots(self) -> Ballots:
        """Return the dilemmas and choices as ballots, in model units."""
        dilemmas = dilemmas_between(self.study, self.left, self.right)
        choices = np.where(self.chose_left, np.int8(1), np.int8(-1))
        if self.neither is not None:
            choices[self.neither] = 0
        each = self.study.drawing.dilemmas
        offsets = np.arange(0, len(dilemmas) + 1, each, dtype=np.int64)
        alike = None if self.alike is None else np.where(self.alike, np.int8(1), np.int8(-1))
        return Ballots(self.study, offsets, dilemmas, choices, scenarios=self.scenarios, alike=alike)


def simulate_crowd(
    study: str | Study,
    voters: int,
    *,
    seed: int = 0,
    spread: float = 0.3,
    tau: float = TAU,
    alike: float | None = None,
) -> Ballots:
    """Draw a crowd around the study's own lean: beta_i ~ N(lean, spread^2 I). The same seed gives the same crowd.

    ``tau`` is the voters' threshold in a study that allows a third answer. ``alike``, in a study that asks one dilemma
    twice, is the share of voters who answer it alike; by default, the model says how many do.

    >>> simulate_crowd("kidney", 100)
    Ballots(kidney: 100 voters, 4,000 records)
    """
    check_whole(seed, "the seed", 0)
    asked = find_study(study)
    rng = np.random.default_rng(seed)
    origin = {"simulated": True, "seed": seed}
    return replace(join_batches(asked, list(simulated_batches(asked, voters, rng, spread, tau, alike))), origin=origin)


def simulated_batches(
    study: str | Study,
    voters: int,
    rng: np.random.Generator,
    spread: float = 0.3,
    tau: float = TAU,
    alike: float | None = None,
) -> Iterator[Ballots]:
    """Draw the same crowd, of any size, block by block."""
    return (responses.ballots() for responses in simulate_responses(find_study(study), voters, rng, spread, tau, alike))


def simulate_responses(
    study: Study,
    voters: int,
    rng: np.random.Generator,
    spread: float = 0.3,
    tau: float = TAU,
    alike: float | None = None,
) -> Iterator[Responses]:
    """Draw the same crowd with everything that it was shown. ``tau`` is for studies that allow a third answer.

    ``alike`` is for studies that ask one dilemma twice: the probability of giving the same answer, or None to follow
    the model.

    Each block of voters has its own generator, spawned from ``rng``. So the content of a block depends on the seed and
    not on what its reader does.
    """
    _check_drawing(voters, rng)
    if not (is_number(spread) and spread >= 0 and math.isfinite(spread)):
        raise CrowdveilError(f"the spread of simulated preferences must be 0 or more, got {shown(spread)}")
    if not (is_number(tau) and tau >= 0 and math.isfinite(tau)):
        raise CrowdveilError(f"the threshold of simulated voters must be 0 or more, got {shown(tau)}")
    if alike is not None and not (study.repeat and is_number(alike) and 0 <= alike <= 1):
        raise CrowdveilError(
            f"the share of simulated voters who answer alike is a number from 0 to 1, in a study with repeat = true; "
            f"got {shown(alike)} for {study.name}"
        )
    lean = np.array([f.lean for f in study.features])

    def blocks() -> Iterator[Responses]:
        for start in range(0, voters, VOTERS_PER_BLOCK):
            (child,) = rng.spawn(1)
            size = (min(VOTERS_PER_BLOCK, voters - start), study.dimension)
            yield _vote(study, child.normal(lean, spread, size), child, tau, alike)

    return blocks()


def _vote(
    study: Study, preferences: FloatArray, rng: np.random.Generator, tau: float = TAU, alike: float | None = None
) -> Responses:
    """Let voters with these preferences answer dilemmas of the study."""
    voters, dimension = preferences.shape
    left, right, types = draw_typed(study, voters, rng)
    scenarios = None if types is None else Categories(types[0], types[1].astype(CODE))
    differences = np.subtract(left, right) / study.units
    worth = differences.reshape(voters, -1, dimension) @ preferences[:, :, None]
    # The noise of each utility has variance 1/2, so their difference has variance 1.
    felt = worth.reshape(-1) + rng.standard_normal(len(differences))
    neither = None if study.indifference is None else np.abs(felt) <= tau
    again = _answered_alike(worth[:, :, 0], felt, 0.0 if neither is None else tau, rng, alike) if study.repeat else None
    return Responses(study, left, right, felt > 0, scenarios, neither, again)


def _answered_alike(
    worth: FloatArray, felt: FloatArray, tau: float, rng: np.random.Generator, share: float | None
) -> BoolArray:
    """Ask each voter one of the voter's dilemmas again, or let a share of them give the same answer."""
    voters, dilemmas = worth.shape
    if share is not None:
        return np.asarray(rng.random(voters) < share)
    everyone = np.arange(voters)
    asked = rng.integers(dilemmas, size=voters)
    again = worth[everyone, asked] + rng.standard_normal(voters)
    return np.asarray(_answer(again, tau) == _answer(felt.reshape(worth.shape)[everyone, asked], tau))


def _answer(felt: FloatArray, tau: float) -> FloatArray:
    return np.where(np.abs(felt) <= tau, 0.0, np.sign(felt))


def _check_drawing(voters: int, rng: np.random.Generator) -> None:
    check_whole(voters, "the number of voters", 1, MOST_VOTERS)
    check_type(rng, np.random.Generator, "rng", "give a generator, such as numpy.random.default_rng(1)")
