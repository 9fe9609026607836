/**
 * A dilemma to answer: drawn, with the same in words. Pressing, hovering or focusing a side shows what then happens; on
 * a wide screen both outcomes stand side by side.
 */

import { away, h } from "../markup.js";
import { facts } from "../scene/cards.js";
import { drawRoad, fitsRoad, groupsOf } from "../scene/road.js";
import { describe, phrases } from "../language.js";

/**
 * @typedef {import("../mechanisms/study.js").Dilemma} Dilemma
 * @typedef {import("../mechanisms/study.js").Side} Side
 * @typedef {import("../mechanisms/study.js").Choice} Choice
 * @typedef {import("../page.js").Page} Page
 * @typedef {Record<Side, string>} Tags
 *
 * @typedef {object} Asked
 * @property {Dilemma} dilemma
 * @property {Choice | null} chosen what was chosen before
 * @property {(choice: Choice) => boolean} choose is told of each choice; whether it counts
 * @property {(chosen: Choice | null) => string | null} submit goes on, or says what is missing
 * @property {HTMLElement} above what stands above the question
 * @property {string} place said before the question, to screen readers
 * @property {HTMLElement[]} actions the buttons below
 * @property {string} kind a class of the page
 */

const SIDES = /** @type {const} */ (["left", "right"]);
/** @type {Map<string, Choice>} */
const KEYS = new Map([["ArrowLeft", "left"], ["ArrowRight", "right"], ["ArrowDown", "neither"]]);

/** @param {Page} page @param {Asked} asked */
export function dilemmaView(page, { dilemma, chosen, choose, submit, above, place, actions, kind }) {
  const { poll, words, language } = page;
  const say = language.say.bind(language);
  const tags = { left: say("tag_left"), right: say("tag_right") };
  const fate = (/** @type {string} */ tag, /** @type {"lives" | "dies"} */ what) => say(what, { tag });
  const labels = { ...tags, fate };
  const onRoad = page.road && fitsRoad(poll.study, dilemma);
  const scene = onRoad ? drawRoad(poll.study, dilemma, labels, (side) => pick(side)) : null;
  const outcome = h("p", { class: "outcome away", role: "status", "aria-live": "polite" });
  const missing = h("p", { class: "missing", role: "alert" });
  const cards = SIDES.map((side) => choiceCard(page, dilemma, side, tags, onRoad));
  if (onRoad) {
    cards.forEach((card, i) => {
      const { element, mark } = drawRoad(poll.study, dilemma, labels);
      mark(SIDES[i]);
      card.prepend(element);
    });
  }
  const third = poll.study.indifference === undefined ? null : thirdCard(words.indifference ?? poll.study.indifference);
  const inputs = [...cards, ...(third ? [third] : [])].map((card) => card.querySelector("input"));
  const radios = Object.fromEntries(inputs.map((radio) => [radio.value, radio]));

  /** @param {Choice} choice */
  function pick(choice) {
    radios[choice].checked = true;
    radios[choice].focus({ preventScroll: true });
    take(choice);
  }

  /** @param {Choice} choice */
  function take(choice) {
    if (!choose(choice)) return;
    chosen = choice;
    draw(choice);
    outcome.textContent =
      choice === "neither" ? say("outcome_neither") : outcomeWords(page, dilemma, choice, tags, onRoad);
    missing.textContent = "";
  }

  /** Show what then happens. @param {Choice | null} choice */
  function draw(choice) {
    const side = choice === "neither" ? null : choice;
    scene?.mark(side);
    cards.forEach((card, i) => card.classList.toggle("shown", SIDES[i] === side));
  }

  cards.forEach((card, i) => {
    card.addEventListener("pointerenter", () => draw(SIDES[i]));
    card.addEventListener("pointerleave", () => draw(chosen));
    card.addEventListener("focusin", () => draw(SIDES[i]));
    card.addEventListener("focusout", () => draw(chosen));
  });
  for (const group of scene?.element.querySelectorAll(".group") ?? []) {
    const side = /** @type {Side} */ (group.getAttribute("data-side"));
    group.addEventListener("pointerenter", () => draw(side));
    group.addEventListener("pointerleave", () => draw(chosen));
  }
  const keys = (/** @type {KeyboardEvent} */ event) => {
    const choice = KEYS.get(event.key);
    if (!choice || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (choice === "neither" && !third) return;
    event.preventDefault();
    pick(choice);
  };
  const onward = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const complaint = submit(chosen);
    if (complaint === null) return;
    missing.textContent = complaint;
    radios.left.focus();
  };
  if (chosen) {
    radios[chosen].checked = true;
    draw(chosen);
  }
  return h(
    "section",
    { class: `page asking ${kind}`, onkeydown: keys },
    h(
      "form",
      { onsubmit: onward, novalidate: true, class: onRoad ? "with-road" : "with-cards" },
      h(
        "div",
        { class: "asked-of" },
        above,
        h("h1", { tabindex: "-1", id: "heading", class: "asked" }, away(place), " ", words.question),
      ),
      scene ? h("div", { class: "common" }, scene.element) : null,
      h(
        "div",
        {
          class: "choices",
          role: "radiogroup",
          "aria-labelledby": "heading",
          dir: "ltr",
          onchange: (/** @type {any} */ event) => take(event.target.value),
        },
        cards,
        third,
      ),
      h("div", { class: "said" }, outcome, missing),
      h("div", { class: "actions" }, actions),
      onRoad ? inWords(page, dilemma, tags) : null,
      h("p", { class: "note keys" }, say(third ? "keys_three" : "keys")),
    ),
  );
}

/**
 * A radio button that is a card: what happens if it is chosen, in full.
 * @param {Page} page
 * @param {Dilemma} dilemma
 * @param {Side} side
 * @param {Tags} tags
 * @param {boolean} onRoad
 */
function choiceCard(page, dilemma, side, tags, onRoad) {
  const { poll, words, language } = page;
  const other = side === "left" ? "right" : "left";
  const verb = language.say(onRoad ? "spare" : "choose", { tag: tags[side] });
  const whole = describe(poll.study, words, dilemma[side], language);
  const name = onRoad
    ? `${verb}: ${whole}. ${outcomeWords(page, dilemma, side, tags, onRoad)}`
    : `${tags[side]}. ${verb}: ${whole}`;
  return h(
    "label",
    { class: `choice side ${side}`, for: `choose-${side}`, dir: words.direction },
    h("input", { type: "radio", name: "choice", id: `choose-${side}`, value: side, "aria-label": name }),
    h(
      "span",
      { class: "choice-title" },
      h("span", { class: "tag", "aria-hidden": "true" }, tags[side]),
      h("span", { class: "verb" }, verb),
    ),
    onRoad
      ? [
          fateOf(page, dilemma, side, "lives", tags),
          fateOf(page, dilemma, other, "dies", tags),
          h("span", { class: "choice-rest how" }, howItHappens(page, dilemma, other, tags)),
        ]
      : facts(poll.study, words, dilemma[side], dilemma[other], language),
  );
}

/** A radio button for those who would treat both sides equally. @param {string} words */
function thirdCard(words) {
  return h(
    "label",
    { class: "choice third", for: "choose-neither", dir: "auto" },
    h("input", { type: "radio", name: "choice", id: "choose-neither", value: "neither" }),
    h("span", { class: "choice-title" }, h("span", { class: "verb" }, words)),
  );
}

/**
 * The fate of a group.
 * @param {Page} page
 * @param {Dilemma} dilemma
 * @param {Side} side
 * @param {"lives" | "dies"} what
 * @param {Tags} tags
 */
function fateOf({ poll, words, language }, dilemma, side, what, tags) {
  const said = phrases(poll.study, words, dilemma[side], language);
  const who = language.list(said.get("characters") ?? []);
  const rest = ["place", "signal"].flatMap((part) => said.get(part) ?? []).join(language.say("comma"));
  return h(
    "span",
    { class: `fate ${what}` },
    h("strong", {}, `${language.say(what, { tag: tags[side] })}: `),
    h("span", { class: "choice-words" }, who),
    h("span", { class: "choice-rest where" }, language.say("comma"), rest),
  );
}

/**
 * Where the car goes if the group of this side dies, and what kills them.
 * @param {Page} page
 * @param {Dilemma} dilemma
 * @param {Side} victims
 * @param {Tags} tags
 */
function howItHappens({ poll, language }, dilemma, victims, tags) {
  const { intervention, barrier } = groupsOf(poll.study, dilemma)[victims];
  const what = `how_${intervention === 1 ? "swerves" : "stays"}_${barrier === 1 ? "barrier" : "hits"}`;
  return language.say(what, { tag: tags[victims] });
}

/**
 * @param {Page} page
 * @param {Dilemma} dilemma
 * @param {Side} side
 * @param {Tags} tags
 * @param {boolean} onRoad
 */
function outcomeWords(page, dilemma, side, tags, onRoad) {
  const { poll, words, language } = page;
  if (!onRoad) return language.say("outcome_chosen", { tag: tags[side] });
  const other = side === "left" ? "right" : "left";
  const dead = describe(poll.study, words, dilemma[other], language);
  return `${language.say("dies", { tag: tags[other] })}: ${dead}. ${howItHappens(page, dilemma, other, tags)}`;
}

/** @param {Page} page @param {Dilemma} dilemma @param {Tags} tags */
function inWords(page, dilemma, tags) {
  const { poll, words, language } = page;
  return h(
    "details",
    { class: "in-words" },
    h("summary", {}, language.say("in_words")),
    h(
      "dl",
      {},
      SIDES.map((side) =>
        h("div", {}, h("dt", {}, tags[side]), h("dd", {}, describe(poll.study, words, dilemma[side], language))),
      ),
    ),
  );
}
