/**
 * The memory of this browser, so that a reload loses nothing and never makes a second report.
 *
 * A browser may refuse (private mode, full disk). Then the page works all the same, until it is closed.
 */

const FORMAT = 2;

/**
 * @typedef {object} Submission what stays known of a ballot that may have been sent, whatever becomes of the poll
 * @property {string} promise under which it was made
 * @property {string} id the report's number
 * @property {string} day
 */

/** The memory of one ballot, and of whether this device has taken part in the study. */
export class Store {
  #ballot;
  #submission;

  /** @param {string} ballot @param {string} participation */
  constructor(ballot, participation) {
    this.#ballot = ballotKey(ballot);
    this.#submission = `crowdveil:submission:${participation}`;
    this.lasting = this.#works();
  }

  #works() {
    try {
      const probe = `${this.#ballot}:probe`;
      localStorage.setItem(probe, "1");
      localStorage.removeItem(probe);
      return true;
    } catch {
      return false;
    }
  }

  /** @returns {import("./journey.js").State | null} what was written last */
  read() {
    return remembered(this.#ballot);
  }

  /** @param {import("./journey.js").State} state */
  write(state) {
    this.#remember(this.#ballot, state);
  }

  /** @returns {Submission | null} */
  submission() {
    return remembered(this.#submission);
  }

  /** @param {Submission} submission */
  writeSubmission(submission) {
    this.#remember(this.#submission, submission);
  }

  /** @param {string} key @param {object} value */
  #remember(key, value) {
    try {
      remember(key, value);
    } catch {
      this.lasting = false;
    }
  }
}

/**
 * Change what is remembered of a ballot, or of all ballots of a poll, whatever the link.
 * @param {string} ballot
 * @param {(state: import("./journey.js").State) => import("./journey.js").State} change
 */
export function changeBallots(ballot, change) {
  const first = ballotKey(ballot);
  try {
    for (const key of Object.keys(localStorage)) {
      const state = key === first || key.startsWith(`${first}:`) ? remembered(key) : null;
      if (state) remember(key, change(state));
    }
  } catch {
    // Nothing is remembered here.
  }
}

/** @param {string} ballot */
const ballotKey = (ballot) => `crowdveil:ballot:${ballot}`;

/** @param {string} key @param {object} value */
function remember(key, value) {
  localStorage.setItem(key, JSON.stringify({ format: FORMAT, value }));
}

/** @param {string} key @returns {any} */
function remembered(key) {
  try {
    const stored = JSON.parse(localStorage.getItem(key) ?? "null");
    return stored?.format === FORMAT ? stored.value : null;
  } catch {
    return null;
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
