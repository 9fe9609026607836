/**
 * A voter beside the crowd: what each would choose between two outcomes that differ in one of the study's factors.
 *
 * A preference beta chooses the first of two outcomes with probability Phi(beta . v), where v is their difference. The
 * voter's own beta is fitted here, on the device, and stays here; the crowd's is public.
 */

import { fit, mills } from "./mechanisms/fit.js";
import { recordsOf } from "./mechanisms/records.js";

/**
 * @typedef {object} Release what the page reads of a published result
 * @property {Record<string, number>} parameter
 * @property {{name: string, interval: [number, number]}[]} factors with the 95 % interval along each
 * @property {{voters: number}} guarantee
 */

/**
 * @typedef {object} Row one factor; shares from 0 to 1 say how often the outcome at its positive pole is chosen
 * @property {string} title
 * @property {[string, string] | null} poles in the study's words, if it has any
 * @property {number} crowd
 * @property {number} low with high, what the release leaves open
 * @property {number} high
 * @property {number | null} own
 */

/**
 * @param {import("./mechanisms/study.js").Poll} poll
 * @param {import("./language.js").Words} words
 * @param {Release} release
 * @param {number[] | null} preference the voter's own, by feature
 * @returns {Row[]}
 */
export function compare({ study, factors }, words, release, preference) {
  const names = study.features.map((feature) => feature.name);
  return factors.map(({ name, step }) => {
    const { title, poles } = study.factors ? words.factors[name] : { title: words.features[name].label, poles: null };
    const crowd = sum(step, (k) => release.parameter[names[k]]);
    const weights = study.factors?.find((factor) => factor.name === name)?.weights ?? { [name]: 1 };
    const length = sum(step, (k) => weights[names[k]] ?? 0);
    const { interval } = /** @type {Release["factors"][0]} */ (release.factors.find((factor) => factor.name === name));
    return {
      title,
      poles,
      crowd: normalShare(crowd),
      low: normalShare(length * interval[0]),
      high: normalShare(length * interval[1]),
      own: preference && normalShare(sum(step, (k) => preference[k])),
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

/** @param {number[]} step @param {(k: number) => number} value */
function sum(step, value) {
  return step.reduce((total, change, k) => total + change * value(k), 0);
}
