/** The voter's result as a picture to keep: drawn on this device, and given to nobody but the voter. */

import { rowWords, trackMarks } from "./factor-picture.js";
import { svg } from "./markup.js";
import { portrait } from "./scene/characters.js";

/**
 * @typedef {import("./comparison.js").Row} Row
 * @typedef {import("./language.js").Language} Language
 */

const WIDTH = 720;
const MARGIN = 40;
const ROW = 104;
const SHARPNESS = 2; // pixels a unit
/** A picture has no style sheet: the colours of each mark. @type {Record<string, Record<string, string | number>>} */
const COLOURS = {
  rail: { stroke: "#dedad1", "stroke-width": 5, "stroke-linecap": "round" },
  middle: { stroke: "#8b887e", "stroke-width": 1.5 },
  "open-mark": { fill: "#1d1d1b", "fill-opacity": 0.26 },
  "crowd-mark": { fill: "#1d1d1b" },
  "own-mark": { fill: "#0067a3", stroke: "#fffefb", "stroke-width": 1.5 },
};

/**
 * @param {string} title
 * @param {Row[]} rows
 * @param {{heading: string, name: string, words: string}[]} portraits of characters
 * @param {Language} language
 * @param {"ltr" | "rtl"} direction
 * @returns {SVGElement} the whole picture, with nothing outside it that it needs
 */
export function resultPicture(title, rows, portraits, language, direction) {
  const top = portraits.length > 0 ? 250 : 110;
  const height = top + rows.length * ROW + 60;
  const [start, end] = direction === "rtl" ? [WIDTH - MARGIN, MARGIN] : [MARGIN, WIDTH - MARGIN];
  const drawings = document.getElementById("characters")?.querySelector("defs")?.cloneNode(true);
  const x = (/** @type {number} */ share) => start + share * (end - start);
  return svg(
    "svg",
    {
      xmlns: "http://www.w3.org/2000/svg",
      viewBox: `0 0 ${WIDTH} ${height}`,
      width: WIDTH * SHARPNESS,
      height: height * SHARPNESS,
      direction,
      "font-family": "system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif",
    },
    portraits.length > 0 && drawings ? drawings : null,
    svg("rect", { width: WIDTH, height, fill: "#fffefb" }),
    text(start, 58, title, { "font-size": 28, "font-weight": 700 }),
    text(start, 88, legend(rows, language), { fill: "#66655f", "font-size": 15 }),
    portraits.map(({ heading, name, words }, i) => {
      const left = MARGIN + (i * (WIDTH - 2 * MARGIN)) / 2;
      const face = portrait(name, 96);
      face.setAttribute("x", String(direction === "rtl" ? WIDTH - left - 96 : left));
      face.setAttribute("y", "118");
      const beside = direction === "rtl" ? WIDTH - left - 112 : left + 112;
      return svg(
        "g",
        {},
        face,
        text(beside, 150, heading, { fill: "#66655f", "font-size": 14 }),
        text(beside, 174, words, { "font-size": 16, "font-weight": 700 }),
      );
    }),
    rows.map((row, i) => {
      const y = top + i * ROW;
      const [less, more] = row.poles ?? [language.say("less"), language.say("more")];
      const marks = trackMarks(row, x, 2);
      for (const mark of marks) {
        for (const [name, value] of Object.entries(COLOURS[mark?.getAttribute("class")] ?? {})) {
          mark.setAttribute(name, String(value));
        }
      }
      return svg(
        "g",
        {},
        text(start, y, row.title, { "font-size": 17, "font-weight": 700 }),
        text(start, y + 20, less, { "font-size": 14, "text-anchor": "start" }),
        text(end, y + 20, more, { "font-size": 14, "text-anchor": "end" }),
        svg("g", { transform: `translate(0 ${y + 26})` }, marks),
        text(start, y + 74, rowWords(row, language).join("  ·  "), { fill: "#66655f", "font-size": 13 }),
      );
    }),
    text(start, height - 24, language.say("picture_foot"), { fill: "#66655f", "font-size": 13 }),
  );
}

/** @param {Row[]} rows @param {Language} language */
function legend(rows, language) {
  const crowd = rows.some((row) => row.crowd) ? `   ● ${language.say("the_crowd")}` : "";
  return `◆ ${language.say("you")}${crowd}`;
}

/** @param {number} x @param {number} y @param {string} words @param {Record<string, any>} attributes */
function text(x, y, words, attributes) {
  return svg("text", { x, y, fill: "#1d1d1b", ...attributes }, words);
}

/**
 * The picture as PNG.
 * @param {SVGElement} picture
 * @returns {Promise<Blob>}
 */
export async function asPng(picture) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(picture))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.width;
  canvas.height = image.height;
  canvas.getContext("2d")?.drawImage(image, 0, 0);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture could not be drawn"))), "image/png");
  });
}
