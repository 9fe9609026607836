/**
 * Exact integer noise of one coordinate: the discrete Laplace distribution.
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

import { remembered, toss } from "./coins.js";
import { expBounds, timesDown, timesUp } from "./exponential.js";

/** @typedef {import("./random.js").Random} Random */

const NONZERO = 0;
const TAIL = 1;
const FIRST_DIGIT = 2;
const SIGN = (bits) => 1n << (bits - 1n);

/** The coins of one scale t = above / below: nonzero, tail, digit 0, ..., digit K - 1. */
export class LaplaceCoins {
  #coins;

  /** @param {bigint} above @param {bigint} below */
  constructor(above, below) {
    this.above = above;
    this.below = below;
    // The least K with 2^K >= 16 t: the tail then rarely succeeds. Any K would be right.
    this.digits = 0n;
    while (below << this.digits < 16n * above) this.digits += 1n;
    const floors = remembered((bits) => this.floors(bits));
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
