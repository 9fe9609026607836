/**
 * Small pictures that a study may put beside its facts, by name; any other text that it gives is shown as it is, so
 * that an emoji does as well. They repeat what the words say, and are hidden from screen readers.
 */

import { h, svg } from "../markup.js";

/** Lines in a box of 24 x 24. @type {Record<string, string>} */
export const ICONS = {
  person: "M12 4a3.5 3.5 0 1 1 0 7 3.5 3.5 0 0 1 0-7zM5 21c0-5 3-8 7-8s7 3 7 8",
  people:
    "M8.5 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM2.5 20c0-4.5 2.5-7 6-7s6 2.5 6 7M16 6a2.5 2.5 0 1 1 0 5" +
    "M16.5 13c3 .3 5 2.7 5 7",
  elder:
    "M10 4a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM6 21v-6c0-2.2 1.6-4 4-4s3.5 1.5 4 3.5l1 2.5M10 15v6M18.5 21v-8.5c0-2-3-2-3 0",
  child: "M12 7a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM7.5 21c0-4 1.7-6 4.5-6s4.5 2 4.5 6M6 12l3 4M18 12l-3 4",
  heart: "M12 20C5 15 3 11.5 3 8.5 3 6 5 4 7.5 4c2 0 3.5 1 4.5 3 1-2 2.5-3 4.5-3C19 4 21 6 21 8.5c0 3-2 6.5-9 11.5z",
  clock: "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18zM12 7v5.5l3.5 2",
  calendar: "M4 6h16v14H4zM4 10h16M8 3v5M16 3v5M8 14h2M14 14h2",
  work: "M3 8h18v11H3zM9 8V5h6v3M3 13h18M12 12v2",
  home: "M3 12l9-8 9 8M5.5 10v10h13V10M10 20v-6h4v6",
  money: "M3 6h18v12H3zM12 9a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM6 9v.1M18 15v.1",
  scales: "M12 3v17M7 20h10M5 6h14M5 6l-3 7c0 3 6 3 6 0zM19 6l-3 7c0 3 6 3 6 0z",
  shield: "M12 3l8 3v6c0 4.5-3 7.5-8 9.5-5-2-8-5-8-9.5V6z",
  book: "M12 6c-2-1.5-5-2-8-2v14c3 0 6 .5 8 2 2-1.5 5-2 8-2V4c-3 0-6 .5-8 2zM12 6v14",
  health: "M9.5 3h5v6h6v5h-6v7h-5v-7h-6V9h6z",
  weight: "M8 8h8l4 12H4zM12 4a2 2 0 1 1 0 4 2 2 0 0 1 0-4zM9.5 14h5",
  food: "M6 3v6c0 2 1 3 2 3s2-1 2-3V3M8 3v18M16 3c-2 2-2.5 5-2.5 9H16v9z",
  leaf: "M20 4c0 10-4 15-10 15-3 0-5-2-5-5C5 8 11 4 20 4zM4 21c3-6 7-9 11-11",
  flag: "M6 21V4M6 5c4-2 7 2 12 0v8c-5 2-8-2-12 0",
  globe: "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18zM3 12h18M12 3c4 5 4 13 0 18-4-5-4-13 0-18z",
  car: "M4 17v-4l2-6h12l2 6v4zM4 13h16M6 17v2M18 17v2M7.5 15h.1M16.5 15h.1",
};

/** @param {string} name of an icon, or a text such as an emoji */
export function icon(name) {
  if (!Object.hasOwn(ICONS, name)) return h("span", { class: "icon text", "aria-hidden": "true" }, name);
  const frame = { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" };
  return svg("svg", frame, svg("path", { d: ICONS[name] }));
}
