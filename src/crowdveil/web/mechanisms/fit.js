/**
 * A voter's preference: the most likely one in the l1 ball of radius B, found by Newton's method.
 *
 * In units of B, with columns c_k = B V_k and t = sum_k beta_k c_k, it maximises
 * sum_j ln Phi(t_j) - (RIDGE/2) |beta|^2 over |beta|_1 <= 1. The tiny ridge decides where the records leave a direction
 * open. Each round replaces the likelihood by its quadratic model (`model.js`) and walks to the model's maximum, or
 * less far where it overshoots.
 *
 * No privacy rests on any of this: whatever comes out is put onto the grid and its norm checked in integers.
 */

import { maximiseModel } from "./model.js";
import { curvature, mills } from "./probit.js";

/** Costs less than 1e-6 of the log-likelihood. */
export const RIDGE = 3.9e-6;

const MOST_ROUNDS = 100;
const LAST_STEP = 1e-11; // far below a step of the grid, which is 2^-30
const LAST_GAIN = 1e-13; // less than this in log-likelihood is rounding
const OVERSHOOT = 0.3; // how steeply a walk may end downhill, relative to how steeply it began uphill

/**
 * @param {number[][]} records what was chosen minus what was not, in model units
 * @param {number} normBound B
 * @returns {number[]}
 */
export function fit(records, normBound) {
  const columns = records[0].map((_, k) => records.map((record) => normBound * record[k]));
  let beta = columns.map(() => 0);
  let shortest = Infinity;
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const margins = along(columns, beta);
    const ratios = margins.map(mills);
    const slope = columns.map((column, k) => dot(column, ratios) - RIDGE * beta[k]);
    const target = maximiseModel(slope, hessian(columns, margins, ratios), beta);
    const step = target.map((value, k) => value - beta[k]);
    const gain = dot(slope, step);
    const size = Math.max(...step.map(Math.abs));
    if (gain < LAST_GAIN && !(size < shortest / 2)) break; // steps that no longer shrink are rounding
    beta = gain < LAST_GAIN ? target : walk(columns, beta, target, step, gain);
    if (size < LAST_STEP) break;
    if (gain < LAST_GAIN) shortest = size;
  }
  return beta.map((value) => normBound * value);
}

/** The target, or a point on the way to it where the objective does not fall too steeply. */
function walk(columns, beta, target, step, gain) {
  for (let length = 1; length > 1e-9; length /= 2) {
    const point = length === 1 ? target : beta.map((value, k) => value + length * step[k]);
    const ratios = along(columns, point).map(mills);
    const slope = dot(along(columns, step), ratios) - RIDGE * dot(point, step);
    if (slope >= -OVERSHOOT * gain) return point;
  }
  return beta;
}

/** Minus the second derivatives. */
function hessian(columns, margins, ratios) {
  const weights = margins.map((t, j) => curvature(t, ratios[j]));
  const weighted = columns.map((column) => column.map((value, j) => value * weights[j]));
  return columns.map((_, k) => columns.map((column, m) => dot(weighted[k], column) + (k === m ? RIDGE : 0)));
}

/** t = sum_k beta_k c_k */
function along(columns, beta) {
  const t = columns[0].map(() => 0);
  columns.forEach((column, k) => {
    if (beta[k] !== 0) column.forEach((value, j) => (t[j] += beta[k] * value));
  });
  return t;
}

function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}
