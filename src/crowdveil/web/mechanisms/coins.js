/**
 * Exact coins and finite laws: a uniform number against thresholds, binary digit by binary digit.
 *
 * Let U be uniform on [0, 1). A coin of probability p shows heads if U < p. Of U only the first 64 digits are drawn, an
 * integer u. If u < floor(2^64 p), then U < p; if u is above it, then U > p; if they are equal, which happens once in
 * 2^64 tosses, 64 more digits of both are compared, until they differ. So the probability of heads is p, exactly,
 * however irrational. A probability of one is written 0.111..., with floors 2^bits - 1, which changes no toss.
 */

/** @typedef {import("./random.js").Random} Random */
/** @typedef {(bits: bigint) => bigint} Floor floor(2^bits p) of a probability p */
/** @typedef {(bits: bigint) => bigint[]} Floors the same of several, in ascending order where they are thresholds */

const WORD_BITS = 64n;

/**
 * @param {Random} random
 * @param {Floor} floor
 * @returns {boolean} true with probability p
 */
export function toss(random, floor) {
  let digits = random.word();
  for (let bits = WORD_BITS; ; bits += WORD_BITS) {
    const known = floor(bits);
    if (digits !== known) return digits < known;
    digits = (digits << WORD_BITS) | random.word();
  }
}

/**
 * Draw K from 0, ..., n with P(K <= k) = F_k for the n thresholds F_k: how many of them are at or below U.
 * @param {Random} random
 * @param {Floors} floors
 * @returns {number}
 */
export function invert(random, floors) {
  let digits = random.word();
  for (let bits = WORD_BITS; ; bits += WORD_BITS) {
    const known = floors(bits);
    if (!known.includes(digits)) return known.filter((floor) => floor < digits).length;
    digits = (digits << WORD_BITS) | random.word();
  }
}

/**
 * The same floors, each number of digits computed once.
 * @template T
 * @param {(bits: bigint) => T} floors
 * @returns {(bits: bigint) => T}
 */
export function remembered(floors) {
  const known = new Map();
  return (bits) => {
    if (!known.has(bits)) known.set(bits, floors(bits));
    return known.get(bits);
  };
}
