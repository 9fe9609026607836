/** The form of one outcome: people for a road, facts for any other study. */

import { h, svg } from "/web/markup.js";
import { CHARACTERS, everybody } from "/web/scene/characters.js";

/**
 * @typedef {"left" | "right"} Side
 * @typedef {Record<string, number>} Values
 * @typedef {object} Form
 * @property {any} study
 * @property {any} words
 * @property {Record<string, string>} said
 * @property {Side} side
 * @property {Values} values
 * @property {(side: Side, name: string, value: number) => void} change
 */

const MOST_PEOPLE = 5;

/** Who is there, and where: figures to add and to take away. @param {Form} form */
export function people(form) {
  const { study, words, said, side, values, change } = form;
  const there = everybody(values);
  const label = (/** @type {"add" | "remove"} */ act, /** @type {string} */ name) =>
    said[act].replace("{label}", valueWords(words, name, 1));
  return [
    h(
      "div",
      { class: "there" },
      there.map((name, k) =>
        figureButton(name, label("remove", name), {
          "data-key": `${side}-there-${k}`,
          onclick: () => change(side, name, values[name] - 1),
        }),
      ),
    ),
    h(
      "div",
      { class: "figures-to-add" },
      CHARACTERS.map((name) =>
        figureButton(name, label("add", name), {
          "data-key": `${side}-${name}`,
          disabled: there.length >= MOST_PEOPLE,
          onclick: () => change(side, name, values[name] + 1),
        }),
      ),
    ),
    ...study.features
      .filter((/** @type {any} */ feature) => !CHARACTERS.includes(feature.name))
      .map((/** @type {any} */ feature) => choice(form, feature, range(feature))),
  ];
}

/** @param {string} name @param {string} label @param {Record<string, any>} attributes */
function figureButton(name, label, attributes) {
  return h(
    "button",
    { type: "button", class: "figure-button", title: label, "aria-label": label, ...attributes },
    svg(
      "svg",
      { viewBox: "0 0 48 72", "aria-hidden": "true", focusable: "false" },
      svg("use", { href: `#character-${name}`, width: 48, height: 72 }),
    ),
  );
}

/** Every fact of an outcome as a field. @param {Form} form */
export function facts(form) {
  const { study, words, side, values, change } = form;
  /** @type {Map<string, any>} */
  const levels = new Map();
  for (const category of study.categories ?? []) {
    for (const level of category.levels) levels.set(`${category.name}-${level}`, category);
  }
  const shown = [];
  const done = new Set();
  for (const feature of study.features) {
    const category = levels.get(feature.name);
    if (category === undefined) {
      shown.push(feature.levels?.length ? choice(form, feature, feature.levels) : measure(form, feature));
    } else if (!done.has(category.name)) {
      done.add(category.name);
      const names = category.levels.map((/** @type {string} */ level) => `${category.name}-${level}`);
      const pick = (/** @type {Event} */ event) => {
        const chosen = /** @type {HTMLSelectElement} */ (event.target).value;
        for (const name of names) values[name] = 0;
        change(side, chosen, 1);
      };
      const [title] = String(words.features[names[0]].label).split(":");
      shown.push(
        field(title, `${side}-${category.name}`, (id) =>
          h(
            "select",
            { id, "data-key": id, onchange: pick },
            names.map((/** @type {string} */ name) =>
              h("option", { value: name, selected: values[name] === 1 }, valueWords(words, name, 1)),
            ),
          ),
        ),
      );
    }
  }
  return shown;
}

/**
 * A field with a few values to choose from, in words.
 * @param {Form} form
 * @param {any} feature
 * @param {number[]} offered
 */
function choice({ words, side, values, change }, feature, offered) {
  const pick = (/** @type {Event} */ event) =>
    change(side, feature.name, Number(/** @type {HTMLSelectElement} */ (event.target).value));
  return field(words.features[feature.name].label, `${side}-${feature.name}`, (id) =>
    h(
      "select",
      { id, "data-key": id, onchange: pick },
      offered.map((value) =>
        h("option", { value, selected: values[feature.name] === value }, valueWords(words, feature.name, value) || "–"),
      ),
    ),
  );
}

/** A field for a number. @param {Form} form @param {any} feature */
function measure({ words, side, values, change }, feature) {
  const write = (/** @type {Event} */ event) => {
    const given = /** @type {HTMLInputElement} */ (event.target).valueAsNumber;
    if (given >= feature.low && given <= feature.high) change(side, feature.name, given);
  };
  return field(words.features[feature.name].label, `${side}-${feature.name}`, (id) =>
    h("input", {
      id,
      "data-key": id,
      type: "number",
      min: feature.low,
      max: feature.high,
      step: "any",
      value: values[feature.name],
      onchange: write,
    }),
  );
}

/** @param {string} label @param {string} id @param {(id: string) => Element} make */
function field(label, id, make) {
  return h("p", { class: "field" }, h("label", { for: id }, label), make(id));
}

/** @param {any} feature @returns {number[]} the whole numbers that a feature can be */
function range({ low, high }) {
  return Array.from({ length: high - low + 1 }, (_, k) => low + k);
}

/** A value in words. @param {any} words @param {string} name @param {number} value */
function valueWords(words, name, value) {
  const { label, words: phrases } = words.features[name];
  if (!phrases) return String(value);
  return (phrases[String(value)] ?? phrases.other ?? `{n} ${label}`).replaceAll("{n}", String(value));
}
