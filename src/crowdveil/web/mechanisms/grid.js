/**
 * The public grid of integers on which everything that leaves is expressed.
 *
 * Privacy proved for real numbers does not hold for floating-point ones (Mironov 2012). So a preference is truncated
 * onto whole steps of B / 2^30 and its norm is checked in integers: the proof depends neither on the fit nor on
 * rounding.
 *
 * The sensitivities at the end say how far one voter, record or choice can move what is reported: a function per
 * theorem, in whole grid steps and in l1. They are public constants of the mechanisms, computed here and never taken
 * from a server. Where a square root is involved, the margin or the rounding up is far larger than what a double can be
 * wrong by.
 */

/** Steps per norm bound B. */
export const STEPS = 2 ** 30;

/**
 * The whole number next to a value on the way to zero, kept within -limit, ..., limit whatever came in.
 * A value that is not a number becomes 0.
 * @param {number} value
 * @param {number} limit
 * @returns {number}
 */
export function wholeWithin(value, limit) {
  if (Number.isNaN(value)) return 0;
  return Math.trunc(Math.min(Math.max(value, -limit), limit)) + 0;
}

/**
 * Truncate a preference onto the grid; the l1 norm of the result is at most STEPS. Where float error left it above the
 * bound, the excess is taken off the largest coordinate.
 * @param {number[]} preference
 * @param {number} normBound
 * @returns {number[]}
 */
export function toSteps(preference, normBound) {
  const steps = preference.map((value) => wholeWithin((value / normBound) * STEPS, STEPS));
  for (;;) {
    const excess = steps.reduce((norm, step) => norm + Math.abs(step), 0) - STEPS;
    if (excess <= 0) return steps;
    const k = largest(steps);
    steps[k] = Math.sign(steps[k]) * Math.max(Math.abs(steps[k]) - excess, 0);
  }
}

/** @param {number[]} values @returns {number} where the first of the largest magnitudes is */
export function largest(values) {
  return values.reduce((best, value, k) => (Math.abs(value) > Math.abs(values[best]) ? k : best), 0);
}

/**
 * One voter's preference. Any two lie in the ball of STEPS steps, so at most 2 STEPS apart (the paper's Theorem 3).
 */
export const PREFERENCE_SENSITIVITY = 2n * BigInt(STEPS);

/**
 * Algorithm 3's integer coefficients, for one record of l2 norm at most 1 in place of another.
 *
 * In real numbers this is at most the maximum over angles t of A sin(t/2) + C sin t, with A = 2 sqrt(2d/pi) and
 * C = sqrt(2) d/pi (`crowdveil.privacy.grid.tight_delta` proves it). With u = cos(t/2) it is
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
