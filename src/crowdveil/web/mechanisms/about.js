/**
 * Answers of voters about themselves, perturbed: k-ary randomised response over all that can be answered to a question.
 *
 * Theorem. What is reported of a question is epsilon-differentially private.
 * Proof. The true option is kept with probability e^epsilon / (e^epsilon + k - 1), each other one is reported with
 * probability 1 / (e^epsilon + k - 1). Two true options differ by e^epsilon at most. A point of a scale and the range
 * that a number is in are options like others.
 *
 * Theorem (several answers). One of the k options is drawn, whatever was ticked; reported are that option and whether
 * it was ticked, kept with probability e^epsilon / (e^epsilon + 1). This is epsilon-differentially private for all
 * ticks.
 * Proof. The option is drawn with probability 1 / k under any two sets of ticks; given it, the bit's probabilities
 * differ by e^epsilon at most.
 *
 * Each question has its own epsilon, beside that of the answers. Whether a question was answered at all is not hidden.
 */

import { exactAnswer, isCheck, levelsOfQuestion } from "./questions.js";
import { checkedEpsilon } from "./records.js";

/**
 * @typedef {import("./noise.js").Noise} Noise
 * @typedef {import("./study.js").Question} Question
 * @typedef {import("./study.js").Answer} Answer
 */

/**
 * @param {Question[]} questions
 * @param {Record<string, Answer>} answers the true answer to each question that was answered
 * @param {number | null} micro epsilon in millionths
 * @param {Noise} noise
 * @returns {Record<string, string | number | Record<string, boolean>>}
 */
export function perturbedAbout(questions, answers, micro, noise) {
  const epsilon = checkedEpsilon(micro);
  const answered = questions.filter((question) => !isCheck(question) && Object.hasOwn(answers, question.id));
  return Object.fromEntries(
    answered.map((question) => {
      const levels = levelsOfQuestion(question);
      const truth = exactAnswer(question, answers[question.id]);
      if (levels.length === 0) throw new RangeError(`question ${question.id} has no levels: no noise protects it`);
      if (Array.isArray(truth)) {
        const [asked, said] = perturbedTicks(levels.map((level) => truth.includes(String(level))), epsilon, noise);
        return [question.id, { [levels[asked]]: said }];
      }
      return [question.id, levels[perturbedOption(levels.indexOf(truth), levels.length, epsilon, noise)]];
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

/**
 * @param {boolean[]} ticks of each option
 * @param {number} epsilon
 * @param {Noise} noise
 * @returns {[number, boolean]} the option that is reported on, and whether it was ticked
 */
export function perturbedTicks(ticks, epsilon, noise) {
  const asked = noise.below(ticks.length);
  const kept = noise.toss(keepOdds(2), epsilon);
  return [asked, ticks[asked] === kept];
}

/** Number the options without the true one. @param {number} truth @param {number} other @returns {number} */
export function otherOption(truth, other) {
  return other < truth ? other : other + 1;
}

/** 1 / (1 + (k - 1) q) @param {number} count k @returns {import("./coins.js").Odds} */
export function keepOdds(count) {
  return [1n, 0n, 1n, BigInt(count - 1)];
}
