/** Opens the page: finds the poll, the ballot and the language, and shows the step where the voter left off. */

import { getParticipation, getPoll, getWords, Refusal, refusalWords } from "./api.js";
import { Language, LANGUAGES, languageName, pickLanguage } from "./language.js";
import { h } from "./markup.js";
import { reportId } from "./mechanisms/report.js";
import { Page } from "./page.js";
import { checkedPoll, InvalidPoll, participationKey } from "./poll.js";
import { compareWithRelay, getRelayedParticipation } from "./relay/channel.js";
import { loadCharacters } from "./scene/characters.js";
import { chosenLanguage, rememberLanguage, Store } from "./store.js";

const TOKEN = /^[A-Za-z0-9_-]{22}$/;

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const wanted = () => [new URLSearchParams(location.search).get("lang"), chosenLanguage(), ...navigator.languages];

open().catch(apologise);

async function open() {
  // On a slow connection each request takes its time: what is most likely needed is asked for with the poll.
  const likely = Language.load(pickLanguage(Object.keys(LANGUAGES), wanted())).catch(() => null);
  const drawings = loadCharacters().catch(() => null);
  const poll = checkedPoll(await getPoll(pollName()));
  const token = poll.entry === "links" ? linkToken() : null;
  const link = token ? `:${reportId(token)}` : "";
  const store = new Store(poll.id + link, participationKey(poll.study) + link);
  if (token && store.lasting) rememberLink(poll.id, token, keyFragment());
  const tag = pickLanguage(poll.languages, wanted());
  const page = new Page(poll, store, token, main, await spoken(poll.id, tag, await likely));
  await drawings;
  if (page.road) await loadCharacters();
  header(page, tag);
  if (!page.state.sealed) page.notice = await noticeOf(poll, token);
  window.addEventListener("storage", () => page.follow());
  window.addEventListener("popstate", (event) => page.returnTo(event.state));
  window.addEventListener("hashchange", () => linkToken(false) && location.reload());
  page.show();
}

/**
 * Why a poll cannot be answered now, if so. A link that is no longer good is told before the first dilemma.
 * @param {import("./mechanisms/study.js").Poll} poll
 * @param {string | null} token
 * @returns {Promise<string | null>} a key of the interface's words
 */
async function noticeOf(poll, token) {
  if (poll.state !== "open") return `refused_${poll.state.replaceAll("-", "_")}`;
  const behind = poll.relay ? await compareWithRelay(poll, keyFragment()) : null;
  if (behind) return behind;
  if (poll.entry !== "links") return null;
  if (!token) return "needs_link";
  try {
    const { status } = await (poll.relay ? getRelayedParticipation(poll, token) : getParticipation(poll.id, token));
    return status === "unused" ? null : "refused_different_report";
  } catch (refusal) {
    const reason = refusal instanceof Refusal ? refusal.reason : "";
    return ["unknown-ballot", "withdrawn"].includes(reason) ? `refused_${reason.replaceAll("-", "_")}` : null;
  }
}

/** The poll's name is in the address: /p/NAME/ */
function pollName() {
  return decodeURIComponent(location.pathname.match(/\/p\/([^/]+)/)?.[1] ?? "");
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

/**
 * The interface's and the study's words in a language.
 * @param {string} poll
 * @param {string} tag
 * @param {Language | null} [loaded] which may be the one
 */
async function spoken(poll, tag, loaded = null) {
  const [language, words] = await Promise.all([loaded?.tag === tag ? loaded : Language.load(tag), getWords(poll, tag)]);
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

/** Say that the poll could not be opened, if possible in the voter's language. @param {unknown} problem */
async function apologise(problem) {
  const tag = pickLanguage(Object.keys(LANGUAGES), wanted());
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
  const unknown = problem instanceof Refusal && problem.reason === "unknown-poll";
  return language.say(unknown ? "refused_unknown_poll" : "refused_unreachable");
}
