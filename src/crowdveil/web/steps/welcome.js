/**
 * Welcome and consent: what is asked and what protects the answers in three lines and a picture, with the start in
 * view; everything else that there is to know is folded below, and reachable before anything happens.
 */

import { h } from "../markup.js";
import { answersOf } from "../mechanisms/study.js";
import { guesses, guessLegend, wayOfAnswer } from "../protection-picture.js";
import { epsilonOf, isCentral, odds, protectedKey, rightOf100, together } from "../promise.js";
import { relayedGuess, throughRelay } from "../relay/words.js";
import { passersBy } from "../scene/characters.js";

/**
 * @typedef {import("../mechanisms/study.js").Poll} Poll
 * @typedef {import("../language.js").Language} Language
 */

const SECONDS_A_DILEMMA = 15;
const MOST_ICONS = 7;

/** @param {import("../page.js").Page} page */
export function welcome(page) {
  const { poll, words, language } = page;
  const say = language.say.bind(language);
  const dilemmas = answersOf(poll.study);
  const seen = isCentral(poll) ? "central" : "distributed";
  const agreed = h("input", { type: "checkbox", id: "agree", required: true });
  const missing = h("p", { class: "missing", id: "missing", role: "alert" });
  agreed.setAttribute("aria-describedby", "missing");
  const host = fromTheHost(poll, language);
  let read = host === null;
  host?.addEventListener("toggle", () => (read ||= host.open));
  const begin = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    if (!read && host) {
      host.open = true;
      read = true;
      missing.textContent = say("read_host_first");
      return host.querySelector("summary").focus();
    }
    if (agreed.checked) return page.next();
    missing.textContent = say("agree_first");
    return agreed.focus();
  };
  return h(
    "section",
    { class: "page welcome" },
    page.road ? passersBy() : whatDiffers(poll.study),
    poll.pilot ? h("p", { class: "warning" }, say("pilot")) : null,
    page.state.restarted ? h("p", { class: "warning", role: "alert" }, say("poll_changed")) : null,
    h("h1", { tabindex: "-1" }, words.title),
    h("p", { class: "question" }, words.question),
    h(
      "ul",
      { class: "three" },
      h(
        "li",
        {},
        say("what_you_do", { dilemmas, minutes: Math.max(1, Math.ceil((dilemmas * SECONDS_A_DILEMMA) / 60)) }),
        poll.study.repeat ? ` ${say("asked_twice")}` : null,
      ),
      h("li", {}, poll.relay ? say("short_relayed") : say(`short_${seen}`)),
      h("li", {}, poll.relay ? relayedGuess(poll, language) : guessWords(poll, language)),
    ),
    wayOfAnswer([say(`way_${seen}_1`), say("way_2"), say("way_3")]),
    page.store.lasting ? null : h("p", { class: "warning" }, say("no_storage")),
    host,
    h(
      "form",
      { class: "consent", novalidate: true, onsubmit: begin },
      h("label", { class: "check", for: "agree" }, agreed, h("span", {}, agreement(poll, language))),
      missing,
      h("button", { class: "primary", type: "submit" }, say("start")),
    ),
    h(
      "details",
      { class: "all-of-it" },
      h("summary", {}, say("all_of_it")),
      h(
        "div",
        { class: "beside" },
        h("div", {}, h("h2", {}, say("what_happens")), promises(poll, say), throughRelay(poll, language)),
        picture(poll, language),
      ),
      h("h2", {}, say("not_hidden")),
      h(
        "ul",
        { class: "promise" },
        limitKeys(poll).map((key) => h("li", {}, say(key))),
      ),
      poll.contact ? h("p", { class: "note" }, say("contact", { contact: poll.contact })) : null,
    ),
  );
}

/** The pictures of what the alternatives differ in; their code comes after the words. @param {Poll["study"]} study */
function whatDiffers({ features }) {
  const names = [...new Set(features.map(({ icon }) => icon))]
    .filter((name) => name !== undefined)
    .slice(0, MOST_ICONS);
  if (names.length === 0) return null;
  const band = h("div", { class: "what-differs", "aria-hidden": "true" });
  import("../scene/icons.js").then(({ icon }) => band.replaceChildren(...names.map(icon))).catch(() => {});
  return band;
}

/** The declaration of a voter who ticks the box. @param {Poll} poll @param {Language} language */
function agreement(poll, language) {
  const age = poll.minimum_age ? language.say("agree_age", { age: language.number(poll.minimum_age) }) : "";
  return [language.say("agree_read"), age, language.say(`agree_${poll.place}`)].filter(Boolean).join(" ");
}

/** The facts that are not hidden. @param {Poll} poll */
function limitKeys({ place, relay }) {
  const counted = relay ? [] : ["limit_counted"];
  return ["limit_part", ...counted, "limit_crowd", `assumed_${place}`, "limit_server"];
}

/** The use of attention checks, in a poll that has any. @param {Poll} poll */
function attentionKeys({ place, attention }) {
  if (!attention) return [];
  if (place === "distributed") return ["attention_device"];
  return [attention.left_out ? "attention_left_out" : "attention_counted"];
}

/**
 * How often a guess can be right, in one sentence or two; with several levels, from the best protected to the least.
 * @param {Poll} poll
 * @param {Language} language
 */
function guessWords(poll, language) {
  const epsilons = poll.levels.map((level) => epsilonOf(level.epsilon_micro));
  const [low, high] = [Math.min(...epsilons), Math.max(...epsilons)];
  const range = (/** @type {number} */ least, /** @type {number} */ most) =>
    least === most ? language.number(most) : language.say("from_to", { least, most });
  const one = range(rightOf100(low), rightOf100(high));
  if (poll.unit === "voter") return language.say("guess_all", { right: one });
  const [least, most] = [low, high].map((epsilon) => together(poll, epsilon, language));
  const all = language.say("guess_together", { count: most.count, right: range(least.right, most.right) });
  return `${language.say("guess_one", { right: one })} ${all}`;
}

/**
 * The host's own words: whoever has not unfolded them is shown them before the start.
 * @param {Poll} poll
 * @param {Language} language
 */
function fromTheHost(poll, language) {
  if (!poll.consent) return null;
  const paragraphs = language.among(poll.consent).split(/\n\s*\n/);
  return h(
    "details",
    { class: "card from-host" },
    h("summary", {}, language.say("from_the_host")),
    paragraphs.map((part) => h("p", {}, part)),
    poll.contact ? h("p", {}, language.say("contact", { contact: poll.contact })) : null,
  );
}

/** @param {Poll} poll @param {Language["say"]} say */
function promises(poll, say) {
  const keys = isCentral(poll)
    ? ["central_collected", "central_published", "central_deleted"]
    : ["distributed_stays", "distributed_sent", "distributed_published"];
  const asked = poll.questions.length > 0 ? [`questions_${poll.place}`, ...attentionKeys(poll)] : [];
  if (poll.questions.some(({ required }) => required)) asked.push("questions_required");
  return h(
    "ul",
    { class: "promise" },
    [...keys, ...asked].map((key) => h("li", {}, say(key))),
    poll.destroy_on ? h("li", {}, say("central_destroyed", { day: poll.destroy_on })) : null,
  );
}

/**
 * The protection of the only level, or of the middle one of several: the next step shows each.
 * @param {Poll} poll
 * @param {Language} language
 */
function picture(poll, language) {
  const level = poll.levels[Math.floor((poll.levels.length - 1) / 2)];
  const epsilon = epsilonOf(level.epsilon_micro);
  const what = language.say(protectedKey(poll));
  const seen = isCentral(poll) ? "central" : "distributed";
  const right = rightOf100(epsilon);
  const values = { what, odds: odds(epsilon, language), right, epsilon };
  return h(
    "figure",
    { class: "card picture" },
    h("h2", {}, language.say("picture_title")),
    guesses(right),
    guessLegend(right, language.say.bind(language)),
    h(
      "figcaption",
      {},
      h("p", {}, language.say(`picture_${seen}`, values)),
      h("p", {}, language.say(`bet_${seen}`, values)),
      poll.unit === "voter"
        ? null
        : h("p", {}, language.say(`together_${poll.unit}`, together(poll, epsilon, language))),
    ),
  );
}
