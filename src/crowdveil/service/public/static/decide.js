/** Ask the crowd: two outcomes are put together here, and the release decides between them through the API. */

import { h } from "/web/markup.js";
import { facts, people } from "./builder.js";
import { CHARACTERS, hasRoad, loadCharacters } from "/web/scene/characters.js";
import { drawRoad, fitsRoad, groupsOf } from "/web/scene/road.js";

/**
 * @typedef {import("./builder.js").Values} Values
 * @typedef {import("./builder.js").Side} Side
 * @typedef {import("/web/mechanisms/study.js").Dilemma} Dilemma
 * @typedef {object} Decider
 * @property {string} poll
 * @property {string} release
 * @property {any} study
 * @property {any} words the study's, in the visitor's language
 * @property {Record<string, string>} said the page's own
 */

const TAGS = { left: "A", right: "B" };
const SIDES = /** @type {const} */ (["left", "right"]);

const place = /** @type {HTMLElement} */ (document.getElementById("decider"));
/** @type {Decider} */
const decider = JSON.parse(String(place.dataset.decider));
const { study, said } = decider;
const road = hasRoad(study);
/** @type {Record<Side, Values>} */
let values = { left: starting(0), right: starting(1) };
/** @type {Record<Side, Values>[]} */
let examples = [];

const picture = h("div", { class: "decide-picture" });
const forms = { left: h("fieldset", { class: "card" }), right: h("fieldset", { class: "card" }) };
const verdict = h("div", { class: "verdict", role: "status" });
place.replaceChildren(
  picture,
  h("div", { class: "decide-sides" }, forms.left, forms.right),
  h(
    "p",
    { class: "links" },
    h("button", { type: "button", onclick: ask }, said.decide_ask),
    h("button", { type: "button", class: "second", onclick: another }, said.decide_another),
  ),
  verdict,
);
if (road) await loadCharacters();
await another();

/** Values to begin with, should no example come. @param {number} k @returns {Values} */
function starting(k) {
  return Object.fromEntries(
    study.features.map((/** @type {any} */ feature, /** @type {number} */ i) => {
      if (road) return [feature.name, feature.name === "intervention" ? k : feature.name === CHARACTERS[k] ? 1 : 0];
      const shown = feature.levels?.length ? feature.levels : [feature.low, feature.high];
      return [feature.name, shown[(k + i) % shown.length]];
    }),
  );
}

/** Show a dilemma as a voter may be shown it. */
async function another() {
  if (examples.length === 0) {
    const address = `/api/polls/${encodeURIComponent(decider.poll)}/session?example=true`;
    const answer = await fetch(address, { credentials: "omit" });
    if (answer.ok) {
      const { dilemmas } = await answer.json();
      examples = dilemmas.map((/** @type {Dilemma} */ dilemma) => groupsOf(study, dilemma));
    }
  }
  values = examples.pop() ?? values;
  draw();
}

/** Draw both outcomes and their forms; what was decided before no longer holds. */
function draw() {
  for (const side of SIDES) {
    const fill = road ? people : facts;
    const shown = fill({ study, words: decider.words, said, side, values: values[side], change });
    forms[side].replaceChildren(h("legend", {}, words("decide_side", { tag: TAGS[side] })), ...shown);
  }
  verdict.replaceChildren();
  const dilemma = { left: listed("left"), right: listed("right") };
  if (road && fitsRoad(study, dilemma)) picture.replaceChildren(drawRoad(study, dilemma, TAGS, () => {}).element);
}

/**
 * Change one value. On the road, one group is ahead and the other beside it, and only one sits in the car.
 * @param {Side} side
 * @param {string} name
 * @param {number} value
 */
function change(side, name, value) {
  const other = side === "left" ? "right" : "left";
  values[side][name] = value;
  if (road && name === "intervention") values[other][name] = 1 - value;
  if (road && name === "barrier" && value === 1) Object.assign(values[other], { barrier: 0 });
  if (road && name === "barrier" && value === 1) Object.assign(values[side], { legality: 0 });
  const focused = document.activeElement?.getAttribute("data-key");
  draw();
  const again = focused && place.querySelector(`[data-key="${CSS.escape(focused)}"]`);
  if (again instanceof HTMLElement) again.focus();
}

/** @param {Side} side */
function listed(side) {
  return study.features.map((/** @type {any} */ feature) => values[side][feature.name]);
}

async function ask() {
  if (road && !fitsRoad(study, { left: listed("left"), right: listed("right") })) {
    verdict.replaceChildren(h("p", {}, said.decide_people));
    return;
  }
  const alternatives = SIDES.map((side) => ({ name: TAGS[side], features: values[side] }));
  try {
    const answer = await fetch(`/api/releases/${decider.release}/decisions`, {
      method: "POST",
      credentials: "omit",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ alternatives }),
    });
    const told = await answer.json();
    verdict.replaceChildren(
      ...(answer.ok ? decision(told) : [h("p", {}, words("decide_failed", { message: told.error.message }))]),
    );
  } catch (error) {
    verdict.replaceChildren(h("p", {}, words("decide_failed", { message: String(error) })));
  }
}

/** @param {any} told */
function decision(told) {
  const { choice, probability, probabilities = null, certainty } = told;
  const { toss_a_coin: coin, too_close_to_call: close } = told;
  const sure = { certainty: Math.floor(100 * certainty), share: Math.round(100 * (probability ?? 0)) };
  const chosen = coin ? said.decide_coin : words("decide_choice", { tag: choice });
  const note = probability === null ? "decide_certainty" : "decide_share";
  return [
    h("p", { class: "choice" }, close ? said.decide_close : chosen),
    probabilities
      ? h("p", { class: "note" }, words("decide_three", { ...sure, ...shares(probabilities) }))
      : close
        ? ""
        : h("p", { class: "note" }, words(note, sure)),
  ];
}

/**
 * The three shares, in people of 100; those of the alternatives in their order.
 * @param {Record<string, number>} given
 */
function shares(given) {
  const [first, second, coin] = Object.values(given).map((share) => Math.round(100 * share));
  return { tag: Object.keys(given)[0], first, second, coin };
}

/** @param {string} key @param {Record<string, string | number>} given */
function words(key, given) {
  return said[key].replaceAll(/\{(\w+)\}/g, (_, name) => String(given[name]));
}
