/**
 * Randomised response on a few choices only (ALDP), drawn beforehand, which share the epsilon.
 *
 * Theorem. Where the dilemmas are public, the report is epsilon-differentially private for all choices of the voter
 * together, for any number k of choices.
 * Proof. The k dilemmas are drawn without looking at the choices; changing all choices changes the probability of the
 * report by at most e^(epsilon / k) for each of the k. They multiply to e^epsilon.
 */

import { flipped } from "./randomised-response.js";

/** @type {import("./report.js").Mechanism} */
export const oneChoice = {
  name: "one-choice",
  report({ records, epsilon, noise, size }) {
    const k = size(records.length);
    const chosen = new Set(noise.order(records.length).slice(0, k));
    // Rounded down: k choices may together spend at most epsilon.
    return flipped(records.filter((_, i) => chosen.has(i)), Math.floor(epsilon / k), noise);
  },
};
