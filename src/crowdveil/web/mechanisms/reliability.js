/**
 * One dilemma asked twice, in studies that do so: it tells how reliably people answer.
 *
 * The device draws which: one of the first half of the dilemmas, each with the same probability, from its own
 * randomness and before anything is chosen. It is asked once more after the last, with its sides swapped. The second
 * answer is no record: all that is ever said of it is whether it is like the first.
 *
 * One report in ten is a bit that says so, turned over with probability 1 / (1 + e^epsilon). The others are the
 * mechanism's, which does not see the second answer.
 *
 * Theorem. Where the mechanism's report is epsilon-differentially private, so is this one, for the same unit.
 * Proof. What a report is about is drawn without looking at the answers. The bit has two values, and each has a
 * probability between 1 / (1 + e^epsilon) and e^epsilon / (1 + e^epsilon), whatever the answers are.
 */

import { FLIP } from "./coins.js";

/**
 * @typedef {import("./study.js").Choice} Choice
 * @typedef {import("./study.js").Dilemma} Dilemma
 * @typedef {import("./noise.js").Noise} Noise
 *
 * @typedef {object} Repeat
 * @property {number} place of the dilemma that was asked again
 * @property {Choice} chosen as it was then shown
 */

/** One report in so many is about reliability. */
export const ONE_IN = 10;

/** How many dilemmas of a session may be asked again. @param {number} dilemmas */
export const repeatable = (dilemmas) => Math.ceil(dilemmas / 2);

/**
 * The place of the dilemma that is asked again.
 * @param {number} dilemmas
 * @param {import("./random.js").Random} random
 */
export const drawRepeat = (dilemmas, random) => Number(random.below(BigInt(repeatable(dilemmas))));

/** @param {Dilemma} dilemma @returns {Dilemma} the same with its sides swapped */
export const mirrored = ({ left, right }) => ({ left: right, right: left });

/**
 * Whether the same outcome was chosen both times; the second time, the sides were swapped.
 * @param {Choice[]} choices
 * @param {Repeat} repeat
 */
export function alike(choices, { place, chosen }) {
  const first = choices[place];
  if (first === undefined) throw new RangeError(`there is no dilemma ${place} to be asked again`);
  return first === "neither" || chosen === "neither" ? first === chosen : first !== chosen;
}

/**
 * @param {boolean} same whether the voter answered alike
 * @param {number} epsilon in millionths
 * @param {Noise} noise
 * @param {() => Record<string, unknown>} report the mechanism's own
 */
export function withReliability(same, epsilon, noise, report) {
  if (noise.below(ONE_IN) === 0) return { preference: null, alike: alikeBit(same, epsilon, noise) };
  return { preference: report(), alike: null };
}

/** @param {boolean} same @param {number} epsilon @param {Noise} noise @returns {1 | -1} */
export function alikeBit(same, epsilon, noise) {
  return same === noise.toss(FLIP, epsilon) ? -1 : 1;
}
