/**
 * Score release (RLDP, ALDP): a few coordinates of the voter's score, with noise on the cube.
 *
 * Theorem. The report is epsilon-differentially private for one record in place of another, for any axes and any number
 * of coordinates. (To turn an answer over is to replace its record by the opposite one.)
 * Proof. A record's score along each axis is a whole number from -RECORD_CLIP to RECORD_CLIP, whatever the axes are. So
 * one record moves each coordinate of the sum by at most 2 RECORD_CLIP; the rest is the theorem in `noise.js`. Which
 * coordinates are reported is drawn without looking at the answers.
 */

import { wholeWithin } from "./grid.js";

/** Scores are kept within 0.7 standard deviations of the design along each axis, of 2^20 steps each. */
export const RECORD_CLIP = 734_003;
export const RECORD_SENSITIVITY = 2n * BigInt(RECORD_CLIP);

/** @type {import("./report.js").Mechanism} */
export const score = {
  name: "score",
  report({ records, epsilon, noise, method, size }) {
    const design = method.axes();
    if (design.clip !== RECORD_CLIP) {
      throw new RangeError(`this poll clips scores at ${design.clip}, this page at ${RECORD_CLIP}`);
    }
    const exact = voterScores(records, design);
    const chosen = noise.order(exact.length).slice(0, size(exact.length));
    const drawn = noise.cube(RECORD_SENSITIVITY, epsilon, chosen.length);
    const noisy = new Map(chosen.map((axis, i) => [axis, BigInt(exact[axis]) + drawn[i]]));
    const coordinates = [...chosen].sort((a, b) => a - b);
    return { records: records.length, coordinates, values: coordinates.map((axis) => noisy.get(axis)) };
  },
};

/**
 * Sum the records' integer scores along the axes, each kept within [-clip, clip].
 * @param {number[][]} records in model units
 * @param {import("./report.js").Axes} design
 * @param {number} clip
 * @returns {number[]}
 */
export function voterScores(records, { axes, units }, clip = RECORD_CLIP) {
  const total = axes[0].map(() => 0);
  for (const record of records) {
    // Numbers that hold integers, added up feature by feature, as Python does: the same bits everywhere.
    const along = axes[0].map(() => 0);
    record.forEach((value, k) => {
      const steps = Math.floor(value * units[k] + 0.5);
      axes[k].forEach((axis, a) => (along[a] += steps * axis));
    });
    along.forEach((value, a) => (total[a] += wholeWithin(value, clip)));
  }
  return total;
}
