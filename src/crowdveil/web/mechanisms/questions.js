/**
 * Questions about voters themselves, and what can be answered to them. An attention check is judged on the device:
 * nothing of it is ever reported.
 *
 * @typedef {import("./study.js").Question} Question
 * @typedef {import("./study.js").Answer} Answer
 */

/** Whether the device judges a question's answer and keeps it to itself. @param {Question} question */
export const isCheck = ({ expected = null }) => expected !== null;

/**
 * All that can be reported of a question, in order: options by id, or the first number of each range.
 * @param {Question} question
 * @returns {(string | number)[]}
 */
export function levelsOfQuestion({ options = [], low = null, high = null, step = 1 }) {
  if (low === null || high === null) return options.map(({ id }) => id);
  return Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, k) => low + k * step);
}

/**
 * The part of an answer that leaves the device, without noise: of a number, the first number of its range.
 * @param {Question} question
 * @param {Answer} given
 * @returns {string | number | string[]}
 */
export function exactAnswer(question, given) {
  const { id, kind = "single", low = null, high = null, step = 1 } = question;
  const levels = levelsOfQuestion(question);
  if (kind === "single" && typeof given === "string" && levels.includes(given)) return given;
  if (kind === "text" && typeof given === "string" && given.trim() !== "") return given;
  if (kind === "several" && Array.isArray(given) && given.every((option) => levels.includes(option))) {
    return levels.map(String).filter((option) => given.includes(option));
  }
  const number = (kind === "number" || kind === "scale") && typeof given === "number" && Number.isInteger(given);
  if (number && low !== null && high !== null && given >= low && given <= high) return given - ((given - low) % step);
  throw new RangeError(`question ${id} has no answer ${JSON.stringify(given)}`);
}
