// Keeps the overview fresh: asks for the part that changes and puts it in place of what is shown.

const EVERY_MS = 5000;
const part = /** @type {HTMLElement} */ (document.getElementById("live"));
const on = /** @type {HTMLInputElement} */ (document.getElementById("live-on"));
/** @type {HTMLElement} */ (document.getElementById("live-note")).hidden = false;

async function refresh() {
  const answer = await fetch(String(part.dataset.from), { redirect: "error" });
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").body;
  // Whatever the reader has opened stays open, and nothing moves under a reader who is inside.
  const opened = part.querySelector("details")?.open;
  if (part.contains(document.activeElement) && document.activeElement !== document.body) return;
  part.replaceChildren(...fresh.childNodes);
  if (opened) part.querySelector("details")?.setAttribute("open", "");
}

setInterval(() => {
  if (on.checked && !document.hidden) refresh().catch(() => {}); // the next one may get through
}, EVERY_MS);
