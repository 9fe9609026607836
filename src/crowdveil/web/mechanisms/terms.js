/**
 * What each mechanism's epsilon may be promised for, and which answers it has a place for: all that a voter has to know
 * before its code is here.
 *
 * @typedef {object} Terms
 * @property {readonly import("./study.js").Unit[]} units what its epsilon may be promised for
 * @property {boolean} [wholeVoter] whether its epsilon bounds everything that the voter chose, all of it together
 * @property {boolean} [thirdAnswer] whether it may be used in a study that allows a third answer
 */

/** @type {Record<string, Terms>} */
export const TERMS = {
  "algorithm-2": { units: ["voter", "record"], wholeVoter: true },
  "algorithm-3": { units: ["record"] },
  "algorithm-3-choices": { units: ["choice"] },
  "one-bit": { units: ["voter", "record"], wholeVoter: true, thirdAnswer: true },
  "subset-selection": { units: ["voter", "record"], wholeVoter: true },
  score: { units: ["record", "choice"], thirdAnswer: true },
  "randomised-response": { units: ["choice"], thirdAnswer: true },
  "one-choice": { units: ["choice"], wholeVoter: true },
};

/**
 * Whether a mechanism has a place for all answers of a study.
 * @param {string} name
 * @param {import("./study.js").Study} study
 */
export function carries(name, { indifference }) {
  return indifference === undefined || TERMS[name].thirdAnswer === true;
}
