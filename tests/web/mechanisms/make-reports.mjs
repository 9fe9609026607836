/** Make reports with the system's randomness: {poll, epsilon_micro, voters: [{dilemmas, choices}]} in, JSON out. */

import { readFileSync } from "node:fs";

import { makeReport } from "../../../src/crowdveil/web/mechanisms/report.js";

const { poll, epsilon_micro: epsilon, voters } = JSON.parse(readFileSync(0, "utf8"));
const start = performance.now();
const reports = voters.map(({ dilemmas, choices }) => makeReport(poll, dilemmas, choices, epsilon));
console.log(JSON.stringify({ reports, milliseconds: (performance.now() - start) / voters.length }));
