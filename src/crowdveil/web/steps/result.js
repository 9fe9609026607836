/** The voter's choices, counted, beside what is published of the crowd. Nothing of it is sent. */

import { getRelease } from "../api.js";
import { compare } from "../comparison.js";
import { factorLegend, factorPicture } from "../factor-picture.js";
import { phraseOf } from "../language.js";
import { h } from "../markup.js";
import { asPng, resultPicture } from "../result-picture.js";
import { portrait } from "../scene/characters.js";

/**
 * @typedef {import("../page.js").Page} Page
 * @typedef {import("../comparison.js").Release} Release
 */

/** Drawn at once from what is here, and again when the release has come. @param {Page} page */
export function result(page) {
  const say = page.language.say.bind(page.language);
  const { release: published } = page.poll;
  const box = h("div", { class: "part result" }, h("h2", {}, say("result_title")));
  const content = h("div", {});
  const told = h("p", { class: "note", role: "status" }, say(published ? "crowd_loading" : "crowd_none"));
  box.append(content, told, page.toResult() ?? "");
  content.replaceChildren(...shown(page, null));
  if (published) {
    (page.published ?? getRelease(published))
      .then((release) => {
        content.replaceChildren(...shown(page, release));
        told.textContent = say("crowd_lead", { voters: release.guarantee.voters });
      })
      .catch(() => (told.textContent = say("crowd_unreachable")));
  }
  return box;
}

/** @param {Page} page @param {Release | null} release @returns {HTMLElement[]} */
function shown(page, release) {
  const { poll, words, language, result } = page;
  const rows = compare(poll, words, release, result);
  const own = h("p", {}, language.say(result ? "result_own" : "crowd_own_gone"));
  if (!result && !release) return [own];
  const faces = portraits(page);
  return [
    own,
    faces.length > 0
      ? h(
          "ul",
          { class: "portraits" },
          faces.map(({ heading, name, words: who }) =>
            h("li", {}, portrait(name, 88), h("p", {}, h("span", { class: "note" }, heading), h("strong", {}, who))),
          ),
        )
      : "",
    factorLegend(rows, language),
    factorPicture(rows, language, words.direction),
    result ? saving(page, rows, faces) : "",
  ];
}

/** Whom the voter spared most and least. @param {Page} page */
function portraits({ words, language, result, road }) {
  const found = road ? result?.characters : null;
  if (!found) return [];
  return /** @type {const} */ (["most", "least"]).map((kind) => {
    const { name, times, of } = found[kind];
    const who = phraseOf(words.features[name], 1, language);
    return { heading: language.say(`spared_${kind}`), name, words: language.say("spared_count", { who, times, of }) };
  });
}

/**
 * @param {Page} page
 * @param {import("../comparison.js").Row[]} rows
 * @param {ReturnType<typeof portraits>} faces
 */
function saving({ words, language }, rows, faces) {
  const say = language.say.bind(language);
  const button = h("button", { class: "quiet save", type: "button" }, say("save_picture"));
  button.addEventListener("click", async () => {
    button.disabled = true;
    const png = await asPng(resultPicture(words.title, rows, faces, language, words.direction));
    const address = URL.createObjectURL(png);
    h("a", { href: address, download: "crowdveil.png" }).click();
    URL.revokeObjectURL(address);
    button.disabled = false;
  });
  return h("div", { class: "saving" }, button, h("p", { class: "note" }, say("save_words")));
}
