/**
 * Review: the exact text that will be sent, made and stored before it is shown. Sending: the stored bytes, again and
 * again until the server has them or says why it will not take them.
 */

import { refusalWords } from "../api.js";
import { actions, h } from "../markup.js";
import { isCentral, protectedKey } from "../promise.js";

/** @param {import("../page.js").Page} page */
export function review(page) {
  const { poll, language } = page;
  const say = language.say.bind(language);
  const central = isCentral(poll);
  const body = page.makeBody();
  const send = (/** @type {SubmitEvent} */ event) => {
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
        say(poll.relay ? "sent_relayed" : central ? "sent_central" : "sent_distributed", {
          bytes: new TextEncoder().encode(body).length,
        }),
      ),
      h("pre", { dir: "ltr", tabindex: "0", "aria-label": say("show_sent") }, body),
    ),
    poll.relay ? h("p", { class: "note" }, say("relay_withdraw")) : null,
    h("form", { onsubmit: send }, actions(page, { back: "change", onward: "send" })),
  );
}

/** @param {import("../page.js").Page} page */
export function sending(page) {
  const { language } = page;
  const say = language.say.bind(language);
  const status = h("p", { class: "lead", role: "status", "aria-live": "polite" }, say("sending"));
  const again = h("button", { class: "primary", type: "button", hidden: true }, say("try_now"));
  const wheel = h("div", { class: "wheel", "aria-hidden": "true" });
  const box = h("section", { class: "page" }, h("h1", { tabindex: "-1" }, say("sending_title")), wheel, status, again);

  /** Wait; a click, or a connection that comes back, ends it early. @type {import("../page.js").Pause} */
  const pause = (seconds) =>
    new Promise((resolve) => {
      status.textContent = say(navigator.onLine ? "sending_again" : "offline", { seconds });
      again.hidden = false;
      const done = () => {
        clearTimeout(timer);
        window.removeEventListener("online", done);
        again.removeEventListener("click", done);
        again.hidden = true;
        status.textContent = say("sending");
        resolve();
      };
      const timer = setTimeout(done, 1000 * seconds);
      window.addEventListener("online", done);
      again.addEventListener("click", done);
    });

  page.send(pause).catch((refusal) => {
    wheel.remove();
    status.setAttribute("role", "alert");
    status.textContent = refusalWords(refusal, page.language);
  });
  return box;
}
