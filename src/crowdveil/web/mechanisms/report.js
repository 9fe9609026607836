/**
 * A voter's report: the exact text that is stored, shown and sent. Choices go in, and only what is private comes out.
 *
 * Sensitivities, clipping and coins, on which privacy rests, are in these modules. A server chooses the axes, sizes,
 * dilemmas and the epsilon that the voter is shown; privacy holds whatever they are. The study's fingerprint is
 * computed here: one that is only handed back could be a mark by which a server knows its visitor again.
 */

import { perturbedAbout } from "./about.js";
import { algorithm2 } from "./algorithm-2.js";
import { algorithm3Choices } from "./algorithm-3-choices.js";
import { algorithm3 } from "./algorithm-3.js";
import { withIndifference } from "./indifference.js";
import { Noise } from "./noise.js";
import { oneBit } from "./one-bit.js";
import { oneChoice } from "./one-choice.js";
import { isCheck } from "./questions.js";
import { systemRandom } from "./random.js";
import { randomisedResponse } from "./randomised-response.js";
import { checkedEpsilon, positive, recordsOf, row } from "./records.js";
import { alike, withReliability } from "./reliability.js";
import { score } from "./score.js";
import { fingerprint } from "./study.js";
import { subsetSelection } from "./subset-selection.js";
import { TERMS, carries } from "./terms.js";

const FORMAT = "crowdveil report 1";

/**
 * @typedef {import("./study.js").Poll} Poll
 *
 * @typedef {object} Ballot what a mechanism makes a report of
 * @property {number[][]} records what was chosen minus what was not, in model units; left minus right for neither
 * @property {boolean[] | null} neither where neither side was chosen, in a study that allows it
 * @property {number} epsilon in millionths
 * @property {Noise} noise
 * @property {{normBound: number, recordBound: number, axes: () => Axes}} method public choices of the poll
 * @property {(most: number) => number} size how many coordinates, signs or choices to report, from 1 to `most`
 *
 * @typedef {object} Axes along which records are scored
 * @property {number[][]} axes integers, a row a feature
 * @property {number[]} units integer steps to a model unit of each feature
 * @property {number} clip where scores are clipped
 * @property {number} records the most that are scored
 *
 * @typedef {object} Mechanism
 * @property {string} name
 * @property {(ballot: Ballot) => Record<string, unknown>} report from a ballot to the report's own fields
 */

/** @type {Record<string, Mechanism>} */
export const MECHANISMS = Object.fromEntries(
  [
    algorithm2,
    algorithm3,
    algorithm3Choices,
    oneBit,
    subsetSelection,
    score,
    randomisedResponse,
    oneChoice,
  ].map((mechanism) => [mechanism.name, mechanism]),
);

/**
 * Make a report. Every call draws new noise: make it once, keep the text, and send it as it is.
 * @param {Poll} poll as the server describes it
 * @param {import("./study.js").Dilemma[]} dilemmas of the session, in raw values
 * @param {import("./study.js").Choice[]} choices one for each dilemma
 * @param {number} epsilonMicro one of the poll's levels
 * @param {Record<string, import("./study.js").Answer> | null} about the true answers by question id
 * @param {import("./random.js").Random} random
 * @param {import("./reliability.js").Repeat | null} repeat the second answer to a dilemma, where the study asks one
 *   twice
 * @returns {string}
 */
export function makeReport(
  poll,
  dilemmas,
  choices,
  epsilonMicro,
  about = null,
  random = systemRandom(),
  repeat = null,
) {
  if (!Object.hasOwn(MECHANISMS, poll.mechanism)) throw new RangeError(`no report is made by ${poll.mechanism}`);
  const noise = new Noise(random);
  if (!carries(poll.mechanism, poll.study)) throw new RangeError(`${poll.mechanism} does not carry all answers`);
  const epsilon = checkedEpsilon(epsilonMicro);
  const mechanism = MECHANISMS[poll.mechanism];
  const three = poll.study.indifference !== undefined;
  const checked = checkedChoices(three, choices);
  const report = (/** @type {import("./study.js").Side[]} */ sides) => {
    const records = recordsOf(poll.study, dilemmas, sides);
    return mechanism.report({
      records,
      neither: three ? checked.map((choice) => choice === "neither") : null,
      epsilon,
      noise,
      method: methodOf(poll.method, records[0].length),
      size: (most) => sizeOf(poll.levels, epsilon, most),
    });
  };
  const answered = () =>
    !three || TERMS[poll.mechanism].thirdAnswer === "answers"
      ? report(checked.map((choice) => (choice === "neither" ? "left" : choice)))
      : withIndifference(checked, epsilon, noise, report);
  if ((repeat !== null) !== (poll.study.repeat === true)) {
    throw new RangeError("a repeat is answered where it is asked");
  }
  const payload = repeat
    ? withReliability(alike(checked, checkedRepeat(three, repeat)), epsilon, noise, answered)
    : answered();
  const questions = poll.questions.filter((question) => !isCheck(question));
  return jsonText({
    format: FORMAT,
    study: fingerprint(poll.study),
    mechanism: poll.mechanism,
    epsilon_micro: epsilon,
    ...payload,
    ...(questions.length > 0 && { about: perturbedAbout(questions, about ?? {}, poll.about_epsilon_micro, noise) }),
  });
}

/**
 * @param {boolean} three whether neither is allowed
 * @param {import("./study.js").Choice[]} choices
 */
function checkedChoices(three, choices) {
  const allowed = three ? ["left", "right", "neither"] : ["left", "right"];
  for (const choice of choices) {
    if (!allowed.includes(choice)) throw new RangeError(`an answer is ${allowed.join(" or ")}, not ${choice}`);
  }
  return choices;
}

/** @param {boolean} three @param {import("./reliability.js").Repeat} repeat */
function checkedRepeat(three, repeat) {
  checkedChoices(three, [repeat.chosen]);
  return repeat;
}

/** @param {Poll["method"]} method @param {number} dimension @returns {Ballot["method"]} */
function methodOf(method, dimension) {
  const { axes, units } = method;
  return {
    normBound: positive("the norm bound", method.norm_bound),
    recordBound: positive("the record bound", method.record_bound),
    axes: () => {
      if (!(Array.isArray(axes) && axes.length === dimension && axes[0]?.length > 0)) {
        throw new RangeError(`the axes must be ${dimension} rows of numbers`);
      }
      return {
        axes: axes.map((values) => row("a row of the axes", values, axes[0].length)),
        units: row("the steps of the axes", units, dimension),
        clip: positive("the clip", method.clip),
        records: method.records === null ? Infinity : positive("the most records", method.records),
      };
    },
  };
}

/** @param {Poll["levels"]} levels @param {number} epsilon @param {number} most */
function sizeOf(levels, epsilon, most) {
  const size = levels.find((level) => level.epsilon_micro === epsilon)?.size;
  if (!(typeof size === "number" && Number.isInteger(size) && size >= 1 && size <= most)) {
    throw new RangeError(`the size for epsilon ${epsilon} is ${size}, and must be a whole number from 1 to ${most}`);
  }
  return size;
}

/** JSON, with BigInts in digits. @param {any} value @returns {string} */
function jsonText(value) {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map(jsonText).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, entry]) => `${JSON.stringify(key)}:${jsonText(entry)}`).join(",")}}`;
}
