/** A ballot for a poll whose host sees the choices. */

import { answered } from "./journey.js";
import { exactAnswer } from "./mechanisms/questions.js";
import { mirrored } from "./mechanisms/reliability.js";

/**
 * The exact text of a ballot.
 * @param {string} fingerprint of the study
 * @param {import("./mechanisms/study.js").Poll} poll
 * @param {import("./journey.js").State} state
 */
export function ballotText(fingerprint, poll, state) {
  const { dilemmas, choices, repeat } = answered(state);
  const records = dilemmas.map(({ left, right }, i) => ({ left, right, chosen: choices[i] }));
  const again = repeat ? [{ ...mirrored(dilemmas[repeat.place]), chosen: repeat.chosen, repeats: repeat.place }] : [];
  const said = poll.questions.filter(({ id }) => Object.hasOwn(state.about, id));
  const about = Object.fromEntries(said.map((question) => [question.id, exactAnswer(question, state.about[question.id])]));
  const asked = poll.questions.length > 0 ? { about } : {};
  return JSON.stringify({ format: "crowdveil ballot 1", study: fingerprint, records: [...records, ...again], ...asked });
}
