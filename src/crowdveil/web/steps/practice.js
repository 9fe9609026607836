/** A dilemma to try before the first: it is made here, it does not count, and nothing of it is kept or sent. */

import { h } from "../markup.js";
import { levelsOf } from "../mechanisms/study.js";
import { hasRoad } from "../scene/characters.js";
import { dilemmaView } from "./dilemma-view.js";

/**
 * The same two people on either side, so that nothing but the rules is there to be learnt.
 * @type {Record<string, number>[]}
 */
const ON_THE_ROAD = [
  { man: 1, woman: 1, barrier: 1 },
  { man: 1, woman: 1, intervention: 1 },
];

/** @param {import("../page.js").Page} page */
export function practice(page) {
  const say = page.language.say.bind(page.language);
  const told = [say("practice_words"), page.road ? say("practice_touch") : ""].join(" ").trim();
  return dilemmaView(page, {
    kind: "practice",
    dilemma: practiceDilemma(page.poll.study),
    chosen: null,
    choose: () => true,
    submit() {
      page.next();
      return null;
    },
    above: h("p", { class: "practice-note" }, h("strong", {}, say("practice")), " ", told),
    place: say("practice"),
    actions: [
      h("button", { class: "quiet", type: "button", onclick: () => page.back() }, say("back")),
      h("button", { class: "primary", type: "submit" }, say("practice_done")),
    ],
  });
}

/**
 * Two alternatives of a study that differ in everything.
 * @param {import("../mechanisms/study.js").Study} study
 * @returns {import("../mechanisms/study.js").Dilemma}
 */
function practiceDilemma(study) {
  const { features, categories = [], drawing } = study;
  if (hasRoad(study)) {
    const [left, right] = ON_THE_ROAD.map((group) => features.map(({ name }) => group[name] ?? 0));
    return { left, right };
  }
  const ends = features.map(({ low, high, levels = [] }, k) => {
    const range = levels.length > 0 ? [levels[0], levels.at(-1)] : [low, high];
    const [least, most] = drawing.method === "gaussian" ? [-1, 1] : range;
    return k % 2 === 0 ? [least, most] : [most, least];
  });
  for (const category of categories) {
    levelsOf(features, category).forEach((k, i) => (ends[k] = [Number(i === 0), Number(i === 1)]));
  }
  return { left: ends.map(([first]) => Number(first)), right: ends.map(([, second]) => Number(second)) };
}
