/** The privacy parameter: a whole number of millionths, from 0.0001 to 50. */

export const MICROS_PER_UNIT = 1_000_000n;
const LEAST_MICRO = 100;
const GREATEST_MICRO = 50_000_000;

/** @param {unknown} micro @returns {number} the same, if it is an epsilon */
export function checkedEpsilon(micro) {
  if (!(Number.isInteger(micro) && micro >= LEAST_MICRO && micro <= GREATEST_MICRO)) {
    throw new RangeError(`epsilon is ${micro} millionths, and must be whole, from ${LEAST_MICRO} to ${GREATEST_MICRO}`);
  }
  return /** @type {number} */ (micro);
}
