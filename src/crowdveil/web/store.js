/**
 * What this browser remembers, so that a reload loses nothing and never makes a second report.
 *
 * A browser may refuse (private mode, full disk). Then the page works all the same, until it is closed.
 */

const FORMAT = 1;

/** The memory of one ballot. */
export class Store {
  #key;

  /** @param {string} key */
  constructor(key) {
    this.#key = `crowdveil:${key}`;
    this.lasting = this.#works();
  }

  #works() {
    try {
      const probe = `${this.#key}:probe`;
      localStorage.setItem(probe, "1");
      localStorage.removeItem(probe);
      return true;
    } catch {
      return false;
    }
  }

  /** @returns {any} what was written last, or null */
  read() {
    try {
      const stored = JSON.parse(localStorage.getItem(this.#key) ?? "null");
      return stored?.format === FORMAT ? stored.state : null;
    } catch {
      return null;
    }
  }

  /** @param {object} state @returns {boolean} whether it will be there after a reload */
  write(state) {
    try {
      localStorage.setItem(this.#key, JSON.stringify({ format: FORMAT, state }));
    } catch {
      this.lasting = false;
    }
    return this.lasting;
  }
}

/** The language that was chosen here before. @returns {string | null} */
export function chosenLanguage() {
  try {
    return localStorage.getItem("crowdveil:language");
  } catch {
    return null;
  }
}

/** @param {string} language */
export function rememberLanguage(language) {
  try {
    localStorage.setItem("crowdveil:language", language);
  } catch {
    // It will be asked for again.
  }
}
