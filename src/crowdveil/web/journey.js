/**
 * Where a voter is, and what has been gathered on the way. Plain data in, plain data out.
 *
 * @typedef {import("./mechanisms/study.js").Poll} Poll
 * @typedef {import("./mechanisms/study.js").Choice} Choice
 * @typedef {import("./mechanisms/reliability.js").Repeat} Repeat
 * @typedef {"welcome" | "level" | "practice" | "dilemmas" | "about" | "review" | "sending" | "done"} Step
 * @typedef {{step: Step, place: number}} Spot
 * @typedef {"half" | "all" | "review"} ToldStep half of the dilemmas answered, all of them, and ready to send
 *
 * @typedef {object} Receipt
 * @property {string} id
 * @property {string} day
 * @property {number} epsilon_micro
 * @property {string | null} code
 * @property {string | null} url
 *
 * @typedef {object} State
 * @property {number} revision how often it has changed: of two tabs, the higher one is ahead
 * @property {string} promise a digest of what was promised when it began
 * @property {boolean} restarted whether a change of the poll has sent the voter back to the start
 * @property {Step} step
 * @property {number | null} epsilon_micro the chosen level
 * @property {import("./mechanisms/study.js").Dilemma[]} dilemmas in a study that asks one twice, that one again at the
 *   end
 * @property {number | null} repeat the place of the dilemma that the last one repeats, with its sides swapped
 * @property {(Choice | null)[]} choices
 * @property {number} place which dilemma is shown
 * @property {Record<string, import("./mechanisms/study.js").Answer>} about as they were given
 * @property {string | null} token
 * @property {string | null} body the exact text to send: made once, and never again after it was first sent
 * @property {string | null} [ciphertext] behind a relay: the body, encrypted once and never again
 * @property {ToldStep[]} told which steps the server has been told that somebody has come to
 * @property {boolean} sealed whether it may already have reached the server
 * @property {Receipt | null} receipt
 * @property {boolean} withdrawn
 */

/**
 * @param {Poll} poll
 * @param {string} promise
 * @param {string | null} token of a personal link
 * @returns {State}
 */
export function newState(poll, promise, token) {
  return {
    revision: 0,
    promise,
    restarted: false,
    step: "welcome",
    epsilon_micro: poll.levels.length === 1 ? poll.levels[0].epsilon_micro : null,
    dilemmas: [],
    repeat: null,
    choices: [],
    place: 0,
    about: {},
    token,
    body: null,
    ciphertext: null,
    told: [],
    sealed: false,
    receipt: null,
    withdrawn: false,
  };
}

/** The steps of a poll, in order. @param {Poll} poll @returns {Step[]} */
function stepsOf(poll) {
  return [
    "welcome",
    ...(poll.levels.length > 1 ? /** @type {const} */ (["level"]) : []),
    "practice",
    "dilemmas",
    ...(poll.questions.length > 0 ? /** @type {const} */ (["about"]) : []),
    "review",
    "sending",
    "done",
  ];
}

/** Where every voter begins. @type {Spot} */
export const START = { step: "welcome", place: 0 };

/** Steps that are over with the first choice. */
export const BEFORE_CHOICES = ["level", "practice"];

/** The level is chosen before the first choice, and stays. @param {State} state */
export const levelIsFixed = (state) => state.choices.some((choice) => choice !== null);

/**
 * The spot after or before the one where the voter is.
 * @param {Poll} poll
 * @param {State} state
 * @param {1 | -1} direction
 * @returns {Spot}
 */
export function beside(poll, state, direction) {
  const { step, place, dilemmas } = state;
  const within = place + direction >= 0 && place + direction < dilemmas.length;
  if (step === "dilemmas" && within) return { step, place: place + direction };
  const steps = stepsOf(poll).filter((name) => !BEFORE_CHOICES.includes(name) || !levelIsFixed(state));
  const next = steps[Math.min(Math.max(steps.indexOf(step) + direction, 0), steps.length - 1)];
  return { step: next, place };
}

/**
 * The steps that the server has yet to be told of: they follow from where the voter is and how many dilemmas are
 * answered, never from how. A poll with a relay tells nothing, nor does one on trial.
 * @param {Poll} poll
 * @param {State} state
 * @returns {ToldStep[]}
 */
export function untold(poll, { step, choices, told }) {
  if (poll.relay || poll.pilot || choices.length === 0) return [];
  const open = choices.filter((choice) => choice === null).length;
  /** @type {[ToldStep, boolean][]} */
  const steps = [
    ["half", 2 * open <= choices.length],
    ["all", open === 0],
    ["review", step === "review"],
  ];
  return steps.filter(([name, reached]) => reached && !told.includes(name)).map(([name]) => name);
}

/**
 * Whether the browser's Back or Forward may lead there.
 * @param {Poll} poll
 * @param {State} state
 * @param {Spot} spot
 */
export function reachable(poll, state, { step, place }) {
  const open = state.choices.indexOf(null);
  const answered = state.dilemmas.length > 0 && open < 0;
  if (state.sealed || !stepsOf(poll).includes(step)) return false;
  if (step === "welcome") return true;
  if (step === "level") return !levelIsFixed(state);
  if (state.epsilon_micro === null) return false;
  if (step === "practice") return !levelIsFixed(state);
  if (step === "dilemmas") return place < state.dilemmas.length && (open < 0 || place <= open);
  return answered && (step === "about" || step === "review");
}

/**
 * The rest of a remembered state when the page opens. A receipt stays. What may have been sent must be sent again
 * as it is. Anything else is kept only if it still fits the poll; under another promise, nothing is.
 * @param {Poll} poll
 * @param {string} promise
 * @param {State | null} stored
 * @param {string | null} token
 * @returns {State}
 */
export function resumed(poll, promise, stored, token) {
  if (!stored) return newState(poll, promise, token);
  if (stored.receipt || stored.withdrawn) return { ...stored, step: "done" };
  if (stored.sealed && stored.body) return { ...stored, step: "sending" };
  const fresh = { ...newState(poll, promise, token), revision: stored.revision };
  if (stored.promise !== promise) return { ...fresh, restarted: stored.restarted || stored.step !== "welcome" };
  return reachable(poll, stored, stored) ? stored : fresh;
}

/**
 * A change of anything that goes into a report makes a report that was not sent yet worthless.
 * @param {State} state
 * @param {Partial<State>} change
 * @returns {State}
 */
export function changed(state, change) {
  if (state.sealed) throw new Error("what may have been sent cannot change");
  return { ...state, ...change, body: null, ciphertext: null };
}

/**
 * The answers: the dilemmas, a choice for each, and the second answer to one of them, if one was asked twice.
 * @param {State} state
 * @returns {{dilemmas: State["dilemmas"], choices: Choice[], repeat: Repeat | null}}
 */
export function answered({ dilemmas, choices, repeat }) {
  const chosen = choices.map((choice) => {
    if (choice === null) throw new Error("a dilemma is left open");
    return choice;
  });
  if (typeof repeat !== "number" || chosen.length === 0) return { dilemmas, choices: chosen, repeat: null };
  const again = { place: repeat, chosen: /** @type {Choice} */ (chosen.at(-1)) };
  return { dilemmas: dilemmas.slice(0, -1), choices: chosen.slice(0, -1), repeat: again };
}

/**
 * What a device remembers once it needs the answers no more.
 * @param {State} state
 * @returns {State}
 */
export function withoutAnswers(state) {
  return { ...state, dilemmas: [], repeat: null, choices: [], about: {} };
}

/**
 * What a device remembers once nothing more is taken from it: no answer, and what may have been sent as it is.
 * @param {State} state
 * @returns {State}
 */
export function ended(state) {
  if (state.dilemmas.length === 0) return state;
  const rest = { ...withoutAnswers(state), revision: state.revision + 1 };
  return state.sealed ? rest : changed(rest, START);
}

/**
 * After the server has it, the device forgets the choices.
 * @param {State} state
 * @param {Receipt} receipt
 * @returns {State}
 */
export function delivered(state, receipt) {
  return { ...withoutAnswers(state), step: "done", body: null, ciphertext: null, receipt };
}

/** @param {State} state @returns {State} */
export function withdrawn(state) {
  return { ...state, step: "done", token: null, receipt: null, withdrawn: true };
}
