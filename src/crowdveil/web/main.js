/** Opens the page: finds the poll, the ballot and the language, and shows the step where the voter left off. */

import { getParticipation, getPoll, getWords, Refusal, refusalWords } from "./api.js";
import { likely, pollName, wanted } from "./early.js";
import { ended } from "./journey.js";
import { Language, languageName, pickLanguage } from "./language.js";
import { h } from "./markup.js";
import { reportId } from "./mechanisms/token.js";
import { Page } from "./page.js";
import { checkedPoll, InvalidPoll, participationKey } from "./poll.js";
import { loadCharacters } from "./scene/characters.js";
import { changeBallots, rememberLanguage, Store } from "./store.js";

const TOKEN = /^[A-Za-z0-9_-]{22}$/;
/** Notices of a poll, and of a personal link, from which nothing more is taken: what was answered is deleted here. */
const POLL_ENDED = ["refused_closed", "refused_full"];
const LINK_ENDED = ["refused_unknown_ballot", "refused_different_report", "refused_withdrawn"];

const main = /** @type {HTMLElement} */ (document.getElementById("main"));

open().catch(apologise);

async function open() {
  const drawings = loadCharacters().catch(() => null);
  const poll = checkedPoll(await describedPoll(pollName()));
  const token = poll.entry === "links" ? linkToken() : null;
  const link = token ? `:${reportId(token)}` : "";
  const ballot = poll.id + link;
  const store = new Store(ballot, participationKey(poll.study) + link);
  if (token && store.lasting) rememberLink(poll.id, token, keyFragment());
  const tag = pickLanguage(poll.languages, wanted());
  const page = new Page(poll, store, token, main, await spoken(poll.id, tag));
  await drawings;
  if (page.road) await loadCharacters();
  await styled();
  header(page, tag);
  if (!page.state.sealed) page.notice = await noticeOf(poll, token);
  if (POLL_ENDED.includes(page.notice ?? "")) changeBallots(poll.id, ended);
  if (LINK_ENDED.includes(page.notice ?? "")) changeBallots(ballot, ended);
  window.addEventListener("storage", () => page.follow());
  window.addEventListener("popstate", (event) => page.returnTo(event.state));
  window.addEventListener("hashchange", () => linkToken(false) && location.reload());
  page.show();
  // Now that there is something to read, the rest of the page comes.
  const rest = /** @type {HTMLTemplateElement} */ (document.getElementById("rest"));
  document.head.append(rest.content);
  const voting = await import("./voting.js").catch(() => null); // the start tries again, and says so
  if (poll.relay) await voting?.loadSealing().catch(() => {});
}

/** Ask for the poll. Of a poll that is gone, no answer stays here. @param {string} name */
function describedPoll(name) {
  return getPoll(name).catch((refusal) => {
    if (isUnknownPoll(refusal)) changeBallots(name, ended);
    throw refusal;
  });
}

/** @param {unknown} problem */
function isUnknownPoll(problem) {
  return problem instanceof Refusal && problem.reason === "unknown-poll";
}

/** Wait for the styles: without them nothing but the skeleton is shown. */
async function styled() {
  const sheets = /** @type {NodeListOf<HTMLLinkElement>} */ (document.querySelectorAll('link[rel="stylesheet"]'));
  const waiting = [...sheets].filter(({ sheet }) => !sheet);
  await Promise.all(waiting.map((link) => new Promise((done) => (link.onload = link.onerror = done))));
}

/**
 * Why a poll cannot be answered now, if so. A link that is no longer good is told before the first dilemma.
 * @param {import("./mechanisms/study.js").Poll} poll
 * @param {string | null} token
 * @returns {Promise<string | null>} a key of the interface's words
 */
async function noticeOf(poll, token) {
  if (poll.state !== "open") return `refused_${poll.state.replaceAll("-", "_")}`;
  const relay = poll.relay ? await import("./relay/channel.js") : null;
  const behind = await relay?.compareWithRelay(poll, keyFragment());
  if (behind) return behind;
  if (poll.entry !== "links") return null;
  if (!token) return "needs_link";
  try {
    const { status } = await (relay ? relay.getRelayedParticipation(poll, token) : getParticipation(poll.id, token));
    return status === "unused" ? null : "refused_different_report";
  } catch (refusal) {
    const reason = refusal instanceof Refusal ? refusal.reason : "";
    return ["unknown-ballot", "withdrawn"].includes(reason) ? `refused_${reason.replaceAll("-", "_")}` : null;
  }
}

/** A personal link carries its token behind the #, where no server sees it. Once stored, it is taken out of sight. */
function linkToken(remembered = true) {
  const given = new URLSearchParams(location.hash.slice(1)).get("ballot");
  if (given && TOKEN.test(given)) return given;
  try {
    return remembered ? sessionStorage.getItem(`crowdveil:link:${pollName()}`) : null;
  } catch {
    return null;
  }
}

/** Behind the # of a poll with a relay stands the fingerprint of its key. It is no secret, and stays there. */
function keyFragment() {
  return new URLSearchParams(location.hash.slice(1)).get("key");
}

/** @param {string} poll @param {string} token @param {string | null} key */
function rememberLink(poll, token, key) {
  sessionStorage.setItem(`crowdveil:link:${poll}`, token);
  history.replaceState(history.state, "", location.pathname + location.search + (key ? `#key=${key}` : ""));
}

/** The interface's and the study's words in a language. @param {string} poll @param {string} tag */
async function spoken(poll, tag) {
  const [language, words] = await Promise.all([Language.load(tag), getWords(poll, tag)]);
  setLanguage(tag, words.direction);
  return { language, words };
}

/** @param {string} tag @param {string} direction */
function setLanguage(tag, direction) {
  document.documentElement.lang = tag;
  document.documentElement.dir = direction;
}

/** @param {Page} page @param {string} tag */
function header(page, tag) {
  const { poll, language } = page;
  const choose = async (/** @type {{target: HTMLSelectElement}} */ { target: { value } }) => {
    rememberLanguage(value);
    try {
      const { language, words } = await spoken(poll.id, value);
      page.speak(language, words);
    } catch (refusal) {
      return page.problem(refusal);
    }
    header(page, value);
    return document.getElementById("language")?.focus();
  };
  const options = poll.languages.map((name) =>
    h("option", { value: name, lang: name, selected: name === tag }, languageName(name)),
  );
  const label = h("label", { class: "away", for: "language" }, language.say("language"));
  const select = h("select", { id: "language", onchange: choose }, options);
  document.getElementById("top")?.replaceChildren(h("span", { class: "brand" }, "crowdveil"), label, select);
  document.getElementById("foot")?.replaceChildren(h("p", { class: "note" }, language.say("foot")));
}

/** Show that the poll could not be opened, if possible in the voter's language. @param {unknown} problem */
async function apologise(problem) {
  const tag = likely();
  const language = await Language.load(tag).catch(() => null);
  if (language) setLanguage(tag, language.say("direction"));
  main.replaceChildren(
    h(
      "section",
      { class: "page" },
      h("h1", {}, language?.say("problem_title") ?? "crowdveil"),
      h("p", { class: "lead", role: "alert" }, language ? apology(problem, language) : String(problem)),
      h(
        "button",
        { class: "primary", type: "button", onclick: () => location.reload() },
        language?.say("try_again") ?? "↻",
      ),
    ),
  );
  main.removeAttribute("aria-busy");
}

/** @param {unknown} problem @param {Language} language */
function apology(problem, language) {
  if (problem instanceof InvalidPoll) return refusalWords(problem, language);
  return language.say(isUnknownPoll(problem) ? "refused_unknown_poll" : "refused_unreachable");
}
