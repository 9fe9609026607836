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
 */

import { invert, remembered } from "./coins.js";
import { expBounds, timesDown, timesUp } from "./exponential.js";
import { LaplaceCoins } from "./laplace.js";
import { bitLength } from "./random.js";

/**
 * @param {import("./random.js").Random} random
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
export function eulerianNumbers(dimension) {
  let row = [1n];
  for (let n = 1; n <= dimension; n++) {
    row = Array.from({ length: n + 1 }, (_, k) => {
      return BigInt(2 * k + 1) * (row[k] ?? 0n) + BigInt(2 * (n - k) + 1) * (row[k - 1] ?? 0n);
    });
  }
  return row;
}

/** 2^precision (b(d, 0) + ... + b(d, k) q^k) for every k, with each power of q rounded one way. */
function weightsUpTo(numbers, q, precision, times) {
  let [sum, power] = [0n, 1n << precision];
  return numbers.map((number) => {
    sum += number * power;
    power = times(power, q, precision);
    return sum;
  });
}
