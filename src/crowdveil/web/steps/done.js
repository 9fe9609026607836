/** Done: the way back, what the voter did beside the crowd, the receipt, and how to withdraw. */

import { refusalWords } from "../api.js";
import { h } from "../markup.js";
import { epsilonOf, isCentral, odds, protectedKey, together } from "../promise.js";
import { levelName } from "./level.js";
import { result } from "./result.js";

/**
 * @typedef {import("../page.js").Page} Page
 * @typedef {import("../language.js").Language["say"]} Say
 * @typedef {import("../journey.js").Receipt} Receipt
 */

/** @param {Page} page */
export function done(page) {
  const { language, state } = page;
  const say = language.say.bind(language);
  if (state.withdrawn || !state.receipt) {
    return h(
      "section",
      { class: "page" },
      h("h1", { tabindex: "-1" }, say("withdrawn_title")),
      h("p", { class: "lead" }, say("withdrawn")),
    );
  }
  return h(
    "section",
    { class: "page" },
    h("h1", { tabindex: "-1" }, say("done_title")),
    h("p", { class: "lead" }, say(arrivedKey(page.poll))),
    wayBack(state.receipt, say),
    result(page),
    receipt(page, state.receipt, say),
    withdrawal(page, say),
  );
}

/** Which key of the interface says who has what was sent. @param {import("../mechanisms/study.js").Poll} poll */
function arrivedKey(poll) {
  if (poll.relay) return "done_relayed";
  return isCentral(poll) ? "done_central" : "done_distributed";
}

/**
 * The poll has changed after this device has sent something: the page says so, and stops.
 * @param {Page} page
 * @param {import("../store.js").Submission} submission
 */
export function stopped(page, { id, day }) {
  const say = page.language.say.bind(page.language);
  return h(
    "section",
    { class: "page" },
    h("h1", { tabindex: "-1" }, page.words.title),
    h("p", { class: "lead" }, say("poll_changed_after")),
    h(
      "dl",
      { class: "facts" },
      h("div", {}, h("dt", {}, say("receipt_id")), h("dd", {}, h("code", { dir: "ltr" }, id))),
      day ? h("div", {}, h("dt", {}, say("receipt_day")), h("dd", {}, dayWords(day, page.language))) : null,
    ),
    page.state.receipt ? withdrawal(page, say) : null,
  );
}

/** @param {string} day @param {import("../language.js").Language} language */
function dayWords(day, language) {
  return new Intl.DateTimeFormat(language.tag, { dateStyle: "long", timeZone: "UTC" }).format(new Date(day));
}

/** @param {Receipt} receipt @param {Say} say */
function wayBack({ code, url }, say) {
  const safe = url && /^https?:\/\//.test(url) ? url : null;
  if (!code && !safe) return null;
  return h(
    "div",
    { class: "card" },
    code ? h("p", {}, say("code"), " ", h("code", { class: "code", dir: "ltr" }, code), " ", copy(code, say)) : null,
    safe ? h("p", {}, h("a", { class: "primary", href: safe, rel: "noreferrer" }, say("return"))) : null,
  );
}

/** @param {string} text @param {Say} say */
function copy(text, say) {
  const button = h("button", { class: "small", type: "button" }, say("copy"));
  button.addEventListener("click", async () => {
    await navigator.clipboard?.writeText(text);
    button.textContent = say("copied");
  });
  return navigator.clipboard ? button : null;
}

/** @param {Page} page @param {Receipt} given @param {Say} say */
function receipt(page, { id, day, epsilon_micro: micro }, say) {
  const { poll, language } = page;
  const level = poll.levels.find((entry) => entry.epsilon_micro === micro);
  const epsilon = epsilonOf(micro);
  const protection = say("receipt_protection_words", {
    what: say(protectedKey(poll)),
    odds: odds(epsilon, language),
    epsilon,
  });
  const named = poll.levels.length > 1 && level ? `${levelName(level.name, language)}: ` : "";
  const all = poll.unit === "voter" ? null : h("p", {}, say("level_together", together(poll, epsilon, language)));
  const facts = [
    [say("receipt_id"), h("code", { dir: "ltr" }, id)],
    [say("receipt_day"), dayWords(day, language)],
    [say("receipt_protection"), [named + protection, all]],
  ];
  return h(
    "div",
    { class: "part" },
    h("h2", {}, say("receipt")),
    h(
      "dl",
      { class: "facts" },
      facts.map(([term, meaning]) => h("div", {}, h("dt", {}, term), h("dd", {}, meaning))),
    ),
    copy(id, say),
  );
}

/** @param {Page} page @param {Say} say */
function withdrawal(page, say) {
  const words = h("p", { role: "status" }, say(page.poll.relay ? "relay_withdraw" : "withdraw_words"));
  const ask = h("button", { class: "quiet", type: "button" }, say("withdraw"));
  const sure = h("button", { class: "danger", type: "button", hidden: true }, say("withdraw_sure"));
  ask.addEventListener("click", () => {
    ask.hidden = true;
    sure.hidden = false;
    sure.focus();
  });
  sure.addEventListener("click", async () => {
    sure.disabled = true;
    try {
      await page.withdraw();
    } catch (refusal) {
      words.textContent = refusalWords(refusal, page.language);
      sure.disabled = false;
    }
  });
  return h(
    "div",
    { class: "part" },
    h("h2", {}, say("withdraw_title")),
    words,
    page.state.token ? h("p", {}, ask, sure) : null,
    page.poll.relay ? null : h("p", { class: "note" }, say("withdraw_elsewhere")),
  );
}
