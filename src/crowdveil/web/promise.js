/** What an epsilon means, in numbers that a person can picture. */

/** @param {number} micro @returns {number} */
export const epsilonOf = (micro) => micro / 1e6;

/** The best odds anybody can bet with on what is protected: e^epsilon to 1. @param {number} epsilon */
export function odds(epsilon, language) {
  const factor = Math.exp(epsilon);
  const digits = factor < 1.1 ? { maximumFractionDigits: 3 } : { maximumSignificantDigits: 3 };
  return language.number(factor, factor < 1e6 ? digits : { notation: "scientific", maximumFractionDigits: 1 });
}

/**
 * How often, of 100 times, a guess between two equally likely answers can be right: 100 e^epsilon / (1 + e^epsilon).
 * Rounded up, so that the promise is never told larger than it is.
 * @param {number} epsilon
 */
export function rightOf100(epsilon) {
  return Math.min(100, Math.ceil(100 / (1 + Math.exp(-epsilon)) - 1e-9));
}

/** Which key of the interface says what is protected. @param {any} poll */
export const protectedKey = (poll) => `protected_${poll.unit}`;

/** Whether answers leave the device. @param {any} poll */
export const isCentral = (poll) => poll.place === "central";

/** Whether a report holds single answers, some turned over by a coin. @param {any} poll */
export const tossesCoins = (poll) => poll.mechanism === "randomised-response" || poll.mechanism === "one-choice";
