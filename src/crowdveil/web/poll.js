/**
 * The border: what a server says of a poll, checked before a voter sees any of it.
 *
 * A server chooses what it asks, and may be mistaken or lie. A poll is taken only if what it promises is what the code
 * on this device keeps, if its study is the one that its fingerprint names, and if its dilemmas are those of its study.
 */

import { exactAnswer, isCheck } from "./mechanisms/questions.js";
import { checkedEpsilon, positive, row } from "./mechanisms/records.js";
import { canonicalJson, digest, fingerprint, levelsOf } from "./mechanisms/study.js";
import { TERMS, carries } from "./mechanisms/terms.js";
import { checkRelay } from "./relay/configuration.js";

/**
 * @typedef {import("./mechanisms/study.js").Poll} Poll
 * @typedef {import("./mechanisms/study.js").Study} Study
 * @typedef {import("./mechanisms/study.js").Dilemma} Dilemma
 */

const UNITS = ["voter", "record", "choice"];
const PLACES = ["central", "distributed"];
const STUDY_FIELDS = [
  "name", "title", "question", "indifference", "repeat", "norm_bound", "record_norm", "parts", "drawing", "features",
  "categories", "factors",
];
const FEATURE_FIELDS = ["name", "label", "low", "high", "unit", "levels", "words", "part", "lean", "icon"];
const CATEGORY_FIELDS = ["name", "label", "levels"];
const FACTOR_FIELDS = ["name", "title", "poles", "weights", "scenario"];
const QUESTION_FIELDS = ["id", "kind", "text", "required", "options", "low", "high", "step", "ends", "expected"];
const KINDS = ["single", "several", "number", "scale", "text"];
const LARGEST_WEIGHT = 1000;
const MOST_DILEMMAS = 1000;

/** A study that can show this many times the dilemmas of a session, or more, never shows one twice. */
const ROOM_FOR_DIFFERENCE = 2;

/** A poll that does not hold together. */
export class InvalidPoll extends Error {}

/** @param {any} described @returns {Poll} the same, if it holds together */
export function checkedPoll(described) {
  return checked(() => {
    const { unit, place, mechanism, levels, questions, study } = described;
    demand(UNITS.includes(unit), `the unit ${unit} is none of ${UNITS.join(", ")}`);
    demand(PLACES.includes(place), `the place ${place} is none of ${PLACES.join(", ")}`);
    if (place === "distributed") {
      demand(Object.hasOwn(TERMS, mechanism), `no report is made by ${mechanism}`);
      const { units } = TERMS[mechanism];
      demand(units.includes(unit), `${mechanism} protects each ${units.join(" or ")}, and ${unit} is promised`);
    }
    const epsilons = levels.map((/** @type {any} */ level) => checkedEpsilon(level.epsilon_micro));
    demand(epsilons.length > 0 && new Set(epsilons).size === epsilons.length, "the levels must differ");
    demand(place === "distributed" || epsilons.length === 1, "a central poll has one level");
    for (const question of questions) checkQuestion(question, place);
    const asked = questions.filter((/** @type {any} */ question) => !isCheck(question));
    if (place === "distributed" && asked.length > 0) checkedEpsilon(described.about_epsilon_micro);
    const checks = place === "distributed" ? questions.length - asked.length : (described.attention?.checks ?? 0);
    demand(
      (described.attention?.checks ?? 0) === checks && checks <= questions.length,
      "the attention checks are not told of",
    );
    demand(
      place === "central" || !described.attention?.left_out,
      "nobody is left out for a check that the device judges",
    );
    if (described.relay) checkRelay(described, demand);
    demand(!(described.relay && study.repeat), "a relay carries no report on a repeat");
    positive("the norm bound", described.method.norm_bound);
    positive("the record bound", described.method.record_bound);
    checkStudy(study);
    if (place === "distributed") {
      demand(carries(mechanism, study), `${mechanism} does not carry all answers of the study`);
    }
    checkSteps(study, described.factors);
    demand(fingerprint(study) === described.study_fingerprint, "the study is not the one that its fingerprint names");
    return described;
  });
}

/** @param {any} question @param {string} place */
function checkQuestion(question, place) {
  const { id, kind, options, low, high, step } = question;
  onlyFields(question, QUESTION_FIELDS, "a question");
  demand(typeof id === "string" && KINDS.includes(kind), `question ${id} is of no known kind`);
  demand(place === "central" || kind !== "text", `question ${id}: no noise protects a free text`);
  const numbers = kind === "number" || kind === "scale";
  const whole = [low, high, step].every(Number.isInteger) && low < high && step >= 1;
  demand(numbers ? whole && options.length === 0 : low === null && high === null, `question ${id} has no range`);
  const ids = options.map((/** @type {any} */ option) => option.id);
  demand(new Set(ids).size === ids.length, `question ${id} has an option twice`);
  demand(ids.length >= 2 || numbers || kind === "text", `question ${id} has no options`);
  if (isCheck(question)) exactAnswer(question, question.expected);
}

/** @param {any} study */
function checkStudy(study) {
  onlyFields(study, STUDY_FIELDS, "a study");
  const { features, categories = [], factors = [], drawing, indifference = "neither" } = study;
  demand(typeof indifference === "string" && indifference.trim() !== "", "the third answer has no words");
  demand([undefined, true].includes(study.repeat), "a dilemma is asked twice or it is not");
  demand(Array.isArray(features) && features.length > 0, "a study needs features");
  const names = features.map((/** @type {any} */ { name }) => name);
  demand(new Set(names).size === names.length, "two features have one name");
  const { dilemmas } = drawing;
  demand(
    Number.isInteger(dilemmas) && dilemmas >= 1 && dilemmas <= MOST_DILEMMAS,
    `${dilemmas} dilemmas are not 1 to ${MOST_DILEMMAS}`,
  );
  demand(!study.repeat || dilemmas >= 2, "one dilemma cannot be asked again, some way off");
  for (const feature of features) {
    onlyFields(feature, FEATURE_FIELDS, "a feature");
    const { name, low, high, levels = [] } = feature;
    demand(Number.isFinite(low) && Number.isFinite(high) && low < high, `feature ${name} has no range`);
    positive(`the unit of feature ${name}`, feature.unit);
    for (const level of levels) demand(level >= low && level <= high, `level ${level} of ${name} is out of its range`);
  }
  const grouped = categories.flatMap((/** @type {any} */ category) => {
    onlyFields(category, CATEGORY_FIELDS, "a category");
    return levelsOf(features, category);
  });
  demand(new Set(grouped).size === grouped.length, "a level belongs to two categories");
  for (const k of grouped) {
    const { name, low, high, unit } = features[k] ?? {};
    demand(low === 0 && high === 1 && unit === 1, `the level ${name} of a category is no feature from 0 to 1`);
  }
  for (const factor of factors) {
    onlyFields(factor, FACTOR_FIELDS, "a factor");
    onlyFields(factor.weights, names, "the weights of a factor");
    for (const weight of Object.values(factor.weights)) {
      const whole = Number.isInteger(weight) && weight !== 0 && Math.abs(weight) <= LARGEST_WEIGHT;
      demand(whole, `${weight} is no weight of a factor`);
    }
  }
}

/** @param {any} study @param {any} steps one for each factor, in their order */
function checkSteps({ features, factors = features }, steps) {
  demand(Array.isArray(steps) && steps.length === factors.length, `${steps?.length} factors are not the study's`);
  for (const [k, { name, step }] of steps.entries()) {
    demand(name === factors[k].name, `${name} is no factor of the study, or not in its place`);
    row(`the step of ${name}`, step, features.length);
  }
}

/**
 * @param {Study} study
 * @param {any} dilemmas as a server drew them
 * @returns {Dilemma[]} the same, if they are this study's
 */
export function checkedSession(study, dilemmas) {
  return checked(() => {
    const { features, categories = [], drawing } = study;
    demand(
      Array.isArray(dilemmas) && dilemmas.length === drawing.dilemmas,
      `${dilemmas?.length} dilemmas came, and the study has ${drawing.dilemmas}`,
    );
    for (const dilemma of dilemmas) {
      for (const values of [dilemma.left, dilemma.right]) {
        row("an alternative", values, features.length).forEach((value, k) => {
          const { name, low, high, levels } = features[k];
          // Values in between would let one dilemma come again and again, each time a little different.
          const whole = drawing.method !== "moral-machine" || Number.isInteger(value);
          const drawn = drawing.method !== "independent" || levels?.includes(value);
          demand(whole && drawn && value >= low && value <= high, `${value} is no value of ${name}`);
        });
        for (const category of categories) {
          const shown = levelsOf(features, category).filter((k) => values[k] === 1);
          demand(shown.length === 1, `an alternative has ${shown.length} levels of ${category.name}`);
        }
      }
    }
    demand(!repeats(study, dilemmas), "the same dilemma comes more than once");
    return dilemmas;
  });
}

/**
 * Whether a dilemma comes twice, in either order, in a study that has enough of them. Many reports of one choice tell
 * it by majority. The one repeat that a study may declare is never among them: this device draws and asks it.
 * @param {Study} study
 * @param {Dilemma[]} dilemmas
 */
function repeats({ features, categories = [], drawing }, dilemmas) {
  const grouped = new Set(categories.flatMap((category) => levelsOf(features, category)));
  const numbers = features.filter((_, k) => !grouped.has(k)).map(({ levels }) => new Set(levels).size);
  const alternatives = [...numbers, ...categories.map(({ levels }) => levels.length)].reduce((a, b) => a * b, 1);
  const possible = drawing.method === "independent" ? (alternatives * (alternatives - 1)) / 2 : Infinity;
  if (possible < ROOM_FOR_DIFFERENCE * drawing.dilemmas) return false;
  const different = new Set(dilemmas.map(({ left, right }) => [`${left}`, `${right}`].sort().join(" or ")));
  return different.size < dilemmas.length;
}

/**
 * A digest of everything that a voter consents to: where the noise is added, what is protected, how and how much, what
 * is asked, and the host's own words.
 * @param {Poll} poll
 */
export function promiseOf(poll) {
  const { id, place, unit, mechanism, levels, method, study, questions, about_epsilon_micro: about, consent } = poll;
  const attention = poll.attention ? { attention: poll.attention } : {};
  const age = poll.minimum_age ? { minimum_age: poll.minimum_age } : {};
  const relay = poll.relay ? { relay: poll.relay.fingerprint } : {};
  const destroyed = poll.destroy_on ? { destroy_on: poll.destroy_on } : {};
  const promised = { id, place, unit, mechanism, levels, method, study, questions, about, consent };
  return digest(canonicalJson({ ...promised, ...relay, ...destroyed, ...attention, ...age }));
}

/**
 * The key by which a device knows whether it has taken part in this study before. Neither the poll's name nor the
 * study's display texts count.
 * @param {Study} study
 */
export function participationKey({ name, features }) {
  return digest(canonicalJson([name, features.map((feature) => feature.name).sort()])).slice(0, 32);
}

/** @template T @param {() => T} check @returns {T} */
function checked(check) {
  try {
    return check();
  } catch (error) {
    throw new InvalidPoll(error instanceof Error ? error.message : String(error));
  }
}

/** @param {unknown} condition @param {string} complaint */
function demand(condition, complaint) {
  if (!condition) throw new RangeError(complaint);
}

/** Refuse what is not known: it could be a mark. @param {object} given @param {string[]} known @param {string} name */
function onlyFields(given, known, name) {
  const unknown = Object.keys(given).find((field) => !known.includes(field));
  demand(unknown === undefined, `${name} has no field ${unknown}`);
}
