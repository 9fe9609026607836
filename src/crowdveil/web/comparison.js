/**
 * A voter beside the crowd, along each of the study's factors: what the voter did, by counting, and what the crowd
 * would choose between two outcomes that differ in this factor alone.
 *
 * The crowd's shares are those that a decision states: they allow for voters who differ and for what is not known. A
 * paper's society beta states none; there the page shows Phi(beta . v), where v is the difference of the two outcomes.
 */

import { mills } from "./mechanisms/fit.js";

/**
 * @typedef {object} Release what the page reads of a published result
 * @property {Record<string, number>} parameter
 * @property {{name: string, interval: [number, number]}[]} factors with the 95 % interval along each
 * @property {Unknown | null} [unknown] null of a paper's society
 * @property {{tau: number, deviation: number} | null} [indifference] the threshold of a third answer
 * @property {{voters: number}} guarantee
 */

/**
 * @typedef {object} Unknown the posterior of a preference along axes, as in a release file
 * @property {number[][]} basis a row for each feature, a column for each axis
 * @property {number[][]} rest a row for each feature, a column for each direction left out
 * @property {number[]} mean
 * @property {number[][]} covariance
 * @property {number} left_out how many of the last axes no factor looks along
 * @property {number} disagreement
 * @property {number} common
 */

/**
 * @typedef {[number, number]} Shares who choose the outcome at the positive pole, and the one at the negative pole
 */

/**
 * @typedef {object} Row one factor
 * @property {string} title
 * @property {[string, string] | null} poles in the study's words, if it has any
 * @property {{share: number, low: number, high: number, stated: Shares, ends: [Shares, Shares]} | null} crowd where it
 *   stands between the poles, from 0 to 1, and the ends of what is not known about that; then the shares behind them
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
  const { mean, variance } = release.unknown
    ? predictive(release.unknown, step)
    : { mean: dot(step, (k) => release.parameter[names[k]]), variance: 0 };
  const stated = shares(mean, variance, release.indifference ?? null);
  const ends = /** @type {[Shares, Shares]} */ (
    interval.map((end) => shares(length * end, 0, release.indifference ?? null))
  );
  const share = between(stated);
  return {
    share,
    low: Math.min(share, ...ends.map(between)),
    high: Math.max(share, ...ends.map(between)),
    stated,
    ends,
  };
}

/** Where between the poles: whoever would toss a coin stands in the middle. @param {Shares} shares */
function between([positive, negative]) {
  return (1 + positive - negative) / 2;
}

/**
 * Mean and variance of the margin of a difference, as voters see it (`Uncertainty.predictive`).
 * @param {Unknown} unknown
 * @param {number[]} difference
 */
function predictive({ basis, rest, mean, covariance, left_out, disagreement, common }, difference) {
  const along = mean.map((_, axis) => dot(difference, (k) => basis[k][axis]));
  const asked = along.slice(0, along.length - left_out);
  const t = disagreement ** 2;
  const seen = common * Math.sqrt((1 + t * asked.length) / (1 + t * dot(asked, (k) => asked[k])));
  const x = along.map((value) => seen * value);
  const others = (rest[0] ?? []).map((_, axis) => seen * dot(difference, (k) => rest[k][axis]));
  return {
    mean: dot(x, (k) => mean[k]),
    variance: dot(x, (k) => dot(x, (j) => covariance[k][j])) + dot(others, (k) => others[k]),
  };
}

/**
 * Who chooses either outcome, given a margin that is known up to a variance; the others would toss a coin.
 * @param {number} margin
 * @param {number} variance
 * @param {{tau: number, deviation: number} | null} third
 * @returns {Shares}
 */
function shares(margin, variance, third) {
  const { tau, deviation } = third ?? { tau: 0, deviation: 0 };
  const scale = Math.sqrt(1 + variance + deviation ** 2);
  return [normalShare((margin - tau) / scale), normalShare((-margin - tau) / scale)];
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
