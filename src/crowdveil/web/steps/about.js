/** About you: only if the poll asks, and every question can be left open. */

import { changed } from "../journey.js";
import { actions, h } from "../markup.js";
import { epsilonOf, isCentral, odds } from "../promise.js";

/** @param {import("../page.js").Page} page */
export function about(page) {
  const { poll, language, state } = page;
  const say = (key, values) => language.say(key, values);
  const submit = (event) => {
    event.preventDefault();
    const given = Object.fromEntries([...new FormData(event.target)].filter(([, option]) => option !== ""));
    page.update(changed(page.state, { about: given }));
    page.next();
  };
  const note = isCentral(poll)
    ? say("about_central")
    : say("about_distributed", { odds: odds(epsilonOf(poll.about_epsilon_micro), language) });
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

function fieldset(question, given, language) {
  const option = (id, text) =>
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
