/**
 * The road: a car whose brakes have failed, and two lanes. In each lane stands a group, or the barrier that would kill
 * those in the car. The lane on the left belongs to the left alternative, the lane on the right to the right one.
 *
 * Both groups are drawn to the same scale, in the car as on the road, so that neither looks larger than it is. The
 * picture repeats what the words say. It is hidden from screen readers, which get the words.
 */

import { svg } from "../markup.js";
import { everybody, looksOf, seated, standing } from "./characters.js";

/**
 * @typedef {import("../mechanisms/study.js").Study} Study
 * @typedef {import("../mechanisms/study.js").Dilemma} Dilemma
 * @typedef {import("../mechanisms/study.js").Side} Side
 * @typedef {import("./characters.js").Look} Look
 * @typedef {(place: number) => Look} Looks
 * @typedef {(side: Side) => void} Pick
 *
 * @typedef {object} Labels what is written in the picture
 * @property {string} left the letter that names each group
 * @property {string} right
 * @property {(tag: string, what: "lives" | "dies") => string} [fate] what becomes of a group, in a word or two
 */

const WIDTH = 360;
const HEIGHT = 380;
const LANE = { left: 97, right: 263 }; // the middles of the lanes
const KERB = { left: 9, right: 351 };
const FEET = 153; // where the front row stands
const CAR = { y: 225, scale: 1.14 };
/** How tall a figure stands, by the number of people in the larger group. @type {Record<number, number>} */
const TALL = { 1: 98, 2: 94, 3: 72, 4: 68, 5: 68 };
const SIDES = /** @type {const} */ (["left", "right"]);

/**
 * Whether a dilemma can happen on this road: one group ahead, one beside it, and not both in the car.
 * @param {Study} study
 * @param {Dilemma} dilemma
 */
export function fitsRoad(study, dilemma) {
  const { left, right } = groupsOf(study, dilemma);
  const people = [left, right].every((group) => everybody(group).length >= 1 && everybody(group).length <= 5);
  return people && left.intervention + right.intervention === 1 && left.barrier + right.barrier <= 1;
}

/**
 * Values by feature name, of both sides.
 * @param {Study} study
 * @param {Dilemma} dilemma
 * @returns {Record<Side, Record<string, number>>}
 */
export function groupsOf(study, dilemma) {
  const named = (/** @type {number[]} */ values) =>
    Object.fromEntries(study.features.map((feature, k) => [feature.name, values[k]]));
  return { left: named(dilemma.left), right: named(dilemma.right) };
}

/**
 * @param {Study} study
 * @param {Dilemma} dilemma
 * @param {Labels} labels
 * @param {Pick} [pick] what a touch of a group does
 * @returns {{element: SVGElement, mark: (spared: Side | null) => void}} `mark` shows the outcome: where the car goes,
 *   who dies and who lives
 */
export function drawRoad(study, dilemma, labels, pick) {
  const groups = groupsOf(study, dilemma);
  const ahead = groups.left.intervention === 0 ? "left" : "right";
  const inCar = SIDES.find((side) => groups[side].barrier === 1);
  const people = { left: everybody(groups.left), right: everybody(groups.right) };
  const tall = TALL[Math.max(people.left.length, people.right.length)];
  const looks = looksOf(dilemma);
  const element = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    class: "road",
    "aria-hidden": "true",
    focusable: "false",
  });
  element.append(...ground());
  for (const side of SIDES) {
    element.append(groups[side].barrier === 1 ? barrier(LANE[side]) : crossing(side));
    if (groups[side].legality !== 0) element.append(light(KERB[side], groups[side].legality > 0));
  }
  element.append(car(LANE[ahead], inCar ? people[inCar] : [], tall, looks, inCar, labels, pick));
  for (const side of SIDES) {
    if (side !== inCar) element.append(pedestrians(side, people[side], tall, looks, labels, pick));
  }
  element.append(...SIDES.map((side) => path(side, ahead)));
  return { element, mark: (spared) => mark(element, spared) };
}

/** @param {Element} element @param {Side | null} spared */
function mark(element, spared) {
  element.classList.toggle("decided", spared !== null);
  for (const part of element.querySelectorAll("[data-side]")) {
    const side = part.getAttribute("data-side");
    part.classList.toggle("spared", spared !== null && side === spared);
    part.classList.toggle("hit", spared !== null && side !== spared);
  }
}

function ground() {
  return [
    svg("rect", { class: "verge", width: WIDTH, height: HEIGHT, rx: 10 }),
    svg("path", { class: "pavement", d: `M6 0H354L360 40V${HEIGHT}H0V40z` }),
    svg("path", { class: "asphalt", d: `M19 0H341L352 ${HEIGHT}H8z` }),
    svg("path", { class: "kerb", d: `M19 0 8 ${HEIGHT}M341 0 352 ${HEIGHT}` }),
    svg("path", { class: "divider", d: `M180 ${HEIGHT}V186M180 2V22` }),
  ];
}

/** @param {Side} side */
function crossing(side) {
  const left = side === "left" ? 21 : 187;
  const stripes = Array.from({ length: 6 }, (_, i) =>
    svg("rect", { x: left + 3 + i * 26, y: 30, width: 15, height: 126, rx: 1.5 }),
  );
  return svg("g", { class: "zebra" }, stripes);
}

/** @param {number} x */
function barrier(x) {
  const stripes = Array.from({ length: 6 }, (_, i) =>
    svg("path", { class: "hazard", d: `M${x - 66 + i * 24} 96h12l-9 22h-12z` }),
  );
  return svg(
    "g",
    { class: "barrier" },
    svg("ellipse", { class: "shade", cx: x, cy: 143, rx: 76, ry: 7 }),
    svg("path", { class: "concrete", d: `M${x - 66} 74h132l4 44h6l3 24h-158l3-24h6z` }),
    svg("path", { class: "concrete-edge", d: `M${x - 66} 74h132l1 9h-134zM${x - 76} 118h152l3 24h-158z` }),
    svg("path", { class: "plate", d: `M${x - 69} 94h138l2 26h-142z` }),
    stripes,
  );
}

/**
 * A light for pedestrians: standing above, walking below, so that it can be read without its colours.
 * @param {number} x
 * @param {boolean} green
 */
function light(x, green) {
  const lamp = (/** @type {number} */ y, /** @type {boolean} */ on, /** @type {string} */ name) =>
    svg("circle", { cx: x, cy: y, r: 6.6, class: on ? `lamp ${name}` : "lamp" });
  return svg(
    "g",
    { class: "light" },
    svg("path", { class: "post", d: `M${x} 74V158` }),
    svg("rect", { class: "case", x: x - 9, y: 38, width: 18, height: 36, rx: 5 }),
    lamp(48, !green, "red"),
    lamp(64, green, "green"),
    svg("path", {
      class: green ? "sign" : "sign on",
      d: `M${x} 44.5v3M${x - 1.6} 47h3.2M${x - 1} 47v4.5M${x + 1} 47v4.5`,
    }),
    svg("path", {
      class: green ? "sign on" : "sign",
      d: `M${x} 60.5v3.5M${x - 2.4} 63.5l4.8-1M${x} 64l-2 4M${x} 64l2.2 4`,
    }),
  );
}

/** Where the car goes if the group of this side is hit. @param {Side} side @param {Side} ahead */
function path(side, ahead) {
  const [from, to] = [LANE[ahead], LANE[side]];
  const [start, tip] = [CAR.y - 1, 178];
  const onward = side === ahead ? `V${tip + 12}` : `C${from} 198 ${to} 226 ${to} ${tip + 12}`;
  return svg(
    "g",
    { class: side === ahead ? "way stays" : "way swerves", "data-side": side },
    svg("path", { class: "way-line", d: `M${from} ${start}${onward}`, pathLength: 100 }),
    svg("path", { class: "way-tip", d: `M${to - 13} ${tip + 15}L${to} ${tip - 2}L${to + 13} ${tip + 15}z` }),
  );
}

/**
 * @param {Side} side
 * @param {string[]} names
 * @param {number} tall
 * @param {Looks} looks
 * @param {Labels} labels
 * @param {Pick} [pick]
 */
function pedestrians(side, names, tall, looks, labels, pick) {
  const x = LANE[side];
  const [back, front] = rows(names);
  const frontFeet = back.length > 0 ? FEET : 88 + tall / 2;
  const people = [...placed(back, 0, tall * 0.7, 82), ...placed(front, back.length, tall * 0.7, frontFeet)];
  return svg(
    "g",
    { class: "group", "data-side": side, ...(pick && { onclick: () => pick(side) }) },
    svg("rect", { class: "plate-of-group", x: x - 75, y: 6, width: 150, height: 168, rx: 12 }),
    svg(
      "g",
      { class: "figures" },
      people.map(({ name, place, dx, y }) => standing(name, x + dx, y, tall, looks(place))),
    ),
    svg("g", { class: "crosses" }, people.map(({ dx, y }) => cross(x + dx, y - tall * 0.36))),
    badge(side === "left" ? x - 62 : x + 62, 20, labels[side]),
    verdict(x, 164, labels[side], labels),
  );
}

/** Up to three stand or sit side by side, more in two rows. @param {string[]} names */
function rows(names) {
  const back = names.length > 3 ? Math.floor(names.length / 2) : 0;
  return [names.slice(0, back), names.slice(back)];
}

/**
 * A row of people around the middle: who, the how-manieth of the group, how far to the side, and where.
 * @param {string[]} names
 * @param {number} before how many of the group stand in another row
 * @param {number} apart
 * @param {number} y
 */
function placed(names, before, apart, y) {
  return names.map((name, i) => ({ name, place: before + i, dx: (i - (names.length - 1) / 2) * apart, y }));
}

/**
 * The car from behind and above, with a glass roof.
 * @param {number} x
 * @param {string[]} names
 * @param {number} tall
 * @param {Looks} looks
 * @param {Side | undefined} side of those in it
 * @param {Labels} labels
 * @param {Pick} [pick]
 */
function car(x, names, tall, looks, side, labels, pick) {
  const wide = (tall * 48) / 72 / CAR.scale; // as wide as the same people on the road
  const [back, front] = rows(names);
  const middle = back.length > 0 ? 100 : Math.min(100, 62 + wide / 2);
  const apart = front.length > 2 ? 41 : wide + 1;
  const people = [...placed(back, 0, wide, 60), ...placed(front, back.length, apart, middle)];
  const glass = "M-56 19c36-7 76-7 112 0 5 20 8 45 8 78 0 6-3 9-9 10-36 4-74 4-110 0-6-1-9-4-9-10 0-33 3-58 8-78z";
  return svg(
    "g",
    {
      class: side ? "car group" : "car",
      transform: `translate(${x} ${CAR.y}) scale(${CAR.scale})`,
      ...(side && { "data-side": side }),
      ...(side && pick && { onclick: () => pick(side) }),
    },
    svg("ellipse", { class: "shade", cx: 0, cy: 118, rx: 76, ry: 9 }),
    svg("path", { class: "tyre", d: "M-74 26h12v26h-12zM62 26h12v26h-12zM-75 88h13v30h-13zM62 88h13v30h-13z" }),
    svg("path", {
      class: "body",
      d:
        "M-48 2C-30-4 30-4 48 2c14 4 20 14 21 30l3 68c0 12-8 20-22 21-32 3-68 3-100 0-14-1-22-9-22-21l3-68" +
        "C-68 16-62 6-48 2z",
    }),
    svg("path", { class: "bonnet", d: "M-44 6C-28 1 28 1 44 6c7 2 10 5 12 9-36-6-76-6-112 0 2-4 5-7 12-9z" }),
    svg("path", { class: "glass", d: glass }),
    side ? svg("path", { class: "plate-of-group", d: glass }) : null,
    svg("path", {
      class: "lamps",
      d: "M-69 100c6 2 12 3 17 7-2 5-6 9-11 10-4-3-6-9-6-17zM69 100c-6 2-12 3-17 7 2 5 6 9 11 10 4-3 6-9 6-17z",
    }),
    names.length === 0
      ? svg("path", { class: "seats", d: "M-46 44h38v22h-38zM8 44h38v22H8zM-48 76h96v24h-96z" })
      : null,
    svg(
      "g",
      { class: "figures" },
      people.map(({ name, place, dx, y }) => seated(name, dx, y, wide, looks(place))),
    ),
    svg("g", { class: "crosses" }, people.map(({ dx, y }) => cross(dx, y - wide * 0.14, 0.8))),
    side ? badge(x < WIDTH / 2 ? -62 : 62, 10, labels[side]) : null,
    side ? verdict(0, 113, labels[side], labels) : null,
  );
}

/** The letter of a group. @param {number} x @param {number} y @param {string} tag */
function badge(x, y, tag) {
  return svg(
    "g",
    { class: "badge", transform: `translate(${x} ${y})` },
    svg("circle", { r: 11 }),
    svg("text", { y: 0.5, "text-anchor": "middle", "dominant-baseline": "central" }, tag),
  );
}

/**
 * A mark on somebody who dies: the figure stays as visible as before.
 * @param {number} x
 * @param {number} y
 * @param {number} [size]
 */
function cross(x, y, size = 1) {
  return svg(
    "g",
    { class: "cross", transform: `translate(${x} ${y}) scale(${size})` },
    svg("circle", { r: 8.5 }),
    svg("path", { d: "M-3.4-3.4l6.8 6.8M3.4-3.4l-6.8 6.8" }),
  );
}

/**
 * The fate of a group, in words and with a sign.
 * @param {number} x
 * @param {number} y
 * @param {string} tag
 * @param {Labels} labels
 */
function verdict(x, y, tag, { fate = (/** @type {string} */ named) => named }) {
  const plate = (/** @type {"lives" | "dies"} */ what, /** @type {string} */ sign) => {
    const words = `${sign} ${fate(tag, what)}`;
    const width = Math.min(148, 18 + 8.2 * [...words].reduce((sum, letter) => sum + (letter > "\u2fff" ? 1.6 : 1), 0));
    return svg(
      "g",
      { class: `verdict-plate ${what}`, transform: `translate(${x} ${y})` },
      svg("rect", { x: -width / 2, y: -11, width, height: 22, rx: 11 }),
      svg("text", { y: 0.5, "text-anchor": "middle", "dominant-baseline": "central" }, words),
    );
  };
  return svg("g", { class: "verdicts" }, plate("lives", "✓"), plate("dies", "✕"));
}
