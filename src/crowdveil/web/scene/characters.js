/** The characters of the road scene: what there is to draw, and the drawings, loaded once into the page. */

import { svg } from "../markup.js";
import { request } from "../requests.js";

const DRAWINGS = new URL("characters.svg", import.meta.url);

/** Feature -> the part of its box (48 x 72) that shows when it sits in a car. @type {Record<string, string>} */
const SEATED = {
  man: "0 0 48 46",
  woman: "0 0 48 46",
  pregnant: "0 2 48 46",
  stroller: "0 17 48 46",
  old_man: "0 0 48 46",
  old_woman: "0 0 48 46",
  boy: "0 17 48 46",
  girl: "0 17 48 46",
  homeless: "0 0 48 46",
  large_woman: "0 0 48 46",
  large_man: "0 0 48 46",
  criminal: "0 0 48 46",
  male_executive: "0 0 48 46",
  female_executive: "0 0 48 46",
  female_athlete: "0 0 48 46",
  male_athlete: "0 0 48 46",
  female_doctor: "0 0 48 46",
  male_doctor: "0 0 48 46",
  dog: "0 26 48 46",
  cat: "0 28 48 46",
};

const SMALL = ["boy", "girl", "stroller", "dog", "cat"];

export const CHARACTERS = Object.keys(SEATED);

/** Skin, hair, and what some wear on their faces. @type {Record<string, string>[]} */
const FACES = [
  { "--skin": "#d9a679", "--hair": "#3a2a20" },
  { "--skin": "#8d5a36", "--hair": "#1c1512", "--beard": "1" },
  { "--skin": "#f0cdb0", "--hair": "#a8642a", "--glasses": "1" },
  { "--skin": "#5f3b23", "--hair": "#15110f" },
  { "--skin": "#e5b98a", "--hair": "#1a1714", "--glasses": "1" },
  { "--skin": "#b97e50", "--hair": "#2b1d16", "--beard": "1" },
  { "--skin": "#f3d8c3", "--hair": "#d3a95c", "--beard": "1" },
];
const CLOTHES = ["#3d7fb3", "#c8553d", "#2a8a80", "#8c5aa0", "#d9a12b"];

/** @typedef {{face: number, clothes: number}} Look */

/**
 * How the people of a dilemma look. The one who stands first in either group has the same skin and clothes as the first
 * of the other, and so on: looks cannot speak for a side. They follow from the dilemma alone, in either order of its
 * sides, so that everybody who is shown it sees the same.
 * @param {import("../mechanisms/study.js").Dilemma} dilemma
 * @returns {(place: number) => Look}
 */
export function looksOf({ left, right }) {
  const seed = left.reduce((sum, value, k) => sum + (k + 3) * (k + 1) * Math.abs(Math.round(value + right[k])), 0);
  return (place) => ({ face: (seed + 3 * place) % FACES.length, clothes: (seed + 2 * place) % CLOTHES.length });
}

/** @param {import("../mechanisms/study.js").Study} study @returns {boolean} whether a study has what the road needs */
export function hasRoad(study) {
  const names = study.features.map((feature) => feature.name);
  return ["intervention", "barrier", "legality", ...CHARACTERS].every((name) => names.includes(name));
}

/** Put the drawings into the page, unless they are there. */
export async function loadCharacters() {
  if (document.getElementById("characters")) return;
  const response = await request(DRAWINGS, { credentials: "omit" });
  if (!response.ok) throw new Error("the drawings are missing");
  const drawings = new DOMParser().parseFromString(await response.text(), "image/svg+xml").documentElement;
  if (document.getElementById("characters")) return;
  drawings.id = "characters";
  drawings.setAttribute("class", "away");
  drawings.setAttribute("aria-hidden", "true");
  document.body.append(document.importNode(drawings, true));
}

/**
 * Everybody in a group, the tall ones first.
 * @param {Record<string, number>} counts
 * @returns {string[]}
 */
export function everybody(counts) {
  const standing = CHARACTERS.flatMap((name) => Array(Math.max(0, Math.round(counts[name] ?? 0))).fill(name));
  return [...standing.filter((name) => !SMALL.includes(name)), ...standing.filter((name) => SMALL.includes(name))];
}

/**
 * A whole figure whose feet stand at (x, y).
 * @param {string} name
 * @param {number} x
 * @param {number} y
 * @param {number} height
 * @param {Look} look
 */
export function standing(name, x, y, height, look) {
  const width = (height * 48) / 72;
  const box = { href: `#character-${name}`, x: x - width / 2, y: y - height, width, height };
  return dressed(svg("g", { class: "figure" }, svg("use", { ...box, class: "halo" }), svg("use", box)), look);
}

/**
 * The part of a figure that is seen above a seat; the middle of its lower edge is at (x, y).
 * @param {string} name
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {Look} look
 */
export function seated(name, x, y, width, look) {
  const height = (width * 46) / 48;
  const frame = { x: x - width / 2, y: y - height, width, height, viewBox: SEATED[name] };
  const use = { href: `#character-${name}`, width: 48, height: 72 };
  const figure = svg("svg", { ...frame, class: "figure" }, svg("use", { ...use, class: "halo" }), svg("use", use));
  return dressed(figure, look);
}

/**
 * Head and shoulders, as a picture of its own.
 * @param {string} name
 * @param {number} size in pixels, as wide as high
 */
export function portrait(name, size) {
  const [x, y, width] = SEATED[name].split(" ").map(Number);
  const frame = { class: "portrait", viewBox: `${x} ${y - 1} ${width} ${width}`, width: size, height: size };
  const use = svg("use", { href: `#character-${name}`, width: 48, height: 72 });
  return dressed(svg("svg", { ...frame, "aria-hidden": "true", focusable: "false" }, use), {
    face: CHARACTERS.indexOf(name) % FACES.length,
    clothes: CHARACTERS.indexOf(name) % CLOTHES.length,
  });
}

/** @param {SVGElement} figure @param {Look} look */
function dressed(figure, { face, clothes }) {
  for (const [name, value] of Object.entries(FACES[face])) figure.style.setProperty(name, value);
  figure.style.setProperty("--cloth", CLOTHES[clothes]);
  return figure;
}

/** A few of them on a crossing, for the welcome. */
export function passersBy() {
  const names = ["old_man", "girl", "female_doctor", "dog", "man", "pregnant", "boy", "homeless", "cat"];
  const stripes = Array.from({ length: 13 }, (_, i) =>
    svg("rect", { x: 8 + i * 28, y: 58, width: 16, height: 22, rx: 1.5 }),
  );
  return svg(
    "svg",
    { viewBox: "0 0 368 84", class: "road passers-by", "aria-hidden": "true", focusable: "false" },
    svg("rect", { class: "asphalt", y: 54, width: 368, height: 30, rx: 4 }),
    svg("g", { class: "zebra" }, stripes),
    names.map((name, i) =>
      standing(name, 24 + i * 40, 73, 66, { face: (3 * i) % FACES.length, clothes: i % CLOTHES.length }),
    ),
  );
}
