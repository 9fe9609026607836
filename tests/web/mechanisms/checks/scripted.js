/** Bytes that everybody can compute: SHA-256 of "<seed> 0", "<seed> 1", ... one after the other. */

/**
 * @param {string} seed
 * @param {import("./modules.js").Modules} modules
 */
export function scriptedRandom(seed, { Random, sha256 }) {
  const encoder = new TextEncoder();
  let [block, left] = [0, new Uint8Array(0)];
  return new Random((/** @type {Uint8Array} */ bytes) => {
    for (let filled = 0; filled < bytes.length; ) {
      if (left.length === 0) left = sha256(encoder.encode(`${seed} ${block++}`));
      const some = left.subarray(0, bytes.length - filled);
      bytes.set(some, filled);
      filled += some.length;
      left = left.subarray(some.length);
    }
  });
}
