/**
 * Randomised response (ALDP): the dilemmas are public, each answer may be turned over.
 *
 * Theorem. Where only the answers are secret, the report is epsilon-differentially private for one answer.
 * Proof. An answer is turned over with probability 1 / (1 + e^epsilon), so what is reported is e^epsilon times as
 * likely under the true answer as under the other; all other reported answers have the same law.
 */

import { FLIP } from "./coins.js";

/** @type {import("./report.js").Mechanism} */
export function randomisedResponse({ records, epsilon, noise }) {
  return flipped(records, epsilon, noise);
}

/**
 * @param {number[][]} records
 * @param {number} micro what each answer is protected with, in millionths
 * @param {import("./noise.js").Noise} noise
 */
export function flipped(records, micro, noise) {
  const split = records.map(oriented);
  return {
    dilemmas: split.map(({ dilemma }) => dilemma),
    answers: split.map(({ answer }) => (noise.toss(FLIP, micro) ? -answer : answer)),
  };
}

/**
 * Split a record into the public dilemma (its first non-zero number positive) and the secret answer (+1 or -1). The
 * dilemma is the same to the last bit for either answer; + 0 makes 0 of -0.
 * @param {number[]} record
 */
export function oriented(record) {
  const answer = (record.find((value) => value !== 0) ?? 1) < 0 ? -1 : 1;
  return { dilemma: record.map((value) => value * answer + 0), answer };
}
