// Shows how far a release is while it is made. Without this, the form is sent as any other, and the page waits.

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
  const answer = await fetch(String(form.dataset.progress), { method: "POST", body, redirect: "error" });
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = (await reader?.read()) ?? { value: undefined, done: true };
    const lines = (rest + (value ?? "")).split("\n");
    rest = lines.pop() ?? "";
    lines.filter(Boolean).forEach((line) => tell(JSON.parse(line)));
    if (done) return;
  }
});

/** @param {{read?: number, of?: number, done?: {to: string}, wrong?: string}} line */
function tell({ read, of: total, done, wrong }) {
  if (done) location.assign(done.to);
  else if (wrong) {
    bar.remove();
    words.className = "notice wrong";
    words.textContent = wrong;
  } else if (read && total) {
    bar.max = total;
    bar.value = Math.min(read, total);
    words.textContent = read < total ? `${read} of ${total} voters read` : "Computing the result …";
  }
}

export {};
