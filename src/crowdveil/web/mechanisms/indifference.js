/**
 * A third answer, "neither", in studies that allow it.
 *
 * One report in five is a bit about indifference: the device draws a record without looking at the choices, and says
 * whether neither side was chosen in it, turned over with probability 1 / (1 + e^epsilon). The others are the
 * mechanism's, from choices that a fair coin has completed.
 *
 * Theorem. Where the mechanism's report is epsilon-differentially private, so is this one, for the same unit.
 * Proof. What a report is about is drawn without looking at the answers. Whatever the probability that the bit was +1,
 * after the flip it is between 1 / (1 + e^epsilon) and e^epsilon / (1 + e^epsilon), and so for -1: it is private for
 * all that the voter answered. For any coins, neighbours stay neighbours, and the mechanism's report is private for
 * them.
 */

import { FLIP } from "./coins.js";

/** @typedef {import("./study.js").Choice} Choice */
/** @typedef {import("./noise.js").Noise} Noise */

/** One report in so many is about indifference. */
export const REPORTS_ONE_IN = 5;

/**
 * @param {Choice[]} choices
 * @param {number} epsilon in millionths
 * @param {Noise} noise
 * @param {(completed: import("./study.js").Side[]) => Record<string, unknown>} report the mechanism's own
 */
export function withIndifference(choices, epsilon, noise, report) {
  if (noise.below(REPORTS_ONE_IN) === 0) {
    return { preference: null, indifferent: indifferenceBit(choices, epsilon, noise) };
  }
  return { preference: report(completed(choices, noise)), indifferent: null };
}

/** @param {Choice[]} choices @param {number} epsilon @param {Noise} noise @returns {1 | -1} */
function indifferenceBit(choices, epsilon, noise) {
  const neither = choices[noise.below(choices.length)] === "neither";
  return neither === noise.toss(FLIP, epsilon) ? -1 : 1;
}

/** Let a fair coin choose where neither side was chosen. @param {Choice[]} choices @param {Noise} noise */
export function completed(choices, noise) {
  const coins = choices.map(() => (noise.below(2) === 1 ? "left" : "right"));
  return choices.map((choice, i) => (choice === "neither" ? coins[i] : choice));
}
