/**
 * Algorithm 2 (VLDP, RLDP): Laplace noise on the voter's own preference.
 *
 * Theorem. The report is epsilon-differentially private, for all records of the voter together.
 * Proof. Whatever the records, the preference is a point of the grid's l1 ball (`toSteps` checks it in integers), so
 * any two are at most PREFERENCE_SENSITIVITY apart; the rest is the theorem in `noise.js`.
 */

import { fit } from "./fit.js";
import { PREFERENCE_SENSITIVITY, toSteps } from "./grid.js";

/** @type {import("./report.js").Mechanism} */
export const algorithm2 = {
  name: "algorithm-2",
  report({ records, epsilon, noise, method }) {
    const steps = toSteps(fit(records, method.normBound), method.normBound);
    const drawn = noise.laplace(PREFERENCE_SENSITIVITY, epsilon, steps.length);
    return { values: steps.map((step, k) => BigInt(step) + drawn[k]) };
  },
};
