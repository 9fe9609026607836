"""Tests of the samplers against the exact laws in the proofs, cell by cell; and the holes in floating-point noise.

Expected frequencies come from closed forms: P(x) = (1 - q) / (1 + q) q^|x| for Laplace, the counts of integer points on
the cube's shells, the odds' own fraction. A test fails if its p-value is below ``FALSE_ALARM``.

A textbook Laplace sample is a function of 53 random bits, so it has at most 2^53 values (Mironov 2012). Added to 0,
they give other doubles than added to 1. Whoever sees a double that only one of the two could have given knows the data
for certain, whatever epsilon was claimed. The same attacks on the numbers that Algorithm 1 releases find nothing: every
multiple of the grid's step is possible for everybody. That is why every output here is an integer on a public grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.special import chdtrc, gammainc, kolmogorov, ndtr

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.audit.trial import FALSE_ALARM, PureEpsilonSubject, Rows, Score, frequencies
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.grid import STEPS, from_steps
from crowdveil.privacy.noise.coins import Odds
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.privacy.noise.experimental_noise import NoiseLaw, NoiseRequest
from crowdveil.privacy.noise.source import Noise

_FEWEST = 50.0
"""Expected draws below which cells are merged, so that the chi-square approximation is good."""
_AT_EPSILON = Epsilon(1)
_NEARBY = 2
_BITS = 2.0**-53
_LEAST_EXPONENT = -20


@dataclass(frozen=True)
class LawTest:
    """The result of comparing a sampler with its law."""

    sampler: str
    law: str
    draws: int
    p_value: float

    @property
    def passed(self) -> bool:
        """Whether the draws are consistent with the law."""
        return self.p_value >= FALSE_ALARM

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {
            "sampler": self.sampler,
            "law": self.law,
            "draws": self.draws,
            "p_value": self.p_value,
            "passed": self.passed,
        }


def all_kinds(noise: Noise, sampler: str, draws: int) -> Iterator[LawTest]:
    """Test every kind of noise from a source."""
    tests: list[tuple[str, Callable[[Noise, int], float]]] = [
        ("Laplace, every value", laplace_values),
        (
            "Laplace at the grid's scale",
            lambda source, n: laplace_fit(_on_grid(NoiseLaw.LAPLACE).draw(source, n), STEPS),
        ),
        ("Laplace at the grid's scale, last four bits", laplace_last_bits),
        ("Laplace, neighbouring draws", laplace_pairs),
        ("cube, every point of the plane", cube_points),
        ("cube of five dimensions, radius", lambda source, n: cube_fit(_on_grid(NoiseLaw.CUBE).draw(source, n), STEPS)),
        ("coins, in threes", coins_in_threes),
        ("uniform, in pairs", uniform_pairs),
        ("uniform below 3 * 2^60", uniform_large),
    ]
    for law, test in tests:
        yield LawTest(sampler, law, draws, test(noise, draws))


def laplace_only(noise: Noise, sampler: str, draws: int) -> Iterator[LawTest]:
    """Test the one kind of noise that a source implements itself."""
    yield LawTest(sampler, "Laplace, every value", draws, laplace_values(noise, draws))
    yield LawTest(sampler, "Laplace, neighbouring draws", draws, laplace_pairs(noise, draws))


def fit_of(request: NoiseRequest, noise: IntArray) -> float:
    """Return the p-value of noise at a large scale, one draw per row, under the requested law."""
    scale = request.sensitivity / request.epsilon.value
    return laplace_fit(noise, scale) if request.kind is NoiseLaw.LAPLACE else cube_fit(noise, scale)


def laplace_fit(noise: IntArray, scale: float) -> float:
    """Kolmogorov's test of all coordinates, which are independent."""
    x = noise.astype(np.float64)
    tail = np.exp(-np.where(x < 0, -x, x + 1) / scale) / (1 + math.exp(-1 / scale))
    return _kolmogorov(np.where(x < 0, tail, 1 - tail))


def cube_fit(noise: IntArray, scale: float) -> float:
    """Kolmogorov's test of the largest magnitude in each row.

    At a large scale its law is Gamma(d): the shell of radius r has about 2d (2r)^(d-1) points. The error of this
    approximation is of the order of 1 / scale, far below what any number of draws could detect.
    """
    radius = np.abs(noise).max(axis=1).astype(np.float64)
    return _kolmogorov(gammainc(noise.shape[1], (radius + 0.5) / scale))


def gaussian_fit(noise: IntArray, deviation: float) -> float:
    """Kolmogorov's test of Gaussian noise at a large scale, over all coordinates, which are independent.

    At such a scale the discrete law, with half a step for the rounding, differs from the continuous one by far less
    than any number of draws could detect.
    """
    return _kolmogorov(ndtr((noise + 0.5) / deviation))


def laplace_values(noise: Noise, draws: int) -> float:
    """Count every value of Laplace noise of scale 3."""
    q = math.exp(-1 / 3)
    drawn = noise.laplace(3, Epsilons.same(_AT_EPSILON, draws), 1)[:, 0]
    return _chi_square(drawn, {x: (1 - q) / (1 + q) * q ** abs(x) for x in range(-60, 61)})


def laplace_last_bits(noise: Noise, draws: int) -> float:
    """Count the last four bits at the scale of the grid, where they are uniform to one part in 10^17."""
    drawn = _on_grid(NoiseLaw.LAPLACE).draw(noise, draws)[:, 0] & 15
    return _chi_square(drawn, dict.fromkeys(range(16), 1 / 16))


def laplace_pairs(noise: Noise, draws: int) -> float:
    """Count the joint signs (minus, zero or plus) of four neighbours, in two columns of two rows."""
    q = math.exp(-1 / 3)
    zero = (1 - q) / (1 + q)
    share = {-1: (1 - zero) / 2, 0: zero, 1: (1 - zero) / 2}
    signs = np.sign(noise.laplace(3, Epsilons.same(_AT_EPSILON, draws // 2 * 2), 2)).reshape(-1, 4)
    weights = np.array([27, 9, 3, 1])
    law = {int(four @ weights): math.prod(share[s] for s in four.tolist()) for four in _fours(tuple(share))}
    return _chi_square(signs @ weights, law)


def cube_points(noise: Noise, draws: int) -> float:
    """Count every point of the plane under cube noise of scale 2."""
    q = math.exp(-1 / 2)
    side = 24
    # There are 8 r points at radius r, so the weights add up to 1 + 8 q / (1 - q)^2.
    whole = 1 + 8 * q / (1 - q) ** 2
    drawn = noise.cube(2, Epsilons.same(_AT_EPSILON, draws), 2)
    inside = np.abs(drawn).max(axis=1) <= side
    keys = np.where(inside, (drawn[:, 0] + side) * (2 * side + 1) + drawn[:, 1] + side, -1)
    points = product(range(-side, side + 1), repeat=2)
    law = {(x + side) * (2 * side + 1) + y + side: q ** max(abs(x), abs(y)) / whole for x, y in points}
    return _chi_square(keys, law)


def coins_in_threes(noise: Noise, draws: int) -> float:
    """Count the outcomes of three tosses in a row, at the odds of randomised response."""
    up = 1 / (1 + math.e)
    keys = noise.tosses(Odds(0, 1, 1, 1), Epsilons.same(_AT_EPSILON, draws), 3) @ np.array([4, 2, 1])
    return _chi_square(keys, {key: up ** (n := key.bit_count()) * (1 - up) ** (3 - n) for key in range(8)})


def uniform_pairs(noise: Noise, draws: int) -> float:
    """Count pairs of integers below ten."""
    return _chi_square(noise.uniform(10, draws, 2) @ np.array([10, 1]), dict.fromkeys(range(100), 1 / 100))


def uniform_large(noise: Noise, draws: int) -> float:
    """Count which of 48 equal parts a large uniform integer falls into."""
    return _chi_square(noise.uniform(3 * 2**60, draws, 1)[:, 0] >> 56, dict.fromkeys(range(48), 1 / 48))


def _fours(values: tuple[int, ...]) -> Iterator[IntArray]:
    return (np.array(four) for four in product(values, repeat=4))


def _on_grid(kind: NoiseLaw) -> NoiseRequest:
    return NoiseRequest(kind, STEPS, _AT_EPSILON, 5)


def _chi_square(drawn: IntArray, law: dict[int, float]) -> float:
    """Return the p-value of Pearson's test; values that are rare, or not listed in the law, form one cell."""
    cells = {value: share * len(drawn) for value, share in law.items() if share * len(drawn) >= _FEWEST}
    values, counts = np.unique(drawn, return_counts=True)
    seen = dict(zip(values.tolist(), counts.tolist(), strict=True))
    observed = np.array([seen.get(value, 0) for value in cells], np.float64)
    expected = np.array(list(cells.values()))
    rest = len(drawn) - float(expected.sum())
    if rest >= _FEWEST:
        observed = np.append(observed, len(drawn) - observed.sum())
        expected = np.append(expected, rest)
    return float(chdtrc(len(expected) - 1, float(np.sum((observed - expected) ** 2 / expected))))


def _kolmogorov(ranks: FloatArray) -> float:
    """Return the p-value of values that should be uniform between 0 and 1."""
    ordered = np.sort(ranks.ravel())
    places = np.arange(len(ordered) + 1) / len(ordered)
    gap = max(float(np.max(places[1:] - ordered)), float(np.max(ordered - places[:-1])))
    return float(kolmogorov(math.sqrt(len(ordered)) * gap))


@dataclass(frozen=True)
class LastBits(PureEpsilonSubject):
    """0 against 1, by the doubles of the output: from our grid, or (a mistake) from NumPy's Laplace sampler."""

    on_the_grid: bool

    name = "last bits of doubles"
    paradigm = ""
    neighbours = "0 and 1"
    reach = 1.0

    @property
    def remark(self) -> str:
        """Where the doubles come from."""
        return "integers on a grid" if self.on_the_grid else "numpy's Laplace"

    def sample(self, left: bool, draws: int) -> Rows:
        """Add noise to 0 or to 1."""
        centre = 0.0 if left else 1.0
        if self.on_the_grid:
            return grid_noise(centre, self.epsilon, draws, BulkNoise())
        return textbook_noise(centre, self.epsilon.value, draws)

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Look for doubles that one side cannot produce, and at the granularity of all."""
        return [holes(0.0, self.epsilon.value), holes(1.0, self.epsilon.value), grain_score(train)]


def textbook_noise(centre: float, epsilon: float, draws: int) -> Rows:
    """Laplace noise as in a textbook: NumPy's, around 0 or 1, of scale 1 / epsilon."""
    return np.random.default_rng().laplace(centre, 1 / epsilon, (draws, 1))


def grid_noise(centre: float, epsilon: Epsilon, draws: int, noise: Noise) -> Rows:
    """The same on the grid, where 1 is STEPS steps, converted to doubles as in a release."""
    exact = round(centre * STEPS)
    return from_steps(exact + noise.laplace(STEPS, Epsilons.same(epsilon, draws), 1), 1.0)


def holes(centre: float, epsilon: float) -> Score:
    """Score 1 for a double that NumPy's sampler cannot produce around this centre.

    The sampler returns centre + log(2u) / epsilon or centre - log(2 - 2u) / epsilon, where u is a multiple of 2^-53. So
    the score inverts an output to the few possible values of u, and tries them.
    """
    scale = 1 / epsilon

    def score(rows: Rows) -> FloatArray:
        return np.array([0.0 if _reachable(float(y), centre, scale) else 1.0 for y in rows[:, 0]])

    return score


def _reachable(y: float, centre: float, scale: float) -> bool:
    half = math.exp(-abs(y - centre) / scale) / 2
    lower = y < centre
    around = round((half if lower else 1 - half) / _BITS)
    for k in range(around - _NEARBY, around + _NEARBY + 1):
        u = k * _BITS
        if not 0 < u < 1:
            continue
        # The same floating-point operations as in NumPy.
        if (centre + scale * math.log(u + u) if u < 0.5 else centre - scale * math.log(2.0 - u - u)) == y:
            return True
    return False


def grain_score(train: tuple[Rows, Rows]) -> Score:
    """Learn how often each granularity occurs on either side."""
    learned = frequencies((grain(train[0]), grain(train[1])))
    return lambda rows: learned(grain(rows))


def grain(rows: Rows) -> Rows:
    """Describe doubles by their granularity: sign, exponent, and the number of trailing zero bits.

    This uses no knowledge of any sampler. Its frequencies are learned.
    """
    mantissas, exponents = np.frexp(rows[:, 0])
    whole = np.abs(mantissas * 2.0**53).astype(np.int64)
    zeros = np.where(whole == 0, 53, np.log2(np.maximum(whole & -whole, 1)).astype(np.int64))
    exponents = np.maximum(exponents, _LEAST_EXPONENT)
    return np.column_stack([np.sign(rows[:, 0]).astype(np.int64), exponents, np.minimum(zeros, 12)])
