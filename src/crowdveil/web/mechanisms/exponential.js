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

/** The product of two numbers written as multiples of 2^-precision, rounded down. */
export function timesDown(a, b, precision) {
  return (a * b) >> precision;
}

/** The same, rounded up. */
export function timesUp(a, b, precision) {
  return -((-a * b) >> precision);
}

function ceilDivide(a, b) {
  return (a + b - 1n) / b;
}
