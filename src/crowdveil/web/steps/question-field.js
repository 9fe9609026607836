/** One about-you question as a voter answers it: its element, what was answered, and what is wrong with it. */

import { away, h } from "../markup.js";
import { levelsOfQuestion } from "../mechanisms/questions.js";

/**
 * @typedef {import("../mechanisms/study.js").Question} Question
 * @typedef {import("../mechanisms/study.js").Answer} Answer
 * @typedef {import("../language.js").Language} Language
 *
 * @typedef {object} Field
 * @property {Question} question
 * @property {HTMLElement} element
 * @property {() => Answer | null} read null: left open
 * @property {() => boolean} check says what is wrong, if something is
 * @property {() => void} focus
 */

const MOST_LETTERS = 1000;
const NONE = "";
/** Characters that no database has to keep: control characters beside new lines, and halves of characters. */
const CONTROL = /[^\P{Cc}\n\r\t]|\p{Cs}/gu;

/**
 * @param {Question} question
 * @param {Answer | undefined} given before
 * @param {boolean} exact whether the answer leaves the device as it is
 * @param {Language} language
 * @returns {Field}
 */
export function questionField(question, given, exact, language) {
  const say = language.say.bind(language);
  const wrong = h("p", { class: "missing", id: `wrong-${question.id}`, role: "alert" });
  const { element, read, complaint } = MAKERS[question.kind]({ question, given, exact, language, wrong });
  return {
    question,
    element,
    read,
    check() {
      const said = complaint?.() ?? (question.required && read() === null ? say("answer_required") : "");
      wrong.textContent = said;
      for (const input of element.querySelectorAll("input, textarea")) {
        input.setAttribute("aria-invalid", String(said !== ""));
      }
      return said === "";
    },
    focus: () => /** @type {HTMLElement | null} */ (element.querySelector("input, textarea"))?.focus(),
  };
}

/**
 * @typedef {object} Making
 * @property {Question} question
 * @property {Answer | undefined} given
 * @property {boolean} exact
 * @property {Language} language
 * @property {HTMLElement} wrong
 *
 * @typedef {{element: HTMLElement, read: () => Answer | null, complaint?: () => string | null}} Made
 */

/** @type {Record<Question["kind"], (making: Making) => Made>} */
const MAKERS = { single, several, number, scale, text };

/** @param {Making} making @returns {Made} */
function single(making) {
  const { question, given, language } = making;
  const radios = question.options.map(({ id, text }) =>
    option("radio", question.id, id, id === given, language.among(text)),
  );
  const element = group(making, null, radios, leftOpen(making));
  return { element, read: () => chosen(element) };
}

/** @param {Making} making @returns {Made} */
function several(making) {
  const { question, given, exact, language } = making;
  const ticked = Array.isArray(given) ? given : null;
  const boxes = question.options.map(({ id, text }) =>
    option("checkbox", question.id, id, ticked?.includes(id) ?? false, language.among(text)),
  );
  const none = option("checkbox", question.id, NONE, ticked?.length === 0, language.say("none_of_these"));
  const notes = [language.say("several_note"), exact ? "" : language.say("several_one")].join(" ").trim();
  const element = group(making, notes, boxes, none);
  const inputs = () => /** @type {HTMLInputElement[]} */ ([...element.querySelectorAll("input")]);
  element.addEventListener("change", (/** @type {Event} */ { target }) => {
    const one = /** @type {HTMLInputElement} */ (target);
    if (!one.checked) return;
    for (const other of inputs()) if ((other.value === NONE) !== (one.value === NONE)) other.checked = false;
  });
  const read = () => {
    const values = inputs().filter((input) => input.checked).map((input) => input.value);
    return values.length === 0 ? null : values.filter((value) => value !== NONE);
  };
  return { element, read };
}

/** @param {Making} making @returns {Made} */
function scale(making) {
  const { question, given, language } = making;
  const points = /** @type {number[]} */ (levelsOfQuestion(question));
  const [low, high] = (question.ends ?? []).map((end) => language.among(end));
  const point = (/** @type {number} */ value) => {
    const end = value === points[0] ? low : value === points.at(-1) ? high : undefined;
    const input = h("input", { type: "radio", name: question.id, value, checked: value === given });
    return h("label", { class: "point" }, input, h("span", {}, language.number(value), end ? away(` ${end}`) : null));
  };
  const ends = low ? h("div", { class: "ends", "aria-hidden": "true" }, h("span", {}, low), h("span", {}, high)) : null;
  const row = h("div", { class: "points" }, points.map(point));
  const element = group(making, null, [row, ends], leftOpen(making));
  const read = () => {
    const value = chosen(element);
    return value === null ? null : Number(value);
  };
  return { element, read };
}

/** @param {Making} making @returns {Made} */
function number(making) {
  const { question, given, language } = making;
  const { low, high, step } = question;
  const limits = { low: language.number(Number(low)), high: language.number(Number(high)) };
  const range = step > 1 ? language.say("number_range", { step: language.number(step) }) : "";
  const attributes = {
    type: "number",
    inputmode: Number(low) < 0 ? "text" : "numeric",
    min: low,
    max: high,
    step: 1,
    value: given,
  };
  const note = `${language.say("number_note", limits)} ${range}`;
  const { element, input } = written(making, note, "input", attributes);
  const read = () => (input.value.trim() === "" ? null : Number(input.value));
  const complaint = () => {
    const value = read();
    const open = value === null && !input.validity.badInput;
    const fits = value !== null && Number.isInteger(value) && value >= Number(low) && value <= Number(high);
    return open || fits ? null : language.say("number_note", limits);
  };
  return { element, read, complaint };
}

/** @param {Making} making @returns {Made} */
function text(making) {
  const { given, language } = making;
  const note = language.say("text_note", { most: language.number(MOST_LETTERS) });
  const attributes = { rows: 4, maxlength: MOST_LETTERS, dir: "auto" };
  const { element, input } = written(making, note, "textarea", attributes);
  input.value = typeof given === "string" ? given : "";
  const read = () => {
    const words = input.value.replaceAll(CONTROL, " ");
    return words.trim() === "" ? null : words;
  };
  return { element, read };
}

/**
 * A question that is answered by writing.
 * @param {Making} making
 * @param {string} note
 * @param {"input" | "textarea"} tag
 * @param {Record<string, unknown>} attributes
 */
function written({ question, language, wrong }, note, tag, attributes) {
  const [id, about] = [`question-${question.id}`, `note-${question.id}`];
  const input = h(tag, { id, name: question.id, "aria-describedby": `${about} ${wrong.id}`, ...attributes });
  const open = question.required ? "" : language.say("leave_open");
  const label = h("label", { class: "asked", for: id }, title(question, language));
  const said = h("p", { class: "note", id: about }, `${note} ${open}`.trim());
  return { input, element: h("div", { class: "field" }, label, input, said, wrong) };
}

/**
 * A question that is answered by choosing.
 * @param {Making} making
 * @param {string | null} note
 * @param {import("../markup.js").Child} options
 * @param {HTMLElement | null} last
 */
function group({ question, language, wrong }, note, options, last) {
  const legend = h("legend", {}, title(question, language));
  const said = note ? h("p", { class: "note" }, note) : null;
  return h("fieldset", { "aria-describedby": wrong.id }, legend, said, options, last, wrong);
}

/** @param {Question} question @param {Language} language @returns {string} */
function title(question, language) {
  const words = language.among(question.text);
  return question.required ? `${words} ${language.say("required_mark")}` : words;
}

/** A way to answer nothing, where that is allowed. @param {Making} making */
function leftOpen({ question, given, language }) {
  return question.required ? null : option("radio", question.id, NONE, given === undefined, language.say("rather_not"));
}

/**
 * @param {"radio" | "checkbox"} type
 * @param {string} name
 * @param {string} value
 * @param {boolean} checked
 * @param {string} words
 */
function option(type, name, value, checked, words) {
  return h("label", { class: "option" }, h("input", { type, name, value, checked }), h("span", {}, words));
}

/** @param {HTMLElement} element @returns {string | null} */
function chosen(element) {
  const input = /** @type {HTMLInputElement | null} */ (element.querySelector("input:checked"));
  return input === null || input.value === NONE ? null : input.value;
}
