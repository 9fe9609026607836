/** Run the checks on modules from folders (file:///.../): for each, what fails, up to the first check that does. */

import { checkLaws } from "./checks/laws.js";
import { checkPrivacy } from "./checks/privacy.js";
import { checkVectors } from "./checks/vectors.js";
import { readVectors } from "./files.mjs";

const vectors = readVectors();

/** @param {string} base @returns {Promise<string[]>} */
async function failuresOf(base) {
  for (const check of [
    () => checkVectors(vectors, base, 1),
    () => checkPrivacy(base, 1),
    () => checkLaws(vectors, base, 1),
  ]) {
    const failures = await check();
    if (failures.length > 0) return failures;
  }
  return [];
}

const found = [];
for (const base of process.argv.slice(2)) found.push(await failuresOf(base));
console.log(JSON.stringify(found));
