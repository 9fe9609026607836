/** About you: only if the poll asks, and every question can be left open. */

import { changed } from "../journey.js";
import { actions, h } from "../markup.js";
import { epsilonOf, isCentral, odds } from "../promise.js";

/** @param {import("../page.js").Page} page */
export function about(page) {
  const { poll, language, state } = page;
  const say = language.say.bind(language);
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const given = [...new FormData(form)].filter(([, option]) => option !== "");
    const about = Object.fromEntries(given.map(([question, option]) => [question, String(option)]));
    if (page.update(changed(page.state, { about }))) page.next();
  };
  const note = isCentral(poll)
    ? say("about_central")
    : say("about_distributed", { odds: odds(epsilonOf(Number(poll.about_epsilon_micro)), language) });
  return h(
    "section",
    { class: "page" },
    h("h1", { tabindex: "-1" }, say("about_title")),
    h("p", { class: "lead" }, note),
    h(
      "form",
      { onsubmit: submit },
      poll.questions.map((question) => fieldset(question, state.about[question.id], language)),
      actions(page),
    ),
  );
}

/**
 * @param {import("../mechanisms/study.js").Question} question
 * @param {string | undefined} given
 * @param {import("../language.js").Language} language
 */
function fieldset(question, given, language) {
  const option = (/** @type {string} */ id, /** @type {string} */ text) =>
    h(
      "label",
      { class: "option" },
      h("input", { type: "radio", name: question.id, value: id, checked: id === (given ?? "") }),
      h("span", {}, text),
    );
  return h(
    "fieldset",
    {},
    h("legend", {}, language.among(question.text)),
    question.options.map(({ id, text }) => option(id, language.among(text))),
    option("", language.say("rather_not")),
  );
}
