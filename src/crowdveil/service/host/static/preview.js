// Draws the previewed dilemmas as the voter's page does: on the road, or as cards of facts with their pictures.

import { Language } from "/web/language.js";
import { facts } from "/web/scene/cards.js";
import { hasRoad, loadCharacters } from "/web/scene/characters.js";
import { drawRoad, fitsRoad } from "/web/scene/road.js";

const list = /** @type {HTMLElement} */ (document.querySelector(".dilemmas"));
const study = JSON.parse(String(list.dataset.study));

const items = [.../** @type {NodeListOf<HTMLElement>} */ (list.querySelectorAll(":scope > *"))].map((item) => ({
  item,
  dilemma: JSON.parse(String(item.dataset.dilemma)),
}));

if (hasRoad(study)) {
  await loadCharacters();
  for (const { item, dilemma } of items.filter(({ dilemma }) => fitsRoad(study, dilemma))) {
    item.prepend(drawRoad(study, dilemma, { left: "A", right: "B" }, () => {}).element);
    item.classList.add("drawn");
  }
} else {
  const language = await Language.load("en");
  const words = JSON.parse(String(list.dataset.words));
  for (const { item, dilemma } of items) {
    const [left, right] = Object.values(dilemma);
    const [first, second] = item.querySelectorAll(".words");
    first.replaceChildren(facts(study, words, left, right, language));
    second.replaceChildren(facts(study, words, right, left, language));
  }
}
