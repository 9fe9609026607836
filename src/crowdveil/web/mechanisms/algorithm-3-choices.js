/**
 * Algorithm 3 at the choice level (ALDP): where the dilemmas are public, the quadratic part needs no noise.
 *
 * Theorem. Where only the choices are secret, the report is epsilon-differentially private for one choice.
 * Proof. Turning a choice over replaces a record V by -V. The quadratic coefficients, made of V V', do not change; the
 * linear ones move by at most `linearSensitivity` in l1; the rest is the theorem in `noise.js`.
 */

import { objectiveCoefficients } from "./algorithm-3.js";
import { linearSensitivity } from "./grid.js";

/** @type {import("./report.js").Mechanism} */
export const algorithm3Choices = {
  name: "algorithm-3-choices",
  report({ records, epsilon, noise, method }) {
    const dimension = records[0].length;
    const drawn = noise.laplace(linearSensitivity(dimension), epsilon, dimension);
    const exact = objectiveCoefficients(records, method.recordBound);
    return { values: exact.map((coefficient, i) => coefficient + (drawn[i] ?? 0n)) };
  },
};
