/** About you: only if the poll asks. Every question can be left open that the host has not marked. */

import { changed } from "../journey.js";
import { actions, h } from "../markup.js";
import { exactAnswer, isCheck } from "../mechanisms/questions.js";
import { epsilonOf, isCentral, odds } from "../promise.js";
import { questionField } from "./question-field.js";

/**
 * @typedef {import("../mechanisms/study.js").Poll} Poll
 * @typedef {import("../language.js").Language} Language
 */

/** @param {import("../page.js").Page} page */
export function about(page) {
  const { poll, language, state } = page;
  const say = language.say.bind(language);
  const fields = poll.questions.map((question) =>
    questionField(question, state.about[question.id], isCentral(poll), language),
  );
  const hint = h("p", { class: "missing", role: "alert" });
  let hinted = false;
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const wrong = fields.filter((field) => !field.check());
    if (wrong.length > 0) return wrong[0].focus();
    const given = fields.map((field) => [field.question.id, field.read()]).filter(([, answer]) => answer !== null);
    const about = Object.fromEntries(given);
    const missed = fields.find(({ question }) => isCheck(question) && !passed(question, about[question.id]));
    if (missed && !hinted && !isCentral(poll)) {
      hinted = true;
      hint.textContent = say("check_missed");
      return missed.focus();
    }
    if (page.update(changed(page.state, { about }))) page.next();
    return undefined;
  };
  return h(
    "section",
    { class: "page" },
    h("h1", { tabindex: "-1" }, say("about_title")),
    h("p", { class: "lead" }, leadWords(poll, language)),
    h(
      "form",
      { class: "about", onsubmit: submit, novalidate: true },
      fields.map((field) => field.element),
      hint,
      actions(page),
    ),
  );
}

/**
 * The use of the answers, and what protects them, all together too.
 * @param {Poll} poll
 * @param {Language} language
 */
function leadWords(poll, language) {
  const skip = language.say(poll.questions.some(({ required }) => required) ? "about_required" : "about_skip");
  if (isCentral(poll)) return `${skip} ${language.say("about_central")}`;
  const count = poll.questions.filter((question) => !isCheck(question)).length;
  if (count === 0) return skip;
  const epsilon = epsilonOf(Number(poll.about_epsilon_micro));
  const each = language.say("about_distributed", { odds: odds(epsilon, language) });
  if (count === 1) return `${skip} ${each}`;
  const all = {
    count,
    odds: odds(count * epsilon, language),
    epsilon: language.number(count * epsilon, { maximumFractionDigits: 6 }),
  };
  return `${skip} ${each} ${language.say("about_together", all)}`;
}

/**
 * @param {import("../mechanisms/study.js").Question} question
 * @param {import("../mechanisms/study.js").Answer | undefined} answer
 */
function passed(question, answer) {
  if (answer === undefined || question.expected === null) return false;
  return JSON.stringify(exactAnswer(question, answer)) === JSON.stringify(exactAnswer(question, question.expected));
}
