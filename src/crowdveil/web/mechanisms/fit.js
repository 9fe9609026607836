/**
 * A voter's preference: the most likely one in the l1 ball of radius B, found by Newton's method.
 *
 * In units of B, with columns c_k = B V_k and t = sum_k beta_k c_k, it maximises sum_j ln Phi(t_j) - (RIDGE/2) |beta|^2
 * over |beta|_1 <= 1. The tiny ridge decides where the records leave a direction open. Each round replaces the
 * likelihood by its quadratic model (`maximiseModel`) and walks to the model's maximum, or less far where it
 * overshoots.
 *
 * No privacy rests on any of this: whatever comes out is put onto the grid and its norm checked in integers.
 */

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

/**
 * The target, or a point on the way to it where the objective does not fall too steeply.
 * @param {number[][]} columns
 * @param {number[]} beta
 * @param {number[]} target
 * @param {number[]} step
 * @param {number} gain
 */
function walk(columns, beta, target, step, gain) {
  for (let length = 1; length > 1e-9; length /= 2) {
    const point = length === 1 ? target : beta.map((value, k) => value + length * step[k]);
    const ratios = along(columns, point).map(mills);
    const slope = dot(along(columns, step), ratios) - RIDGE * dot(point, step);
    if (slope >= -OVERSHOOT * gain) return point;
  }
  return beta;
}

/** Minus the second derivatives. @param {number[][]} columns @param {number[]} margins @param {number[]} ratios */
function hessian(columns, margins, ratios) {
  const weights = margins.map((t, j) => curvature(t, ratios[j]));
  const weighted = columns.map((column) => column.map((value, j) => value * weights[j]));
  return columns.map((_, k) => columns.map((column, m) => dot(weighted[k], column) + (k === m ? RIDGE : 0)));
}

/** t = sum_k beta_k c_k @param {number[][]} columns @param {number[]} beta */
function along(columns, beta) {
  const t = columns[0].map(() => 0);
  columns.forEach((column, k) => {
    if (beta[k] !== 0) column.forEach((value, j) => (t[j] += beta[k] * value));
  });
  return t;
}

/** @param {number[]} a @param {number[]} b */
function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/**
 * @typedef {object} Mixture
 * @property {number[][]} bend
 * @property {number[]} x
 * @property {number[]} residual the gradient at x
 * @property {number[]} active coordinates of the active corners
 * @property {number[]} signs
 * @property {number} slack the origin's share
 * @property {boolean} origin whether the origin is active
 */

const LEAST_PIVOT = 1e-13; // relative to the entry it started from: below is rounding
const LEAST_SHARE = 1e-15; // the same for a share
const LEAST_RISE = 1e-15; // and for how far a corner reaches above the level, relative to the gradient

/**
 * The maximum of a concave quadratic over the l1 ball of radius 1, by Wolfe's method on its corners.
 *
 * A point of the ball is a mixture of corners (signed unit vectors, with shares |x_k|) and of the origin (with the
 * rest). Only some corners are active. Again and again:
 * 1. Go to the maximum over the mixtures of the active ones; where a share reaches zero on the way, drop it and go on.
 * 2. There, r being the gradient, the active ones all reach the level r . x. Admit the corner that reaches highest
 *    above it (or the origin, if the level is negative). If there is none, x is the maximum over the ball.
 *
 * Maximise slope . (x - start) - (x - start)' bend (x - start) / 2.
 * @param {number[]} slope
 * @param {number[][]} bend positive definite
 * @param {number[]} start in the ball
 * @returns {number[]}
 */
function maximiseModel(slope, bend, start) {
  const tiny = LEAST_RISE * Math.max(...slope.map(Math.abs));
  const state = {
    bend,
    x: start.slice(),
    residual: slope.slice(),
    active: start.flatMap((value, k) => (value === 0 ? [] : [k])),
    signs: start.map(Math.sign),
    slack: 1 - start.reduce((norm, value) => norm + Math.abs(value), 0),
    origin: false,
  };
  state.origin = state.slack > LEAST_SHARE;
  let admitted = -1;
  for (let round = 0; round < 10 * slope.length + 10; round++) {
    mix(state);
    if (admitted >= 0 && state.x[admitted] === 0) break; // only rounding had made it look higher
    const level = state.origin ? 0 : levelOf(state);
    admitted = steepestOutside(state);
    if (level < -tiny) {
      [state.origin, admitted] = [true, -1];
    } else if (admitted >= 0 && Math.abs(state.residual[admitted]) > level + tiny) {
      state.active.push(admitted);
      state.signs[admitted] = Math.sign(state.residual[admitted]);
    } else {
      break;
    }
  }
  return state.x;
}

/** Step 1: the maximum over the mixtures of what is active. @param {Mixture} state */
function mix(state) {
  const { bend, x, residual, signs } = state;
  for (;;) {
    const { active } = state;
    const step = stepToMaximum(state);
    const growths = step.map((value, a) => signs[active[a]] * value);
    const total = state.origin ? sum(growths) : 0;
    let [length, blocker] = [1, -1];
    if (state.origin && state.slack < total) [length, blocker] = [Math.max(state.slack, 0) / total, active.length];
    growths.forEach((growth, a) => {
      const share = Math.abs(x[active[a]]);
      if (share + length * growth < 0) [length, blocker] = [share / -growth, a];
    });
    active.forEach((k, a) => (x[k] += length * step[a]));
    state.slack -= length * total;
    residual.forEach((_, k) => active.forEach((m, a) => (residual[k] -= length * bend[k][m] * step[a])));
    if (blocker < 0) return;
    if (blocker === active.length) {
      [state.origin, state.slack] = [false, 0];
    } else {
      x[active[blocker]] = 0;
      state.active = active.filter((_, a) => a !== blocker);
    }
  }
}

/**
 * Newton's step in the active coordinates; without the origin, one that keeps the sum of the shares.
 * @param {Mixture} state
 */
function stepToMaximum(state) {
  const { bend, active, residual, origin } = state;
  const signs = active.map((k) => state.signs[k]);
  const solve = solver(active.map((k) => active.map((m) => bend[k][m])));
  if (origin) return solve(active.map((k) => residual[k]));
  const level = levelOf(state); // taken off first: what is left is small, and keeps its digits
  const step = solve(active.map((k, a) => residual[k] - level * signs[a]));
  const unit = solve(signs);
  const excess = sum(step.map((value, a) => signs[a] * value)) / sum(unit.map((value, a) => signs[a] * value));
  return step.map((value, a) => value - excess * unit[a]);
}

/** @param {Mixture} state */
function levelOf({ active, residual, x }) {
  return sum(active.map((k) => residual[k] * x[k]));
}

/** @param {Mixture} state */
function steepestOutside({ active, residual }) {
  let best = -1;
  residual.forEach((value, k) => {
    if (!active.includes(k) && value !== 0 && (best < 0 || Math.abs(value) > Math.abs(residual[best]))) best = k;
  });
  return best;
}

/**
 * Factorise a positive definite matrix as L D L' and return what solves equations with it.
 * @param {number[][]} matrix
 * @returns {(right: number[]) => number[]}
 */
function solver(matrix) {
  const lower = matrix.map((row) => row.slice());
  /** @type {number[]} */
  const pivots = [];
  matrix.forEach((row, a) => {
    let pivot = row[a];
    for (let b = 0; b < a; b++) {
      for (let c = 0; c < b; c++) lower[a][b] -= lower[a][c] * pivots[c] * lower[b][c];
      lower[a][b] /= pivots[b];
      pivot -= lower[a][b] * lower[a][b] * pivots[b];
    }
    pivots.push(Math.max(pivot, LEAST_PIVOT * row[a]));
  });
  return (right) => {
    const x = right.slice();
    for (let a = 0; a < x.length; a++) for (let b = 0; b < a; b++) x[a] -= lower[a][b] * x[b];
    for (let a = 0; a < x.length; a++) x[a] /= pivots[a];
    for (let a = x.length - 1; a >= 0; a--) for (let b = a + 1; b < x.length; b++) x[a] -= lower[b][a] * x[b];
    return x;
  };
}

/** @param {number[]} values */
function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

/**
 * The inverse Mills ratio phi(t) / Phi(t) of the normal distribution: the derivative of ln Phi.
 *
 * P(x) / Q(x), lowest coefficient first, is (1 - Phi(x)) / phi(x) for all x >= 0 to a relative error of 8e-16.
 */
const P = [
  1.2533141373155001, 2.007294461916674, 1.5845105143229876, 0.7942674046007313, 0.27624965815936176,
  0.06891236531841631, 0.012338400206668232, 0.0015357354962260198, 0.00012168461053503696, 4.759474691123115e-6,
];
const Q = [
  1.0, 2.39947382095125, 2.678759591596642, 1.8372992292980477, 0.8601559353461486, 0.28834468791036966,
  0.0704385818893115, 0.012460084816923789, 0.0015404949709188003, 0.00012168461053503324, 4.759474691123117e-6,
];
const INV_SQRT_2PI = 0.3989422804014327;
const LARGEST_X = 1e9; // from here on phi(-x) / Phi(-x) is x to the last digit

/** @param {number} t @returns {number} */
export function mills(t) {
  if (t <= -LARGEST_X) return -t;
  const x = Math.min(Math.abs(t), LARGEST_X);
  const p = polynomial(P, x);
  const q = polynomial(Q, x);
  if (t < 0) return q / p;
  const density = INV_SQRT_2PI * Math.exp(-0.5 * x * x);
  return (density * q) / (q - density * p);
}

/** -(ln Phi)''(t) = m (m + t) in [0, 1], for m = mills(t). @param {number} t @param {number} m @returns {number} */
export function curvature(t, m) {
  return t > -1000 ? m * (m + t) : 1;
}

/** @param {number[]} coefficients @param {number} x */
function polynomial(coefficients, x) {
  return coefficients.reduceRight((sum, coefficient) => sum * x + coefficient, 0);
}
