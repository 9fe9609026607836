/**
 * Coins whose probability depends on epsilon: odds are (a + b q) / (c + d q), where q = exp(-epsilon).
 *
 * With no number negative, c + d > 0, a <= c and a + b <= c + d, this is a probability for every epsilon:
 * (c - a) + (d - b) q is a straight line in q, not negative at q = 0 and q = 1, and so not between.
 */

import { MICROS_PER_UNIT } from "./epsilon.js";
import { expBounds } from "./exponential.js";

/** @typedef {readonly [bigint, bigint, bigint, bigint]} Odds a, b, c, d */

/** Turned over with probability q / (1 + q) = 1 / (1 + e^epsilon). @type {Odds} */
export const FLIP = [0n, 1n, 1n, 1n];

/**
 * The floor is certain. The fraction is monotone in q (the derivative has the sign of bc - ad), so where the floors at
 * a lower and at an upper bound of q agree, they are the floor. They agree in the end: either bc = ad and q does not
 * matter, or the fraction is irrational, since q is transcendental (Hermite and Lindemann).
 * @param {Odds} odds
 * @param {number} micro epsilon in millionths, at least 1
 * @returns {import("./coins.js").Floor}
 */
export function oddsFloor(odds, micro) {
  const [a, b, c, d] = odds;
  if (!(odds.every((number) => number >= 0n) && c + d > 0n && a <= c && a + b <= c + d)) {
    throw new RangeError(`${odds.join(", ")} are no odds`);
  }
  return (bits) => {
    for (let precision = bits + 128n; ; precision *= 2n) {
      const [low, high] = expBounds(BigInt(micro), MICROS_PER_UNIT, precision).map(
        (q) => (((a << precision) + b * q) << bits) / ((c << precision) + d * q),
      );
      if (low === high) return low >> bits ? low - 1n : low;
    }
  };
}
