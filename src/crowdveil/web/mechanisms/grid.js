/**
 * The public grid of integers on which everything that leaves is expressed.
 *
 * Privacy proved for real numbers does not hold for floating-point ones (Mironov 2012). So a preference is truncated
 * onto whole steps of B / 2^30 and its norm is checked in integers: the proof depends neither on the fit nor on
 * rounding.
 */

/** Steps per norm bound B. */
export const STEPS = 2 ** 30;

/**
 * The whole number next to a value on the way to zero, kept within -limit, ..., limit whatever came in.
 * What is not a number becomes 0.
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
