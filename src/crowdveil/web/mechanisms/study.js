/**
 * The description of a study and of a poll, and the fingerprint that names a study.
 *
 * @typedef {"voter" | "record" | "choice"} Unit what is protected: everything of a voter, one dilemma with what was
 *   chosen in it, or only which side was chosen where the dilemma is public
 * @typedef {"left" | "right"} Side
 * @typedef {Side | "neither"} Choice neither: both are to be treated equally, in studies that allow it
 * @typedef {{left: number[], right: number[]}} Dilemma two alternatives, in raw values
 * @typedef {Record<string, string>} Texts by language
 *
 * @typedef {object} Feature
 * @property {string} name
 * @property {string} label
 * @property {number} low
 * @property {number} high
 * @property {number} unit
 * @property {number[]} [levels]
 * @property {Record<string, string>} [words]
 * @property {string} [part]
 * @property {number} [lean]
 * @property {string} [icon] the name of a picture, or an emoji
 *
 * @typedef {{name: string, label: string, levels: string[]}} Category of which an alternative has one level: the
 *   feature of that level is 1, and those of the others are 0
 *
 * @typedef {object} Study
 * @property {string} name
 * @property {string} title
 * @property {string} question
 * @property {string} [indifference] the words of the third answer, in studies that allow it
 * @property {boolean} [repeat] whether one dilemma is asked a second time, mirrored
 * @property {number} norm_bound
 * @property {number} [record_norm]
 * @property {string[]} [parts]
 * @property {{method: string, dilemmas: number}} drawing
 * @property {Feature[]} features
 * @property {Category[]} [categories]
 * @property {Factor[]} [factors] without them the features are the factors
 * @property {string} [along] what releases measure: "factors" or "features"
 *
 * @typedef {{name: string, title: string, poles: [string, string], weights: Record<string, number>}} Factor
 *
 * @typedef {object} Question
 * @property {string} id
 * @property {"single" | "several" | "number" | "scale" | "text"} kind
 * @property {Texts} text
 * @property {boolean} required
 * @property {{id: string, text: Texts}[]} options of single and several
 * @property {number | null} low of number and scale
 * @property {number | null} high
 * @property {number} step of a number, only the range of so many numbers leaves the device
 * @property {[Texts, Texts] | null} ends the words of a scale's lowest and highest point
 * @property {Answer | null} expected of an attention check that the device judges
 *
 * @typedef {string | number | string[]} Answer an option or a text, a number, or the options that were ticked
 * @typedef {{name: string, epsilon_micro: number, size: number | null}} Level
 *
 * @typedef {object} Method public choices of a poll's mechanism
 * @property {number} norm_bound
 * @property {number} record_bound
 * @property {number[][] | null} axes along which records are scored, where they are
 * @property {number[] | null} units
 * @property {number | null} clip
 * @property {number | null} records the most that are scored, null: all
 *
 * @typedef {object} Poll
 * @property {string} id
 * @property {boolean} pilot whether it is only tried out
 * @property {string | null} destroy_on the day on which exact answers are destroyed
 * @property {"open" | "closed" | "not-open-yet" | "full"} state
 * @property {Study} study
 * @property {string} study_fingerprint
 * @property {string[]} languages
 * @property {Unit} unit
 * @property {"central" | "distributed"} place
 * @property {string} mechanism
 * @property {Level[]} levels
 * @property {Method} method
 * @property {{name: string, step: number[]}[]} factors each with the step from its negative pole to its positive one
 * @property {"road" | "cards"} scene
 * @property {"open" | "links"} entry
 * @property {Question[]} questions
 * @property {number | null} about_epsilon_micro
 * @property {{checks: number, left_out: boolean} | null} attention what is told of attention checks
 * @property {number | null} minimum_age
 * @property {string | null} contact
 * @property {Texts | null} consent
 * @property {import("../relay/configuration.js").Relay | null} relay who passes reports on to the host, if somebody
 *   does
 * @property {string | null} release
 */

import { sha256 } from "./sha256.js";

/** The number of answers of a whole ballot: one to each dilemma, and one to a repeat. @param {Study} study */
export const answersOf = ({ drawing, repeat }) => drawing.dilemmas + (repeat ? 1 : 0);

/** The numbers of a study that Python holds as floats, and so writes with a point or an exponent. */
const FLOATS = ["norm_bound", "record_norm", "low", "high", "unit", "levels", "lean"];

/**
 * SHA-256 of all that is asked and estimated, as `Study.fingerprint` in Python: of the factors, names and weights and
 * not the words for them, and nothing where they are the features.
 * @param {Study} study
 * @returns {string}
 */
export function fingerprint({ factors = [], along: _, ...study }) {
  const names = study.features.map((feature) => feature.name);
  const weighed = factors.map(({ name, weights }) => ({
    name,
    weights: names.map((feature) => (Object.hasOwn(weights, feature) ? weights[feature] : 0)),
  }));
  const features = names.map((name, k) => ({ name, weights: names.map((_, j) => (j === k ? 1 : 0)) }));
  const named = weighed.length > 0 && canonicalJson(weighed) !== canonicalJson(features);
  return digest(canonicalJson(named ? { ...study, factors: weighed } : study));
}

/**
 * The places of a category's levels among the features; -1 where there is none.
 * @param {{name: string}[]} features
 * @param {Category} category
 */
export function levelsOf(features, { name, levels }) {
  const names = features.map((feature) => feature.name);
  return levels.map((level) => names.indexOf(`${name}-${level}`));
}

/** @param {string} text @returns {string} SHA-256 of it, in 64 hexadecimal digits */
export function digest(text) {
  return Array.from(sha256(new TextEncoder().encode(text)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * One text for each value, the same that Python writes: keys in the order of their code points, no spaces.
 * @param {unknown} value
 * @param {boolean} [float]
 * @returns {string}
 */
export function canonicalJson(value, float = false) {
  if (Array.isArray(value)) return `[${value.map((entry) => canonicalJson(entry, float)).join(",")}]`;
  if (typeof value === "number" && float) return pythonFloat(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).sort(([a], [b]) => byCodePoints(a, b));
  const written = entries.map(([key, entry]) => `${JSON.stringify(key)}:${canonicalJson(entry, FLOATS.includes(key))}`);
  return `{${written.join(",")}}`;
}

/**
 * A float as Python's `repr` writes it. Both languages use the fewest digits that tell it apart; they differ in where
 * the exponent begins (Python: below 1e-4, from 1e16 on), in its form, and in the `.0` of whole numbers.
 * @param {number} value
 */
function pythonFloat(value) {
  if (!Number.isFinite(value)) throw new RangeError(`${value} is no number that a study can have`);
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  const [mantissa, power] = Math.abs(value).toExponential().split("e");
  const [digits, exponent] = [mantissa.replace(".", ""), Number(power)];
  if (exponent < -4 || exponent >= 16) {
    return `${sign}${mantissa}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  return `${sign}${digits.slice(0, exponent + 1).padEnd(exponent + 1, "0")}.${digits.slice(exponent + 1) || "0"}`;
}

/** @param {string} a @param {string} b */
function byCodePoints(a, b) {
  const [first, second] = [a, b].map((text) => Array.from(text, (character) => Number(character.codePointAt(0))));
  for (let i = 0; i < first.length && i < second.length; i++) {
    if (first[i] !== second[i]) return first[i] - second[i];
  }
  return first.length - second.length;
}
