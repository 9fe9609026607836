/** The voter's choices, as numbers; and what a server sent, checked before anything is computed from it. */

/** An epsilon is a whole number of millionths, from 0.0001 to 50. */
const LEAST_MICRO = 100;
const GREATEST_MICRO = 50_000_000;

/**
 * The records of a voter: what was chosen minus what was not, in model units, a row a dilemma.
 * @param {{features: {unit: number}[]}} study
 * @param {import("./study.js").Dilemma[]} dilemmas raw values
 * @param {("left" | "right")[]} choices
 * @returns {number[][]}
 */
export function recordsOf(study, dilemmas, choices) {
  const units = study.features.map((feature) => positive("a feature's unit", feature.unit));
  if (!(dilemmas.length > 0 && choices.length === dilemmas.length)) {
    throw new RangeError(`${choices.length} answers to ${dilemmas.length} dilemmas: there must be one for each`);
  }
  return dilemmas.map((dilemma, i) => {
    const [left, right] = [row("a dilemma", dilemma.left, units.length), row("a dilemma", dilemma.right, units.length)];
    if (!["left", "right"].includes(choices[i])) throw new RangeError(`an answer is left or right, not ${choices[i]}`);
    const [chosen, other] = choices[i] === "left" ? [left, right] : [right, left];
    return units.map((unit, k) => (chosen[k] - other[k]) / unit);
  });
}

/** @param {string} name @param {unknown} value @returns {number} */
export function positive(name, value) {
  if (!(typeof value === "number" && Number.isFinite(value) && value > 0)) {
    throw new RangeError(`${name} must be a positive number, not ${value}`);
  }
  return value;
}

/** @param {string} name @param {unknown} values @param {number} length @returns {number[]} */
export function row(name, values, length) {
  if (!(Array.isArray(values) && values.length === length && values.every(Number.isFinite))) {
    throw new RangeError(`${name} must be ${length} numbers`);
  }
  return values;
}

/** @param {unknown} micro @returns {number} the same, if it is an epsilon */
export function checkedEpsilon(micro) {
  if (!(typeof micro === "number" && Number.isInteger(micro) && micro >= LEAST_MICRO && micro <= GREATEST_MICRO)) {
    throw new RangeError(`epsilon is ${micro} millionths, and must be whole, from ${LEAST_MICRO} to ${GREATEST_MICRO}`);
  }
  return micro;
}
