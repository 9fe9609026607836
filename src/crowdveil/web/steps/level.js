/** How much protection: chosen before answering, so that the choice cannot say anything about the answers. */

import { actions, h } from "../markup.js";
import { guesses } from "../protection-picture.js";
import { epsilonOf, odds, protectedKey, rightOf100, together } from "../promise.js";
import { changed } from "../journey.js";

/** @typedef {import("../language.js").Language} Language */

const NAMED = ["strong", "balanced", "light"];

/** The voter's word for a level. @param {string} name @param {Language} language */
export function levelName(name, language) {
  return NAMED.includes(name) ? language.say(`level_${name}`) : name;
}

/** @param {import("../page.js").Page} page */
export function level(page) {
  const { poll, language, state } = page;
  const say = language.say.bind(language);
  const missing = h("p", { class: "missing", role: "alert" });
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const chosen = new FormData(form).get("level");
    if (chosen === null) {
      missing.textContent = say("level_first");
      form.querySelector("input")?.focus();
    } else if (page.update(changed(page.state, { epsilon_micro: Number(chosen) }))) {
      page.next();
    }
  };
  return h(
    "section",
    { class: "page" },
    h("h1", { tabindex: "-1", id: "heading" }, say("level_title")),
    h("p", { class: "lead" }, say("level_lead"), " ", say("level_holds", { what: say(protectedKey(poll)) })),
    h(
      "form",
      { onsubmit: submit, novalidate: true },
      h(
        "div",
        { class: "levels", role: "radiogroup", "aria-labelledby": "heading" },
        poll.levels.map((entry) => card(poll, entry, state.epsilon_micro, language)),
      ),
      missing,
      h("p", { class: "note" }, say("level_note")),
      actions(page),
    ),
  );
}

/**
 * @param {import("../mechanisms/study.js").Poll} poll
 * @param {import("../mechanisms/study.js").Level} entry
 * @param {number | null} chosen
 * @param {Language} language
 */
function card(poll, entry, chosen, language) {
  const epsilon = epsilonOf(entry.epsilon_micro);
  const id = `level-${entry.epsilon_micro}`;
  const values = { odds: odds(epsilon, language), right: rightOf100(epsilon) };
  return h(
    "label",
    { class: "choice level", for: id },
    h("input", {
      type: "radio",
      name: "level",
      id,
      value: entry.epsilon_micro,
      checked: entry.epsilon_micro === chosen,
    }),
    h(
      "span",
      { class: "choice-title" },
      levelName(entry.name, language),
      " ",
      h("span", { class: "epsilon", dir: "ltr" }, `ε = ${language.number(epsilon, { maximumFractionDigits: 6 })}`),
    ),
    guesses(values.right),
    h("span", { class: "choice-words" }, language.say("level_guess", values)),
    h("span", { class: "choice-rest" }, language.say("level_bet", values)),
    poll.unit === "voter"
      ? null
      : h("span", { class: "choice-rest" }, language.say("level_together", together(poll, epsilon, language))),
  );
}
