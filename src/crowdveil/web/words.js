/** An alternative in the study's words, the same sentence that `Study.describe` makes in Python. */

/**
 * The phrases of an alternative by part; "" holds the features that belong to no part.
 * @param {any} study
 * @param {any} words the study's words in the voter's language
 * @param {number[]} values
 * @param {import("./language.js").Language} language
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

/** The whole alternative in one line. */
export function describe(study, words, values, language) {
  const said = phrases(study, words, values, language);
  const groups = [];
  for (const [part, list] of said) {
    if (list.length > 0) groups.push(...(part === "" ? list : [language.list(list)]));
  }
  return groups.join(language.say("comma"));
}

/** @param {{label: string, words: Record<string, string> | null}} feature @param {number} value */
export function phraseOf(feature, value, language) {
  const shown = language.number(value);
  if (!feature.words) return `${feature.label}: ${shown}`;
  const key = String(Number(value.toPrecision(6)));
  const phrase = feature.words[key] ?? feature.words.other ?? `{n} ${feature.label}`;
  return phrase.replaceAll("{n}", shown);
}
