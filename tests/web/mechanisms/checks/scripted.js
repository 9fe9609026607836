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

/**
 * Bytes for counting, always the same for a seed and made faster: Chris Doty-Humphrey's sfc32, started with a hash.
 * @param {string} seed
 * @param {import("./modules.js").Modules} modules
 */
export function quickRandom(seed, { Random, sha256 }) {
  const start = new DataView(sha256(new TextEncoder().encode(seed)).buffer);
  let [a, b, c, counter] = [0, 4, 8, 12].map((at) => start.getUint32(at));
  const next = () => {
    const word = (a + b + counter++) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + word) | 0;
    return word;
  };
  return new Random((/** @type {Uint8Array} */ bytes) => {
    for (let i = 0, word = 0; i < bytes.length; i++, word >>>= 8) {
      if (i % 4 === 0) word = next();
      bytes[i] = word;
    }
  });
}
