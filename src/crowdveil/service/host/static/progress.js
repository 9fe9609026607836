// Shows how far a release is while it is made. Without this, the form is sent as any other, and the page waits.

/** @typedef {{read?: number, of?: number, done?: {to: string}, wrong?: string}} Line */

const SIGNED_OUT = "You are not signed in any more, and nothing was made: sign in again.";
const REFUSED = "The server did not accept this, and nothing was made: try again later.";
const UNKNOWN =
  "The server’s answer was lost, and it is not known whether this was made, or still will be: " +
  "look at the list of releases before you try again.";

const form = /** @type {HTMLFormElement | null} */ (document.querySelector("form[data-progress]"));
const bar = document.createElement("progress");
const words = document.createElement("p");
words.setAttribute("role", "status");
bar.setAttribute("aria-label", "Voters read");

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = new URLSearchParams([...new FormData(form)].map(([name, value]) => [name, String(value)]));
  words.textContent = "Reading what voters sent …";
  form.replaceWith(bar, words);
  const { done, wrong = UNKNOWN } = await make(String(form.dataset.progress), body).catch(nothingKnown);
  if (done) return location.assign(done.to);
  const list = document.createElement("a");
  list.href = new URL("releases", form.action).href; // beside the page that makes one
  list.textContent = "List of releases";
  bar.remove();
  words.className = "notice wrong";
  return words.replaceChildren(wrong, " ", list);
});

/**
 * Send the form, and show the progress.
 * @param {string} address
 * @param {URLSearchParams} body
 * @returns {Promise<Line>} how it ended, if that is known
 */
async function make(address, body) {
  const answer = await fetch(address, { method: "POST", body, redirect: "manual" });
  if (answer.type === "opaqueredirect") return { wrong: SIGNED_OUT };
  if (!answer.ok) return answer.status < 500 ? { wrong: reason(await answer.text()) } : nothingKnown();
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = (await reader?.read()) ?? { value: undefined, done: true };
    if (done) return nothingKnown();
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines.map(parsed)) {
      if (line.done || line.wrong) return line;
      show(line);
    }
  }
}

/** @returns {Line} */
const nothingKnown = () => ({});

/** Why the server refused: what its page says. @param {string} page */
function reason(page) {
  return new DOMParser().parseFromString(page, "text/html").querySelector("[role=alert]")?.textContent ?? REFUSED;
}

/** @param {string} line @returns {Line} */
const parsed = (line) => JSON.parse(line);

/** @param {Line} line */
function show({ read, of: total }) {
  if (!read || !total) return;
  bar.max = total;
  bar.value = Math.min(read, total);
  words.textContent = read < total ? `${read} of ${total} voters read` : "Computing the result …";
}

export {};
