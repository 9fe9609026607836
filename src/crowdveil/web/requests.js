/**
 * Requests that are under way before anybody waits for them. On a slow connection each takes its time, so those that
 * every visit needs are sent before the rest of the page is here. Each is good for one answer.
 */

const ROOT = new URL("../../api/", document.baseURI); // of /p/POLL/
const PATIENCE = 20_000; // milliseconds until a request counts as lost

/** Where the service answers. @param {string} path @param {URL} root */
export const apiAddress = (path, root = ROOT) => new URL(path, root);

/**
 * How the service is asked: without a cookie, without where the visitor came from, and not for ever.
 * @returns {RequestInit}
 */
export const anonymously = () => ({
  credentials: "omit",
  cache: "no-store",
  referrerPolicy: "no-referrer",
  signal: AbortSignal.timeout(PATIENCE),
});

/** @type {Map<string, Promise<Response>>} */
const underWay = new Map();

/** Ask for what will be needed. @param {URL} address @param {RequestInit} options */
export function askEarly(address, options) {
  const answer = fetch(address, options);
  answer.catch(() => {}); // whoever asks for it hears of it
  underWay.set(address.href, answer);
}

/** Ask now, or take the answer that is under way. @param {URL} address @param {RequestInit} options */
export function request(address, options) {
  const early = options.method === undefined ? underWay.get(address.href) : undefined;
  underWay.delete(address.href);
  return early ?? fetch(address, options);
}
