/**
 * Where a voter is, and what has been gathered on the way. Plain data in, plain data out.
 *
 * @typedef {object} State
 * @property {string} fingerprint of the study that it belongs to
 * @property {string} step
 * @property {number | null} epsilonMicro the chosen level
 * @property {{left: number[], right: number[]}[]} dilemmas
 * @property {("left" | "right" | null)[]} choices
 * @property {number} place which dilemma is shown
 * @property {Record<string, string>} about
 * @property {string | null} token
 * @property {string | null} body the exact text to send: made once, and never again after it was first sent
 * @property {boolean} sealed whether it may already have reached the server
 * @property {null | {id: string, day: string, epsilonMicro: number, code: string | null, url: string | null}} receipt
 * @property {boolean} withdrawn
 */

/** @param {any} poll @param {string | null} token of a personal link @returns {State} */
export function newState(poll, token) {
  return {
    fingerprint: poll.study_fingerprint,
    step: "welcome",
    epsilonMicro: poll.levels.length === 1 ? poll.levels[0].epsilon_micro : null,
    dilemmas: [],
    choices: [],
    place: 0,
    about: {},
    token,
    body: null,
    sealed: false,
    receipt: null,
    withdrawn: false,
  };
}

/** The steps of a poll, in order. @param {any} poll @returns {string[]} */
export function stepsOf(poll) {
  return [
    "welcome",
    ...(poll.levels.length > 1 ? ["level"] : []),
    "dilemmas",
    ...(poll.questions.length > 0 ? ["about"] : []),
    "review",
    "sending",
    "done",
  ];
}

/** @param {any} poll @param {string} step @param {1 | -1} direction */
export function beside(poll, step, direction) {
  const steps = stepsOf(poll);
  return steps[Math.min(Math.max(steps.indexOf(step) + direction, 0), steps.length - 1)];
}

/**
 * What is left of a remembered state when the page opens. A receipt stays. What may have been sent must be sent again
 * as it is. Anything else is kept only if it still fits the poll.
 * @param {any} poll
 * @param {State | null} stored
 * @param {string | null} token
 * @returns {State}
 */
export function resumed(poll, stored, token) {
  if (!stored) return newState(poll, token);
  if (stored.receipt || stored.withdrawn) return { ...stored, step: "done" };
  if (stored.sealed && stored.body) return { ...stored, step: "sending" };
  const fits =
    stored.fingerprint === poll.study_fingerprint &&
    stepsOf(poll).includes(stored.step) &&
    (stored.epsilonMicro === null || poll.levels.some((level) => level.epsilon_micro === stored.epsilonMicro)) &&
    (stored.epsilonMicro !== null || ["welcome", "level"].includes(stored.step)) &&
    (stored.dilemmas.length > 0 || ["welcome", "level"].includes(stored.step));
  return fits ? stored : newState(poll, token);
}

/** A change of anything that goes into a report makes a report that was not sent yet worthless. @param {State} state */
export function changed(state, change) {
  if (state.sealed) throw new Error("what may have been sent cannot change");
  return { ...state, ...change, body: null };
}

/**
 * After the server has it, the device forgets the answers.
 * @param {State} state
 * @param {any} receipt
 * @returns {State}
 */
export function delivered(state, receipt) {
  return { ...state, step: "done", dilemmas: [], choices: [], about: {}, body: null, receipt };
}

/** @param {State} state @returns {State} */
export function withdrawn(state) {
  return { ...state, step: "done", token: null, receipt: null, withdrawn: true };
}

/**
 * The text of a ballot for a poll whose host sees the answers.
 * @param {any} poll
 * @param {State} state
 */
export function ballotText(poll, state) {
  const answers = state.dilemmas.map((dilemma, i) => ({
    left: dilemma.left,
    right: dilemma.right,
    chosen: state.choices[i],
  }));
  const about = poll.questions.length > 0 ? { about: state.about } : {};
  return JSON.stringify({ format: "crowdveil ballot 1", study: poll.study_fingerprint, answers, ...about });
}
