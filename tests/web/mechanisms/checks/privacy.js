/**
 * The promise itself, exactly: every outcome of every coin is played and probabilities are compared as fractions; where
 * noise is added, what the mechanism asks for is compared with how far neighbours are apart.
 */

import { Fraction, expOf, firstOutcome, lawOf, total, worstRatio } from "./every-outcome.js";
import { Failures, load } from "./modules.js";
import { scriptedRandom } from "./scripted.js";

/** @typedef {import("./modules.js").Modules} Modules */

const EPSILON = 1_000_000;
const CHECKS = [
  subset, choices, few, bits, about, ticks, preference, coefficients, linear, scores, reliability, hostileServer,
];

/**
 * @param {string} base
 * @param {number} [enough] of what is wrong, to look no further
 * @returns {Promise<string[]>} what is wrong
 */
export async function checkPrivacy(base, enough = Infinity) {
  const js = await load(base);
  const failures = new Failures();
  for (const check of CHECKS) {
    if (failures.list.length >= enough) break;
    try {
      check(js, failures);
    } catch (error) {
      failures.holds(check.name, false, String(error));
    }
  }
  return failures.list;
}

/**
 * Any two preferences: a report is at most e^epsilon times as likely, and this is reached; and it is unbiased.
 * @param {Modules} js
 * @param {Failures} failures
 */
function subset(js, failures) {
  const quarter = js.STEPS / 4;
  /** @type {Record<number, number[][]>} */
  const preferences = {
    2: [[4, 0], [-4, 0], [0, 4], [2, -2], [1, 0], [0, 0]],
    3: [[4, 0, 0], [0, -4, 0], [1, 2, -1]],
  };
  for (const [d, size] of [[2, 1], [2, 2], [3, 1], [3, 2], [3, 3]]) {
    const laws = preferences[d].map((quarters) => {
      const steps = quarters.map((count) => count * quarter);
      return lawOf((noise) => js.signs(steps, EPSILON, size, noise));
    });
    const name = `subset selection of ${size} in ${d}`;
    laws.forEach((law) => failures.same(`${name}: sum`, `${total(law)}`, "1/1"));
    failures.same(`${name}: worst ratio`, `${worstRatio(laws)}`, `${expOf(EPSILON)}`);
    // E w = r a / (1 + r a) beta / B with r = k / 2d and a = 3 - 1.
    const gain = new Fraction(BigInt(2 * size), BigInt(2 * d + 2 * size));
    laws.forEach((law, i) => {
      const wanted = preferences[d][i].map((count) => `${gain.times(new Fraction(BigInt(count), 4n))}`);
      failures.same(`${name}: mean`, meanOf(law).map(String), wanted);
    });
  }
}

/**
 * A dilemma asked twice: the bit is e^epsilon-private for whatever was answered, reached; one report in ten is the bit,
 * and the mechanism's own is as it was.
 * @param {Modules} js
 * @param {Failures} failures
 */
function reliability(js, failures) {
  const law = (/** @type {boolean} */ same) =>
    lawOf((noise) => js.withReliability(same, EPSILON, noise, () => ({ report: "its own" })));
  const bits = [true, false].map((same) => lawOf((noise) => js.alikeBit(same, EPSILON, noise)));
  failures.same("reliability: worst ratio", `${worstRatio(bits)}`, `${expOf(EPSILON)}`);
  failures.same("reliability: worst ratio of reports", `${worstRatio([law(true), law(false)])}`, `${expOf(EPSILON)}`);
  for (const same of [true, false]) {
    failures.same("reliability: sum", `${total(law(same))}`, "1/1");
    const own = [...law(same)].find(([text]) => text.includes("its own"));
    failures.same("reliability: nine in ten", `${own?.[1]}`, "9/10");
  }
  const answers = ["left", "right", "neither"];
  for (const first of answers) {
    for (const chosen of answers) {
      const turned = { left: "right", right: "left", neither: "neither" }[first];
      const alike = js.alike(["left", first], { place: 1, chosen });
      failures.same(`alike: ${first}, then ${chosen}`, alike, chosen === turned);
    }
  }
}

/** Randomised response: one choice turned over, e^epsilon, reached. @param {Modules} js @param {Failures} failures */
function choices(js, failures) {
  const dilemmas = [[1, -2], [0, 3]];
  const law = (/** @type {number} */ first, /** @type {number} */ second) => {
    const records = [dilemmas[0].map((value) => first * value), dilemmas[1].map((value) => second * value)];
    return lawOf((noise) => js.randomisedResponse.report({ records, epsilon: EPSILON, noise }));
  };
  for (const [one, other] of [[law(1, 1), law(-1, 1)], [law(1, -1), law(1, 1)]]) {
    failures.same("randomised response: sum", `${total(one)}`, "1/1");
    failures.same("randomised response: worst ratio", `${worstRatio([one, other])}`, `${expOf(EPSILON)}`);
  }
}

/**
 * One choice, or a few: all choices of a voter at once, e^epsilon, reached.
 * @param {Modules} js
 * @param {Failures} failures
 */
function few(js, failures) {
  for (const size of [1, 2]) {
    const epsilon = 2 * EPSILON;
    const laws = [1, -1].map((sign) => {
      const records = [[1, 0], [1, 1], [0, 2]].map((record) => record.map((value) => sign * value));
      return lawOf((noise) => js.oneChoice.report({ records, epsilon, noise, size: () => size }));
    });
    failures.same(`${size} choices: sum`, `${total(laws[0])}`, "1/1");
    failures.same(`${size} choices: worst ratio`, `${worstRatio(laws)}`, `${expOf(epsilon)}`);
  }
}

/**
 * One bit, or two: any two ballots, of any length; e^epsilon, reached. And the mean of a direction bit is the score.
 * @param {Modules} js
 * @param {Failures} failures
 */
function bits(js, failures) {
  const method = { axes: () => ({ axes: [[1, 0], [0, 1]], units: [1, 1], clip: 1, records: Infinity }) };
  const ballots = [[[9, 9]], [[-9, -9]], [[1, 0]], [[0, -1]], [[-1, -3], [0, 3]], [[2, 1], [-2, -1]]];
  for (const size of [1, 2]) {
    const epsilon = size * EPSILON;
    const laws = ballots.map((records) => {
      return lawOf((noise) => js.oneBit.report({ records, epsilon, noise, method, size: () => size }));
    });
    laws.forEach((law) => failures.same(`${size} bits: sum`, `${total(law)}`, "1/1"));
    failures.same(`${size} bits: worst ratio`, `${worstRatio(laws)}`, `${expOf(epsilon)}`);
  }
  // One of two records is scored: along the first axis, its clipped score is 1 or -1, and along the second 0 or 1.
  const one = { axes: () => ({ ...method.axes(), records: 1 }) };
  const two = [[2, 0], [-1, 3]];
  const ballot = { records: two, epsilon: EPSILON, method: one, size: () => 1 };
  const fewer = lawOf((noise) => js.oneBit.report({ ...ballot, noise }));
  failures.same("one record of two: sum", `${total(fewer)}`, "1/1");
  for (const [axis, bit, wanted] of [[0, 1, new Fraction(1n, 2n)], [1, 1, new Fraction(5n, 8n)]]) {
    const report = JSON.stringify({ kind: "direction", axes: [axis], bits: [bit] });
    const chance = new Fraction(19n, 40n).times(/** @type {Fraction} */ (wanted));
    failures.same(`one record of two, axis ${axis}`, `${fewer.get(report)}`, `${chance}`);
  }
  // S / (n c) is -1/2 along the first axis; (3 - 1) / (3 + 1) of a bit's mean is left after the flip.
  const records = [[-1, 0], [0, 0]];
  const law = lawOf((noise) => js.oneBit.report({ records, epsilon: EPSILON, noise, method, size: () => 1 }));
  for (const [bit, wanted] of [[1, new Fraction(3n, 8n)], [-1, new Fraction(5n, 8n)]]) {
    const report = JSON.stringify({ kind: "direction", axes: [0], bits: [bit] });
    const chance = new Fraction(19n, 40n).times(/** @type {Fraction} */ (wanted));
    failures.same(`a direction bit of ${bit}`, `${law.get(report)}`, `${chance}`);
  }
}

/**
 * Any two true options: e^epsilon, reached; and each has the probability of the theorem.
 * @param {Modules} js
 * @param {Failures} failures
 */
function about(js, failures) {
  for (const count of [2, 3, 5]) {
    const laws = [...Array(count).keys()].map((truth) => {
      return lawOf((noise) => js.perturbedOption(truth, count, EPSILON, noise));
    });
    failures.same(`about 1 of ${count}: worst ratio`, `${worstRatio(laws)}`, `${expOf(EPSILON)}`);
    laws.forEach((law, truth) => {
      for (let option = 0; option < count; option++) {
        const wanted = new Fraction(option === truth ? 3n : 1n, BigInt(3 + count - 1));
        failures.same(`about 1 of ${count}: ${truth} as ${option}`, `${law.get(String(option))}`, `${wanted}`);
      }
    });
  }
}

/**
 * Any two sets of ticks: e^epsilon, reached; each option is drawn as often, and its tick kept with 3 to 1.
 * @param {Modules} js
 * @param {Failures} failures
 */
function ticks(js, failures) {
  const sets = [...Array(8).keys()].map((set) => [0, 1, 2].map((k) => Boolean(set & (1 << k))));
  const laws = sets.map((ticked) => lawOf((noise) => js.perturbedTicks(ticked, EPSILON, noise)));
  failures.same("several: worst ratio", `${worstRatio(laws)}`, `${expOf(EPSILON)}`);
  laws.forEach((law, set) => {
    for (const k of [0, 1, 2]) {
      const wanted = new Fraction(sets[set][k] ? 3n : 1n, 12n);
      failures.same(`several: ${sets[set]} as ${k}`, `${law.get(JSON.stringify([k, true]))}`, `${wanted}`);
    }
  });
}

/**
 * Algorithm 2: two voters who could not differ more are as far apart as is asked for.
 * @param {Modules} js
 * @param {Failures} failures
 */
function preference(js, failures) {
  const run = (/** @type {number[][]} */ records) => (/** @type {any} */ noise) =>
    js.algorithm2.report({ records, epsilon: EPSILON, noise, method: { normBound: 2 } });
  const [one, other] = [[[1, 0, 0]], [[-1, 0, 0]]].map((records) => firstOutcome(run(records)));
  failures.same("Algorithm 2: asked", one.asked, [
    { norm: "l1", sensitivity: l1(one.result.values, other.result.values), micro: EPSILON, count: 3 },
  ]);
}

/**
 * Algorithm 3: no record in place of another moves the coefficients by more than is asked for.
 * @param {Modules} js
 * @param {Failures} failures
 */
function coefficients(js, failures) {
  const draw = scriptedUniform("coefficients", js);
  const method = { recordBound: 2 };
  for (const d of [1, 2, 5]) {
    const made = (/** @type {number[]} */ record) => {
      return firstOutcome((noise) => js.algorithm3.report({ records: [record], epsilon: EPSILON, noise, method }));
    };
    let farthest = 0n;
    for (let i = 0; i < 200; i++) {
      const [one, other] = [made(vector(d, draw)), made(vector(d, draw))];
      farthest = max(farthest, l1(one.result.values, other.result.values));
      const [{ norm, sensitivity, micro, count }] = one.asked;
      failures.same("Algorithm 3: asked", [norm, micro, count], ["l1", EPSILON, d + (d * (d + 1)) / 2]);
      failures.holds("Algorithm 3: reach", farthest <= sensitivity, `${farthest} is above ${sensitivity}`);
    }
    failures.holds("Algorithm 3: neighbours", farthest > BigInt(js.STEPS), "are too near to test anything");
  }
}

/**
 * Algorithm 3 on choices: turning one over moves the linear part by what is asked for at most, and nothing else.
 * @param {Modules} js
 * @param {Failures} failures
 */
function linear(js, failures) {
  const method = { recordBound: 1 };
  const made = (/** @type {number[]} */ record) => {
    return firstOutcome((noise) => js.algorithm3Choices.report({ records: [record], epsilon: EPSILON, noise, method }));
  };
  for (const d of [1, 4, 9, 25]) {
    const record = Array(d).fill(1 / Math.sqrt(d));
    const [one, other] = [made(record), made(record.map((value) => -value))];
    const [{ norm, sensitivity, micro, count }] = one.asked;
    failures.same("choices: asked", [norm, micro, count], ["l1", EPSILON, d]);
    failures.same("choices: quadratic part", one.result.values.slice(d), other.result.values.slice(d));
    // This record reaches the bound, but for its truncation.
    const moved = l1(one.result.values, other.result.values);
    const near = moved <= sensitivity && 10_000n * (sensitivity - moved) < sensitivity;
    failures.holds("choices: reach", near, `${moved} of ${sensitivity}`);
  }
}

/**
 * Scores: a record at one end in place of one at the other moves each coordinate by what is asked for.
 * @param {Modules} js
 * @param {Failures} failures
 */
function scores(js, failures) {
  const axes = [[2 ** 20, -(2 ** 20)], [2 ** 19, 2 ** 21]];
  const method = { axes: () => ({ axes, units: [1, 1], clip: js.RECORD_CLIP }) };
  const made = (/** @type {number[]} */ record) => {
    const records = [[0.1, 0.2], record];
    return firstOutcome((noise) => js.score.report({ records, epsilon: EPSILON, noise, method, size: () => 2 }));
  };
  const [one, other] = [made([0, 100]), made([0, -100])];
  const moved = one.result.values.map((/** @type {bigint} */ value, /** @type {number} */ i) => {
    const by = value - other.result.values[i];
    return by < 0n ? -by : by;
  });
  const sensitivity = moved.reduce(max);
  failures.same("score: asked", one.asked, [{ norm: "max", sensitivity, micro: EPSILON, count: 2 }]);
}

/**
 * Axes, bounds and dilemmas that no honest server sends: the integers keep to their bounds all the same.
 * @param {Modules} js
 * @param {Failures} failures
 */
function hostileServer(js, failures) {
  const numbers = [0, 1e-320, -1e-170, 1, -3, 1e200, -1.7e308];
  for (const a of numbers) {
    for (const b of numbers) {
      /** @type {number[]} */
      const scored = js.voterScores([[a, b]], { axes: [[1e300, -1], [b, a]], units: [a, 3] });
      failures.holds("hostile axes", scored.every((value) => Math.abs(value) <= js.RECORD_CLIP), `score ${scored}`);
      for (const bound of [1e-300, 1, 1e300]) {
        const d = 3;
        const exact = js.objectiveCoefficients([[a, b, b]], bound).map(Number);
        const squares = -(exact[d] + exact[d + 3] + exact[d + 5]) / js.STEPS;
        failures.holds("hostile record", squares <= 1 / Math.PI, `${[a, b, bound]} has squares of ${squares}`);
        /** @type {number[]} */
        const steps = js.toSteps(js.fit([[a, b]], bound), bound);
        const norm = steps.reduce((sum, step) => sum + Math.abs(step), 0);
        failures.holds("hostile fit", norm <= js.STEPS, `${[a, b, bound]} has norm ${norm}`);
      }
    }
  }
  for (const values of [[NaN, 1], [Infinity, 1], [2, 2], [-3, 1e-9]]) {
    /** @type {number[]} */
    const steps = js.toSteps(values, 1);
    const norm = steps.reduce((sum, step) => sum + Math.abs(step), 0);
    failures.holds("grid", norm <= js.STEPS, `${values} has norm ${norm}`);
  }
}

/** @param {Map<string, Fraction>} law */
function meanOf(law) {
  const zero = new Fraction(0n);
  /** @type {Fraction[]} */
  let means = [];
  for (const [result, probability] of law) {
    /** @type {Fraction[]} */
    const values = JSON.parse(result).map((/** @type {number} */ value) => {
      return new Fraction(BigInt(value)).times(probability);
    });
    means = values.map((value, k) => value.plus(means[k] ?? zero));
  }
  return means;
}

/** @param {string} seed @param {Modules} js */
function scriptedUniform(seed, js) {
  const random = scriptedRandom(seed, js);
  return () => Number(random.word() >> 11n) / 2 ** 53;
}

/** A record in any direction, often at the bound or beyond. @param {number} d @param {() => number} draw */
function vector(d, draw) {
  return Array.from({ length: d }, () => 4 * draw() - 2);
}

/** @param {bigint[]} one @param {bigint[]} other */
function l1(one, other) {
  return one.map((value, i) => value - other[i]).reduce((sum, value) => sum + (value < 0n ? -value : value), 0n);
}

/** @param {bigint} a @param {bigint} b */
function max(a, b) {
  return a > b ? a : b;
}
