/** Opens the page: finds the poll, the ballot and the language, and shows the step where the voter left off. */

import { getPoll, getWords } from "./api.js";
import { Language, LANGUAGES, languageName, pickLanguage } from "./language.js";
import { h } from "./markup.js";
import { reportId } from "./mechanisms/report.js";
import { Page } from "./page.js";
import { loadCharacters } from "./scene/characters.js";
import { chosenLanguage, rememberLanguage, Store } from "./store.js";

const TOKEN = /^[A-Za-z0-9_-]{22}$/;

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const wanted = () => [new URLSearchParams(location.search).get("lang"), chosenLanguage(), ...navigator.languages];

open().catch(apologise);

async function open() {
  const poll = await getPoll(pollName());
  const token = poll.entry === "links" ? linkToken() : null;
  const store = new Store(token ? `${poll.id}:${reportId(token)}` : poll.id);
  if (token && store.lasting) rememberLink(poll.id, token);
  const page = new Page(poll, store, token, main);
  await Promise.all([speak(page, pickLanguage(poll.languages, wanted())), page.road && loadCharacters()]);
  const started = page.state.sealed || page.state.receipt || page.state.withdrawn;
  if (poll.state !== "open" && !started) page.notice = `refused_${poll.state.replaceAll("-", "_")}`;
  else if (poll.entry === "links" && !token && !started) page.notice = "needs_link";
  window.addEventListener("storage", () => page.follow());
  page.show();
}

/** The poll's name is in the address: /p/NAME/ */
function pollName() {
  return decodeURIComponent(location.pathname.match(/\/p\/([^/]+)/)?.[1] ?? "");
}

/** A personal link carries its token behind the #, where no server sees it. Once stored, it is taken out of sight. */
function linkToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("ballot");
  if (given && TOKEN.test(given)) return given;
  try {
    return sessionStorage.getItem(`crowdveil:link:${pollName()}`);
  } catch {
    return null;
  }
}

function rememberLink(poll, token) {
  sessionStorage.setItem(`crowdveil:link:${poll}`, token);
  history.replaceState(null, "", location.pathname + location.search);
}

/** @param {Page} page @param {string} tag */
async function speak(page, tag) {
  const [language, words] = await Promise.all([Language.load(tag), getWords(page.poll.id, tag)]);
  page.speak(language, words);
  document.documentElement.lang = tag;
  document.documentElement.dir = words.direction;
  header(page, tag);
}

function header(page, tag) {
  const { poll, language } = page;
  const choose = async (event) => {
    rememberLanguage(event.target.value);
    try {
      await speak(page, event.target.value);
    } catch (refusal) {
      return page.problem(refusal);
    }
    page.show();
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

/** Say that the poll could not be opened, if possible in the voter's language. */
async function apologise(problem) {
  const language = await Language.load(pickLanguage(Object.keys(LANGUAGES), wanted())).catch(() => null);
  const key = problem.reason === "unknown-poll" ? "refused_unknown_poll" : "refused_unreachable";
  main.replaceChildren(
    h(
      "section",
      { class: "page" },
      h("h1", {}, language?.say("problem_title") ?? "crowdveil"),
      h("p", { class: "lead", role: "alert" }, language?.say(key) ?? String(problem.message)),
      h(
        "button",
        { class: "primary", type: "button", onclick: () => location.reload() },
        language?.say("try_again") ?? "↻",
      ),
    ),
  );
  main.removeAttribute("aria-busy");
}
