/**
 * A host's key for one poll, with the terms that it is good for. Its fingerprint stands in the poll's address: a relay
 * cannot put its own key in its place, and a host cannot show one voter another key or other terms than the rest.
 *
 * @typedef {object} Configuration
 * @property {string} format
 * @property {string} suite
 * @property {number} length bytes of every report before it is sealed
 * @property {string} public_key a point of P-256, as base64url
 * @property {string} poll
 * @property {string} study the study's fingerprint
 * @property {string} mechanism
 * @property {number} epsilon_micro
 * @property {string} relay the relay's address
 * @property {number} batch the fewest reports that are ever handed over together
 * @property {string} delta
 * @property {string} honest
 *
 * @typedef {object} Relay
 * @property {Configuration} configuration
 * @property {string} fingerprint
 * @property {{epsilon: number}} promise what is promised whatever arrives
 */

import { isCheck } from "../mechanisms/questions.js";
import { canonicalJson, digest } from "../mechanisms/study.js";

const FORMAT = "crowdveil key configuration 1";
const SUITE = "DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM";
const INFO = "crowdveil sealed report 1\n";
export const LENGTH = 512;
const FIELDS = [
  "batch", "delta", "epsilon_micro", "format", "honest", "length", "mechanism", "poll", "public_key", "relay", "study",
  "suite",
];

/** The context that HPKE binds a sealed report to. @param {Configuration} configuration */
export const infoOf = (configuration) => INFO + canonicalJson(configuration);

/**
 * Refuse a relay whose key is for other terms than the poll's.
 * @param {import("../mechanisms/study.js").Poll} poll
 * @param {(condition: unknown, complaint: string) => void} demand
 */
export function checkRelay(poll, demand) {
  const { configuration, fingerprint, promise } = /** @type {Relay} */ (poll.relay);
  demand(poll.place === "distributed" && poll.unit === "voter", "a relay carries reports that protect whole voters");
  demand(poll.levels.length === 1 && poll.questions.every(isCheck), "behind a relay all reports are alike");
  demand(`${Object.keys(configuration).sort()}` === `${FIELDS}`, "the relay's key configuration has other fields");
  const { format, suite, length, study, mechanism, batch } = configuration;
  demand(format === FORMAT && suite === SUITE && length === LENGTH, "the relay's key is of another kind");
  const same = configuration.poll === poll.id && study === poll.study_fingerprint && mechanism === poll.mechanism;
  demand(same && configuration.epsilon_micro === poll.levels[0].epsilon_micro, "the relay's key is for another poll");
  demand(Number.isInteger(batch) && batch >= 2, `${batch} reports are no batch`);
  demand(/^https?:\/\/[^/?#\s]+$/.test(configuration.relay), `${configuration.relay} is no relay`);
  demand(promise.epsilon > 0 && Number(configuration.delta) > 0, "the promise behind the relay is none");
  demand(digest(infoOf(configuration)) === fingerprint, "the relay's key is not the one that its fingerprint names");
}
