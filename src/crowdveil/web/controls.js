/** Controls that several steps have. */

import { h } from "./markup.js";

/**
 * The buttons at the end of a form: back, and onward, which submits it.
 * @param {import("./page.js").Page} page
 * @param {{back?: string, onward?: string}} [keys] what they are called
 */
export function actions(page, { back = "back", onward = "next" } = {}) {
  return h(
    "div",
    { class: "actions" },
    h("button", { class: "quiet", type: "button", onclick: () => page.back() }, page.language.say(back)),
    h("button", { class: "primary", type: "submit" }, page.language.say(onward)),
  );
}
