/**
 * A voter beside the crowd: what each would choose between two outcomes that differ in one respect.
 *
 * A preference beta chooses the first of two outcomes with probability Phi(beta . v), where v is their difference. The
 * voter's own beta is fitted here, on the device, and stays here; the crowd's is public.
 */

import { fit, mills } from "./mechanisms/fit.js";
import { recordsOf } from "./mechanisms/records.js";

const WOMEN = ["woman", "old_woman", "girl", "large_woman", "female_executive", "female_athlete", "female_doctor"];
const MEN = ["man", "old_man", "boy", "large_man", "male_executive", "male_athlete", "male_doctor"];
const PETS = ["dog", "cat"];
const PEOPLE = [...WOMEN, ...MEN, "pregnant", "stroller", "homeless", "criminal"];

/**
 * Respects in which outcomes on the road differ: who is on the one side, and who on the other.
 * @type {{name: string, more: Record<string, number>, less: Record<string, number>}[]}
 */
const ON_THE_ROAD = [
  { name: "number", more: average(PEOPLE), less: {} },
  { name: "species", more: average(PEOPLE), less: average(PETS) },
  { name: "age", more: average(["boy", "girl"]), less: average(["old_man", "old_woman"]) },
  { name: "gender", more: average(WOMEN), less: average(MEN) },
  { name: "fitness", more: average(["female_athlete", "male_athlete"]), less: average(["large_woman", "large_man"]) },
  {
    name: "status",
    more: average(["male_executive", "female_executive", "male_doctor", "female_doctor"]),
    less: average(["homeless", "criminal"]),
  },
  { name: "law", more: { legality: 1 }, less: { legality: -1 } },
  { name: "passengers", more: { barrier: 1 }, less: {} },
  { name: "course", more: { intervention: 1 }, less: {} },
];

/** @param {string[]} names */
function average(names) {
  return Object.fromEntries(names.map((name) => [name, 1 / names.length]));
}

/**
 * @typedef {object} Release what the page reads of a published result
 * @property {Record<string, number>} parameter
 * @property {Record<string, number>} error_bars
 * @property {{voters: number}} guarantee
 */

/**
 * @typedef {{name: string, label: string | null, crowd: number, low: number, high: number, own: number | null}} Row
 * Shares from 0 to 1: how often the first of the two outcomes is chosen; low and high are what the noise leaves open.
 */

/**
 * @param {import("./mechanisms/study.js").Study} study
 * @param {import("./language.js").Words} words
 * @param {Release} release
 * @param {number[] | null} preference the voter's own, by feature
 * @param {boolean} onRoad
 * @returns {Row[]}
 */
export function compare(study, words, release, preference, onRoad) {
  const names = study.features.map((feature) => feature.name);
  const respects = onRoad
    ? ON_THE_ROAD.map(({ name, more, less }) => ({
        name,
        label: null,
        v: names.map((f) => (more[f] ?? 0) - (less[f] ?? 0)),
      }))
    : names.map((name, k) => ({ name, label: words.features[name].label, v: names.map((_, i) => (i === k ? 1 : 0)) }));
  return respects.map(({ name, label, v }) => {
    const crowd = sum(v, (k) => release.parameter[names[k]]);
    const reach = v.reduce((total, weight, k) => total + Math.abs(weight) * release.error_bars[names[k]], 0);
    return {
      name,
      label,
      crowd: normalShare(crowd),
      low: normalShare(crowd - reach),
      high: normalShare(crowd + reach),
      own: preference && normalShare(sum(v, (k) => preference[k])),
    };
  });
}

/**
 * The voter's own preference.
 * @param {import("./mechanisms/study.js").Poll} poll
 * @param {import("./mechanisms/study.js").Dilemma[]} dilemmas
 * @param {import("./mechanisms/study.js").Side[]} choices
 * @returns {number[]}
 */
export function ownPreference(poll, dilemmas, choices) {
  return fit(recordsOf(poll.study, dilemmas, choices), poll.method.norm_bound);
}

/** Phi(t): as phi / Phi is the inverse Mills ratio, Phi is phi over it. @param {number} t @returns {number} */
export function normalShare(t) {
  if (t > 0) return 1 - normalShare(-t);
  return Math.exp((-t * t) / 2) / Math.sqrt(2 * Math.PI) / mills(t);
}

/** @param {number[]} v @param {(k: number) => number} value */
function sum(v, value) {
  return v.reduce((total, weight, k) => (weight === 0 ? total : total + weight * value(k)), 0);
}
