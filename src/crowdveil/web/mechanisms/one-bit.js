/**
 * One bit (VLDP): a bit about an axis that the device draws without looking at the answers, or a few such bits.
 *
 * Of more records than the poll has scored, so many are drawn at random. Let S be the sum of the n records' integer
 * scores along an axis, and c the poll's clip. A direction bit is +1 with probability (1 + S / (n c)) / 2, kept within
 * 0 and 1; a length bit is +1 with probability 22 (n - 1) / (15 (n + 6)), or 1 from 16 records on. Each of m bits is
 * then turned over with probability 1 / (1 + e^(epsilon / m)).
 *
 * Theorem. The report is epsilon-differentially private for all records of the voter together, for any axes, any clip,
 * any number of records and any m.
 * Proof. The law of the kind and of the axes does not depend on the records. Given them and the records that are
 * scored, the bits are independent, and whatever the probability that a bit was +1, after the flip it is between 1 /
 * (1 + e^t) and e^t / (1 + e^t), where t = epsilon / m; so for -1. So the probability of m bits lies between two
 * numbers that differ by a factor of e^(m t) = e^epsilon, whichever records are scored, and on average over them, for
 * any ballot.
 */

import { FLIP } from "./coins.js";
import { voterScores } from "./score.js";

/** One report in so many is about the length of the ballot. */
export const LENGTH_ONE_IN = 20;
/** Ballots of more records are told as ballots of so many. */
const LONGEST = 16;
/** Beyond any score of a dilemma: sums of whole ballots stay exact. */
const LARGEST_SCORE = 2 ** 40;
const LARGEST_CLIP = 2 ** 32;

/** @type {import("./report.js").Mechanism} */
export const oneBit = {
  name: "one-bit",
  report({ records, epsilon, noise, method, size }) {
    const design = method.axes();
    if (!(Number.isInteger(design.clip) && design.clip <= LARGEST_CLIP)) {
      throw new RangeError(`the clip is ${design.clip}, and must be a whole number up to ${LARGEST_CLIP}`);
    }
    if (!(Number.isInteger(design.records) || design.records === Infinity)) {
      throw new RangeError(`${design.records} records are scored, and must be a whole number`);
    }
    const count = Math.min(records.length, design.records);
    const scored =
      count === records.length ? records : noise.order(records.length).slice(0, count).map((place) => records[place]);
    const scores = voterScores(scored, design, LARGEST_SCORE);
    const ofLength = noise.below(LENGTH_ONE_IN) === 0;
    const m = size(scores.length);
    const chosen = noise.order(scores.length).slice(0, m);
    const drawn = chosen.map(() => noise.below(2 * count * design.clip));
    const said = chosen.map((axis, i) => exactBit(ofLength, scores[axis], count, design.clip, drawn[i]));
    // Rounded down: m bits may together spend at most epsilon.
    const turned = chosen.map(() => noise.toss(FLIP, Math.floor(epsilon / m)));
    const bits = new Map(chosen.map((axis, i) => [axis, said[i] === turned[i] ? -1 : 1]));
    const axes = [...chosen].sort((a, b) => a - b);
    return { kind: ofLength ? "length" : "direction", axes, bits: axes.map((axis) => bits.get(axis)) };
  },
};

/**
 * Whether a bit is +1 before it may be turned over. Without a tie: a uniform integer below 2 n c is less than S + n c
 * with probability (1 + S / (n c)) / 2, kept within 0 and 1. For lengths, it is below their part of 2 n c.
 * @param {boolean} ofLength whether it is about the length
 * @param {number} score S
 * @param {number} count n
 * @param {number} clip c
 * @param {number} drawn
 */
export function exactBit(ofLength, score, count, clip, drawn) {
  if (!ofLength) return drawn < score + count * clip;
  const n = Math.min(count, LONGEST);
  return drawn * 15 * (n + 6) < 22 * (n - 1) * 2 * count * clip;
}
