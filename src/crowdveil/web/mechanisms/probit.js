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

function polynomial(coefficients, x) {
  return coefficients.reduceRight((sum, coefficient) => sum * x + coefficient, 0);
}
