/** Pictures of what protects a voter: the way of an answer, and how often a guess at it can be right. */

import { h, svg } from "./markup.js";

const ACROSS = 20;

/**
 * A hundred guesses: those that a coin toss gets right, those that can be right beyond that, and those that are wrong.
 * @param {number} right of 100, at most
 */
export function guesses(right) {
  const dots = Array.from({ length: 100 }, (_, i) =>
    svg("circle", {
      class: i < 50 ? "toss" : i < right ? "gained" : "wrong",
      cx: 8 + (i % ACROSS) * 16,
      cy: 9 + Math.floor(i / ACROSS) * 17,
      r: 6,
    }),
  );
  return svg("svg", { class: "guesses", viewBox: "0 0 320 86", "aria-hidden": "true", focusable: "false" }, dots);
}

/** The meaning of the dots. @param {number} right @param {import("./language.js").Language["say"]} say */
export function guessLegend(right, say) {
  return h(
    "ul",
    { class: "legend" },
    h("li", { class: "toss" }, say("guess_toss")),
    h("li", { class: "gained" }, say("guess_gained", { more: right - 50 })),
    h("li", { class: "wrong" }, say("guess_wrong")),
  );
}

/**
 * The way of an answer in three small pictures, each with a few words below.
 * @param {[string, string, string]} words
 */
export function wayOfAnswer(words) {
  const drawings = [device(), dice(), crowd()];
  return h(
    "ol",
    { class: "way-of-answer" },
    drawings.map((drawing, i) => h("li", {}, drawing, h("span", {}, words[i]))),
  );
}

/** @param {...any} shapes */
function small(...shapes) {
  return svg("svg", { viewBox: "0 0 64 48", "aria-hidden": "true", focusable: "false" }, ...shapes);
}

function device() {
  return small(
    svg("rect", { class: "thing", x: 21, y: 3, width: 22, height: 42, rx: 4 }),
    svg("path", {
      class: "mark-line",
      d: "M26 12l2 2.4 4-4.6M26 21l2 2.4 4-4.6M26 30l2 2.4 4-4.6M35 12.5h4M35 21.5h4M35 30.5h4",
    }),
  );
}

function dice() {
  const pips = [
    [24, 17],
    [36, 29],
    [30, 23],
  ];
  return small(
    svg("rect", { class: "thing", x: 17, y: 10, width: 26, height: 26, rx: 5, transform: "rotate(-12 30 23)" }),
    pips.map(([cx, cy]) => svg("circle", { class: "pip", cx, cy, r: 2.6 })),
    svg("path", { class: "speckle", d: "M6 12h3M9 30h3M48 8h3M52 20h4M49 34h3M55 40h3M8 41h3M14 5h3M46 43h3" }),
  );
}

function crowd() {
  const heads = [10, 21, 32, 43, 54];
  return small(
    heads.map((cx, i) => svg("circle", { class: "thing", cx, cy: i % 2 ? 15 : 18, r: 5 })),
    heads.map((x, i) => svg("path", { class: "thing", d: `M${x - 6} ${i % 2 ? 34 : 37}c0-12 12-12 12 0z` })),
    svg("path", { class: "mark-line", d: "M6 44h52" }),
  );
}
