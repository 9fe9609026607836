/** The meaning of a relay to a voter: who learns what, and what is promised against whom. */

import { h } from "../markup.js";
import { epsilonOf, rightOf100, rightOf100With } from "../promise.js";

/**
 * @typedef {import("../mechanisms/study.js").Poll} Poll
 * @typedef {import("../language.js").Language} Language
 */

const DIGITS = { maximumFractionDigits: 4 };

/**
 * How often a guess can be right: for everybody, and for a host and a relay together.
 * @param {Poll} poll
 * @param {Language} language
 */
export function relayedGuess(poll, language) {
  const { epsilon, delta, honest, local } = numbers(poll);
  return language.say("guess_relayed", { right: rightOf100With(epsilon, delta), honest, worst: rightOf100(local) });
}

/** The way of a report, the promise in three lines, and the key. @param {Poll} poll @param {Language} language */
export function throughRelay(poll, language) {
  if (!poll.relay) return null;
  const say = language.say.bind(language);
  const { configuration, fingerprint } = poll.relay;
  const { epsilon, delta, honest, local } = numbers(poll);
  // Rounded up, so that the promise is never told larger than it is.
  const shown = language.number(Math.ceil(epsilon * 1e4) / 1e4, DIGITS);
  const lines = [
    say("relay_everybody", { epsilon: shown, delta: String(delta), honest }),
    say("relay_both", { epsilon: language.number(local, DIGITS) }),
    say("relay_alone"),
    say("relay_lie"),
  ];
  const way = [
    say("relay_sent", { relay: new URL(configuration.relay).host, batch: configuration.batch }),
    say("relay_withdraw"),
  ];
  return h(
    "div",
    {},
    h("ul", { class: "promise" }, way.map((line) => h("li", {}, line))),
    h("h2", {}, say("relay_promise")),
    h("ul", { class: "promise" }, lines.map((line) => h("li", {}, line))),
    h("p", { class: "note" }, say("relay_key"), " ", h("code", { dir: "ltr", class: "key" }, inGroups(fingerprint))),
  );
}

/** @param {string} fingerprint in groups that a person can compare */
const inGroups = (fingerprint) => fingerprint.match(/.{1,8}/g)?.join(" ") ?? "";

/** @param {Poll} poll */
function numbers({ relay, levels }) {
  if (!relay) throw new Error("this poll has no relay");
  const { promise, configuration } = relay;
  return {
    epsilon: promise.epsilon,
    delta: Number(configuration.delta),
    honest: Math.round(1000 * Number(configuration.honest)) / 10,
    local: epsilonOf(levels[0].epsilon_micro),
  };
}
