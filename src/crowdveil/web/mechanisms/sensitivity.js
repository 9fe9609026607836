/**
 * How far one record, or one answer, can move what is reported: a function per theorem, in whole grid steps and in l1.
 *
 * These are public constants of the mechanisms, computed here and never taken from a server. Where a square root is
 * involved, the margin or the rounding up is far larger than what a double can be wrong by.
 */

import { STEPS } from "./grid.js";

/**
 * One voter's preference. Any two lie in the ball of STEPS steps, so at most 2 STEPS apart (the paper's Theorem 3).
 */
export const PREFERENCE_SENSITIVITY = 2n * BigInt(STEPS);

/**
 * Algorithm 3's integer coefficients, for one record of l2 norm at most 1 in place of another.
 *
 * In real numbers this is at most the maximum over angles t of A sin(t/2) + C sin t, with A = 2 sqrt(2d/pi) and
 * C = sqrt(2) d/pi (`crowdveil.privacy.sensitivity.tight_delta` proves it). With u = cos(t/2) it is
 * sqrt(1 - u^2) (A + 2 C u), greatest where 4 C u^2 + A u - 2 C = 0. A relative 1e-9 is added for rounding.
 * Truncation onto the grid adds at most one step per coefficient: |trunc x - trunc y| <= |x - y| + 1.
 * @param {number} dimension d
 * @returns {bigint}
 */
export function coefficientSensitivity(dimension) {
  const first = 2 * Math.sqrt((2 * dimension) / Math.PI);
  const second = (Math.SQRT2 * dimension) / Math.PI;
  const u = (Math.sqrt(first * first + 32 * second * second) - first) / (8 * second);
  const delta = Math.sqrt(1 - u * u) * (first + 2 * second * u) * (1 + 1e-9);
  const coefficients = dimension + (dimension * (dimension + 1)) / 2;
  return BigInt(Math.ceil(delta * STEPS) + coefficients);
}

/**
 * The linear coefficients alone, for one answer turned over: the record V becomes -V, so they move by 2 sqrt(2/pi) V,
 * of l1 norm at most 2 sqrt(2d/pi). Truncation toward zero is odd and shrinks. In integers that norm is in fact at most
 * 2 LINEAR sqrt(d) with LINEAR rounded down (`algorithm-3.js`), so that the last digit here does not matter.
 * @param {number} dimension d
 * @returns {bigint}
 */
export function linearSensitivity(dimension) {
  return 2n * BigInt(Math.ceil(Math.sqrt((2 * dimension) / Math.PI) * STEPS));
}
