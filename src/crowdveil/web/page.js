/** The page: what it knows, what it remembers, and how it goes from step to step. */

import { deliver, getRelease, getSession, put, Refusal, refusalWords, tellStep, withdraw } from "./api.js";
import * as journey from "./journey.js";
import { h } from "./markup.js";
import { fingerprint } from "./mechanisms/study.js";
import { reportId } from "./mechanisms/token.js";
import { checkedSession, promiseOf } from "./poll.js";
import { isCentral } from "./promise.js";
import { hasRoad } from "./scene/characters.js";
import { welcome } from "./steps/welcome.js";

/** @typedef {import("./journey.js").State} State */
/** @typedef {(seconds: number) => Promise<void>} Pause */

/** Steps at which there are choices on the device and nothing has been sent. */
const ANSWERING = ["dilemmas", "about", "review"];

export class Page {
  /**
   * The voter's choices, counted: in memory only, and gone with the page.
   * @type {import("./counting.js").Result | null}
   */
  result = null;
  /**
   * Behind a relay: what is published of the crowd. It is asked for before the first choice, as a request to the host
   * later would tell it who has sent.
   * @type {Promise<import("./comparison.js").Release> | null}
   */
  published = null;
  /** The text in place of all steps, for a poll that takes no answers. @type {string | null} */
  notice = null;
  /** @type {Promise<void> | null} */
  #delivery = null;
  /** @type {Pause | null} */
  #pause = null;
  /** All that comes after the welcome, once it is here. @type {typeof import("./voting.js") | null} */
  #voting = null;

  /**
   * @param {import("./mechanisms/study.js").Poll} poll
   * @param {import("./store.js").Store} store
   * @param {string | null} token of a personal link
   * @param {HTMLElement} main
   * @param {{language: import("./language.js").Language, words: import("./language.js").Words}} spoken
   */
  constructor(poll, store, token, main, { language, words }) {
    this.poll = poll;
    this.store = store;
    this.main = main;
    this.language = language;
    this.words = words;
    this.road = poll.scene === "road" && hasRoad(poll.study);
    this.promise = promiseOf(poll);
    const stored = store.read();
    this.state = journey.resumed(poll, this.promise, stored, token);
    if (stored && this.state.restarted) store.write(this.state); // so that what was chosen is forgotten now
    history.replaceState({ depth: 0, ...history.state, ...this.#spot() }, "");
  }

  /**
   * The report that this device has sent under another promise, or in another poll of this study. The same choices
   * with fresh noise would spend epsilon again: nothing more is ever made.
   * @returns {import("./store.js").Submission | null}
   */
  get earlier() {
    const sent = this.store.submission();
    const other = sent !== null && (sent.promise !== this.promise || !this.state.sealed);
    if (other) return sent;
    const { sealed, promise, token, receipt } = this.state;
    if (!sealed || promise === this.promise) return null;
    return { promise, id: receipt?.id ?? (token ? reportId(token) : ""), day: receipt?.day ?? "" };
  }

  /**
   * Change the language; what was ticked and opened stays so.
   * @param {import("./language.js").Language} language
   * @param {import("./language.js").Words} words the study's
   */
  speak(language, words) {
    this.language = language;
    this.words = words;
    const inputs = () => /** @type {HTMLInputElement[]} */ ([...this.main.querySelectorAll("input, textarea")]);
    const filled = inputs().map(({ checked, value }) => ({ checked, value }));
    const folds = [...this.main.querySelectorAll("details")].map((details) => details.open);
    this.show();
    inputs().forEach((input, i) => Object.assign(input, filled[i]));
    this.main.querySelectorAll("details").forEach((details, i) => (details.open = folds[i] ?? details.open));
  }

  /**
   * Remember a new state, unless another tab has gone on meanwhile: then this one goes along with it.
   * @param {State} state
   * @returns {boolean} whether the new state counts
   */
  update(state) {
    if (this.#adopt()) {
      this.show();
      return false;
    }
    this.state = { ...state, revision: this.state.revision + 1 };
    this.store.write(this.state);
    return true;
  }

  /** Take over what another tab has remembered, if it is ahead. */
  #adopt() {
    const elsewhere = this.store.read();
    if (!elsewhere || elsewhere.revision <= this.state.revision) return false;
    if (elsewhere.promise !== this.promise) location.reload();
    this.state = elsewhere;
    return true;
  }

  /** Another tab has remembered something. */
  follow() {
    if (this.#adopt()) this.show();
  }

  /**
   * Get what comes after the welcome, or say that it cannot be reached.
   * @returns {Promise<boolean>} whether it is here
   */
  async prepare() {
    try {
      const voting = await import("./voting.js");
      if (this.poll.relay) await voting.loadSealing();
      if (this.poll.relay && this.poll.release) this.published ??= getRelease(this.poll.release);
      this.published?.catch(() => {}); // whoever asks for it hears of it
      this.#voting = voting;
      return true;
    } catch {
      this.problem(new Refusal("unreachable", "the page is not complete"), () => location.reload());
      return false;
    }
  }

  get #later() {
    if (this.#voting === null) throw new Error("the page is not complete yet");
    return this.#voting;
  }

  /** Draw the step where the voter is, and take the keyboard and the screen reader there. */
  show() {
    this.#adopt();
    const { earlier } = this;
    const needed = earlier || (!this.notice && this.state.step !== "welcome");
    if (needed && this.#voting === null) {
      this.prepare().then((here) => here && this.show());
      return;
    }
    const section = earlier ? this.#later.stopped(this, earlier) : this.notice ? this.#noticed() : this.#step();
    this.main.replaceChildren(section);
    this.main.removeAttribute("aria-busy");
    document.title = `${this.words.title} · crowdveil`;
    window.scrollTo(0, 0);
    section.querySelector("h1")?.focus({ preventScroll: true });
  }

  #step() {
    const { step } = this.state;
    const section = step === "welcome" ? welcome(this) : this.#later[step](this);
    if (ANSWERING.includes(this.state.step)) section.append(this.#forgetting());
    return section;
  }

  #noticed() {
    return h(
      "section",
      { class: "page" },
      h("h1", { tabindex: "-1" }, this.words.title),
      h("p", { class: "lead" }, this.language.say(this.notice ?? "")),
      this.toResult(),
    );
  }

  /** The way to the page for everybody, once there is a result. What was counted here stays in this tab. */
  toResult() {
    const { id, release } = this.poll;
    if (!release) return null;
    const href = `../../r/${encodeURIComponent(id)}/?lang=${encodeURIComponent(this.language.tag)}`;
    return h("p", {}, h("a", { href, target: "_blank", rel: "noopener" }, this.language.say("see_results")));
  }

  /** A way out that leaves nothing behind, for a device that somebody else uses, too. */
  #forgetting() {
    const forget = () => {
      if (!window.confirm(this.language.say("forget_sure"))) return;
      if (!this.update(journey.newState(this.poll, this.promise, this.state.token))) return;
      history.replaceState({ ...history.state, ...this.#spot() }, "");
      this.show();
    };
    return h("p", {}, h("button", { class: "plain", type: "button", onclick: forget }, this.language.say("forget")));
  }

  /** @returns {import("./journey.js").Spot} */
  #spot() {
    return { step: this.state.step, place: this.state.place };
  }

  /** Go on to the next step or dilemma. The browser's Back leads here again. */
  async next() {
    if (this.main.hasAttribute("aria-busy") || !(await this.#complete())) return;
    const spot = journey.beside(this.poll, this.state, 1);
    if (spot.step === "dilemmas" && this.state.dilemmas.length === 0 && !(await this.#begin())) return;
    const untold = journey.untold(this.poll, { ...this.state, ...spot });
    if (!this.update({ ...this.state, ...spot, told: [...this.state.told, ...untold] })) return;
    // Before the report is made, so that how long its noise takes to draw is not on the wire.
    untold.forEach((step) => tellStep(this.poll.id, step));
    history.pushState({ ...spot, depth: history.state.depth + 1 }, "");
    this.show();
  }

  /** Wait for what comes after the welcome. */
  async #complete() {
    if (this.#voting !== null) return true;
    this.main.setAttribute("aria-busy", "true");
    const here = await this.prepare();
    this.main.removeAttribute("aria-busy");
    return here;
  }

  /** Go back to the step or dilemma before, as the browser's Back does. */
  back() {
    if (history.state.depth > 0) return history.back();
    const spot = journey.beside(this.poll, this.state, -1);
    history.replaceState({ ...history.state, ...spot }, "");
    return this.returnTo(spot);
  }

  /**
   * Go where the browser's Back or Forward leads. Where the part of the address after the # was changed, there is no
   * spot: the page stays where it is.
   * @param {import("./journey.js").Spot | null} spot
   */
  returnTo(spot) {
    if (!spot) return history.replaceState({ depth: 0, ...this.#spot() }, "");
    const over = journey.BEFORE_CHOICES.includes(spot.step) && journey.levelIsFixed(this.state);
    const { step, place } = over ? journey.START : spot;
    if (this.notice || this.earlier || !journey.reachable(this.poll, this.state, { step, place })) return;
    if (this.update({ ...this.state, step, place })) this.show();
  }

  /** Get the dilemmas: the last that is asked of the server before the choices, and the same whatever they will be. */
  async #begin() {
    this.main.setAttribute("aria-busy", "true");
    const { drawRepeat, mirrored, systemRandom } = this.#later;
    try {
      const drawn = checkedSession(this.poll.study, (await getSession(this.poll.id)).dilemmas);
      const repeat = this.poll.study.repeat ? drawRepeat(drawn.length, systemRandom()) : null;
      const dilemmas = repeat === null ? drawn : [...drawn, mirrored(drawn[repeat])];
      const choices = dilemmas.map(() => null);
      return this.update({ ...this.state, dilemmas, repeat, choices, place: 0, restarted: false });
    } catch (refusal) {
      this.problem(refusal);
      return false;
    } finally {
      this.main.removeAttribute("aria-busy");
    }
  }

  /** The exact text to send: made once, and stored with its token before anybody sees it. @returns {string} */
  makeBody() {
    const { epsilon_micro: epsilon, about, body, token } = this.state;
    if (body !== null) return body;
    const { ballotText, makeReport, newToken, systemRandom } = this.#later;
    const { dilemmas, choices, repeat } = journey.answered(this.state);
    const made = isCentral(this.poll)
      ? ballotText(fingerprint(this.poll.study), this.poll, this.state)
      : makeReport(this.poll, dilemmas, choices, Number(epsilon), about, systemRandom(), repeat);
    this.update({ ...this.state, body: made, token: token ?? newToken(systemRandom()) });
    return made;
  }

  /**
   * Send what is stored until it is there. A second call, after a change of language, joins the first.
   * @param {Pause} pause how to wait before another try
   */
  send(pause) {
    this.#pause = pause;
    this.#delivery ??= this.#deliver().finally(() => (this.#delivery = null));
    return this.#delivery;
  }

  async #deliver() {
    const { token, body, epsilon_micro } = this.state;
    if (token === null || body === null || epsilon_micro === null) throw new Error("there is nothing to send");
    const id = reportId(token);
    const { dilemmas, choices } = journey.answered(this.state);
    if (!this.state.sealed && !this.update({ ...this.state, sealed: true })) return;
    if (this.store.submission() === null) this.store.writeSubmission({ promise: this.promise, id, day: today() });
    const attempt = this.poll.relay ? await this.#sealed(token, body) : this.#open(token, body);
    const answer = await deliver(attempt, async (seconds) => this.#pause?.(seconds)).catch((refusal) => {
      this.#refused();
      throw refusal;
    });
    this.result = choices.length > 0 ? this.#later.countChoices(this.poll.study, dilemmas, choices) : null;
    const receipt = { id, day: today(), epsilon_micro, code: answer.completion_code, url: answer.return_url };
    if (this.update(journey.delivered(this.state, receipt))) this.show();
  }

  /**
   * The server will not take it. In a distributed poll the report stays, because it may be sent again as it is; the
   * answers that it was made of are needed no more.
   */
  #refused() {
    if (isCentral(this.poll) || this.state.choices.length === 0) return;
    this.update(journey.withoutAnswers(this.state));
  }

  /** How to send to the host. @param {string} token @param {string} body */
  #open(token, body) {
    const kind = isCentral(this.poll) ? "ballot" : "report";
    return () => put(this.poll.id, kind, token, body);
  }

  /**
   * How to send to the relay: what is encrypted once is stored, and sent again as it is.
   * @param {string} token
   * @param {string} body
   */
  async #sealed(token, body) {
    const ciphertext = this.state.ciphertext ?? (await this.#later.seal(this.poll, body));
    if (!this.state.ciphertext) this.update({ ...this.state, ciphertext });
    return () => this.#later.putSealed(this.poll, token, String(this.state.ciphertext));
  }

  /** Delete on the server, then here. */
  async withdraw() {
    const token = String(this.state.token);
    await (this.poll.relay ? this.#later.withdrawSealed(this.poll, token) : withdraw(this.poll.id, token));
    this.result = null;
    if (this.update(journey.withdrawn(this.state))) this.show();
  }

  /** Show what went wrong, with a way to try again. @param {unknown} refusal @param {() => void} again */
  problem(refusal, again = () => this.show()) {
    const retry = h("button", { class: "primary", type: "button", onclick: again }, this.language.say("try_again"));
    const heading = h("h1", { tabindex: "-1" }, this.language.say("problem_title"));
    this.main.replaceChildren(
      h(
        "section",
        { class: "page" },
        heading,
        h("p", { class: "lead", role: "alert" }, refusalWords(refusal, this.language)),
        retry,
      ),
    );
    heading.focus();
  }
}

function today() {
  return new Date().toISOString().slice(0, 10);
}
