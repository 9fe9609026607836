/** One dilemma at a time: drawn, with the same in words. A choice shows what it means before it counts. */

import { changed, levelIsFixed } from "../journey.js";
import { away, h } from "../markup.js";
import { facts } from "../scene/cards.js";
import { drawRoad, fitsRoad, groupsOf } from "../scene/road.js";
import { describe, phrases } from "../language.js";

/**
 * @typedef {import("../mechanisms/study.js").Dilemma} Dilemma
 * @typedef {import("../mechanisms/study.js").Side} Side
 * @typedef {import("../page.js").Page} Page
 * @typedef {import("../language.js").Language["say"]} Say
 * @typedef {Record<Side, string>} Tags
 */

const SIDES = /** @type {const} */ (["left", "right"]);

/** @param {Page} page */
export function dilemmas(page) {
  const { poll, words, language, state } = page;
  const say = language.say.bind(language);
  const { place } = state;
  const dilemma = state.dilemmas[place];
  const total = state.dilemmas.length;
  const tags = { left: say("tag_left"), right: say("tag_right") };
  const onRoad = page.road && fitsRoad(poll.study, dilemma);
  const scene = onRoad ? drawRoad(poll.study, dilemma, tags, (side) => pick(side)) : null;
  const outcome = h("p", { class: "outcome", role: "status", "aria-live": "polite" });
  const missing = h("p", { class: "missing", role: "alert" });
  const cards = SIDES.map((side) => choiceCard(page, dilemma, side, tags[side], onRoad));
  const radios = Object.fromEntries(SIDES.map((side, i) => [side, cards[i].querySelector("input")]));

  /** @param {Side} side */
  function pick(side) {
    radios[side].checked = true;
    radios[side].focus({ preventScroll: true });
    show(side);
  }

  const canGoBack = () => place > 0 || !levelIsFixed(page.state);

  /** @param {Side} side */
  function show(side) {
    if (!page.update(changed(page.state, { choices: page.state.choices.with(place, side) }))) return;
    draw(side);
    outcome.textContent = outcomeWords(poll.study, dilemma, side, tags, onRoad, say);
    missing.textContent = "";
    back.hidden = !canGoBack();
  }

  /** @param {Side | null} side */
  function draw(side) {
    scene?.mark(side);
    cards.forEach((card, i) => {
      card.classList.toggle("spared", SIDES[i] === side);
      card.classList.toggle("hit", onRoad && side !== null && SIDES[i] !== side);
    });
  }

  const back = h(
    "button",
    { class: "quiet", type: "button", hidden: !canGoBack(), onclick: () => page.back() },
    say("back"),
  );
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    if (!page.state.choices[place]) {
      missing.textContent = say("choose_first");
      return radios.left.focus();
    }
    return page.next();
  };
  const keys = (/** @type {KeyboardEvent} */ event) => {
    const side = event.key === "ArrowLeft" ? "left" : event.key === "ArrowRight" ? "right" : null;
    if (!side || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    pick(side);
  };

  const chosen = state.choices[place];
  if (chosen) {
    radios[chosen].checked = true;
    draw(chosen);
    outcome.textContent = outcomeWords(poll.study, dilemma, chosen, tags, onRoad, say);
  }
  return h(
    "section",
    { class: "page dilemma", onkeydown: keys },
    progress(place, total, say),
    h(
      "h1",
      { tabindex: "-1", id: "heading", class: "asked" },
      away(say("dilemma_of", { place: place + 1, total })),
      " ",
      words.question,
    ),
    h(
      "form",
      { onsubmit: submit, novalidate: true, class: onRoad ? "with-road" : "with-cards" },
      scene?.element,
      h(
        "div",
        {
          class: "choices",
          role: "radiogroup",
          "aria-labelledby": "heading",
          dir: "ltr",
          onchange: (/** @type {any} */ event) => show(event.target.value),
        },
        cards,
      ),
      h("div", { class: "said" }, outcome, missing),
      h("div", { class: "actions" }, back, h("button", { class: "primary", type: "submit" }, say("next"))),
      onRoad ? inWords(page, dilemma, tags) : null,
      h("p", { class: "note keys" }, say("keys")),
    ),
  );
}

/** @param {number} place @param {number} total @param {Say} say */
function progress(place, total, say) {
  const words = say("dilemma_of", { place: place + 1, total });
  return h(
    "div",
    { class: "progress" },
    h("progress", { max: total, value: place + 1, "aria-label": words }),
    h("span", { "aria-hidden": "true" }, words),
  );
}

/**
 * A radio button that is a card. What it shows depends on the scene; what it says is always everything.
 * @param {Page} page
 * @param {Dilemma} dilemma
 * @param {Side} side
 * @param {string} tag
 * @param {boolean} onRoad
 */
function choiceCard(page, dilemma, side, tag, onRoad) {
  const { poll, words, language } = page;
  const other = side === "left" ? "right" : "left";
  const said = phrases(poll.study, words, dilemma[side], language);
  const brief = language.list(said.get("characters") ?? []);
  const rest = ["place", "signal"].flatMap((part) => said.get(part) ?? []).join(language.say("comma"));
  const verb = language.say(onRoad ? "spare" : "choose");
  const whole = describe(poll.study, words, dilemma[side], language);
  return h(
    "label",
    { class: `choice side ${side}`, for: `choose-${side}`, dir: words.direction },
    h("input", {
      type: "radio",
      name: "choice",
      id: `choose-${side}`,
      value: side,
      "aria-label": `${tag}. ${verb}: ${whole}`,
    }),
    h(
      "span",
      { class: "choice-title" },
      h("span", { class: "tag", "aria-hidden": "true" }, tag),
      h("span", { class: "verb" }, verb),
      h("span", { class: "verdict is-spared" }, language.say(onRoad ? "spared" : "chosen")),
      onRoad ? h("span", { class: "verdict is-hit" }, language.say("hit")) : null,
    ),
    onRoad
      ? [h("span", { class: "choice-words" }, brief), h("span", { class: "choice-rest" }, rest)]
      : facts(poll.study, words, dilemma[side], dilemma[other], language),
  );
}

/**
 * @param {import("../mechanisms/study.js").Study} study
 * @param {Dilemma} dilemma
 * @param {Side} side
 * @param {Tags} tags
 * @param {boolean} onRoad
 * @param {Say} say
 */
function outcomeWords(study, dilemma, side, tags, onRoad, say) {
  if (!onRoad) return say("outcome_chosen", { tag: tags[side] });
  const other = side === "left" ? "right" : "left";
  const swerves = groupsOf(study, dilemma)[other].intervention === 1;
  return say(swerves ? "outcome_swerves" : "outcome_stays", { spared: tags[side], hit: tags[other] });
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
