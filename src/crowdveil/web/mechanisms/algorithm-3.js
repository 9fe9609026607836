/**
 * Algorithm 3 (RLDP): Laplace noise on the coefficients of the voter's objective.
 *
 * The log-likelihood is expanded at 0: ln Phi(t) = ln(1/2) + sqrt(2/pi) t - t^2/pi. So the objective has d linear and
 * d(d+1)/2 quadratic coefficients.
 *
 * Theorem. The report is epsilon-differentially private for one record in place of another.
 * Proof. A record enters as integers of l2 norm at most 1, checked as such. One of them moves the sum of the integer
 * coefficients by at most `coefficientSensitivity` in l1; the rest is the theorem in `noise.js`.
 */

import { STEPS, coefficientSensitivity, largest, wholeWithin } from "./grid.js";

/** Grid of a normalised record: its coordinates are whole multiples of 2^-16, its l2 norm at most 1. */
export const RECORD_STEPS = 2 ** 16;

// Rounded down: floor(sqrt(2/pi) STEPS), floor(STEPS/pi), floor(2 STEPS/pi).
const LINEAR = BigInt(Math.floor(Math.sqrt(2 / Math.PI) * STEPS));
const SQUARE = BigInt(Math.floor(STEPS / Math.PI));
const PRODUCT = BigInt(Math.floor((2 * STEPS) / Math.PI));

/** @type {import("./report.js").Mechanism} */
export const algorithm3 = {
  name: "algorithm-3",
  report({ records, epsilon, noise, method }) {
    const exact = objectiveCoefficients(records, method.recordBound);
    const drawn = noise.laplace(coefficientSensitivity(records[0].length), epsilon, exact.length);
    return { values: exact.map((coefficient, i) => coefficient + drawn[i]) };
  },
};

/**
 * Sum the integer coefficients of the records: d linear ones, then the upper triangle by rows.
 * @param {number[][]} records
 * @param {number} recordBound
 * @returns {bigint[]}
 */
export function objectiveCoefficients(records, recordBound) {
  return records
    .map((record) => coefficientsOf(normalised(record, recordBound).map(BigInt)))
    .reduce((total, coefficients) => total.map((value, i) => value + coefficients[i]));
}

/**
 * Divide by the bound, or by the length if that is more, and truncate. The norm is kept in integers, whatever came.
 * @param {number[]} record
 * @param {number} recordBound
 */
function normalised(record, recordBound) {
  const length = Math.sqrt(record.reduce((sum, value) => sum + value * value, 0));
  const shrink = RECORD_STEPS / Math.max(recordBound, length);
  const steps = record.map((value) => wholeWithin(value * shrink, RECORD_STEPS));
  while (steps.reduce((sum, step) => sum + step * step, 0) > RECORD_STEPS * RECORD_STEPS) {
    const k = largest(steps);
    steps[k] -= Math.sign(steps[k]);
  }
  return steps;
}

/** @param {bigint[]} steps @returns {bigint[]} */
function coefficientsOf(steps) {
  const one = BigInt(RECORD_STEPS);
  const linear = steps.map((step) => (LINEAR * step) / one);
  const quadratic = steps.flatMap((step, k) => {
    return steps.slice(k).map((other, m) => (-(m === 0 ? SQUARE : PRODUCT) * step * other) / (one * one));
  });
  return [...linear, ...quadratic];
}
