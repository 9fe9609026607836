/** Done: the receipt, the way back, how to withdraw, and the voter beside the crowd. */

import { getRelease, refusalWords } from "../api.js";
import { compare } from "../comparison.js";
import { h, svg } from "../markup.js";
import { epsilonOf, isCentral, odds, protectedKey, together } from "../promise.js";
import { levelName } from "./level.js";

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
    h("p", { class: "lead" }, say(isCentral(page.poll) ? "done_central" : "done_distributed")),
    wayBack(state.receipt, say),
    receipt(page, state.receipt, say),
    crowd(page, say),
    withdrawal(page, say),
  );
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
  const words = h("p", { role: "status" }, say("withdraw_words"));
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
    h("p", { class: "note" }, say("withdraw_elsewhere")),
  );
}

/** Filled when the release has come. @param {Page} page @param {Say} say */
function crowd(page, say) {
  const content = h("div", {}, h("p", { class: "note" }, say(page.poll.release ? "crowd_loading" : "crowd_none")));
  if (page.poll.release) {
    getRelease(page.poll.release)
      .then((release) => content.replaceChildren(...comparison(page, release, say)))
      .catch(() => content.replaceChildren(h("p", { class: "note" }, say("crowd_unreachable"))));
  }
  return h("div", { class: "part" }, h("h2", {}, say("crowd_title")), content);
}

/** @param {Page} page @param {import("../comparison.js").Release} release @param {Say} say */
function comparison(page, release, say) {
  const { poll, words, language, preference } = page;
  const rows = compare(poll, words, release, preference);
  return [
    h(
      "p",
      {},
      say("crowd_lead", { voters: release.guarantee.voters }),
      " ",
      say(preference ? "crowd_own" : "crowd_own_gone"),
    ),
    h("ul", { class: "crowd-legend" }, [
      h("li", {}, mark("crowd-mark"), say("the_crowd")),
      preference ? h("li", {}, mark("own-mark"), say("you")) : null,
      h("li", {}, mark("open-mark"), say("open_band")),
    ]),
    h(
      "ul",
      { class: "comparison" },
      rows.map((row) => comparisonRow(row, language, words.direction)),
    ),
  ];
}

/**
 * @param {import("../comparison.js").Row} row
 * @param {import("../language.js").Language} language
 * @param {"ltr" | "rtl"} direction
 */
function comparisonRow(row, language, direction) {
  const say = language.say.bind(language);
  const [less, more] = row.poles ?? [say("less"), say("more")];
  const percent = (/** @type {number} */ share) => language.number(share, { style: "percent" });
  const x = (/** @type {number} */ share) => (direction === "rtl" ? 100 - 100 * share : 100 * share);
  const [from, to] = [x(row.low), x(row.high)].sort((a, b) => a - b);
  const values = { end: more, crowd: percent(row.crowd), own: row.own === null ? "" : percent(row.own) };
  return h(
    "li",
    {},
    h("p", { class: "row-label" }, row.title),
    h("div", { class: "ends", "aria-hidden": "true" }, h("span", {}, less), h("span", {}, more)),
    svg(
      "svg",
      { class: "track", viewBox: "-4 0 108 14", "aria-hidden": "true", focusable: "false" },
      svg("path", { class: "rail", d: "M0 7H100" }),
      svg("path", { class: "middle", d: "M50 2V12" }),
      svg("rect", { class: "open-mark", x: from, y: 4.5, width: Math.max(to - from, 0.5), height: 5, rx: 2.5 }),
      svg("circle", { class: "crowd-mark", cx: x(row.crowd), cy: 7, r: 3.2 }),
      row.own === null
        ? null
        : svg("path", { class: "own-mark", d: `M${x(row.own)} 2.600l4.400 4.400-4.400 4.400-4.400-4.400z` }),
    ),
    h("p", { class: "shares" }, say(row.own === null ? "row_crowd" : "row_both", values)),
  );
}

/** @type {Record<string, [string, Record<string, number | string>]>} */
const KEYS = {
  "crowd-mark": ["circle", { cx: 7, cy: 7, r: 4.5 }],
  "own-mark": ["path", { d: "M7 1l6 6-6 6-6-6z" }],
  "open-mark": ["rect", { y: 4, width: 14, height: 6, rx: 3 }],
};

/** @param {string} kind */
function mark(kind) {
  const [tag, shape] = KEYS[kind];
  const frame = { class: "key", viewBox: "0 0 14 14", width: 14, height: 14, "aria-hidden": "true" };
  return svg("svg", frame, svg(tag, { ...shape, class: kind }));
}
