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

  plus(other) {
    return new Fraction(this.above * other.below + other.above * this.below, this.below * other.below);
  }

  times(other) {
    return new Fraction(this.above * other.above, this.below * other.below);
  }

  over(other) {
    return new Fraction(this.above * other.below, this.below * other.above);
  }

  exceeds(other) {
    return this.above * other.below > other.above * this.below;
  }

  toString() {
    return `${this.above}/${this.below}`;
  }
}

const ZERO = new Fraction(0n);
const ONE = new Fraction(1n);

/** e^epsilon for a whole epsilon, given in millionths. */
export function expOf(micro) {
  return new Fraction(3n ** BigInt(micro / 1_000_000));
}

/** What a run asks of its noise: each draw chooses one of some outcomes. */
class Played {
  probability = ONE;
  asked = [];

  constructor(path) {
    this.path = path;
    this.draws = [];
  }

  toss([a, b, c, d], micro) {
    const q = ONE.over(expOf(micro));
    const line = (start, slope) => new Fraction(start).plus(new Fraction(slope).times(q));
    return this.#draw([true, false], [line(a, b).over(line(c, d)), line(c - a, d - b).over(line(c, d))]);
  }

  below(bound) {
    // Of a bound as large as the grid, quarters are played: what is compared with them must lie on quarters.
    const outcomes = bound < 100 ? [...Array(bound).keys()] : [0, 1, 2, 3].map((quarter) => (quarter * bound) / 4);
    return this.#draw(outcomes, outcomes.map(() => new Fraction(1n, BigInt(outcomes.length))));
  }

  order(places) {
    const orders = permutations([...Array(places).keys()]);
    return this.#draw(orders, orders.map(() => new Fraction(1n, BigInt(orders.length))));
  }

  laplace(sensitivity, micro, count) {
    this.asked.push({ norm: "l1", sensitivity, micro, count });
    return Array(count).fill(0n);
  }

  cube(sensitivity, micro, count) {
    this.asked.push({ norm: "max", sensitivity, micro, count });
    return Array(count).fill(0n);
  }

  #draw(outcomes, probabilities) {
    const choice = this.path[this.draws.length] ?? 0;
    this.draws.push(outcomes.length);
    this.probability = this.probability.times(probabilities[choice]);
    return outcomes[choice];
  }
}

/** One run with the first outcome of everything: for what mechanisms ask, and what they would add noise to. */
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
  const law = new Map();
  let path = [];
  while (path) {
    const noise = new Played(path);
    const result = JSON.stringify(run(noise));
    if (noise.probability.above > 0n) law.set(result, (law.get(result) ?? ZERO).plus(noise.probability));
    path = following(path, noise.draws);
  }
  return law;
}

/** @returns {Fraction} the largest ratio of the probabilities of one result under two inputs */
export function worstRatio(laws) {
  let worst = ONE;
  for (const result of new Set(laws.flatMap((law) => [...law.keys()]))) {
    for (const one of laws) {
      for (const other of laws) {
        if (!other.has(result)) throw new Error(`${result} is possible with some inputs only`);
        const ratio = (one.get(result) ?? ZERO).over(other.get(result));
        if (ratio.exceeds(worst)) worst = ratio;
      }
    }
  }
  return worst;
}

/** @returns {Fraction} the sum of all probabilities */
export function total(law) {
  return [...law.values()].reduce((sum, probability) => sum.plus(probability), ZERO);
}

/** The next path through the tree of draws, in the order of an odometer. */
function following(path, draws) {
  const next = draws.map((_, i) => path[i] ?? 0);
  while (next.length && next.at(-1) === draws[next.length - 1] - 1) next.pop();
  if (!next.length) return null;
  next[next.length - 1] += 1;
  return next;
}

function permutations(items) {
  if (items.length < 2) return [items];
  return items.flatMap((item) => permutations(items.filter((other) => other !== item)).map((rest) => [item, ...rest]));
}

function gcd(a, b) {
  while (b) [a, b] = [b, a % b];
  return a < 0n ? -a : a;
}
