/** The study's factors as a list: on a line between two poles the crowd, what is not known about it, and the voter. */

import { h, svg } from "./markup.js";

/**
 * @typedef {import("./comparison.js").Row} Row
 * @typedef {import("./language.js").Language} Language
 */

/**
 * @param {Row[]} rows
 * @param {Language} language
 * @param {"ltr" | "rtl"} direction
 */
export function factorPicture(rows, language, direction) {
  return h(
    "ul",
    { class: "comparison" },
    rows.map((row) => factorRow(row, language, direction)),
  );
}

/** The meaning of the marks. @param {Row[]} rows @param {Language} language */
export function factorLegend(rows, language) {
  const [own, crowd] = [rows.some((row) => row.own), rows.some((row) => row.crowd)];
  return h(
    "ul",
    { class: "crowd-legend" },
    own ? h("li", {}, key("own-mark"), language.say("you")) : null,
    crowd ? h("li", {}, key("crowd-mark"), language.say("the_crowd")) : null,
    crowd ? h("li", {}, key("open-mark"), language.say("open_band")) : null,
  );
}

/**
 * A row in words, a sentence for the voter and one for the crowd. Each names the pole that was chosen more.
 * @param {Row} row
 * @param {Language} language
 * @returns {string[]}
 */
export function rowWords({ poles, crowd, own }, language) {
  const [less, more] = poles ?? [language.say("less"), language.say("more")];
  const said = [];
  if (own && own.of === 0) said.push(language.say("row_own_none"));
  else if (own) {
    const towards = 2 * own.times >= own.of;
    said.push(
      language.say("row_own", {
        end: towards ? more : less,
        times: towards ? own.times : own.of - own.times,
        of: own.of,
      }),
    );
  }
  if (crowd) {
    const towards = crowd.share >= 0.5;
    const [share, ...ends] = [crowd.stated, ...crowd.ends].map((shares) => shares[towards ? 0 : 1]);
    said.push(
      language.say("row_crowd", {
        end: towards ? more : less,
        crowd: Math.round(100 * share),
        low: Math.floor(100 * Math.min(share, ...ends)),
        high: Math.ceil(100 * Math.max(share, ...ends)),
      }),
    );
  }
  return said;
}

/** @param {Row} row @param {Language} language @param {"ltr" | "rtl"} direction */
function factorRow(row, language, direction) {
  const [less, more] = row.poles ?? [language.say("less"), language.say("more")];
  const x = (/** @type {number} */ share) => (direction === "rtl" ? 100 - 100 * share : 100 * share);
  return h(
    "li",
    {},
    h("h3", { class: "row-label" }, row.title),
    h("div", { class: "ends", "aria-hidden": "true" }, h("span", {}, less), h("span", {}, more)),
    svg(
      "svg",
      { class: "track", viewBox: "-5 0 110 14", "aria-hidden": "true", focusable: "false" },
      trackMarks(row, x),
    ),
    rowWords(row, language).map((words) => h("p", { class: "shares" }, words)),
  );
}

/**
 * The line of a row and what is marked on it.
 * @param {Row} row
 * @param {(share: number) => number} x
 * @param {number} [size] how large the marks are; the line is in the middle of 14 times that
 */
export function trackMarks({ crowd, own }, x, size = 1) {
  const y = 7 * size;
  const [from, to] = crowd ? [x(crowd.low), x(crowd.high)].sort((a, b) => a - b) : [0, 0];
  const at = own && own.of > 0 ? x(own.times / own.of) : null;
  const half = 4.8 * size;
  const band = { y: y - 2.5 * size, height: 5 * size, rx: 2.5 * size };
  return [
    svg("path", { class: "rail", d: `M${x(0)} ${y}H${x(1)}` }),
    svg("path", { class: "middle", d: `M${x(0.5)} ${y - 5 * size}v${10 * size}` }),
    crowd ? svg("rect", { class: "open-mark", x: from, width: Math.max(to - from, 0.5 * size), ...band }) : null,
    crowd ? svg("circle", { class: "crowd-mark", cx: x(crowd.share), cy: y, r: 3 * size }) : null,
    at === null
      ? null
      : svg("path", { class: "own-mark", d: `M${at} ${y - half}l${half} ${half}-${half} ${half}-${half}-${half}z` }),
  ];
}

/** @type {Record<string, [string, Record<string, number | string>]>} */
const KEYS = {
  "crowd-mark": ["circle", { cx: 7, cy: 7, r: 4.5 }],
  "own-mark": ["path", { d: "M7 1l6 6-6 6-6-6z" }],
  "open-mark": ["rect", { y: 4, width: 14, height: 6, rx: 3 }],
};

/** @param {string} kind */
function key(kind) {
  const [tag, shape] = KEYS[kind];
  const frame = { class: "key", viewBox: "0 0 14 14", width: 14, height: 14, "aria-hidden": "true" };
  return svg("svg", frame, svg(tag, { ...shape, class: kind }));
}
