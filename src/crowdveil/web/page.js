/** The page: what it knows, what it remembers, and how it goes from step to step. */

import { deliver, getSession, put, withdraw } from "./api.js";
import { ownPreference } from "./comparison.js";
import { ballotText, beside, delivered, newState, resumed, withdrawn } from "./journey.js";
import { h } from "./markup.js";
import { makeReport, newToken, reportId } from "./mechanisms/report.js";
import { systemRandom } from "./mechanisms/random.js";
import { isCentral } from "./promise.js";
import { hasRoad } from "./scene/road.js";
import { about } from "./steps/about.js";
import { dilemmas } from "./steps/dilemmas.js";
import { done } from "./steps/done.js";
import { level } from "./steps/level.js";
import { review, sending } from "./steps/sending.js";
import { welcome } from "./steps/welcome.js";

/** Steps at which there are answers on the device and nothing has been sent. */
const ANSWERING = ["dilemmas", "about", "review"];

const STEPS = { welcome, level, dilemmas, about, review, sending, done };

/** Reasons of the server that the interface has words for. */
const REASONS = [
  "unreachable",
  "closed",
  "full",
  "not-open-yet",
  "unknown-ballot",
  "different-report",
  "nothing-stored",
  "too-many-requests",
];

export class Page {
  /** The voter's own preference: in memory only, and gone with the page. @type {number[] | null} */
  preference = null;
  /** What is said in place of all steps, for a poll that takes no answers. @type {string | null} */
  notice = null;
  #delivery = null;
  #pause = null;

  /**
   * @param {any} poll
   * @param {import("./store.js").Store} store
   * @param {string | null} token of a personal link
   * @param {HTMLElement} main
   */
  constructor(poll, store, token, main) {
    this.poll = poll;
    this.store = store;
    this.main = main;
    this.road = poll.scene === "road" && hasRoad(poll.study);
    this.state = resumed(poll, store.read(), token);
  }

  /** Change the language. @param {import("./language.js").Language} language @param {any} words the study's */
  speak(language, words) {
    this.language = language;
    this.words = words;
    this.direction = words.direction;
  }

  /** Remember a new state. @param {import("./journey.js").State} state */
  update(state) {
    this.state = state;
    this.store.write(state);
  }

  /** Draw the step where the voter is, and take the keyboard and the screen reader there. */
  show() {
    const section = this.notice ? this.#noticed() : STEPS[this.state.step](this);
    if (!this.notice && ANSWERING.includes(this.state.step)) section.append(this.#forgetting());
    this.main.replaceChildren(section);
    this.main.removeAttribute("aria-busy");
    document.title = `${this.words.title} · crowdveil`;
    window.scrollTo(0, 0);
    section.querySelector("h1")?.focus({ preventScroll: true });
  }

  #noticed() {
    const words = this.language.say(this.notice);
    return h(
      "section",
      { class: "page" },
      h("h1", { tabindex: "-1" }, this.words.title),
      h("p", { class: "lead" }, words),
    );
  }

  /** A way out that leaves nothing behind, for a device that somebody else uses, too. */
  #forgetting() {
    const forget = () => {
      if (!window.confirm(this.language.say("forget_sure"))) return;
      this.update(newState(this.poll, this.state.token));
      this.show();
    };
    return h("p", {}, h("button", { class: "plain", type: "button", onclick: forget }, this.language.say("forget")));
  }

  /** Another tab has sent, or is about to: its report is the only one, and this tab goes along. */
  follow() {
    const elsewhere = this.store.read();
    if (!elsewhere?.sealed || this.state.sealed) return;
    this.state = elsewhere;
    this.show();
  }

  /** Go to the step after this one. */
  async next() {
    if (this.main.hasAttribute("aria-busy")) return;
    const step = beside(this.poll, this.state.step, 1);
    if (step === "dilemmas" && this.state.dilemmas.length === 0 && !(await this.#begin())) return;
    this.update({ ...this.state, step });
    this.show();
  }

  /** Go to the step before this one. */
  back() {
    this.update({ ...this.state, step: beside(this.poll, this.state.step, -1) });
    this.show();
  }

  /** Get the dilemmas: the last request before the answers, and the same whatever they will be. */
  async #begin() {
    this.main.setAttribute("aria-busy", "true");
    try {
      const { dilemmas } = await getSession(this.poll.id);
      this.update({ ...this.state, dilemmas, choices: dilemmas.map(() => null), place: 0 });
      return true;
    } catch (refusal) {
      this.problem(refusal);
      return false;
    } finally {
      this.main.removeAttribute("aria-busy");
    }
  }

  /**
   * The exact text to send: made once, and stored with its token before anybody sees it. Another tab may have made one
   * already; then that one counts.
   * @returns {string}
   */
  makeBody() {
    const elsewhere = this.store.read();
    if (elsewhere?.sealed) this.state = elsewhere;
    if (this.state.body === null) {
      const { dilemmas, choices, epsilonMicro, about } = this.state;
      const body = isCentral(this.poll)
        ? ballotText(this.poll, this.state)
        : makeReport(this.poll, dilemmas, choices, epsilonMicro, about, systemRandom());
      this.update({ ...this.state, body, token: this.state.token ?? newToken(systemRandom()) });
    }
    return this.state.body;
  }

  /**
   * Send what is stored until it is there. A second call, after a change of language, joins the first.
   * @param {(seconds: number) => Promise<void>} pause how to wait before another try
   */
  send(pause) {
    this.#pause = pause;
    this.#delivery ??= this.#deliver().finally(() => (this.#delivery = null));
    return this.#delivery;
  }

  async #deliver() {
    this.makeBody();
    this.update({ ...this.state, sealed: true });
    const { token, body, dilemmas, choices, epsilonMicro } = this.state;
    const kind = isCentral(this.poll) ? "ballot" : "report";
    const answer = await deliver(
      () => put(this.poll.id, kind, token, body),
      (seconds) => this.#pause(seconds),
    );
    this.preference = choices.length > 0 ? ownPreference(this.poll, dilemmas, choices) : null;
    const day = new Date().toISOString().slice(0, 10);
    const receipt = { id: reportId(token), day, epsilonMicro, code: answer.completion_code, url: answer.return_url };
    this.update(delivered(this.state, receipt));
    this.show();
  }

  /** Delete on the server, then here. */
  async withdraw() {
    await withdraw(this.poll.id, this.state.token);
    this.preference = null;
    this.update(withdrawn(this.state));
    this.show();
  }

  /** Say what went wrong, with a way to try again. */
  problem(refusal) {
    const retry = h(
      "button",
      { class: "primary", type: "button", onclick: () => this.show() },
      this.language.say("try_again"),
    );
    const heading = h("h1", { tabindex: "-1" }, this.language.say("problem_title"));
    this.main.replaceChildren(
      h(
        "section",
        { class: "page" },
        heading,
        h("p", { class: "lead", role: "alert" }, this.refusalWords(refusal)),
        retry,
      ),
    );
    heading.focus();
  }

  /** A refusal in the voter's language; what has no words there is told as the server told it. */
  refusalWords(refusal) {
    return REASONS.includes(refusal.reason)
      ? this.language.say(`refused_${refusal.reason.replaceAll("-", "_")}`)
      : this.language.say("refused_other", { message: refusal.message });
  }
}
