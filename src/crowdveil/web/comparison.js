/**
 * A voter beside the crowd, along each of the study's factors: what the voter did, by counting, and what the crowd
 * would choose between two outcomes that differ in this factor alone.
 *
 * A preference beta chooses the first of two outcomes with probability Phi(beta . v), where v is their difference.
 */

import { mills } from "./mechanisms/fit.js";

/**
 * @typedef {object} Release what the page reads of a published result
 * @property {Record<string, number>} parameter
 * @property {{name: string, interval: [number, number]}[]} factors with the 95 % interval along each
 * @property {{voters: number}} guarantee
 */

/**
 * @typedef {object} Row one factor
 * @property {string} title
 * @property {[string, string] | null} poles in the study's words, if it has any
 * @property {{share: number, low: number, high: number} | null} crowd how often, from 0 to 1, it would choose the
 *   outcome at the positive pole, and the ends of what is not known about that
 * @property {import("./counting.js").Count | null} own how often the voter chose it
 */

/**
 * @param {{study: import("./mechanisms/study.js").Study, factors: {name: string, step: number[]}[]}} poll
 * @param {import("./language.js").Words} words
 * @param {Release | null} release
 * @param {import("./counting.js").Result | null} result the voter's own
 * @returns {Row[]}
 */
export function compare({ study, factors }, words, release, result) {
  return factors.map(({ name, step }) => {
    const { title, poles } = study.factors ? words.factors[name] : { title: words.features[name].label, poles: null };
    return {
      title,
      poles,
      crowd: release && crowdShare(study, release, name, step),
      own: result && result.factors[name],
    };
  });
}

/**
 * @param {import("./mechanisms/study.js").Study} study
 * @param {Release} release
 * @param {string} name
 * @param {number[]} step
 */
function crowdShare(study, release, name, step) {
  const names = study.features.map((feature) => feature.name);
  const weights = study.factors?.find((factor) => factor.name === name)?.weights ?? { [name]: 1 };
  const length = dot(step, (k) => weights[names[k]] ?? 0);
  const { interval } = /** @type {Release["factors"][0]} */ (release.factors.find((factor) => factor.name === name));
  if (interval[0] === interval[1]) return null; // the study's dilemmas never differ in it: nobody was asked
  return {
    share: normalShare(dot(step, (k) => release.parameter[names[k]])),
    low: normalShare(length * interval[0]),
    high: normalShare(length * interval[1]),
  };
}

/** Phi(t): as phi / Phi is the inverse Mills ratio, Phi is phi over it. @param {number} t @returns {number} */
export function normalShare(t) {
  if (t > 0) return 1 - normalShare(-t);
  return Math.exp((-t * t) / 2) / Math.sqrt(2 * Math.PI) / mills(t);
}

/** @param {number[]} step @param {(k: number) => number} value */
function dot(step, value) {
  return step.reduce((total, change, k) => total + change * value(k), 0);
}
