/**
 * The maximum of a concave quadratic over the l1 ball of radius 1, by Wolfe's method on its corners.
 *
 * A point of the ball is a mixture of corners (signed unit vectors, with shares |x_k|) and of the origin (with the
 * rest). Only some corners are active. Again and again:
 * 1. Go to the maximum over the mixtures of the active ones; where a share reaches zero on the way, drop it and go on.
 * 2. There, r being the gradient, the active ones all reach the level r . x. Admit the corner that reaches highest
 *    above it (or the origin, if the level is negative). If there is none, x is the maximum over the ball.
 */

const LEAST_PIVOT = 1e-13; // relative to the entry it started from: below is rounding
const LEAST_SHARE = 1e-15; // the same for a share
const LEAST_RISE = 1e-15; // and for how far a corner reaches above the level, relative to the gradient

/**
 * Maximise slope . (x - start) - (x - start)' bend (x - start) / 2.
 * @param {number[]} slope
 * @param {number[][]} bend positive definite
 * @param {number[]} start in the ball
 * @returns {number[]}
 */
export function maximiseModel(slope, bend, start) {
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

/** Step 1: the maximum over the mixtures of what is active. */
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

/** Newton's step in the active coordinates; without the origin, one that keeps the sum of the shares. */
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

function levelOf({ active, residual, x }) {
  return sum(active.map((k) => residual[k] * x[k]));
}

function steepestOutside({ active, residual }) {
  let best = -1;
  residual.forEach((value, k) => {
    if (!active.includes(k) && value !== 0 && (best < 0 || Math.abs(value) > Math.abs(residual[best]))) best = k;
  });
  return best;
}

/** Factorise a positive definite matrix as L D L' and return what solves equations with it. */
function solver(matrix) {
  const lower = matrix.map((row) => row.slice());
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

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
