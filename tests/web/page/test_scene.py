"""The picture of a dilemma says what the dilemma says. Dilemmas are drawn by Python, pictures by the page."""

import numpy as np
import pytest

from crowdveil.study.bundled import load_study
from crowdveil.study.drawing import CHARACTERS, draw_session

DRAW = """async ([study, dilemmas]) => {
  const { drawRoad, fitsRoad } = await import("/web/scene/road.js");
  const { loadCharacters } = await import("/web/scene/characters.js");
  await loadCharacters();
  return dilemmas.map((dilemma) => {
    if (!fitsRoad(study, dilemma)) return null;
    const fate = (tag, what) => `${tag} ${what}`;
    const { element, mark } = drawRoad(study, dilemma, { left: "A", right: "B", fate }, () => {});
    document.body.replaceChildren(element, document.getElementById("characters"));
    const all = (selector, root = element) => [...root.querySelectorAll(selector)];
    const names = (root) => all(".figure use:not(.halo)", root).map((use) => use.getAttribute("href").slice(11));
    const middle = (found) => { const box = found.getBoundingClientRect(); return box.left + box.width / 2; };
    const half = (found) => (middle(found) < middle(element) ? "left" : "right");
    const car = element.querySelector(".car");
    const visible = (found) => getComputedStyle(found).visibility === "visible";
    const skin = (figure) => figure.style.getPropertyValue("--skin");
    const scale = (use) => use.getScreenCTM().a * use.getAttribute("width");
    mark("left");
    return {
      groups: Object.fromEntries(all(".group").map((group) => [group.dataset.side, names(group)])),
      inCar: car.dataset.side ?? null,
      carLane: half(car),
      pedestrians: all(".group:not(.car)").map((group) => [group.dataset.side, half(group)]),
      barrier: all(".barrier").map(half),
      lights: all(".light").map((light) => [half(light), light.querySelector(".lamp.green") ? 1 : -1]),
      way: element.querySelector(".way.hit").classList.contains("swerves"),
      spared: all(".group.spared").map((group) => group.dataset.side),
      hit: all(".group.hit").map((group) => group.dataset.side),
      crosses: all(".cross").filter(visible).length,
      told: all(".verdict-plate").filter(visible).map((plate) => plate.textContent),
      faded: all(".group").map((group) => getComputedStyle(group.querySelector(".figures")).opacity),
      skins: Object.fromEntries(all(".group").map((group) => [group.dataset.side, all(".figure", group).map(skin)])),
      tall: all(".figure use:not(.halo)").map((use) => scale(use)),
    };
  });
}"""


@pytest.fixture(scope="module")
def drawn(modules):
    """Dilemmas of the Moral Machine, by feature name, each with what its picture shows."""
    study, rng = load_study("moral-machine"), np.random.default_rng(7)
    sessions = [dilemma for _ in range(8) for dilemma in draw_session(study, rng)]
    dilemmas = [{a.name: list(a.values) for a in dilemma.alternatives} for dilemma in sessions]
    shown = modules.evaluate(DRAW, [study.as_dict(), dilemmas])
    named = [{side: dict(zip(study.feature_names, d[side], strict=True)) for side in d} for d in dilemmas]
    return list(zip(named, shown, strict=True))


def test_everybody_is_in_the_picture_once(drawn):
    for dilemma, picture in drawn:
        for side in ("left", "right"):
            counted = {name: picture["groups"][side].count(name) for name in CHARACTERS}
            assert counted == {name: dilemma[side][name] for name in CHARACTERS}


def test_each_stands_where_the_dilemma_says(drawn):
    for dilemma, picture in drawn:
        riding = [side for side in dilemma if dilemma[side]["barrier"] == 1]
        assert picture["inCar"] == (riding[0] if riding else None)
        assert picture["barrier"] == riding  # The lane of those in the car has the barrier that would kill them.
        assert sorted(picture["pedestrians"]) == sorted([side, side] for side in dilemma if side not in riding)
        (ahead,) = (side for side in dilemma if dilemma[side]["intervention"] == 0)
        assert picture["carLane"] == ahead


def test_the_lights_show_who_may_cross(drawn):
    for dilemma, picture in drawn:
        expected = [[side, dilemma[side]["legality"]] for side in dilemma if dilemma[side]["legality"] != 0]
        assert sorted(picture["lights"]) == sorted(expected)


def test_sparing_one_group_shows_the_way_into_the_other(drawn):
    for dilemma, picture in drawn:
        assert (picture["spared"], picture["hit"]) == (["left"], ["right"])
        assert picture["way"] == (dilemma["right"]["intervention"] == 1)


def test_a_dilemma_that_cannot_happen_on_the_road_is_not_drawn_there(modules):
    study = load_study("moral-machine")
    names = study.feature_names

    def side(**features):
        return [features.get(name, 0) for name in names]

    impossible = [
        {"left": side(man=1), "right": side(woman=1)},  # nobody beside the road
        {"left": side(man=1, barrier=1), "right": side(woman=1, barrier=1, intervention=1)},  # all in the car
        {"left": side(), "right": side(woman=1, intervention=1)},  # nobody at all
        {"left": side(man=6), "right": side(woman=1, intervention=1)},  # too many
    ]
    assert modules.evaluate(DRAW, [study.as_dict(), impossible]) == [None] * len(impossible)


def test_whoever_dies_is_marked_and_nobody_fades(drawn):
    for dilemma, picture in drawn:
        assert picture["crosses"] == sum(dilemma["right"][name] for name in CHARACTERS)
        assert sorted(picture["told"]) == ["✓ A lives", "✕ B dies"]
        assert picture["faded"] == ["1", "1"]


def test_everybody_is_drawn_to_the_same_scale_in_the_car_and_on_the_road(drawn):
    for _, picture in drawn:
        assert max(picture["tall"]) - min(picture["tall"]) < 0.01 * max(picture["tall"])


def test_looks_vary_and_are_the_same_in_both_groups(drawn):
    """The first of either group has the same skin, and so on: looks cannot speak for a side."""
    seen = set()
    for _, picture in drawn:
        left, right = picture["skins"]["left"], picture["skins"]["right"]
        both = min(len(left), len(right))
        assert left[:both] == right[:both]
        seen |= {*left, *right}
    assert len(seen) >= 5


def test_a_dilemma_the_other_way_round_has_the_same_looks(modules):
    study, rng = load_study("moral-machine"), np.random.default_rng(8)
    (dilemma, *_) = draw_session(study, rng)
    left, right = (list(a.values) for a in dilemma.alternatives)
    looks = modules.evaluate(
        """async (dilemmas) => {
          const { looksOf } = await import("/web/scene/characters.js");
          return dilemmas.map((dilemma) => [0, 1, 2, 3, 4].map(looksOf(dilemma)));
        }""",
        [{"left": left, "right": right}, {"left": right, "right": left}],
    )
    assert looks[0] == looks[1]
