/** Make reports with the system's randomness: {poll, epsilon_micro, voters: [{dilemmas, choices}]} in, JSON out. */

import { readFileSync } from "node:fs";

import { makeReport } from "../../../src/crowdveil/web/mechanisms/report.js";

/** @typedef {{dilemmas: import("../../../src/crowdveil/web/mechanisms/study.js").Dilemma[], choices: any[]}} Voter */
const given = JSON.parse(readFileSync(0, "utf8"));
/** @type {Voter[]} */
const voters = given.voters;
const start = performance.now();
const reports = voters.map(({ dilemmas, choices }) => makeReport(given.poll, dilemmas, choices, given.epsilon_micro));
console.log(JSON.stringify({ reports, milliseconds: (performance.now() - start) / voters.length }));
