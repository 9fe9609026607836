/**
 * The vectors that Python wrote (vectors/*.json), met by the modules of the voter's page. Runs in node and in a
 * browser:
 *
 *     const failures = await checkVectors(vectors, "/web/mechanisms/");   // [] if all is well
 *
 * where `vectors` is {"grid": {...}, "fit": {...}, ...}, the files by their names.
 */

import { Failures, load } from "./modules.js";
import { scriptedRandom } from "./scripted.js";

const WORD = 64n;

/**
 * @param {Record<string, any>} vectors
 * @param {string} base
 * @param {number} [enough] of what is wrong, to look no further
 * @returns {Promise<string[]>} what is wrong
 */
export async function checkVectors(vectors, base, enough = Infinity) {
  const js = await load(base);
  const failures = new Failures();
  for (const [name, check] of Object.entries(CHECKS)) {
    if (failures.list.length >= enough) break;
    try {
      check(vectors[name], js, failures);
    } catch (error) {
      failures.holds(name, false, String(error));
    }
  }
  return failures.list;
}

/** @type {Record<string, (vector: any, js: import("./modules.js").Modules, failures: Failures) => void>} */
const CHECKS = {
  grid(vector, js, failures) {
    failures.same("steps per bound", js.STEPS, vector.steps_per_bound);
    for (const { values, steps } of vector.cases) {
      failures.same(`grid steps of ${values}`, js.toSteps(values, vector.norm_bound), steps);
    }
  },

  fit(vector, js, failures) {
    vector.cases.forEach((/** @type {any} */ { differences, preference }, /** @type {number} */ i) => {
      /** @type {number[]} */
      const found = js.fit(differences, vector.norm_bound);
      const error = Math.max(...found.map((value, k) => Math.abs(value - preference[k])));
      failures.holds(`fit ${i}`, error <= vector.tolerance, `is off by ${error}`);
    });
  },

  coefficients(vector, js, failures) {
    failures.same("record steps", js.RECORD_STEPS, vector.record_steps);
    failures.same("coefficient steps", js.STEPS, vector.coefficient_steps);
    for (const [d, { tight, linear }] of Object.entries(vector.sensitivity)) {
      failures.same(`sensitivity of coefficients, ${d} features`, js.coefficientSensitivity(Number(d)), String(tight));
      failures.same(`sensitivity of the linear part, ${d} features`, js.linearSensitivity(Number(d)), String(linear));
    }
    const bound = vector.record_bound;
    for (const { record, coefficients } of vector.cases) {
      failures.same(`coefficients of ${record}`, js.objectiveCoefficients([record], bound), coefficients.map(String));
    }
    const all = vector.cases.map((/** @type {{record: number[]}} */ { record }) => record);
    failures.same("coefficients", js.objectiveCoefficients(all, bound), vector.all_records_together.map(String));
  },

  scores(vector, js, failures) {
    failures.same("clip", js.RECORD_CLIP, vector.clip);
    failures.same("sensitivity of scores", js.RECORD_SENSITIVITY, String(vector.sensitivity));
    for (const { record, scores } of vector.cases) {
      failures.same(`scores of ${record}`, js.voterScores([record], vector), scores);
    }
    const all = vector.cases.map((/** @type {{record: number[]}} */ { record }) => record);
    failures.same("scores", js.voterScores(all, vector), vector.all_records_together);
  },

  laplace(vector, js, failures) {
    failures.same("sensitivity of a preference", js.PREFERENCE_SENSITIVITY, String(vector.sensitivity));
    for (const { epsilon_micro: micro, digits, floor_of_2_to_64_p: floors } of vector.cases) {
      const coins = new js.LaplaceCoins(js.PREFERENCE_SENSITIVITY * js.MICROS_PER_UNIT, BigInt(micro));
      failures.same(`digits at ${micro}`, coins.digits, String(digits));
      failures.same(`Laplace coins at ${micro}`, coins.floors(WORD), floors);
    }
  },

  cube(vector, js, failures) {
    for (const { dimension, scale, floor_of_2_to_64_p: floors } of vector.cases) {
      const found = js.shiftFloors(BigInt(scale[0]), BigInt(scale[1]), dimension)(WORD);
      failures.same(`shift of the cube in ${dimension} dimensions at ${scale}`, found, floors);
    }
  },

  "one-bit"(vector, js, failures) {
    for (const { records, score, drawn, direction, length } of vector.cases) {
      const found = [false, true].map((kind) => (js.exactBit(kind, score, records, vector.clip, drawn) ? 1 : -1));
      failures.same(`bits of ${score} by ${records} records with ${drawn}`, found, [direction, length]);
    }
  },

  "subset-selection"(vector, js, failures) {
    for (const { features, epsilon_micro: micro, signs, floor_of_2_to_64_p: floor } of vector.cases) {
      const found = js.oddsFloor(js.amongOdds(features, signs), micro)(WORD);
      failures.same(`subset coin of ${signs} in ${features} at ${micro}`, found, floor);
    }
  },

  "randomised-response"(vector, js, failures) {
    for (const { epsilon_micro: micro, floor_of_2_to_64_p: floor } of vector.flips) {
      failures.same(`flip at ${micro}`, js.oddsFloor(js.FLIP, micro)(WORD), floor);
    }
    for (const { record, dilemma, choice } of vector.splits) {
      failures.same(`split of ${record}`, js.oriented(record), { dilemma, choice });
    }
  },

  about(vector, js, failures) {
    for (const { options, epsilon_micro: micro, floor_of_2_to_64_p: floor } of vector.cases) {
      failures.same(`keep 1 of ${options} at ${micro}`, js.oddsFloor(js.keepOdds(options), micro)(WORD), floor);
    }
  },

  "report-ids"(vector, js, failures) {
    for (const { token, id } of vector.cases) failures.same(`id of ${token}`, js.reportId(token), id);
  },

  "scripted-reports": checkReports,
  "few-axes": checkReports,
  "third-answer": checkReports,
  repeats: checkReports,
  "repeats-of-three": checkReports,
};

/** @param {any} vector @param {import("./modules.js").Modules} js @param {Failures} failures */
function checkReports(vector, js, failures) {
  for (const { mechanism, epsilon_micro: micro, seed, report } of vector.cases) {
    const random = scriptedRandom(seed, js);
    const { polls, dilemmas, choices, about, repeat = null } = vector;
    const made = js.makeReport(polls[mechanism], dilemmas, choices, micro, about, random, repeat);
    failures.same(`report ${seed}`, made, report);
  }
}
