/**
 * Elements without strings of HTML: words from a study or a server can only become text.
 *
 * No style attribute is ever set, so that the strictest Content-Security-Policy holds.
 */

/** @typedef {Node | string | null | undefined | false | (Node | string | null)[]} Child */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Make an HTML element. `on...` functions are listeners; true and false switch an attribute.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...Child} children
 * @returns {any}
 */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/**
 * Make an SVG element.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...Child} children
 * @returns {any}
 */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** @param {Element} element @param {Record<string, any>} attributes @param {Child[]} children */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

/** Words that only a screen reader says. @param {string} words */
export function away(words) {
  return h("span", { class: "away" }, words);
}

/**
 * The buttons at the end of a form: back, and onward, which submits it.
 * @param {import("./page.js").Page} page
 * @param {{back?: string, onward?: string}} [keys] what they are called
 */
export function actions(page, { back = "back", onward = "next" } = {}) {
  return h(
    "div",
    { class: "actions" },
    h("button", { class: "quiet", type: "button", onclick: () => page.back() }, page.language.say(back)),
    h("button", { class: "primary", type: "submit" }, page.language.say(onward)),
  );
}
