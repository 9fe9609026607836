// The form of a new poll: shows what belongs to what was chosen, and rows as they are needed. Without it, all is shown.

const form = /** @type {HTMLFormElement} */ (document.querySelector("form.builder"));

function chosen() {
  const study = form.querySelector("input[name=study]:checked");
  const own = study?.getAttribute("value") === "own";
  const place = form.querySelector("input[name=paradigm]:checked")?.getAttribute("data-place");
  show(".only-own", own);
  show(".only-leaving-out", study?.hasAttribute("data-leaves-out") ?? true);
  show(".only-distributed", place !== "central");
  show(".only-central", place === "central");
  show(".only-vldp", form.querySelector("input[name=paradigm]:checked")?.getAttribute("value") === "vldp");
  for (const row of form.querySelectorAll('[data-row="question"]')) kinds(row);
  beside();
}

/** Show the fields of a question that its kind has. @param {Element} row */
function kinds(row) {
  const kind = /** @type {HTMLSelectElement} */ (row.querySelector("[data-kind]")).value;
  for (const part of /** @type {NodeListOf<HTMLElement>} */ (row.querySelectorAll("[data-kinds]"))) {
    part.hidden = !String(part.dataset.kinds).split(" ").includes(kind);
  }
}

/** Ask for translations of what is there only. */
function beside() {
  for (const row of /** @type {NodeListOf<HTMLElement>} */ (form.querySelectorAll("[data-beside]"))) {
    row.hidden = !(/** @type {HTMLInputElement} */ (form.elements.namedItem(String(row.dataset.beside))).value);
  }
}

/** @param {string} parts @param {boolean} shown */
function show(parts, shown) {
  for (const part of /** @type {NodeListOf<HTMLElement>} */ (form.querySelectorAll(parts))) part.hidden = !shown;
}

/** Leave the rows that are filled in and one more. @param {string} kind @param {number} least */
function rows(kind, least) {
  const all = /** @type {HTMLElement[]} */ ([...form.querySelectorAll(`[data-row="${kind}"]`)]);
  const needed = Math.max(least, all.map(isFilled).lastIndexOf(true) + 1);
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

/** @param {Element} row */
function isFilled(row) {
  const fields = [...row.querySelectorAll("input:not([type=checkbox]), textarea")];
  return fields.some((field) => "value" in field && field.value);
}

form.addEventListener("change", chosen);
chosen();
rows("feature", 2);
rows("level", 1);
rows("question", 1);

export {};
