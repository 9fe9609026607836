/** The meaning of an epsilon, in numbers that a person can picture. */

import { answersOf } from "./mechanisms/study.js";
import { TERMS } from "./mechanisms/terms.js";

/**
 * @typedef {import("./mechanisms/study.js").Poll} Poll
 * @typedef {import("./language.js").Language} Language
 */

/** @param {number} micro @returns {number} */
export const epsilonOf = (micro) => micro / 1e6;

/**
 * The best odds anybody can bet with on what is protected: e^epsilon to 1.
 * @param {number} epsilon
 * @param {Language} language
 */
export function odds(epsilon, language) {
  const factor = Math.exp(epsilon);
  const digits = factor < 1.1 ? { maximumFractionDigits: 3 } : { maximumSignificantDigits: 3 };
  return language.number(factor, factor < 1e6 ? digits : SCIENTIFIC);
}

/** @type {Intl.NumberFormatOptions} */
const SCIENTIFIC = { notation: "scientific", maximumFractionDigits: 1 };

/**
 * How often, of 100 times, a guess between two equally likely possibilities can be right: 100 e^epsilon / (1 +
 * e^epsilon). Rounded up, so that the promise is never told larger than it is.
 * @param {number} epsilon
 */
export function rightOf100(epsilon) {
  return Math.min(100, Math.ceil(100 / (1 + Math.exp(-epsilon)) - 1e-9));
}

/**
 * The same for (epsilon, delta)-differential privacy: 100 (e^epsilon + delta) / (1 + e^epsilon).
 * @param {number} epsilon
 * @param {number} delta
 */
export function rightOf100With(epsilon, delta) {
  return Math.min(100, Math.ceil((100 * (Math.exp(epsilon) + delta)) / (1 + Math.exp(epsilon)) - 1e-9));
}

/**
 * The bound for all records or choices of a voter together. A person's choices are alike, so together they tell more:
 * for n of them, each protected with epsilon, n epsilon. Some mechanisms keep epsilon for all at once.
 * @param {Poll} poll
 * @param {number} epsilon
 * @param {Language} language
 */
export function together(poll, epsilon, language) {
  const count = answersOf(poll.study);
  const whole = !isCentral(poll) && TERMS[poll.mechanism].wholeVoter;
  const all = whole ? epsilon : count * epsilon;
  const epsilonWords = language.number(all, { maximumFractionDigits: 6 });
  return { count, odds: odds(all, language), right: rightOf100(all), epsilon: epsilonWords };
}

/** Which key of the interface says what is protected. @param {Poll} poll */
export const protectedKey = (poll) => `protected_${poll.unit}`;

/** Whether choices leave the device. @param {Poll} poll */
export const isCentral = (poll) => poll.place === "central";
