/**
 * Exact coins and finite laws: a uniform number against thresholds, binary digit by binary digit.
 *
 * Let U be uniform on [0, 1). A coin of probability p shows heads if U < p. Of U only the first 64 digits are drawn, an
 * integer u. If u < floor(2^64 p), then U < p; if u is above it, then U > p; if they are equal, which happens once in
 * 2^64 tosses, 64 more digits of both are compared, until they differ. So the probability of heads is p, exactly,
 * however irrational. A probability of one is written 0.111..., with floors 2^bits - 1, which changes no toss.
 *
 * Coins whose probability depends on epsilon have odds (a + b q) / (c + d q), where q = exp(-epsilon). With no number
 * negative, c + d > 0, a <= c and a + b <= c + d, this is a probability for every epsilon: (c - a) + (d - b) q is a
 * straight line in q, not negative at q = 0 and q = 1, and so not between.
 */

/** @typedef {import("./random.js").Random} Random */
/** @typedef {(bits: bigint) => bigint} Floor floor(2^bits p) of a probability p */
/** @typedef {(bits: bigint) => bigint[]} Floors the same of several, in ascending order where they are thresholds */

/** @typedef {readonly [bigint, bigint, bigint, bigint]} Odds a, b, c, d */

export const MICROS_PER_UNIT = 1_000_000n;
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
  /** @type {Map<bigint, T>} */
  const known = new Map();
  return (bits) => {
    const floor = known.get(bits) ?? floors(bits);
    known.set(bits, floor);
    return floor;
  };
}

/** Turned over with probability q / (1 + q) = 1 / (1 + e^epsilon). @type {Odds} */
export const FLIP = [0n, 1n, 1n, 1n];

/**
 * The floor is certain. The fraction is monotone in q (the derivative has the sign of bc - ad), so where the floors at
 * a lower and at an upper bound of q agree, they are the floor. They agree in the end: either bc = ad and q does not
 * matter, or the fraction is irrational, since q is transcendental (Hermite and Lindemann).
 * @param {Odds} odds
 * @param {number} micro epsilon in millionths, at least 1
 * @returns {Floor}
 */
export function oddsFloor(odds, micro) {
  const [a, b, c, d] = odds;
  if (!(odds.every((number) => number >= 0n) && c + d > 0n && a <= c && a + b <= c + d)) {
    throw new RangeError(`${odds.join(", ")} are no odds`);
  }
  return (bits) => {
    for (let precision = bits + 128n; ; precision *= 2n) {
      const [low, high] = expBounds(BigInt(micro), MICROS_PER_UNIT, precision).map(
        (q) => (((a << precision) + b * q) << bits) / ((c << precision) + d * q),
      );
      if (low === high) return low >> bits ? low - 1n : low;
    }
  };
}

/**
 * exp(-x) of a fraction x > 0, enclosed between integers. No floating-point exponential is involved in any noise.
 *
 * With y = x / 2^h <= 1/2, exp(-y) = 1 - y/1 (1 - y/2 (1 - y/3 ...)). Every bracket, an alternating series of
 * decreasing terms from 1, lies in [0, 1]; so the innermost one kept starts as that interval, and each step outwards,
 * rounded outwards, shortens it by y/n. Squaring h times gives exp(-x).
 *
 * @param {bigint} above x = above / below
 * @param {bigint} below
 * @param {bigint} precision
 * @returns {[bigint, bigint]} low <= 2^precision exp(-x) <= high
 */
export function expBounds(above, below, precision) {
  if (!(above > 0n && below > 0n)) throw new RangeError(`exp(-x) is for x > 0, not ${above}/${below}`);
  let halvings = 0;
  while (2n * above > below) {
    below *= 2n;
    halvings += 1;
  }
  const one = 1n << precision;
  // How many terms is a matter of speed alone: too few would leave the bounds apart, never wrong.
  let terms = 0n;
  for (let term = one; term > 0n; term = (term * above) / (below * terms)) terms += 1n;
  let [low, high] = [0n, one];
  for (let n = terms; n > 0n; n--) {
    [low, high] = [one - ceilDivide(high * above, below * n), one - (low * above) / (below * n)];
  }
  for (let i = 0; i < halvings; i++) {
    [low, high] = [timesDown(low, low, precision), timesUp(high, high, precision)];
  }
  return [low, high];
}

/**
 * The product of two numbers written as multiples of 2^-precision, rounded down.
 * @param {bigint} a
 * @param {bigint} b
 * @param {bigint} precision
 */
export function timesDown(a, b, precision) {
  return (a * b) >> precision;
}

/** The same, rounded up. @param {bigint} a @param {bigint} b @param {bigint} precision */
export function timesUp(a, b, precision) {
  return -((-a * b) >> precision);
}

/** @param {bigint} a @param {bigint} b */
function ceilDivide(a, b) {
  return (a + b - 1n) / b;
}
