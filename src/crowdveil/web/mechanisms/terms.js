/**
 * The units that each mechanism's epsilon may be promised for, and the answers that it has a place for: all that a
 * voter has to know before its code is here. (The page welcomes its voter first, and loads the mechanisms meanwhile.)
 *
 * @typedef {object} Terms
 * @property {readonly import("./study.js").Unit[]} units what its epsilon may be promised for
 * @property {boolean} [wholeVoter] whether its epsilon bounds everything that the voter chose, all of it together
 * @property {"bits" | "answers"} [thirdAnswer] in a study that allows a third answer, whether some reports are bits
 *   about it, or it is one of the answers that are reported; without this, the mechanism cannot be used there
 */

/** @type {Record<string, Terms>} */
export const TERMS = {
  "algorithm-2": { units: ["voter", "record"], wholeVoter: true },
  "algorithm-3": { units: ["record"] },
  "algorithm-3-choices": { units: ["choice"] },
  "one-bit": { units: ["voter", "record"], wholeVoter: true, thirdAnswer: "bits" },
  "subset-selection": { units: ["voter", "record"], wholeVoter: true },
  score: { units: ["record", "choice"], thirdAnswer: "bits" },
  "randomised-response": { units: ["choice"], thirdAnswer: "answers" },
  "one-choice": { units: ["choice"], wholeVoter: true },
};

/**
 * Whether a mechanism has a place for all answers of a study.
 * @param {string} name
 * @param {import("./study.js").Study} study
 */
export function carries(name, { indifference }) {
  return indifference === undefined || TERMS[name].thirdAnswer !== undefined;
}
