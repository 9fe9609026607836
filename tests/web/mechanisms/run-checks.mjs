/** Run the checks on modules from a folder (file:///.../): what fails is printed, up to the first kind that does. */

import { checkLaws } from "./checks/laws.js";
import { checkPrivacy } from "./checks/privacy.js";
import { checkVectors } from "./checks/vectors.js";
import { readVectors } from "./files.mjs";

const base = process.argv[2];
const vectors = readVectors();
for (const check of [() => checkVectors(vectors, base), () => checkPrivacy(base), () => checkLaws(vectors, base)]) {
  const failures = await check();
  if (failures.length) {
    console.log(failures.join("\n"));
    process.exit(1);
  }
}
