"""Exact integer noise for sums that are bounded in every coordinate: the K-norm mechanism of the cube.

|x| is the largest magnitude among the coordinates of x (the maximum norm).

Theorem 1 (privacy). Let f map data to Z^d, and |f(D) - f(D')| <= s for all neighbours D, D'. Then f(D) + X, where
P(X = x) is proportional to exp(-|x| eps / s) on Z^d, is eps-differentially private.

Proof. For every integer vector y, as the normalising constants are equal and by the triangle inequality,
    P(f(D) + X = y) / P(f(D') + X = y) = exp(eps/s * (|y - f(D')| - |y - f(D)|))
                                      <= exp(eps/s * |f(D) - f(D')|) <= exp(eps).
All outputs are integers, so the bound for single outputs gives it for every set of outputs.

Theorem 2 (the law in two steps). Let t > 0 and q = exp(-1/t). If P(R = r) is proportional to (2r + 1)^d q^r for r >= 0,
and the coordinates of X are, given R, independent and uniform on -R, ..., R, then P(X = x) is proportional to q^|x|.

Proof. A vector x can come from the radii r >= |x|, and from each of them with probability (2r + 1)^(-d). So P(X = x) is
proportional to the sum of q^r over r >= |x|, which is q^|x| / (1 - q).

Theorem 3 (the radius). Let b(0, 0) = 1 and b(d, k) = (2k + 1) b(d-1, k) + (2(d-k) + 1) b(d-1, k-1) for 0 <= k <= d,
where b is zero outside of this range (the Eulerian numbers of type B). Draw K from 0, ..., d with probabilities
proportional to b(d, k) q^k, and G_0, ..., G_d with P(G_i = g) = (1 - q) q^g, all independent.
Then R = K + G_0 + ... + G_d has the law of Theorem 2.

Proof. Let A_d(z) = sum_k b(d, k) z^k. It is enough that sum_r (2r + 1)^d z^r = A_d(z) / (1 - z)^(d+1) for |z| < 1: put
qz for z, and the left side becomes the generating function of the wanted law, the right side the product of those of
K and of the d + 1 geometric variables, up to constants. By induction over d: for d = 0 it is the geometric series. The
operator 1 + 2z d/dz multiplies the r-th coefficient of a series by 2r + 1, and
    (1 + 2z d/dz) A_(d-1)(z) / (1 - z)^d = ((1 + (2d - 1) z) A_(d-1)(z) + 2z (1 - z) A_(d-1)'(z)) / (1 - z)^(d+1),
where the k-th coefficient of the numerator is (1 + 2k) b(d-1, k) + (2d - 1 - 2(k - 1)) b(d-1, k-1) = b(d, k).

So nothing is rejected in drawing the radius, whatever the scale and the dimension.
"""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np

from crowdveil.arrays import IntArray
from crowdveil.privacy.noise.coins import LaplaceCoins, draw, exp_bounds, wrapped
from crowdveil.privacy.noise.uniform import ByteSource, invert, uniform_integer, uniform_integers

# Radii from here on, where 2R + 1 might not fit into 64 bits, are left to Python's integers.
_LARGE_RADIUS = 2**62


def cube_noise(source: ByteSource, scale: Fraction, rows: int, columns: int) -> IntArray:
    """Return rows X modulo 2^64, read as int64, with P(X = x) proportional to exp(-|x| / scale), given uniform bytes.

    (columns + 1) * scale may be at most 2^52.
    """
    radii, large = _radii(source, scale, rows, columns)
    noise = uniform_integers(source, 2 * radii + 1, columns) - radii[:, np.newaxis]
    for row, radius in large.items():
        noise[row] = [wrapped(uniform_integer(source, 2 * radius + 1) - radius) for _ in range(columns)]
    return noise


def _radii(source: ByteSource, scale: Fraction, rows: int, columns: int) -> tuple[IntArray, dict[int, int]]:
    """Draw the radii of Theorem 3; those that are large are returned apart, by row, with a zero in their place."""
    coins = LaplaceCoins.of_scale(scale)
    terms = columns + 1
    # Each is 1 + G_i and at most max(1, 32 scale) but for the tail, so that the sum is far from overflowing.
    geometric, tails = draw(source, coins, rows * terms, positive=True)
    radii = geometric.reshape(rows, terms).sum(axis=1) - terms + invert(source, Shift(columns, scale), rows)
    successes = Counter[int]()
    for i, count in tails:
        successes[i // terms] += count
    large = {}
    for row, count in successes.items():
        radius = int(radii[row]) + (count << coins.digits)
        if radius < _LARGE_RADIUS:
            radii[row] = radius
        else:
            radii[row], large[row] = 0, radius
    return radii, large


@dataclass(frozen=True)
class Shift:
    """The law of K in Theorem 3, as thresholds P(K <= k) for k < columns, in the words of `uniform`."""

    columns: int
    scale: Fraction

    def floors(self, bits: int) -> list[int]:
        """Return floor(2^bits P(K <= k)) for k = 0, ..., columns - 1.

        All floors are certain. P(K <= k) = A / (A + C) grows with A, the weights up to k, and falls with C, the weights
        beyond; where the floors with A too small and C too large and with A too large and C too small agree, they are
        the floor itself. They agree as soon as the bounds are close enough: P(K <= k) is a rational function of the
        transcendental q with rational coefficients, and not constant (1 at q = 0, less elsewhere), hence irrational.
        """
        numbers = eulerian_numbers(self.columns)
        precision = bits + 128 + sum(numbers).bit_length()
        while True:
            # The weights 2^precision b(d, k) q^k, added up from 0 to k, bounded from below and from above.
            low, high = (
                list(accumulate(number * power for number, power in zip(numbers, powers, strict=True)))
                for powers in _power_bounds(1 / self.scale, precision, self.columns)
            )
            least = [(least << bits) // (least + high[-1] - most) for least, most in zip(low, high, strict=True)]
            most = [(most << bits) // (most + low[-1] - least) for least, most in zip(low, high, strict=True)]
            if least[:-1] == most[:-1]:
                return least[:-1]
            precision *= 2


@lru_cache(maxsize=64)
def eulerian_numbers(d: int) -> tuple[int, ...]:
    """Return b(d, 0), ..., b(d, d) of Theorem 3."""
    row = [1]
    for n in range(1, d + 1):
        pairs = zip([*row, 0], [0, *row], strict=True)
        row = [(2 * k + 1) * above + (2 * (n - k) + 1) * left for k, (above, left) in enumerate(pairs)]
    return tuple(row)


def _power_bounds(x: Fraction, precision: int, most: int) -> tuple[list[int], list[int]]:
    """Return lower and upper bounds of 2^precision exp(-k x) for k = 0, ..., most."""
    low, high = exp_bounds(x, precision)
    lows, highs = [1 << precision], [1 << precision]
    for _ in range(most):
        lows.append(lows[-1] * low >> precision)
        highs.append(-(-highs[-1] * high >> precision))
    return lows, highs
