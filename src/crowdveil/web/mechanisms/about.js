/**
 * What voters say about themselves, perturbed: k-ary randomised response over the options of each question.
 *
 * Theorem. What is reported of a question is epsilon-differentially private.
 * Proof. The true option is kept with probability e^epsilon / (e^epsilon + k - 1), each other one is reported with
 * probability 1 / (e^epsilon + k - 1). Two true options differ by e^epsilon at most.
 *
 * Each question has its own epsilon, beside that of the answers. Whether a question was answered at all is not hidden.
 */

import { checkedEpsilon } from "./records.js";

/** @typedef {import("./noise.js").Noise} Noise */

/**
 * @param {{id: string, options: {id: string}[]}[]} questions
 * @param {Record<string, string>} answers the true option of each question that was answered
 * @param {number | null} micro epsilon in millionths
 * @param {Noise} noise
 * @returns {Record<string, string>}
 */
export function perturbedAbout(questions, answers, micro, noise) {
  const epsilon = checkedEpsilon(micro);
  const answered = questions.filter((question) => Object.hasOwn(answers, question.id));
  return Object.fromEntries(
    answered.map(({ id, options }) => {
      const truth = options.findIndex((option) => option.id === answers[id]);
      if (truth < 0) throw new RangeError(`question ${id} has no option ${answers[id]}`);
      return [id, options[perturbedOption(truth, options.length, epsilon, noise)].id];
    }),
  );
}

/**
 * @param {number} truth
 * @param {number} count k
 * @param {number} epsilon
 * @param {Noise} noise
 * @returns {number} the option to report
 */
export function perturbedOption(truth, count, epsilon, noise) {
  if (count === 1) return truth;
  const kept = noise.toss(keepOdds(count), epsilon);
  const other = noise.below(count - 1);
  return kept ? truth : otherOption(truth, other);
}

/** Number the options without the true one. @param {number} truth @param {number} other @returns {number} */
export function otherOption(truth, other) {
  return other < truth ? other : other + 1;
}

/** 1 / (1 + (k - 1) q) @param {number} count k @returns {import("./coins.js").Odds} */
export function keepOdds(count) {
  return [1n, 0n, 1n, BigInt(count - 1)];
}
