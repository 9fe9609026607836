/**
 * Alternatives of any study as cards: each fact in words, with the picture that the study names for it. Where it is a
 * small number of something, the picture stands there as often; where it is another number, a bar shows how much.
 */

import { h, svg } from "../markup.js";
import { phraseOf } from "../language.js";
import { levelsOf } from "../mechanisms/study.js";
import { icon } from "./icons.js";

/** More than so many pictures in a row are not counted at a glance. */
const MOST_PICTURES = 5;

/**
 * The facts of one alternative, for the inside of its card.
 * @param {import("../mechanisms/study.js").Study} study
 * @param {import("../language.js").Words} words
 * @param {number[]} values
 * @param {number[]} others values of the other alternative: equal facts are shown more quietly
 * @param {import("../language.js").Language} language
 */
export function facts(study, words, values, others, language) {
  const { features, categories = [] } = study;
  const levels = new Set(categories.flatMap((category) => levelsOf(features, category)));
  const rows = features.map((feature, k) => {
    const phrase = phraseOf(words.features[feature.name], values[k], language);
    if (!phrase) return null;
    const normal = study.drawing.method === "gaussian";
    const amount = levels.has(k) ? null : pictures(feature, values[k]) ?? bar(feature, values[k], normal);
    return h(
      "span",
      { class: values[k] === others[k] ? "fact same" : "fact" },
      feature.icon ? icon(feature.icon) : null,
      h("span", { class: "fact-words" }, phrase, amount),
    );
  });
  return h("span", { class: "facts-of-card" }, rows);
}

/**
 * As many pictures as there are of it, among as many as there can be; null where that does not show it.
 * @param {import("../mechanisms/study.js").Feature} feature
 * @param {number} value
 */
function pictures({ icon: name, low, high, levels = [] }, value) {
  const most = levels.length > 0 ? Math.max(...levels) : high;
  if (!name || low !== 0 || !(most <= MOST_PICTURES) || !levels.every(Number.isInteger) || !Number.isInteger(value)) {
    return null;
  }
  const place = (/** @type {number} */ i) => h("span", { class: i < value ? "there" : "empty" }, icon(name));
  const places = Array.from({ length: most }, (_, i) => place(i));
  return h("span", { class: "amount", "aria-hidden": "true" }, places);
}

/**
 * From zero, or from the low end of a range without zero. Normal values hardly ever leave -3.5 to 3.5.
 * @param {import("../mechanisms/study.js").Feature} feature
 * @param {number} value
 * @param {boolean} normal
 */
function bar({ low, high, levels }, value, normal) {
  const [from, to] = normal ? [-3.5, 3.5] : [low, levels?.length ? Math.max(...levels) : high];
  const at = (/** @type {number} */ x) => (100 * (Math.min(Math.max(x, from), to) - from)) / (to - from);
  const [start, end] = [at(Math.max(from, Math.min(0, to))), at(value)].sort((a, b) => a - b);
  return svg(
    "svg",
    { class: "fact-bar", viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false" },
    svg("rect", { class: "rail", width: 100, height: 4 }),
    svg("rect", { class: "much", x: start, width: Math.max(end - start, 1), height: 4 }),
  );
}
