/** The modules under test, from any place: the package's own, those that a server serves, or a damaged copy. */

const FILES = [
  "about", "algorithm-2", "algorithm-3", "algorithm-3-choices", "coins", "fit", "grid", "indifference", "noise",
  "one-bit", "one-choice", "questions", "random", "randomised-response", "records", "reliability", "report", "score",
  "sha256", "study", "subset-selection", "terms", "token",
];

/** @typedef {any} Modules all that they export */

/** @param {string} base the folder's address, with a slash at its end @returns {Promise<Modules>} */
export async function load(base) {
  return Object.assign({}, ...(await Promise.all(FILES.map((file) => import(`${base}${file}.js`)))));
}

/** Collects what is not as it should be. */
export class Failures {
  /** @type {string[]} */
  list = [];

  /**
   * Note a difference between what is and what should be.
   * @param {string} name
   * @param {unknown} got
   * @param {unknown} wanted
   */
  same(name, got, wanted) {
    if (text(got) !== text(wanted)) this.list.push(`${name}: got ${text(got)}, wanted ${text(wanted)}`);
  }

  /** Note what does not hold. @param {string} name @param {boolean} condition */
  holds(name, condition, detail = "") {
    if (!condition) this.list.push(`${name}: ${detail || "does not hold"}`);
  }
}

/** @param {unknown} value */
function text(value) {
  return JSON.stringify(value, (_, entry) => (typeof entry === "bigint" ? String(entry) : entry));
}
