/**
 * SHA-256 (FIPS 180-4). The browser's own is only there on pages from https or localhost, and a poll may be held on a
 * local network without either. Nothing secret depends on its speed.
 */

const ROUND_CONSTANTS = fractions(64, 1 / 3);
const START = fractions(8, 1 / 2);

/** @param {Uint8Array} message @returns {Uint8Array} 32 bytes */
export function sha256(message) {
  const padded = new DataView(new ArrayBuffer((((message.length + 8) >> 6) + 1) * 64));
  message.forEach((byte, i) => padded.setUint8(i, byte));
  padded.setUint8(message.length, 0x80);
  padded.setBigUint64(padded.byteLength - 8, BigInt(message.length) * 8n);
  const hash = START.slice();
  const words = new Uint32Array(64);
  for (let block = 0; block < padded.byteLength; block += 64) {
    for (let i = 0; i < 64; i++) words[i] = i < 16 ? padded.getUint32(block + 4 * i) : expanded(words, i);
    compress(hash, words);
  }
  const result = new DataView(new ArrayBuffer(32));
  hash.forEach((word, i) => result.setUint32(4 * i, word));
  return new Uint8Array(result.buffer);
}

/** @param {Uint32Array} words @param {number} i */
function expanded(words, i) {
  const [x, y] = [words[i - 15], words[i - 2]];
  const s0 = rotated(x, 7) ^ rotated(x, 18) ^ (x >>> 3);
  const s1 = rotated(y, 17) ^ rotated(y, 19) ^ (y >>> 10);
  return words[i - 16] + s0 + words[i - 7] + s1;
}

/** @param {Uint32Array} hash @param {Uint32Array} words */
function compress(hash, words) {
  let [a, b, c, d, e, f, g, h] = hash;
  for (let i = 0; i < 64; i++) {
    const s1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25);
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + ROUND_CONSTANTS[i] + words[i]) | 0;
    const s0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22);
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [a, b, c, d, e, f, g, h] = [(t1 + t2) | 0, a, b, c, (d + t1) | 0, e, f, g];
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => (hash[i] += word));
}

/** @param {number} x @param {number} by */
function rotated(x, by) {
  return (x >>> by) | (x << (32 - by));
}

/** The first 32 bits after the point of the powers of the first primes. @param {number} count @param {number} power */
function fractions(count, power) {
  /** @type {number[]} */
  const primes = [];
  for (let n = 2; primes.length < count; n++) if (primes.every((prime) => n % prime)) primes.push(n);
  return Uint32Array.from(primes, (prime) => (prime ** power % 1) * 2 ** 32);
}
