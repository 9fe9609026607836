/** The vectors, the promise and the laws, on the modules as they are shipped. */

import assert from "node:assert/strict";
import test from "node:test";

import { checkLaws } from "./checks/laws.js";
import { checkPrivacy } from "./checks/privacy.js";
import { checkVectors } from "./checks/vectors.js";
import { MODULES, readVectors } from "./files.mjs";

test("what Python wrote is met", async () => {
  assert.deepEqual(await checkVectors(readVectors(), MODULES), []);
});

test("no report tells more than epsilon allows", async () => {
  assert.deepEqual(await checkPrivacy(MODULES), []);
});

test("samplers have the laws that the proofs speak of", async () => {
  assert.deepEqual(await checkLaws(readVectors(), MODULES), []);
});
