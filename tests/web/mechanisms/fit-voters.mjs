/** Fit preferences: [{records, norm_bound}] in, a list of preferences out. */

import { readFileSync } from "node:fs";

import { fit } from "../../../src/crowdveil/web/mechanisms/fit.js";

/** @type {{records: number[][], norm_bound: number}[]} */
const cases = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(cases.map(({ records, norm_bound: bound }) => fit(records, bound))));
