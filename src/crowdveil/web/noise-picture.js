/** Pictures of the noise: how alike the reports of two opposite answers look. */

import { h, svg } from "./markup.js";

const WIDTH = 320;
const HEIGHT = 112;
const BASE = 100;
const REACH = 3.2; // how far the picture shows, in distances between the two answers

/**
 * Two Laplace curves, one distance apart: the height of one is nowhere more than e^epsilon times that of the other.
 * @param {number} epsilon
 */
export function curves(epsilon) {
  const points = Array.from({ length: 161 }, (_, i) => -REACH + (2 * REACH * i) / 160);
  const tall = (94 * epsilon) / (epsilon + 0.7); // keeps every curve inside the picture, and steeper ones higher
  const height = (/** @type {number} */ x, /** @type {number} */ middle) =>
    tall * Math.exp(-epsilon * Math.abs(x - middle));
  const at = (/** @type {number} */ x, /** @type {number} */ y) => `${((x + REACH) * WIDTH) / (2 * REACH)} ${BASE - y}`;
  const outline = (/** @type {number} */ middle) => points.map((x) => at(x, height(x, middle))).join("L");
  const area = (/** @type {string} */ line) => `M${at(-REACH, 0)}L${line}L${at(REACH, 0)}z`;
  return svg(
    "svg",
    { class: "noise", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true", focusable: "false" },
    svg("path", { class: "one", d: area(outline(-0.5)) }),
    svg("path", { class: "other", d: area(outline(0.5)) }),
    svg("path", { class: "one line", d: `M${outline(-0.5)}` }),
    svg("path", { class: "other line", d: `M${outline(0.5)}` }),
    svg("path", { class: "axis", d: `M0 ${BASE}H${WIDTH}` }),
    svg("path", { class: "one mark", d: `M${at(-0.5, 0)}v8` }),
    svg("path", { class: "other mark", d: `M${at(0.5, 0)}v8` }),
  );
}

/**
 * A hundred reports of the same answer: those that a coin turned over stand out.
 * @param {number} kept of 100
 */
export function coins(kept) {
  const dots = Array.from({ length: 100 }, (_, i) =>
    svg("circle", {
      class: i < kept ? "one" : "other",
      cx: 9 + (i % 20) * 15.9,
      cy: 12 + Math.floor(i / 20) * 20,
      r: 5.5,
    }),
  );
  return svg("svg", { class: "noise", viewBox: "0 0 320 104", "aria-hidden": "true", focusable: "false" }, dots);
}

/** The legend of either picture, in words beside their colours. @param {string} one @param {string} other */
export function legend(one, other) {
  return h("ul", { class: "legend" }, h("li", { class: "one" }, one), h("li", { class: "other" }, other));
}
