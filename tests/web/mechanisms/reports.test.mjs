/** The border: what makes a report, what is refused, and what a text looks like. */

import assert from "node:assert/strict";
import test from "node:test";

import { load } from "./checks/modules.js";
import { MODULES, readVectors } from "./files.mjs";

const js = await load(MODULES);
const { polls, dilemmas, choices, about } = readVectors()["scripted-reports"];
const EPSILON = 1_000_000;

/**
 * @typedef {object} Change
 * @property {object} [poll]
 * @property {object} [method]
 * @property {object} [level]
 * @property {unknown} [epsilon]
 * @property {unknown} [dilemmas]
 * @property {unknown} [choices]
 * @property {object} [about]
 */

/**
 * A report by a poll, a session or choices that differ from the good ones.
 * @param {string} mechanism
 * @param {Change} change
 */
function make(mechanism, { poll = {}, method = {}, level = {}, epsilon = EPSILON, ...given } = {}) {
  const good = polls[mechanism];
  const changed = {
    ...good,
    ...poll,
    method: { ...good.method, ...method },
    levels: good.levels.map((/** @type {object} */ offered) => ({ ...offered, ...level })),
  };
  return js.makeReport(changed, given.dilemmas ?? dilemmas, given.choices ?? choices, epsilon, given.about ?? about);
}

test("a report is JSON with its fields in order, and whole numbers of any size", () => {
  const text = make("algorithm-2", { epsilon: 100 });
  assert.match(text, /^\{"format":"crowdveil report 1","study":"[0-9a-f]{64}","mechanism":"algorithm-2"/);
  assert.match(text, /"mechanism":"algorithm-2","epsilon_micro":100,"values"/);
  assert.match(text, /"values":\[-?\d+,-?\d+,-?\d+,-?\d+\],"about":\{"age":"(young|old|in between)",/);
  assert.match(text, /","travel":\{"[a-z ]+":(true|false)\},"height":\d+,"trust":-?\d\}\}$/);
  assert.deepEqual(Object.keys(JSON.parse(make("score"))).slice(4), ["records", "coordinates", "values", "about"]);
});

test("the noise is new every time", () => {
  assert.notEqual(make("algorithm-2"), make("algorithm-2"));
});

test("nothing of an attention check is sent", () => {
  assert.equal("check" in about, true);
  assert.equal("check" in JSON.parse(make("score")).about, false);
});

test("a poll with nothing but checks needs no epsilon for them, and says nothing about the voter", () => {
  const questions = [{ id: "check", kind: "scale", low: 1, high: 3, expected: 2 }];
  assert.equal("about" in JSON.parse(make("score", { poll: { questions, about_epsilon_micro: null } })), false);
});

test("without questions there is nothing about the voter", () => {
  assert.equal("about" in JSON.parse(make("score", { poll: { questions: [] } })), false);
});

test("only questions that were answered are reported", () => {
  assert.deepEqual(JSON.parse(make("score", { about: {} })).about, {});
});

test("the public dilemmas are the same to the letter for opposite answers", () => {
  const opposite = choices.map((/** @type {string} */ choice) => (choice === "left" ? "right" : "left"));
  const shown = (/** @type {string[]} */ given) => {
    return make("randomised-response", { choices: given }).match(/"dilemmas":.*"choices"/)[0];
  };
  assert.equal(shown(choices), shown(opposite));
});

test("a ballot token is 16 bytes in base64url, and never the same", () => {
  const tokens = new Set(Array.from({ length: 100 }, () => js.newToken(js.systemRandom())));
  assert.equal(tokens.size, 100);
  for (const token of tokens) assert.match(token, /^[A-Za-z0-9_-]{21}[AQgw]$/);
  const random = new js.Random((/** @type {Uint8Array} */ bytes) => bytes.fill(255));
  assert.equal(js.newToken(random), "_____________________w");
});

/** @param {number[]} right what every left alternative is put beside */
const beside = (right) => dilemmas.map((/** @type {{left: number[]}} */ { left }) => ({ left, right }));
const endless = [Infinity, 0, 0, 0];

/** @type {Record<string, [string, Change]>} */
const REFUSED = {
  "an unknown mechanism": ["score", { poll: { mechanism: "pooled-score" } }],
  "a mechanism that every object has": ["score", { poll: { mechanism: "toString" } }],
  "an epsilon of 0": ["score", { epsilon: 0 }],
  "an epsilon above 50": ["score", { epsilon: 50_000_001 }],
  "half a millionth": ["score", { epsilon: 1000.5 }],
  "an epsilon in words": ["algorithm-2", { epsilon: "1000000" }],
  "an epsilon without a size": ["score", { epsilon: 2_000_000 }],
  "no coordinates": ["score", { level: { size: 0 } }],
  "too many coordinates": ["score", { level: { size: 5 } }],
  "half a sign": ["subset-selection", { level: { size: 1.5 } }],
  "more answers than dilemmas": ["one-choice", { level: { size: 9 } }],
  "no axes": ["score", { method: { axes: null } }],
  "axes of another study": ["score", { method: { axes: [[1, 0], [0, 1]] } }],
  "an axis that is no number": ["score", { method: { axes: [[1], [1], [1], [null]] } }],
  "another clip": ["score", { method: { clip: 1 } }],
  "no clip": ["one-bit", { method: { clip: null } }],
  "half a step as a clip": ["one-bit", { method: { clip: 0.5 } }],
  "a clip beyond exact numbers": ["one-bit", { method: { clip: 2 ** 50 } }],
  "more bits than axes": ["one-bit", { level: { size: 5 } }],
  "no norm bound": ["algorithm-2", { method: { norm_bound: null } }],
  "a negative record bound": ["algorithm-3", { method: { record_bound: -1 } }],
  "a missing answer": ["score", { choices: choices.slice(1) }],
  "an answer that is neither": ["score", { choices: choices.map(() => "both") }],
  "no dilemmas": ["score", { dilemmas: [], choices: [] }],
  "a short dilemma": ["score", { dilemmas: beside([1]) }],
  "an infinite dilemma": ["score", { dilemmas: beside(endless) }],
  "an option that there is not": ["score", { about: { age: "none" } }],
  "a height out of its range": ["score", { about: { height: 220 } }],
  "half a point": ["score", { about: { trust: 0.5 } }],
  "ticks that are no list": ["score", { about: { travel: "bus" } }],
  "a tick that there is not": ["score", { about: { travel: ["boat"] } }],
  "a free text": [
    "score",
    { about: { age: "words" }, poll: { questions: [{ id: "age", kind: "text", options: [] }] } },
  ],
  "questions without an epsilon": ["score", { poll: { about_epsilon_micro: null } }],
};

for (const [name, [mechanism, change]] of Object.entries(REFUSED)) {
  test(`${name} is refused`, () => {
    assert.throws(() => make(mechanism, change), RangeError);
  });
}

test("neither is an answer only where the study allows it, and only by mechanisms that have a place for it", () => {
  const third = readVectors()["third-answer"];
  const neither = dilemmas.map(() => "neither");
  assert.throws(() => make("one-bit", { choices: neither }), /left or right, not neither/);
  const study = third.polls["one-bit"].study;
  for (const mechanism of Object.keys(polls)) {
    const made = () => js.makeReport({ ...polls[mechanism], study }, third.dilemmas, neither, EPSILON, about);
    if (Object.hasOwn(third.polls, mechanism)) assert.ok(made().length > 0);
    else assert.throws(made, /does not carry all answers/);
  }
});
