/**
 * Randomised response (ALDP): the dilemmas are public, each choice may be turned over or, among three answers,
 * replaced.
 *
 * Theorem. Where only the choices are secret, the report is epsilon-differentially private for one choice.
 * Proof. A choice is turned over with probability 1 / (1 + e^epsilon), so what is reported is e^epsilon times as
 * likely under the true choice as under the other; all other reported choices have the same law. Where a study allows
 * "neither", the true answer is reported with probability e^epsilon / (e^epsilon + 2) and each of the other two with
 * probability 1 / (e^epsilon + 2).
 */

import { keepOdds, otherOption } from "./about.js";
import { FLIP } from "./coins.js";

/** @type {import("./report.js").Mechanism} */
export const randomisedResponse = {
  name: "randomised-response",
  report({ records, neither = null, epsilon, noise }) {
    return neither === null ? flipped(records, epsilon, noise) : replaced(records, neither, epsilon, noise);
  },
};

const ANSWERS = 3;

/**
 * @param {number[][]} records left minus right where neither was chosen
 * @param {boolean[]} neither
 * @param {number} micro what each answer is protected with, in millionths
 * @param {import("./noise.js").Noise} noise
 */
function replaced(records, neither, micro, noise) {
  const split = records.map(oriented);
  const truths = split.map(({ choice }, i) => (neither[i] ? 0 : choice) + 1);
  const kept = truths.map(() => noise.toss(keepOdds(ANSWERS), micro));
  const others = truths.map((truth) => otherOption(truth, noise.below(ANSWERS - 1)));
  return {
    dilemmas: split.map(({ dilemma }) => dilemma),
    choices: truths.map((truth, i) => (kept[i] ? truth : others[i]) - 1),
  };
}

/**
 * @param {number[][]} records
 * @param {number} micro what each choice is protected with, in millionths
 * @param {import("./noise.js").Noise} noise
 */
export function flipped(records, micro, noise) {
  const split = records.map(oriented);
  return {
    dilemmas: split.map(({ dilemma }) => dilemma),
    choices: split.map(({ choice }) => (noise.toss(FLIP, micro) ? -choice : choice)),
  };
}

/**
 * Split a record into the public dilemma (its first non-zero number positive) and the secret choice (+1 or -1). The
 * dilemma is the same to the last bit for either choice; + 0 makes 0 of -0.
 * @param {number[]} record
 */
export function oriented(record) {
  const choice = (record.find((value) => value !== 0) ?? 1) < 0 ? -1 : 1;
  return { dilemma: record.map((value) => value * choice + 0), choice };
}
