/** All that comes after the welcome. It is loaded while the voter reads, whatever the poll is and before any choice. */

export { ballotText } from "./ballot.js";
export { countChoices } from "./counting.js";
export { systemRandom } from "./mechanisms/random.js";
export { drawRepeat, mirrored } from "./mechanisms/reliability.js";
export { makeReport } from "./mechanisms/report.js";
export { newToken } from "./mechanisms/token.js";
export { loadSealing, putSealed, seal, withdrawSealed } from "./relay/channel.js";
export { about } from "./steps/about.js";
export { dilemmas } from "./steps/dilemmas.js";
export { done, stopped } from "./steps/done.js";
export { level } from "./steps/level.js";
export { practice } from "./steps/practice.js";
export { review, sending } from "./steps/sending.js";
