// Draws the previewed dilemmas of a road study as the voter's page does. Other studies are cards of words already.

import { hasRoad, loadCharacters } from "/web/scene/characters.js";
import { drawRoad, fitsRoad } from "/web/scene/road.js";

const list = /** @type {HTMLElement} */ (document.querySelector(".dilemmas"));
const study = JSON.parse(String(list.dataset.study));

if (hasRoad(study)) {
  await loadCharacters();
  for (const item of /** @type {NodeListOf<HTMLElement>} */ (list.querySelectorAll(":scope > *"))) {
    const dilemma = JSON.parse(String(item.dataset.dilemma));
    if (!fitsRoad(study, dilemma)) continue;
    item.prepend(drawRoad(study, dilemma, { left: "A", right: "B" }, () => {}).element);
    item.classList.add("drawn");
  }
}
