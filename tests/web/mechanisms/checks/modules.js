/** The modules under test, from any place: the package's own, those that a server serves, or a damaged copy. */

const FILES = [
  "about", "algorithm-2", "algorithm-3", "algorithm-3-choices", "coins", "fit", "grid", "noise", "one-choice", "random",
  "randomised-response", "records", "report", "score", "sha256", "subset-selection",
];

/** @param {string} base the folder's address, with a slash at its end @returns {Promise<any>} all that they export */
export async function load(base) {
  return Object.assign({}, ...(await Promise.all(FILES.map((file) => import(`${base}${file}.js`)))));
}

/** Collects what is not as it should be. */
export class Failures {
  list = [];

  /** Note a difference between what is and what should be. */
  same(name, got, wanted) {
    if (text(got) !== text(wanted)) this.list.push(`${name}: got ${text(got)}, wanted ${text(wanted)}`);
  }

  /** Note what does not hold. */
  holds(name, condition, detail = "") {
    if (!condition) this.list.push(`${name}: ${detail || "does not hold"}`);
  }
}

function text(value) {
  return JSON.stringify(value, (_, entry) => (typeof entry === "bigint" ? String(entry) : entry));
}
