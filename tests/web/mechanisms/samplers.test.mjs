/** Samplers on words that are written down: ties, rejections, and the whole tree of a Laplace variable's coins. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";

import { load } from "./checks/modules.js";
import { MODULES, readVectors } from "./files.mjs";

const js = await load(MODULES);
const ONES = 2n ** 64n - 1n;

/** A Random of which every word is known. @param {bigint[]} given */
function words(...given) {
  return new js.Random((/** @type {Uint8Array} */ bytes) => {
    const view = new DataView(bytes.buffer);
    for (let at = 0; at < bytes.length; at += 8) view.setBigUint64(at, given[at / 8] ?? ONES, true);
  });
}

test("a coin whose first 64 digits are those of the number goes on to the next 64", () => {
  const floor = js.oddsFloor(js.FLIP, 1_000_000);
  const [first, second] = [floor(64n), floor(128n) & ONES];
  assert.equal(js.toss(words(first - 1n), floor), true);
  assert.equal(js.toss(words(first + 1n), floor), false);
  assert.equal(js.toss(words(first, second - 1n), floor), true);
  assert.equal(js.toss(words(first, second + 1n), floor), false);
});

test("a coin of probability one never fails, and one of probability zero never succeeds", () => {
  const [always, never] = [[2n, 2n, 2n, 2n], [0n, 0n, 1n, 1n]].map((odds) => js.oddsFloor(odds, 1_000_000));
  assert.equal(js.toss(words(ONES, ONES, 0n), always), true);
  assert.equal(js.toss(words(0n, 0n, 1n), never), false);
});

test("thresholds are inverted, ties with the digits that follow", () => {
  const floors = js.shiftFloors(3n, 1n, 2);
  const [[first, last], [longer]] = [floors(64n), floors(128n)];
  assert.equal(js.invert(words(0n), floors), 0);
  assert.equal(js.invert(words(first + 1n), floors), 1);
  assert.equal(js.invert(words(last + 1n), floors), 2);
  assert.equal(js.invert(words(first, (longer & ONES) - 1n), floors), 0);
  assert.equal(js.invert(words(first, (longer & ONES) + 1n), floors), 1);
});

test("an integer that is not below the bound is thrown away", () => {
  const top = (/** @type {bigint} */ value, /** @type {bigint} */ bits) => value << (64n - bits);
  assert.equal(words(top(7n, 3n), top(6n, 3n), top(4n, 3n)).below(6n), 4n);
  assert.equal(words(5n, top(2n, 2n)).below(2n ** 66n), top(2n, 2n) << 2n);
  assert.equal(words().below(1n), 0n);
  assert.throws(() => words().below(0n), RangeError);
});

test("equal keys are drawn again", () => {
  const key = (/** @type {bigint} */ value) => value << 2n;
  const noise = new js.Noise(words(key(5n), key(5n), key(9n), key(1n)));
  assert.deepEqual(noise.order(2), [1, 0]);
});

test("the coins of a Laplace variable, every way they can fall, add up to its law", () => {
  for (const { scale, floor_of_2_to_64_p: wanted } of readVectors().laplace.laws) {
    const coins = new js.LaplaceCoins(BigInt(scale[0]), BigInt(scale[1]));
    const [nonzero, tail, ...digits] = coins.floors(64n).map((/** @type {bigint} */ floor) => Number(floor) / 2 ** 64);
    // In the order of the tosses; the tail fails at once, but for exp(-16) or less.
    const order = [nonzero, ...digits, tail, 0.5];
    const law = new Map();
    for (let fall = 0; fall < 2 ** order.length; fall++) {
      const heads = order.map((_, i) => Boolean((fall >> i) & 1));
      if (heads[order.length - 2]) continue;
      const x = coins.laplace(words(...heads.map((head) => (head ? 0n : ONES))));
      const p = order.reduce((product, chance, i) => product * (heads[i] ? chance : 1 - chance), 1);
      law.set(x, (law.get(x) ?? 0) + p);
    }
    wanted.forEach((/** @type {string} */ floor, /** @type {number} */ x) => {
      for (const value of [BigInt(x), BigInt(-x)]) {
        assert.ok(Math.abs(law.get(value) - Number(floor) / 2 ** 64) < 1e-6, `${value} at ${scale}: ${law.get(value)}`);
      }
    });
  }
});

test("a tail that succeeds adds 2^K each time", () => {
  const coins = new js.LaplaceCoins(1n, 2n);
  const digits = Array(Number(coins.digits)).fill(ONES);
  assert.equal(coins.laplace(words(0n, ...digits, 0n, 0n, ONES, ONES)), 1n + 2n * 2n ** coins.digits);
});

test("bounds of the exponential enclose it, closely", () => {
  for (const [above, below] of [[1n, 1_000_000n], [1n, 3n], [1n, 1n], [7n, 2n], [50n, 1n]]) {
    const [low, high] = js.expBounds(above, below, 200n);
    const value = Math.exp(-Number(above) / Number(below));
    assert.ok(low <= high && high - low < 2n ** 20n, `${above}/${below}`);
    assert.ok(Math.abs(Number(low) / 2 ** 200 / value - 1) < 1e-14, `${above}/${below}`);
  }
  assert.throws(() => js.expBounds(0n, 1n, 64n), RangeError);
});

test("SHA-256 is that of node, for messages of all lengths around a block", () => {
  for (let length = 0; length < 140; length++) {
    const message = new Uint8Array(length).map((_, i) => 7 * i + length);
    assert.equal(Buffer.from(js.sha256(message)).toString("hex"), createHash("sha256").update(message).digest("hex"));
  }
});
