/**
 * The voter's choices, counted: in how many dilemmas that differ in a factor the outcome at its positive pole was
 * chosen, and who was spared how often. It is computed on the device, for the voter alone, and never sent.
 */

import { CHARACTERS } from "./scene/characters.js";

/**
 * @typedef {import("./mechanisms/study.js").Study} Study
 * @typedef {import("./mechanisms/study.js").Dilemma} Dilemma
 * @typedef {import("./mechanisms/study.js").Side} Side
 * @typedef {import("./mechanisms/study.js").Choice} Choice
 *
 * @typedef {{times: number, of: number}} Count so many times, of so many
 *
 * @typedef {object} Result
 * @property {Record<string, Count>} factors how often the positive pole of each factor was chosen
 * @property {{most: Spared, least: Spared} | null} characters those spared most and least, if there are characters
 *
 * @typedef {Count & {name: string}} Spared so many of a character, of all that could have been spared or not
 */

/**
 * Count the dilemmas in which a side was chosen.
 * @param {Study} study
 * @param {Dilemma[]} dilemmas
 * @param {Choice[]} choices
 * @returns {Result}
 */
export function countChoices(study, dilemmas, choices) {
  const decided = dilemmas.filter((_, i) => choices[i] !== "neither");
  return countSides(study, decided, choices.filter((choice) => choice !== "neither"));
}

/**
 * @param {Study} study
 * @param {Dilemma[]} dilemmas
 * @param {Side[]} choices
 * @returns {Result}
 */
function countSides(study, dilemmas, choices) {
  const factors = study.factors ?? study.features.map(({ name }) => ({ name, weights: { [name]: 1 } }));
  const poles = dilemmas.map((dilemma) => positiveSides(study, factors, dilemma));
  const counted = factors.map(({ name }, k) => {
    const shown = poles.map((sides) => sides[k]);
    const times = shown.filter((side, i) => side !== null && side === choices[i]).length;
    return [name, { times, of: shown.filter((side) => side !== null).length }];
  });
  return { factors: Object.fromEntries(counted), characters: countCharacters(study, dilemmas, choices) };
}

/**
 * The side at the positive pole of each factor; null where the dilemma does not show it.
 *
 * Of a factor with two poles (pets and people), one side has more of the one and the other side more of the other. A
 * difference at one pole only (a man and an old man) may be another difference in disguise: it counts where both sides
 * have as much of that part of the study in all, and differ in no other factor with two poles.
 * @param {Study} study
 * @param {{weights: Record<string, number>}[]} factors
 * @param {Dilemma} dilemma
 * @returns {(Side | null)[]}
 */
function positiveSides({ features }, factors, { left, right }) {
  const total = (/** @type {(k: number) => number} */ weight) =>
    round(features.reduce((sum, _, k) => sum + weight(k) * (left[k] - right[k]), 0));
  const leans = factors.map(({ weights }) => {
    const of = (/** @type {number} */ k) => weights[features[k].name] ?? 0;
    const [positive, negative] = [total((k) => Math.max(of(k), 0)), total((k) => Math.max(-of(k), 0))];
    const parts = new Set(features.filter(({ name }) => weights[name]).map(({ part }) => part ?? ""));
    const number = parts.has("") ? 0 : total((k) => Number(parts.has(features[k].part ?? "")));
    const poles = new Set(Object.values(weights).map(Math.sign)).size;
    return {
      poles,
      number,
      lean: Math.sign(positive) - Math.sign(negative),
      differs: positive !== 0 || negative !== 0,
    };
  });
  const several = leans.filter(({ poles, differs }) => poles === 2 && differs).length > 1;
  return leans.map(({ poles, number, lean }) => {
    const shown = poles === 2 ? Math.abs(lean) === 2 || (Math.abs(lean) === 1 && number === 0 && !several) : lean !== 0;
    return shown ? (lean > 0 ? "left" : "right") : null;
  });
}

/** Sums of fractions that add up to almost nothing are nothing. @param {number} value */
const round = (value) => Math.round(value * 1e9) / 1e9;

/**
 * @param {Study} study
 * @param {Dilemma[]} dilemmas
 * @param {Side[]} choices
 * @returns {Result["characters"]}
 */
function countCharacters({ features }, dilemmas, choices) {
  const spared = features
    .map(({ name }, k) => {
      const decided = dilemmas.map(({ left, right }, i) => {
        const differs = CHARACTERS.includes(name) && left[k] !== right[k] && ["left", "right"].includes(choices[i]);
        return differs ? { times: choices[i] === "left" ? left[k] : right[k], of: left[k] + right[k] } : NONE;
      });
      const total = (/** @type {"times" | "of"} */ what) => decided.reduce((sum, count) => sum + count[what], 0);
      return { name, times: total("times"), of: total("of") };
    })
    .filter(({ of }) => of > 0)
    .sort((a, b) => balance(b) - balance(a) || b.times / b.of - a.times / a.of);
  const [most, least] = [spared.at(0), spared.at(-1)];
  return most && least && most !== least ? { most, least } : null;
}

const NONE = { times: 0, of: 0 };

/**
 * Spared minus not spared: of two who were always spared, the one that came more often is before.
 * @param {Count} count
 */
const balance = ({ times, of }) => 2 * times - of;
