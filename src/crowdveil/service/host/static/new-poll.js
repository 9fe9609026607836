// The form of a new poll: shows what belongs to what was chosen, and rows as they are needed. Without it, all is shown.

const form = /** @type {HTMLFormElement} */ (document.querySelector("form.builder"));

function chosen() {
  const own = form.querySelector("input[name=study]:checked")?.getAttribute("value") === "own";
  const place = form.querySelector("input[name=paradigm]:checked")?.getAttribute("data-place");
  show(".only-own", own);
  show(".only-distributed", place !== "central");
  show(".only-central", place === "central");
}

/** @param {string} parts @param {boolean} shown */
function show(parts, shown) {
  for (const part of /** @type {NodeListOf<HTMLElement>} */ (form.querySelectorAll(parts))) part.hidden = !shown;
}

/** Leave the rows that are filled in and one more. @param {string} kind @param {number} least */
function rows(kind, least) {
  const all = /** @type {HTMLElement[]} */ ([...form.querySelectorAll(`[data-row="${kind}"]`)]);
  const filled = all.map((row) => [...row.querySelectorAll("input, textarea")].some((field) => "value" in field && field.value));
  const needed = Math.max(least, filled.lastIndexOf(true) + 1);
  const button = /** @type {HTMLButtonElement} */ (form.querySelector(`[data-add="${kind}"]`));
  all.forEach((row, k) => (row.hidden = k >= needed));
  button.hidden = needed >= all.length;
  button.addEventListener("click", () => {
    const next = all.find((row) => row.hidden);
    if (next) next.hidden = false;
    button.hidden = !all.some((row) => row.hidden);
    next?.querySelector("input")?.focus();
  });
}

form.addEventListener("change", chosen);
chosen();
rows("feature", 2);
rows("level", 1);
rows("question", 1);

export {};
