/** Review: the exact text that will be sent, made and stored before it is shown. */

import { actions } from "../controls.js";
import { h } from "../markup.js";
import { isCentral, protectedKey } from "../promise.js";

/** @param {import("../page.js").Page} page */
export function review(page) {
  const { poll, language } = page;
  const say = (key, values) => language.say(key, values);
  const central = isCentral(poll);
  const body = page.makeBody();
  const send = (event) => {
    event.preventDefault();
    page.next();
  };
  return h(
    "section",
    { class: "page" },
    h("h1", { tabindex: "-1" }, say("review_title")),
    h(
      "p",
      { class: "lead" },
      say(central ? "review_central" : "review_distributed", {
        count: page.state.choices.length,
        what: say(protectedKey(poll)),
      }),
    ),
    h(
      "details",
      { class: "sent" },
      h("summary", {}, say("show_sent")),
      h(
        "p",
        { class: "note" },
        say(central ? "sent_central" : "sent_distributed", { bytes: new TextEncoder().encode(body).length }),
      ),
      h("pre", { dir: "ltr", tabindex: "0", "aria-label": say("show_sent") }, body),
    ),
    h("form", { onsubmit: send }, actions(page, { back: "change", onward: "send" })),
  );
}
