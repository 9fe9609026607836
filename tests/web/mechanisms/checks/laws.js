/**
 * The laws of all samplers, by counting: draws from scripted bytes (so always the same) against closed forms. With
 * fresh bytes, a sampler that is right would fail one of these comparisons less than once in a million runs.
 */

import { Failures, load } from "./modules.js";
import { quickRandom } from "./scripted.js";

/** @typedef {(name: string, got: number, wanted: number, deviation: number) => void} Near */
/** @typedef {(name: string, count: number | undefined, p: number, draws?: number) => void} Share */
/** @typedef {{near: Near, share: Share}} Expected */
/** @typedef {{js: any, random: any, noise: any, vectors: Record<string, any>, expect: Expected}} Given */

const DRAWS = 10_000;
const DEVIATIONS = 6; // 2e-9 for each of fewer than 300 comparisons

/**
 * @param {Record<string, any>} vectors
 * @param {string} base
 * @param {number} [enough] of what is wrong, to look no further
 * @returns {Promise<string[]>} what is wrong
 */
export async function checkLaws(vectors, base, enough = Infinity) {
  const js = await load(base);
  const failures = new Failures();
  for (const check of [uniform, orders, flips, smallLaplace, largeLaplace, smallCube, largeCube, options]) {
    if (failures.list.length >= enough) break;
    const random = quickRandom(check.name, js);
    check({ js, random, noise: new js.Noise(random), vectors, expect: expecting(failures, check.name) });
  }
  return failures.list;
}

/** @param {Given} given */
function uniform({ random, expect }) {
  for (const bound of [1n, 2n, 3n, 5n, 6n]) {
    const counts = tally(() => random.below(bound));
    for (let value = 0n; value < bound; value++) {
      expect.share(`${value} below ${bound}`, counts.get(`${value}`), 1 / Number(bound));
    }
  }
  const wide = (1n << 70n) * 3n; // more than a word
  const thirds = tally(() => random.below(wide) >> 70n);
  for (const third of [0, 1, 2]) expect.share(`third ${third} of a wide range`, thirds.get(`${third}`), 1 / 3);
}

/** @param {Given} given */
function orders({ noise, expect }) {
  const counts = tally(() => noise.order(3));
  for (const order of ["0,1,2", "0,2,1", "1,0,2", "1,2,0", "2,0,1", "2,1,0"]) {
    expect.share(order, counts.get(order), 1 / 6);
  }
}

/** @param {Given} given */
function flips({ js, noise, expect }) {
  for (const micro of [300_000, 2_500_000]) {
    const counts = tally(() => noise.toss(js.FLIP, micro), 4000);
    expect.share(`flip at ${micro}`, counts.get("true"), 1 / (1 + Math.exp(micro / 1e6)), 4000);
  }
}

/** @param {Given} given */
function smallLaplace({ js, random, vectors, expect }) {
  for (const { scale, floor_of_2_to_64_p: floors } of vectors.laplace.laws) {
    const coins = new js.LaplaceCoins(BigInt(scale[0]), BigInt(scale[1]));
    const counts = tally(() => coins.laplace(random));
    floors.forEach((/** @type {string} */ floor, /** @type {number} */ x) => {
      for (const value of new Set([x, -x])) {
        expect.share(`${value} at ${scale}`, counts.get(`${value}`), Number(floor) / 2 ** 64);
      }
    });
  }
}

/** At the scale of a real report: |X| / t is exponential but for a grid of 1 / t. @param {Given} given */
function largeLaplace({ js, noise, expect }) {
  const [micro, draws] = [1_000_000, 4000];
  const scale = Number(js.PREFERENCE_SENSITIVITY);
  /** @type {number[]} */
  const drawn = noise.laplace(js.PREFERENCE_SENSITIVITY, micro, draws).map(Number);
  const sizes = drawn.map((value) => Math.abs(value) / scale);
  expect.share("negative", drawn.filter((value) => value < 0).length, 0.5, draws);
  for (const x of [0.1, 0.5, 1, 3]) {
    expect.share(`within ${x}`, sizes.filter((size) => size < x).length, 1 - Math.exp(-x), draws);
  }
}

/** @param {Given} given */
function smallCube({ js, random, vectors, expect }) {
  for (const { dimension, scale, floor_of_2_to_64_p: floors } of vectors.cube.laws) {
    const name = `in ${dimension} dimensions at ${scale}`;
    /** @type {Map<string, number>} */
    const counts = new Map();
    const draws = 5000;
    for (let i = 0; i < draws; i++) {
      /** @type {bigint[]} */
      const x = js.cubeNoise(random, BigInt(scale[0]), BigInt(scale[1]), dimension);
      const norm = Math.max(...x.map((value) => Math.abs(Number(value))));
      for (const key of [`norm ${norm}`, `x ${x}`]) counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    floors.forEach((/** @type {string} */ floor, /** @type {number} */ r) => {
      const p = Number(floor) / 2 ** 64;
      const points = (2 * r + 1) ** dimension - (r ? (2 * r - 1) ** dimension : 0);
      expect.share(`norm ${r} ${name}`, counts.get(`norm ${r}`), points * p, draws);
      const single = Array(dimension).fill(0);
      single[dimension - 1] = -r;
      expect.share(`${single} ${name}`, counts.get(`x ${single}`), p, draws);
    });
  }
}

/**
 * At the scale of a real report: the norm over t is Gamma(d), and a coordinate over the norm is often 1 or uniform.
 * @param {Given} given
 */
function largeCube({ js, noise, expect }) {
  const [micro, draws, scale] = [1_000_000, 1000, Number(js.RECORD_SENSITIVITY)];
  for (const d of [1, 4, 9]) {
    let [sum, positive] = [0, 0];
    for (let i = 0; i < draws; i++) {
      /** @type {number[]} */
      const x = noise.cube(js.RECORD_SENSITIVITY, micro, d).map(Number);
      sum += Math.max(...x.map(Math.abs)) / scale;
      positive += x[0] > 0 ? 1 : 0;
    }
    expect.near(`mean norm in ${d} dimensions`, sum / draws, d, Math.sqrt(d / draws));
    expect.share(`positive in ${d} dimensions`, positive, 0.5, draws);
  }
}

/** @param {Given} given */
function options({ js, noise, expect }) {
  const [count, micro, draws] = [4, 700_000, 4000];
  const counts = tally(() => js.perturbedOption(2, count, micro, noise), draws);
  const all = Math.exp(micro / 1e6) + count - 1;
  for (let option = 0; option < count; option++) {
    expect.share(`option ${option}`, counts.get(`${option}`), (option === 2 ? Math.exp(micro / 1e6) : 1) / all, draws);
  }
}

/** @param {() => unknown} draw */
function tally(draw, draws = DRAWS) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (let i = 0; i < draws; i++) {
    const key = String(draw());
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

/** @param {Failures} failures @param {string} law @returns {Expected} */
function expecting(failures, law) {
  /** @type {Near} */
  const near = (name, got, wanted, deviation) => {
    const off = Math.abs(got - wanted) / (deviation || Number.MIN_VALUE);
    const detail = `${name}: ${got} in place of ${wanted}, ${off.toFixed(1)} deviations off`;
    failures.holds(law, got === wanted || off < DEVIATIONS, detail);
  };
  /** @type {Share} */
  const share = (name, count = 0, p, draws = DRAWS) => {
    near(name, count / draws, p, Math.sqrt((p * (1 - p)) / draws) + 1 / draws);
  };
  return { near, share };
}
