/** The interface's words, numbers and lists in one language. Each language is one file, loaded when it is needed. */

/**
 * @typedef {object} Words a study's words in one language
 * @property {string} language
 * @property {"ltr" | "rtl"} direction
 * @property {string} title
 * @property {string} question
 * @property {string | null} indifference the third answer, in studies that allow it
 * @property {Record<string, FeatureWords>} features
 * @property {Record<string, {title: string, poles: [string, string]}>} factors those that the study names
 * @property {string[]} parts
 *
 * @typedef {{label: string, words: Record<string, string> | null}} FeatureWords
 */

import { request } from "./requests.js";

/** Each language's name for itself. @type {Record<string, string>} */
export const LANGUAGES = {
  en: "English",
  ar: "العربية",
  zh: "中文",
  fr: "Français",
  de: "Deutsch",
  ja: "日本語",
  ko: "한국어",
  pt: "Português",
  ru: "Русский",
  es: "Español",
};

/**
 * Choose among what a poll offers: what was asked for in the address, what was chosen before, what the browser prefers.
 * @param {string[]} offered
 * @param {(string | null | undefined)[]} wanted most wanted first
 */
export function pickLanguage(offered, wanted) {
  for (const tag of wanted) {
    if (!tag) continue;
    const found =
      offered.find((language) => language === tag) ?? offered.find((language) => primary(language) === primary(tag));
    if (found) return found;
  }
  return offered[0] ?? "en";
}

/** @param {string} tag */
const primary = (tag) => tag.toLowerCase().split("-")[0];

/** @param {string} tag @returns {string} the language's own name */
export function languageName(tag) {
  return LANGUAGES[tag] ?? new Intl.DisplayNames([tag], { type: "language" }).of(tag) ?? tag;
}

/** Where the interface's words in a language are, or in English. @param {string} tag */
export function languageFile(tag) {
  const file = [tag, primary(tag)].find((name) => Object.hasOwn(LANGUAGES, name)) ?? "en";
  return new URL(`languages/${file}.json`, import.meta.url);
}

/** Speaks one language. */
export class Language {
  /** @param {string} tag of the study's words @param {Record<string, string>} strings of the interface */
  constructor(tag, strings) {
    this.tag = tag;
    this.strings = strings;
    this.and = new Intl.ListFormat(tag, { type: "conjunction" });
  }

  /**
   * A study may speak a language that the interface does not: then the interface speaks English.
   * @param {string} tag
   */
  static async load(tag) {
    const response = await request(languageFile(tag), { credentials: "omit" });
    if (!response.ok) throw new Error(`the language file of ${tag} is missing`);
    return new Language(tag, await response.json());
  }

  /**
   * The words of a key; `{name}` is replaced by the value of that name.
   * @param {string} key
   * @param {Record<string, string | number>} [values]
   */
  say(key, values = {}) {
    const words = this.strings[key];
    if (words === undefined) throw new Error(`there are no words for ${key}`);
    return words.replaceAll(/\{(\w+)\}/g, (_, name) => {
      const value = values[name];
      return typeof value === "number" ? this.number(value) : String(value);
    });
  }

  /** @param {number} value @param {Intl.NumberFormatOptions} [options] */
  number(value, options = { maximumFractionDigits: 2 }) {
    return new Intl.NumberFormat(this.tag, options).format(value);
  }

  /** @param {string[]} items @returns {string} a, b and c */
  list(items) {
    return this.and.format(items);
  }

  /** The text for this language among several; else English; else any. @param {Record<string, string> | null} texts */
  among(texts) {
    if (!texts) return "";
    return texts[this.tag] ?? texts[primary(this.tag)] ?? texts.en ?? Object.values(texts)[0] ?? "";
  }
}

/**
 * The phrases of an alternative by part; "" holds the features that belong to no part.
 * @param {import("./mechanisms/study.js").Study} study
 * @param {Words} words the study's words in the voter's language
 * @param {number[]} values
 * @param {Language} language
 * @returns {Map<string, string[]>}
 */
export function phrases(study, words, values, language) {
  const said = new Map([...words.parts, ""].map((part) => [part, /** @type {string[]} */ ([])]));
  study.features.forEach((feature, k) => {
    const phrase = phraseOf(words.features[feature.name], values[k], language);
    if (phrase) said.get(feature.part ?? "")?.push(phrase);
  });
  return said;
}

/**
 * The whole alternative in one line.
 * @param {import("./mechanisms/study.js").Study} study
 * @param {Words} words
 * @param {number[]} values
 * @param {Language} language
 */
export function describe(study, words, values, language) {
  const said = phrases(study, words, values, language);
  const groups = [];
  for (const [part, list] of said) {
    if (list.length > 0) groups.push(...(part === "" ? list : [language.list(list)]));
  }
  return groups.join(language.say("comma"));
}

/** @param {FeatureWords} feature @param {number} value @param {Language} language */
export function phraseOf(feature, value, language) {
  const shown = language.number(value);
  if (!feature.words) return `${feature.label}: ${shown}`;
  const key = String(Number(value.toPrecision(6)));
  const phrase = feature.words[key] ?? feature.words.other ?? `{n} ${feature.label}`;
  return phrase.replaceAll("{n}", shown);
}
