/** One dilemma at a time. A choice shows what it means before it counts. */

import { changed, levelIsFixed } from "../journey.js";
import { h } from "../markup.js";
import { dilemmaView } from "./dilemma-view.js";

/** @param {import("../page.js").Page} page */
export function dilemmas(page) {
  const say = page.language.say.bind(page.language);
  const { place, dilemmas, choices } = page.state;
  const words = say("dilemma_of", { place: place + 1, total: dilemmas.length });
  const canGoBack = () => place > 0 || !levelIsFixed(page.state);
  const back = h(
    "button",
    { class: "quiet", type: "button", hidden: !canGoBack(), onclick: () => page.back() },
    say("back"),
  );
  return dilemmaView(page, {
    kind: "dilemma",
    dilemma: dilemmas[place],
    chosen: choices[place],
    choose(side) {
      const taken = page.update(changed(page.state, { choices: page.state.choices.with(place, side) }));
      back.hidden = !canGoBack();
      return taken;
    },
    submit(chosen) {
      if (!chosen) return say(page.poll.study.indifference === undefined ? "choose_first" : "answer_first");
      page.next();
      return null;
    },
    above: h(
      "div",
      { class: "progress" },
      h("progress", { max: dilemmas.length, value: place + 1, "aria-label": words }),
      h("span", { "aria-hidden": "true" }, words),
    ),
    place: words,
    actions: [back, h("button", { class: "primary", type: "submit" }, say("next"))],
  });
}
