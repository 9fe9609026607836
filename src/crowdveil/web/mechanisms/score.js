/**
 * Score release (RLDP, ALDP): a few coordinates of the voter's score, with noise on the cube.
 *
 * Theorem. The report is epsilon-differentially private for one record in place of another, for any axes and any number
 * of coordinates. (To turn an answer over is to replace its record by the opposite one.)
 * Proof. A record's score along each axis is a whole number from -SCORE_STEPS to SCORE_STEPS, whatever the axes are. So
 * one record moves each coordinate of the sum by at most 2 SCORE_STEPS; the rest is the theorem in `noise.js`. Which
 * coordinates are reported is drawn without looking at the answers.
 */

import { wholeWithin } from "./grid.js";

export const SCORE_STEPS = 2 ** 20;
export const RECORD_SENSITIVITY = 2n * BigInt(SCORE_STEPS);

/** Scores are kept within this many standard deviations of the design along each axis. */
export const CLIP = 0.7;

/** @type {import("./report.js").Mechanism} */
export const score = {
  name: "score",
  units: ["record", "choice"],
  report({ records, epsilon, noise, method, size }) {
    const exact = voterScores(records, method.axes());
    const chosen = noise.order(exact.length).slice(0, size(exact.length));
    const drawn = noise.cube(RECORD_SENSITIVITY, epsilon, chosen.length);
    const noisy = new Map(chosen.map((axis, i) => [axis, BigInt(exact[axis]) + drawn[i]]));
    const coordinates = [...chosen].sort((a, b) => a - b);
    return { records: records.length, coordinates, values: coordinates.map((axis) => noisy.get(axis)) };
  },
};

/**
 * Sum the records' integer scores along the axes.
 * @param {number[][]} records
 * @param {number[][]} axes a row per feature, a column per axis
 * @returns {number[]}
 */
export function voterScores(records, axes) {
  const scaled = axes.map((row) => row.map((value) => value / CLIP));
  const total = axes[0].map(() => 0);
  for (const record of records) {
    // Added up feature by feature, as Python does: the same bits everywhere.
    const along = axes[0].map(() => 0);
    record.forEach((value, k) => scaled[k].forEach((axis, a) => (along[a] += value * axis)));
    along.forEach((value, a) => (total[a] += wholeWithin(value * SCORE_STEPS, SCORE_STEPS)));
  }
  return total;
}
