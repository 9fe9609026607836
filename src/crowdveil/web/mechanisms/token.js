/** The random number under which a vote counts once, and the name under which it is stored. */

import { sha256 } from "./sha256.js";

const TOKEN_BYTES = 16;
const ID_BYTES = 16;

/** @param {import("./random.js").Random} random @returns {string} a ballot token: 16 random bytes in base64url */
export function newToken(random) {
  const text = btoa(String.fromCharCode(...random.bytes(TOKEN_BYTES)));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** @param {string} token @returns {string} the name under which a report is stored: it tells nothing of the token */
export function reportId(token) {
  const hash = sha256(new TextEncoder().encode(`crowdveil report ${token}`));
  return Array.from(hash.slice(0, ID_BYTES), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
