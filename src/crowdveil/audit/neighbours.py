"""Search for the worst neighbours: random restarts and hill climbing over what one voter may have chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.audit.setups import Setup, claimed_distance
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.noise.experimental_noise import NoiseLaw

_SEED = 7
_MOST_RECORDS = 12
_SECOND_WISH = 0.01


@dataclass(frozen=True)
class Effort:
    """The effort of a search for neighbours."""

    restarts: int
    rounds: int


@dataclass(frozen=True)
class Neighbours:
    """Two voters, one of whom may replace the other, and how they were found."""

    left: FloatArray
    right: FloatArray
    how: str
    reach: Fraction | None = None
    """Their distance, as a share of what the noise covers: 1 is the most that a promise allows."""


@lru_cache(maxsize=64)
def worst_neighbours(setup: Setup, effort: Effort) -> Neighbours:
    """Search for the neighbours whose exact integers are furthest apart, in the norm of the mechanism's theorem."""
    rng = np.random.default_rng(_SEED)
    best = max((_climb(setup, rng, effort.rounds) for _ in range(effort.restarts)), key=lambda one: one.wish)
    left, right = best.pair.sides
    how = f"the worst of {effort.restarts * effort.rounds:,} searched"
    return Neighbours(left, right, how, _reach(setup, left, best.ours - best.theirs))


def on_two_axes(setup: Setup, effort: Effort) -> Neighbours:
    """Pair the left one of the worst neighbours with itself, its features shifted by one.

    If the worst neighbours are opposite corners of the l1 ball, these are corners on two axes, equally far apart.
    """
    left = worst_neighbours(setup, effort).left
    right = np.roll(left, 1, axis=1)
    return Neighbours(left, right, "corners on two axes", _reach(setup, left, setup.exact(left) - setup.exact(right)))


def _reach(setup: Setup, left: FloatArray, difference: IntArray) -> Fraction:
    kind, claimed = claimed_distance(setup, left)
    return Fraction(int(kind.distance(difference)), claimed)


@dataclass(frozen=True)
class _Pair:
    """The records that differ (all records of a voter, or one), and those that are shared."""

    ours: FloatArray
    theirs: FloatArray
    shared: FloatArray

    @property
    def sides(self) -> tuple[FloatArray, FloatArray]:
        return np.concatenate([self.ours, self.shared]), np.concatenate([self.theirs, self.shared])


@dataclass(frozen=True)
class _Candidate:
    pair: _Pair
    ours: IntArray
    theirs: IntArray
    wish: float


def _climb(setup: Setup, rng: np.random.Generator, rounds: int) -> _Candidate:
    """Start at random, make random changes, and keep those that do not bring the sides closer."""
    best = _measure(setup, _start(setup, rng))
    for _ in range(rounds):
        candidate = _measure(setup, _step(best.pair, setup, rng), best)
        if candidate.wish >= best.wish:
            best = candidate
    return best


def _measure(setup: Setup, pair: _Pair, before: _Candidate | None = None) -> _Candidate:
    """Measure a pair. Among pairs equally far apart, prefer one that an attack on this noise detects best.

    For Laplace noise that is a difference in few coordinates; for noise on the cube, in many.
    """
    left, right = pair.sides
    known = before if before is not None and pair.shared is before.pair.shared else None
    ours = known.ours if known is not None and pair.ours is known.pair.ours else setup.exact(left)
    theirs = known.theirs if known is not None and pair.theirs is known.pair.theirs else setup.exact(right)
    kind, claimed = _claim(setup)
    size = np.abs(ours - theirs).astype(np.float64)
    few = float(size.max()) / max(float(size.sum()), 1.0)
    second = -few if kind is NoiseLaw.CUBE else few
    return _Candidate(pair, ours, theirs, int(kind.distance(ours - theirs)) / claimed + _SECOND_WISH * second)


@lru_cache(maxsize=64)
def _claim(setup: Setup) -> tuple[NoiseLaw, int]:
    """Return the distance that the noise covers. It may depend on public data, which are the same for all pairs."""
    return claimed_distance(setup, np.ones((1, setup.settings.study.dimension)))


def _start(setup: Setup, rng: np.random.Generator) -> _Pair:
    d = setup.settings.study.dimension
    unit = setup.paradigm.unit
    own = int(rng.integers(1, _MOST_RECORDS)) if unit is Unit.VOTER else 1
    ours, theirs = rng.normal(0.0, 2.0, (own, d)), rng.normal(0.0, 2.0, (own, d))
    shared = rng.normal(0.0, 2.0, (0 if unit is Unit.VOTER else int(rng.integers(0, 3)), d))
    return _Pair(ours, turned(ours) if unit is Unit.CHOICE else theirs, shared)


def _step(pair: _Pair, setup: Setup, rng: np.random.Generator) -> _Pair:
    unit = setup.paradigm.unit
    reach = setup.settings.study.reach
    change = rng.choice(["ours", "theirs", "shared", "opposite"], p=[0.35, 0.35, 0.15, 0.15])
    if change == "opposite":
        return replace(pair, theirs=turned(pair.ours))
    if change == "shared":
        return replace(pair, shared=_changed(pair.shared, reach, False, rng)) if len(pair.shared) else pair
    if unit is Unit.CHOICE:
        ours = _changed(pair.ours, reach, False, rng)
        return replace(pair, ours=ours, theirs=turned(ours))
    return replace(pair, **{change: _changed(getattr(pair, change), reach, unit is Unit.VOTER, rng)})


def turned(records: FloatArray) -> FloatArray:
    """Flip choices: Z - X instead of X - Z. (Not -(X - Z), in which a zero would keep a sign.)"""
    return 0.0 - records


def _changed(records: FloatArray, reach: FloatArray, may_grow: bool, rng: np.random.Generator) -> FloatArray:
    """Change one record in one of several ways, within the study's public ranges."""
    made = records.copy()
    row = int(rng.integers(len(records)))
    d = records.shape[1]
    match int(rng.integers(8 if may_grow else 6)):
        case 0:
            made[row] += rng.normal(0.0, 10 ** rng.uniform(-3, 0.5), d)
        case 1:
            made[row] = rng.normal(0.0, 10 ** rng.uniform(-1, 1.5), d)
        case 2:
            made[row] = turned(made[row])
        case 3:
            made[row] *= 2 ** rng.uniform(-2, 2)
        case 4:
            made[row] = np.where(np.arange(d) == rng.integers(d), made[row], 0.0)
        case 5:
            made[row, rng.integers(d)] *= rng.choice([-1.0, 0.0, 0.5, 2.0])
        case 6 if len(made) < _MOST_RECORDS:
            made = np.concatenate([made, made[row : row + 1]])
        case 7 if len(made) > 1:
            made = np.delete(made, row, axis=0)
        case _:
            pass
    return np.clip(made, -reach, reach) + 0.0
