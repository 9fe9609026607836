/** The service, as the page uses it. Nothing here knows an answer: it carries texts that were made elsewhere. */

import { InvalidPoll } from "./poll.js";
import { anonymously, apiAddress, request } from "./requests.js";

/** Reasons of the server that the interface has words for. */
const REASONS = [
  "unreachable",
  "closed",
  "full",
  "not-open-yet",
  "unknown-ballot",
  "different-report",
  "withdrawn",
  "nothing-stored",
  "handed-over",
  "too-many-requests",
];

/** A request that did not get what it asked for. `reason` is the server's, or "unreachable". */
export class Refusal extends Error {
  /**
   * @param {string} reason
   * @param {string} message
   * @param {number} status 0 if there was no response
   * @param {number} wait seconds to wait before asking again
   */
  constructor(reason, message, status = 0, wait = 0) {
    super(message);
    this.reason = reason;
    this.status = status;
    this.wait = wait;
  }

  /** Whether the same request may succeed later. */
  get passing() {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

/** @param {string} poll @returns {Promise<import("./mechanisms/study.js").Poll>} */
export const getPoll = (poll) => ask(`polls/${encodeURIComponent(poll)}`);

/** @param {string} poll @param {string} language @returns {Promise<import("./language.js").Words>} */
export const getWords = (poll, language) =>
  ask(`polls/${encodeURIComponent(poll)}/words/${encodeURIComponent(language)}`);

/** @param {string} poll @returns {Promise<{dilemmas: import("./mechanisms/study.js").Dilemma[]}>} */
export const getSession = (poll) => ask(`polls/${encodeURIComponent(poll)}/session`);

/**
 * Report that somebody has come to a step: its name, and nothing else. Whether it arrives is nobody's concern.
 * @param {string} poll
 * @param {import("./journey.js").ToldStep} step
 */
export function tellStep(poll, step) {
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify({ step });
  ask(`polls/${encodeURIComponent(poll)}/steps`, { method: "POST", headers, body }).catch(() => {});
}

/** @param {string} release @returns {Promise<import("./comparison.js").Release>} */
export const getRelease = (release) => ask(`releases/${encodeURIComponent(release)}`);

/**
 * Send what was made, byte for byte.
 * @param {string} poll
 * @param {"report" | "ballot"} kind
 * @param {string} token
 * @param {string} body
 */
export function put(poll, kind, token, body) {
  const headers = { "Crowdveil-Ballot": token, "Content-Type": "application/json" };
  return ask(`polls/${encodeURIComponent(poll)}/${kind}`, { method: "PUT", headers, body });
}

/**
 * The state of a personal link.
 * @param {string} poll
 * @param {string} token
 * @returns {Promise<{status: "unused" | "stored"}>}
 */
export function getParticipation(poll, token) {
  return ask(`polls/${encodeURIComponent(poll)}/participation`, { headers: { "Crowdveil-Ballot": token } });
}

/** Delete what was sent. @param {string} poll @param {string} token */
export function withdraw(poll, token) {
  return ask(`polls/${encodeURIComponent(poll)}/participation`, {
    method: "DELETE",
    headers: { "Crowdveil-Ballot": token },
  });
}

/** @param {string} path @param {RequestInit} options @param {URL} [root] @returns {Promise<any>} */
export async function ask(path, options = {}, root) {
  let response;
  let text;
  try {
    response = await request(apiAddress(path, root), { ...options, ...anonymously() });
    text = await response.text();
  } catch {
    throw new Refusal("unreachable", "the server did not answer");
  }
  if (response.status === 204) return null;
  const data = parsed(text);
  if (response.ok && data !== null) return data;
  const { reason = "unexpected", message = response.statusText } = data?.error ?? {};
  throw new Refusal(
    reason,
    message,
    response.ok ? 502 : response.status,
    Number(response.headers.get("Retry-After")) || 0,
  );
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const FIRST_PAUSE = 1;
const LONGEST_PAUSE = 30;

/**
 * Send until it has arrived: the same bytes again after a lost connection, with longer and longer pauses.
 * @param {() => Promise<any>} attempt sends once
 * @param {(pause: number) => Promise<void>} pause waits so many seconds, or less if there is news of the connection
 * @returns {Promise<any>} the server's answer; a refusal that will not pass is thrown
 */
export async function deliver(attempt, pause) {
  for (let seconds = FIRST_PAUSE; ; seconds = Math.min(2 * seconds, LONGEST_PAUSE)) {
    try {
      return await attempt();
    } catch (refusal) {
      if (!(refusal instanceof Refusal && refusal.passing)) throw refusal;
      await pause(Math.max(seconds, refusal.wait));
    }
  }
}

/**
 * A refusal in the voter's language; what has no words there is told as it came.
 * @param {unknown} refusal
 * @param {import("./language.js").Language} language
 */
export function refusalWords(refusal, language) {
  const message = refusal instanceof Error ? refusal.message : String(refusal);
  if (refusal instanceof InvalidPoll) return language.say("invalid_poll", { message });
  const reason = refusal instanceof Refusal ? refusal.reason : "";
  return REASONS.includes(reason)
    ? language.say(`refused_${reason.replaceAll("-", "_")}`)
    : language.say("refused_other", { message });
}
