/**
 * Signed subset selection (VLDP, RLDP): the report is k signs, and nothing else.
 *
 * The preference is rounded to a corner s e_j of its ball, at random and unbiased. The report w has k entries +1 or -1
 * and zeros elsewhere. With a = e^epsilon - 1 and r = k / (2d), w_j = s with probability r e^epsilon / (1 + r a), w_j =
 * -s with probability r / (1 + r a), and the rest is filled with uniformly random places and signs.
 *
 * Theorem. The report is epsilon-differentially private for all records of the voter together, for any k.
 * Proof. Fix a corner. The C(d-1, k-1) 2^(k-1) reports with w_j = s share r e^epsilon / (1 + r a), as many with w_j =
 * -s share r / (1 + r a), and the C(d-1, k) 2^k with w_j = 0 share (1 - 2r) / (1 + r a), which is r / (1 + r a) per
 * C(d-1, k-1) 2^(k-1) of them. So a report has probability e^epsilon or 1, times the same constant for every corner;
 * mixing corners (the rounding) keeps that.
 */

import { fit } from "./fit.js";
import { STEPS, toSteps } from "./grid.js";
import { FLIP } from "./coins.js";

/** @type {import("./report.js").Mechanism} */
export const subsetSelection = {
  name: "subset-selection",
  report({ records, epsilon, noise, method, size }) {
    const steps = toSteps(fit(records, method.normBound), method.normBound);
    return { values: signs(steps, epsilon, size(steps.length), noise) };
  },
};

/**
 * @param {number[]} steps a preference on the grid
 * @param {number} epsilon in millionths
 * @param {number} size k
 * @param {import("./noise.js").Noise} noise
 * @returns {number[]} w
 */
export function signs(steps, epsilon, size, noise) {
  const d = steps.length;
  const [corner, sign] = roundedToCorner(steps, noise);
  const among = noise.toss(amongOdds(d, size), epsilon);
  const kept = noise.toss(FLIP, epsilon) ? -sign : sign;
  // A random order of all places in which the corner's own comes first: the places after it fill the rest.
  const others = noise.order(d).filter((place) => place !== corner);
  const filled = others.slice(0, among ? size - 1 : size);
  const coins = [corner, ...others].map(() => 2 * noise.below(2) - 1);
  const report = new Array(d).fill(0);
  filled.forEach((place, i) => (report[place] = coins[i + 1]));
  if (among) report[corner] = kept;
  return report;
}

/**
 * The odds of w_j != 0, r (e^epsilon + 1) / (1 + r a), multiplied out.
 * @returns {import("./coins.js").Odds}
 * @param {number} dimension
 * @param {number} size
 */
export function amongOdds(dimension, size) {
  const k = BigInt(size);
  return [k, k, k, BigInt(2 * dimension) - k];
}

/**
 * s e_j with probability |step_j| / STEPS, exactly; what is left over, a uniformly random corner.
 * @param {number[]} steps
 * @param {import("./noise.js").Noise} noise
 * @returns {[number, number]}
 */
function roundedToCorner(steps, noise) {
  const drawn = noise.below(STEPS);
  const anywhere = noise.below(2 * steps.length);
  let reached = 0;
  for (let j = 0; j < steps.length; j++) {
    reached += Math.abs(steps[j]);
    if (drawn < reached) return [j, Math.sign(steps[j])];
  }
  return [anywhere >> 1, 2 * (anywhere & 1) - 1];
}
