/**
 * Noise that plays every outcome of every draw, one run after another, with exact probabilities.
 *
 * exp(-epsilon) is a rational number here, 3^-epsilon, so that all probabilities are fractions. Additive noise is not
 * played: none is added, and what was asked for is noted.
 */

/** A probability, or a ratio of two. */
export class Fraction {
  /** @param {bigint} above @param {bigint} below */
  constructor(above, below = 1n) {
    const common = gcd(above, below);
    this.above = above / common;
    this.below = below / common;
  }

  /** @param {Fraction} other */
  plus(other) {
    return new Fraction(this.above * other.below + other.above * this.below, this.below * other.below);
  }

  /** @param {Fraction} other */
  times(other) {
    return new Fraction(this.above * other.above, this.below * other.below);
  }

  /** @param {Fraction} other */
  over(other) {
    return new Fraction(this.above * other.below, this.below * other.above);
  }

  /** @param {Fraction} other */
  exceeds(other) {
    return this.above * other.below > other.above * this.below;
  }

  toString() {
    return `${this.above}/${this.below}`;
  }
}

const ZERO = new Fraction(0n);
const ONE = new Fraction(1n);

/** e^epsilon for a whole epsilon, given in millionths. @param {number} micro */
export function expOf(micro) {
  return new Fraction(3n ** BigInt(micro / 1_000_000));
}

/** What a run asks of its noise: each draw chooses one of some outcomes. */
class Played {
  probability = ONE;
  /** @type {{norm: string, sensitivity: bigint, micro: number, count: number}[]} */
  asked = [];
  /** How many outcomes each draw had. @type {number[]} */
  draws = [];

  /** @param {number[]} path */
  constructor(path) {
    this.path = path;
  }

  /** @param {[bigint, bigint, bigint, bigint]} odds @param {number} micro */
  toss([a, b, c, d], micro) {
    const q = ONE.over(expOf(micro));
    const line = (/** @type {bigint} */ start, /** @type {bigint} */ slope) =>
      new Fraction(start).plus(new Fraction(slope).times(q));
    return this.#draw([true, false], [line(a, b).over(line(c, d)), line(c - a, d - b).over(line(c, d))]);
  }

  /** @param {number} bound */
  below(bound) {
    // Of a bound as large as the grid, quarters are played: what is compared with them must lie on quarters.
    const outcomes = bound < 100 ? [...Array(bound).keys()] : [0, 1, 2, 3].map((quarter) => (quarter * bound) / 4);
    return this.#draw(outcomes, outcomes.map(() => new Fraction(1n, BigInt(outcomes.length))));
  }

  /** @param {number} places */
  order(places) {
    const orders = permutations([...Array(places).keys()]);
    return this.#draw(orders, orders.map(() => new Fraction(1n, BigInt(orders.length))));
  }

  /** @param {bigint} sensitivity @param {number} micro @param {number} count */
  laplace(sensitivity, micro, count) {
    this.asked.push({ norm: "l1", sensitivity, micro, count });
    return Array(count).fill(0n);
  }

  /** @param {bigint} sensitivity @param {number} micro @param {number} count */
  cube(sensitivity, micro, count) {
    this.asked.push({ norm: "max", sensitivity, micro, count });
    return Array(count).fill(0n);
  }

  /** @template T @param {T[]} outcomes @param {Fraction[]} probabilities @returns {T} */
  #draw(outcomes, probabilities) {
    const choice = this.path[this.draws.length] ?? 0;
    this.draws.push(outcomes.length);
    this.probability = this.probability.times(probabilities[choice]);
    return outcomes[choice];
  }
}

/**
 * One run with the first outcome of everything: for what mechanisms ask, and what they would add noise to.
 * @param {(noise: any) => any} run
 */
export function firstOutcome(run) {
  const noise = new Played([]);
  return { result: run(noise), asked: noise.asked };
}

/**
 * The exact law of what a run returns.
 * @param {(noise: any) => unknown} run
 * @returns {Map<string, Fraction>} probabilities by result, written in JSON
 */
export function lawOf(run) {
  /** @type {Map<string, Fraction>} */
  const law = new Map();
  /** @type {number[] | null} */
  let path = [];
  while (path) {
    const noise = new Played(path);
    const result = JSON.stringify(run(noise));
    if (noise.probability.above > 0n) law.set(result, (law.get(result) ?? ZERO).plus(noise.probability));
    path = following(path, noise.draws);
  }
  return law;
}

/** @param {Map<string, Fraction>[]} laws @returns {Fraction} the largest ratio of one result's probabilities */
export function worstRatio(laws) {
  let worst = ONE;
  for (const result of new Set(laws.flatMap((law) => [...law.keys()]))) {
    for (const one of laws) {
      for (const other of laws) {
        const below = other.get(result);
        if (!below) throw new Error(`${result} is possible with some inputs only`);
        const ratio = (one.get(result) ?? ZERO).over(below);
        if (ratio.exceeds(worst)) worst = ratio;
      }
    }
  }
  return worst;
}

/** @returns {Fraction} the sum of all probabilities @param {Map<string, Fraction>} law */
export function total(law) {
  return [...law.values()].reduce((sum, probability) => sum.plus(probability), ZERO);
}

/**
 * The next path through the tree of draws, in the order of an odometer.
 * @param {number[]} path
 * @param {number[]} draws
 * @returns {number[] | null}
 */
function following(path, draws) {
  const next = draws.map((_, i) => path[i] ?? 0);
  while (next.length && next.at(-1) === draws[next.length - 1] - 1) next.pop();
  if (!next.length) return null;
  next[next.length - 1] += 1;
  return next;
}

/** @template T @param {T[]} items @returns {T[][]} */
function permutations(items) {
  if (items.length < 2) return [items];
  return items.flatMap((item) => permutations(items.filter((other) => other !== item)).map((rest) => [item, ...rest]));
}

/** @param {bigint} a @param {bigint} b */
function gcd(a, b) {
  while (b) [a, b] = [b, a % b];
  return a < 0n ? -a : a;
}
