/**
 * The randomness that mechanisms ask for. A mechanism says how far neighbours can be apart; the laws are those of
 * `LaplaceCoins` and `cubeNoise` below, and of the coins in `coins.js`.
 *
 * Theorem. Let f map answers to integer vectors, with |f(D) - f(D')| <= s for all neighbours D, D', in the sum of all
 * magnitudes (`laplace`) or in the largest one (`cube`). Then f(D) + X with P(X = x) proportional to exp(-|x| eps / s)
 * is eps-differentially private.
 * Proof. For every y, P(f(D) + X = y) / P(f(D') + X = y) = exp(eps/s (|y - f(D')| - |y - f(D)|)), as the normalising
 * constants are equal, and by the triangle inequality this is at most exp(eps/s |f(D) - f(D')|) <= exp(eps).
 */

import { MICROS_PER_UNIT, expBounds, invert, oddsFloor, remembered, timesDown, timesUp, toss } from "./coins.js";
import { bitLength } from "./random.js";

/** @typedef {import("./random.js").Random} Random */
/** @typedef {typeof timesDown} Times a product, rounded one way */

const KEYS = 1n << 62n;

/** Exact noise. Epsilons are in millionths. */
export class Noise {
  /** @type {Map<string, import("./coins.js").Floor>} */
  #coins = new Map();

  /** @param {Random} random */
  constructor(random) {
    this.random = random;
  }

  /** @param {bigint} sensitivity in l1 @param {number} micro @param {number} count @returns {bigint[]} */
  laplace(sensitivity, micro, count) {
    const coins = new LaplaceCoins(sensitivity * MICROS_PER_UNIT, BigInt(micro));
    return Array.from({ length: count }, () => coins.laplace(this.random));
  }

  /** @param {bigint} sensitivity in the maximum norm @param {number} micro @param {number} count @returns {bigint[]} */
  cube(sensitivity, micro, count) {
    return cubeNoise(this.random, sensitivity * MICROS_PER_UNIT, BigInt(micro), count);
  }

  /** @param {import("./coins.js").Odds} odds @param {number} micro @returns {boolean} */
  toss(odds, micro) {
    const name = `${odds} at ${micro}`;
    const coin = this.#coins.get(name) ?? remembered(oddsFloor(odds, micro));
    this.#coins.set(name, coin);
    return toss(this.random, coin);
  }

  /** @param {number} bound @returns {number} uniform on 0, ..., bound - 1 */
  below(bound) {
    return Number(this.random.below(BigInt(bound)));
  }

  /**
   * A random order of 0, ..., places - 1, every one equally likely: that of independent keys. Where two keys are equal,
   * all are drawn again, so that the law is exact.
   * @param {number} places
   * @returns {number[]}
   */
  order(places) {
    for (;;) {
      const keys = Array.from({ length: places }, () => this.random.below(KEYS));
      if (new Set(keys).size === places) {
        return keys.map((_, i) => i).sort((i, j) => (keys[i] < keys[j] ? -1 : 1));
      }
    }
  }
}

const NONZERO = 0;
const TAIL = 1;
const FIRST_DIGIT = 2;
/** @type {import("./coins.js").Floor} */
const SIGN = (bits) => 1n << (bits - 1n);

/**
 * Exact integer noise of one coordinate: the discrete Laplace distribution, as the coins of one scale t = above /
 * below: nonzero, tail, digit 0, ..., digit K - 1.
 *
 * Theorem. Let t > 0, q = exp(-1/t) and Q_k = exp(-2^k / t). Toss independent coins
 *     nonzero    with probability 2q / (1 + q),
 *     digit k    with probability Q_k / (1 + Q_k),    for k = 0, ..., K - 1,
 *     tail       with probability Q_K, again and again until it fails; M counts the successes,
 *     sign       fair,
 * and let G = sum_k 2^k digit_k + 2^K M. Then P(G = g) = (1 - q) q^g, and X = (nonzero ? 1 + G : 0), negated if sign
 * says so, has P(X = x) = (1 - q) / (1 + q) exp(-|x| / t).
 *
 * Proof. Every g is r + 2^K m in one way, 0 <= r < 2^K. With b_k the digits of r, P(G = g) =
 * prod_k Q_k^(b_k) / (1 + Q_k) (1 - Q_K) Q_K^m = q^g (1 - Q_K) / prod_k (1 + Q_k), where the product telescopes to
 * (1 - Q_K) / (1 - q), as (1 - Q_k)(1 + Q_k) = 1 - Q_(k+1). So P(X = 0) = (1 - q) / (1 + q), and for x != 0
 * P(X = x) = 1/2 2q / (1 + q) (1 - q) q^(|x| - 1).
 */
export class LaplaceCoins {
  /** @type {import("./coins.js").Floor[]} */
  #coins;

  /** @param {bigint} above @param {bigint} below */
  constructor(above, below) {
    this.above = above;
    this.below = below;
    // The least K with 2^K >= 16 t: the tail then rarely succeeds. Any K would be right.
    this.digits = 0n;
    while (below << this.digits < 16n * above) this.digits += 1n;
    const floors = remembered((/** @type {bigint} */ bits) => this.floors(bits));
    this.#coins = Array.from({ length: FIRST_DIGIT + Number(this.digits) }, (_, i) => (bits) => floors(bits)[i]);
  }

  /**
   * floor(2^bits p) of every coin. All are certain: every p grows with exp(-1/t); where the floors at a lower and at an
   * upper bound of that agree, they are the floors, and no p is a dyadic rational, so they agree in the end.
   * @param {bigint} bits
   * @returns {bigint[]}
   */
  floors(bits) {
    for (let precision = bits + 128n; ; precision *= 2n) {
      const [low, high] = expBounds(this.below, this.above, precision);
      const least = this.#floorsAt(low, precision, bits, timesDown);
      const most = this.#floorsAt(high, precision, bits, timesUp);
      if (least.every((floor, i) => floor === most[i])) return least;
    }
  }

  /** @param {bigint} q @param {bigint} precision @param {bigint} bits @param {Times} times */
  #floorsAt(q, precision, bits, times) {
    const one = 1n << precision;
    const digits = [];
    let power = q;
    for (let k = 0n; k < this.digits; k++) {
      digits.push((power << bits) / (one + power));
      power = times(power, power, precision);
    }
    return [(q << (bits + 1n)) / (one + q), power >> (precision - bits), ...digits];
  }

  /** @param {Random} random @returns {bigint} G of the theorem */
  geometric(random) {
    let value = 0n;
    for (let k = 0n; k < this.digits; k++) {
      if (toss(random, this.#coins[FIRST_DIGIT + Number(k)])) value |= 1n << k;
    }
    while (toss(random, this.#coins[TAIL])) value += 1n << this.digits;
    return value;
  }

  /** @param {Random} random @returns {bigint} X of the theorem; all coins are tossed, whether they matter or not */
  laplace(random) {
    const nonzero = toss(random, this.#coins[NONZERO]);
    const size = 1n + this.geometric(random);
    const negative = toss(random, SIGN);
    return nonzero ? (negative ? -size : size) : 0n;
  }
}

/**
 * Exact integer noise for vectors that are bounded in every coordinate. |x| is the largest magnitude in x.
 *
 * Theorem 1 (the law in two steps). Let q = exp(-1/t). If P(R = r) is proportional to (2r + 1)^d q^r and, given R, the
 * coordinates of X are independent and uniform on -R, ..., R, then P(X = x) is proportional to q^|x| on Z^d.
 * Proof. x comes from the radii r >= |x|, from each with probability (2r + 1)^(-d); the sum of q^r over r >= |x| is
 * q^|x| / (1 - q).
 *
 * Theorem 2 (the radius). Let b(0, 0) = 1 and b(d, k) = (2k + 1) b(d-1, k) + (2(d-k) + 1) b(d-1, k-1). Draw K from
 * 0, ..., d with probabilities proportional to b(d, k) q^k, and G_0, ..., G_d with P(G = g) = (1 - q) q^g, all
 * independent. Then R = K + G_0 + ... + G_d has the law of Theorem 1.
 * Proof. With A_d(z) = sum_k b(d, k) z^k, it is enough that sum_r (2r + 1)^d z^r = A_d(z) / (1 - z)^(d+1); put qz for
 * z. By induction: 1 + 2z d/dz multiplies the r-th coefficient of a series by 2r + 1 and takes A_(d-1)(z) / (1 - z)^d
 * to ((1 + (2d - 1) z) A_(d-1) + 2z (1 - z) A_(d-1)') / (1 - z)^(d+1), whose numerator is A_d by the definition of b.
 *
 * @param {Random} random
 * @param {bigint} above the scale t = above / below
 * @param {bigint} below
 * @param {number} dimension
 * @returns {bigint[]} X of Theorem 1
 */
export function cubeNoise(random, above, below, dimension) {
  const coins = new LaplaceCoins(above, below);
  let radius = 0n;
  for (let i = 0; i <= dimension; i++) radius += coins.geometric(random);
  radius += BigInt(invert(random, remembered(shiftFloors(above, below, dimension))));
  return Array.from({ length: dimension }, () => random.below(2n * radius + 1n) - radius);
}

/**
 * floor(2^bits P(K <= k)) for k < dimension. P(K <= k) = A / (A + C), with A the weights up to k and C those beyond,
 * grows with A and falls with C: where the floors with both bounds agree, they are certain. They agree in the end,
 * since P(K <= k) is irrational: a rational function of the transcendental q, and not constant.
 * @returns {import("./coins.js").Floors}
 * @param {bigint} above
 * @param {bigint} below
 * @param {number} dimension
 */
export function shiftFloors(above, below, dimension) {
  const numbers = eulerianNumbers(dimension);
  const size = bitLength(numbers.reduce((sum, number) => sum + number));
  return (bits) => {
    for (let precision = bits + 128n + size; ; precision *= 2n) {
      const [q, qAbove] = expBounds(below, above, precision);
      const low = weightsUpTo(numbers, q, precision, timesDown);
      const high = weightsUpTo(numbers, qAbove, precision, timesUp);
      const [allLow, allHigh] = [low[dimension], high[dimension]];
      const least = low.map((a, k) => (a << bits) / (a + allHigh - high[k])).slice(0, -1);
      const most = high.map((a, k) => (a << bits) / (a + allLow - low[k])).slice(0, -1);
      if (least.every((floor, k) => floor === most[k])) return least;
    }
  };
}

/** @param {number} dimension @returns {bigint[]} b(d, 0), ..., b(d, d) of Theorem 2 */
function eulerianNumbers(dimension) {
  let row = [1n];
  for (let n = 1; n <= dimension; n++) {
    row = Array.from({ length: n + 1 }, (_, k) => {
      return BigInt(2 * k + 1) * (row[k] ?? 0n) + BigInt(2 * (n - k) + 1) * (row[k - 1] ?? 0n);
    });
  }
  return row;
}

/**
 * 2^precision (b(d, 0) + ... + b(d, k) q^k) for every k, with each power of q rounded one way.
 * @param {bigint[]} numbers
 * @param {bigint} q
 * @param {bigint} precision
 * @param {Times} times
 */
function weightsUpTo(numbers, q, precision, times) {
  let [sum, power] = [0n, 1n << precision];
  return numbers.map((number) => {
    sum += number * power;
    power = times(power, q, precision);
    return sum;
  });
}
