/** Where the modules under test and the vectors are. */

import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const MODULES = new URL("../../../src/crowdveil/web/mechanisms/", import.meta.url).href;

/** @returns {Record<string, any>} vectors/*.json by name */
export function readVectors() {
  const folder = fileURLToPath(new URL("../../../vectors/", import.meta.url));
  const names = readdirSync(folder).filter((name) => name.endsWith(".json"));
  return Object.fromEntries(names.map((name) => [name.slice(0, -5), JSON.parse(readFileSync(folder + name, "utf8"))]));
}
