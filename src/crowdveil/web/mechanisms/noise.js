/**
 * The randomness that mechanisms ask for. A mechanism says how far neighbours can be apart; the laws are in
 * `laplace.js`, `cube.js` and `odds.js`.
 *
 * Theorem. Let f map answers to integer vectors, with |f(D) - f(D')| <= s for all neighbours D, D', in the sum of all
 * magnitudes (`laplace`) or in the largest one (`cube`). Then f(D) + X with P(X = x) proportional to exp(-|x| eps / s)
 * is eps-differentially private.
 * Proof. For every y, P(f(D) + X = y) / P(f(D') + X = y) = exp(eps/s (|y - f(D')| - |y - f(D)|)), as the normalising
 * constants are equal, and by the triangle inequality this is at most exp(eps/s |f(D) - f(D')|) <= exp(eps).
 */

import { remembered, toss } from "./coins.js";
import { cubeNoise } from "./cube.js";
import { MICROS_PER_UNIT } from "./epsilon.js";
import { LaplaceCoins } from "./laplace.js";
import { oddsFloor } from "./odds.js";

const KEYS = 1n << 62n;

/** Exact noise. Epsilons are in millionths. */
export class Noise {
  #coins = new Map();

  /** @param {import("./random.js").Random} random */
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

  /** @param {import("./odds.js").Odds} odds @param {number} micro @returns {boolean} */
  toss(odds, micro) {
    const name = `${odds} at ${micro}`;
    if (!this.#coins.has(name)) this.#coins.set(name, remembered(oddsFloor(odds, micro)));
    return toss(this.random, this.#coins.get(name));
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
