/**
 * The way through a relay: a report is sealed to the host's key, so that the relay cannot read it, and sent to the
 * relay with its token, which the host never sees.
 */

import { ask } from "../api.js";
import { InvalidPoll } from "../poll.js";
import { infoOf, LENGTH } from "./configuration.js";

/**
 * @typedef {import("../mechanisms/study.js").Poll} Poll
 * @typedef {import("./configuration.js").Relay} Relay
 */

/**
 * Ask the relay for the key and the promise that it knows, and compare them with the host's and with the address.
 * @param {Poll} poll
 * @param {string | null} expected the fingerprint in the address
 * @returns {Promise<string | null>} a key of the interface's words, if the poll cannot be answered now
 */
export async function compareWithRelay(poll, expected) {
  if (!expected) return "needs_whole_link";
  const { fingerprint, promise } = relayOf(poll);
  if (fingerprint !== expected) throw new InvalidPoll("its key is not the one in the address");
  const told = await ask(path(poll), {}, root(poll));
  if (told.fingerprint !== expected) throw new InvalidPoll("the relay knows another key of this poll");
  if (told.epsilon !== promise.epsilon) throw new InvalidPoll("the relay knows another promise of this poll");
  return told.state === "open" ? null : `refused_${told.state.replaceAll("-", "_")}`;
}

/** Load the code that encrypts: before the first choice, as a request to the host later would tell it who sends. */
export const loadSealing = () => import("../vendor/hpke/index.js");

/**
 * Seal a report: fill it up with spaces to the one length, and encrypt it to the host.
 * @param {Poll} poll
 * @param {string} text
 * @returns {Promise<string>} base64
 */
export async function seal(poll, text) {
  const { configuration } = relayOf(poll);
  const written = new TextEncoder().encode(text);
  if (written.length > LENGTH) throw new InvalidPoll(`a report of ${written.length} bytes would mark its sender`);
  const padded = new Uint8Array(LENGTH).fill(0x20);
  padded.set(written);
  const { AEAD_AES_128_GCM, CipherSuite, KDF_HKDF_SHA256, KEM_DHKEM_P256_HKDF_SHA256 } = await loadSealing();
  const suite = new CipherSuite(KEM_DHKEM_P256_HKDF_SHA256, KDF_HKDF_SHA256, AEAD_AES_128_GCM);
  const key = await suite.DeserializePublicKey(fromBase64(configuration.public_key));
  const info = new TextEncoder().encode(infoOf(configuration));
  const { encapsulatedSecret, ciphertext } = await suite.Seal(key, padded, { info });
  return btoa(String.fromCharCode(...encapsulatedSecret, ...ciphertext));
}

/** Send what was sealed, byte for byte. @param {Poll} poll @param {string} token @param {string} sealed */
export function putSealed(poll, token, sealed) {
  const headers = { "Crowdveil-Ballot": token, "Content-Type": "application/octet-stream" };
  return ask(`${path(poll)}/report`, { method: "PUT", headers, body: fromBase64(sealed) }, root(poll));
}

/**
 * The state of a personal link.
 * @param {Poll} poll
 * @param {string} token
 * @returns {Promise<{status: "unused" | "stored" | "handed-over"}>}
 */
export function getRelayedParticipation(poll, token) {
  return ask(`${path(poll)}/participation`, { headers: { "Crowdveil-Ballot": token } }, root(poll));
}

/** Erase what was sent, if it has not been handed over. @param {Poll} poll @param {string} token */
export function withdrawSealed(poll, token) {
  const headers = { "Crowdveil-Ballot": token };
  return ask(`${path(poll)}/participation`, { method: "DELETE", headers }, root(poll));
}

/** @param {Poll} poll */
const path = (poll) => `polls/${encodeURIComponent(poll.id)}`;

/** @param {Poll} poll */
const root = (poll) => new URL("/api/", relayOf(poll).configuration.relay);

/** @param {Poll} poll @returns {Relay} */
function relayOf({ relay }) {
  if (!relay) throw new Error("this poll has no relay");
  return relay;
}

/** @param {string} text base64, of either alphabet */
function fromBase64(text) {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}
