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
  const answers = said.map((question) => [question.id, exactAnswer(question, state.about[question.id])]);
  const about = poll.questions.length > 0 ? { about: Object.fromEntries(answers) } : {};
  const format = "crowdveil ballot 1";
  return JSON.stringify({ format, study: fingerprint, records: [...records, ...again], ...about });
}
