/** Welcome and consent: what is asked, what is collected, and what protects it, before anything else happens. */

import { h } from "../markup.js";
import { passersBy } from "../scene/characters.js";
import { coins, curves, legend } from "../noise-picture.js";
import { epsilonOf, isCentral, odds, protectedKey, rightOf100, together, tossesCoins } from "../promise.js";

/**
 * @typedef {import("../mechanisms/study.js").Poll} Poll
 * @typedef {import("../language.js").Language} Language
 */

const SECONDS_A_DILEMMA = 15;

/** @param {import("../page.js").Page} page */
export function welcome(page) {
  const { poll, words, language } = page;
  const say = language.say.bind(language);
  const dilemmas = poll.study.drawing.dilemmas;
  const agreed = h("input", { type: "checkbox", id: "agree", required: true });
  const missing = h("p", { class: "missing", id: "missing", role: "alert" });
  agreed.setAttribute("aria-describedby", "missing");
  const begin = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    if (agreed.checked) return page.next();
    missing.textContent = say("agree_first");
    return agreed.focus();
  };
  return h(
    "section",
    { class: "page" },
    page.road ? passersBy() : null,
    page.state.restarted ? h("p", { class: "warning", role: "alert" }, say("poll_changed")) : null,
    h("p", { class: "eyebrow" }, say("eyebrow")),
    h("h1", { tabindex: "-1" }, words.title),
    h("p", { class: "question" }, words.question),
    h(
      "p",
      { class: "lead" },
      say("what_you_do", { dilemmas, minutes: Math.max(1, Math.ceil((dilemmas * SECONDS_A_DILEMMA) / 60)) }),
    ),
    h(
      "div",
      { class: "beside" },
      h("div", {}, h("h2", {}, say("what_happens")), promises(poll, say)),
      picture(poll, language),
    ),
    h(
      "details",
      {},
      h("summary", {}, say("not_hidden")),
      h(
        "ul",
        { class: "promise" },
        ["limit_part", "limit_crowd", `assumed_${poll.place}`, "limit_server"].map((key) => h("li", {}, say(key))),
      ),
    ),
    poll.consent
      ? h("div", { class: "card" }, h("h2", {}, say("from_the_host")), ...paragraphs(language.among(poll.consent)))
      : null,
    poll.contact ? h("p", { class: "note" }, say("contact", { contact: poll.contact })) : null,
    page.store.lasting ? null : h("p", { class: "warning" }, say("no_storage")),
    h(
      "form",
      { class: "consent", novalidate: true, onsubmit: begin },
      h(
        "label",
        { class: "check", for: "agree" },
        agreed,
        h("span", {}, say(isCentral(poll) ? "agree_central" : "agree_distributed")),
      ),
      missing,
      h("button", { class: "primary", type: "submit" }, say("start")),
    ),
  );
}

/** @param {Poll} poll @param {Language["say"]} say */
function promises(poll, say) {
  const keys = isCentral(poll)
    ? ["central_collected", "central_published", "central_deleted"]
    : ["distributed_stays", "distributed_sent", "distributed_published"];
  const asked = poll.questions.length > 0 ? [isCentral(poll) ? "questions_central" : "questions_distributed"] : [];
  return h(
    "ul",
    { class: "promise" },
    [...keys, ...asked].map((key) => h("li", {}, say(key))),
  );
}

/** @param {string} text */
function paragraphs(text) {
  return text.split(/\n\s*\n/).map((part) => h("p", {}, part));
}

/**
 * The noise for the only level, or for the middle one of several: the next step shows each.
 * @param {Poll} poll
 * @param {Language} language
 */
function picture(poll, language) {
  const level = poll.levels[Math.floor((poll.levels.length - 1) / 2)];
  const epsilon = epsilonOf(level.epsilon_micro);
  const what = language.say(protectedKey(poll));
  const seen = isCentral(poll) ? "central" : "distributed";
  const values = { what, odds: odds(epsilon, language), right: rightOf100(epsilon), epsilon };
  return h(
    "figure",
    { class: "card picture" },
    h("h2", {}, language.say("picture_title")),
    tossesCoins(poll) ? coins(rightOf100(epsilon)) : curves(epsilon),
    tossesCoins(poll)
      ? legend(language.say("coins_kept"), language.say("coins_turned"))
      : legend(language.say("curve_one"), language.say("curve_other")),
    h(
      "figcaption",
      {},
      h("p", {}, language.say(tossesCoins(poll) ? "picture_coins" : `picture_${seen}`, values)),
      h("p", {}, language.say(`bet_${seen}`, values)),
      poll.unit === "voter"
        ? null
        : h("p", {}, language.say(`together_${poll.unit}`, together(poll, epsilon, language))),
    ),
  );
}
