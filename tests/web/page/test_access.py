"""Everybody can use the page: axe-core finds nothing, 320 pixels are enough, and words say all that is drawn."""

import json
import re

import pytest
from tests.web.axe import violations

from crowdveil.study.bundled import load_study
from crowdveil.study.study import Alternative

SCROLLS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


def walk(voter, at_each_step, level=None):
    """Go the whole way and look at every step, with everything unfolded."""
    page = voter.page

    def look(name):
        page.locator("details").evaluate_all("all => all.forEach((details) => (details.open = true))")
        at_each_step(name)

    look("welcome")
    voter.press_primary()
    look("welcome without consent")
    voter.agree()
    if level is not None:
        page.locator(".levels").wait_for()
        look("level")
        page.locator(f"#level-{level}").check(force=True)
        voter.press_primary()
        page.locator(".practice").wait_for()
        look("practice")
        voter.press_primary()
    page.locator(".dilemma").wait_for()
    look("dilemma")
    page.locator("label.right").click()
    look("chosen")
    voter.answer_all()
    page.locator(".sent, fieldset").first.wait_for()
    if page.locator("fieldset").count():
        look("about")
        voter.press_primary()
    page.locator(".sent").wait_for()
    look("review")
    page.route("**/report", lambda route: route.abort(), times=1)
    voter.press_primary()
    page.locator("main button.primary:visible").wait_for()
    look("sending")
    voter.done()
    if "released" in page.url:
        page.locator(".comparison li").first.wait_for()
    look("done")
    page.locator(".part button.quiet:not(.save)").click()
    look("withdrawing")
    voter.complaints.clear()  # The browser reports the lost connection itself.


def test_axe_would_find_something(visit):
    voter = visit("algorithm-2")
    voter.page.evaluate("document.querySelector('main').append(document.createElement('img'))")
    voter.page.evaluate("document.querySelector('h1').setAttribute('aria-hidden', 'perhaps')")
    assert {name for name, _, _ in violations(voter.page, "light")} >= {"image-alt", "aria-valid-attr-value"}
    voter.page.locator("#language").evaluate(
        "shown => { shown.style.color = '#777'; shown.style.background = '#888'; }"
    )
    assert "color-contrast" in {name for name, _, _ in violations(voter.page, "dark")}
    voter.page.emulate_media(color_scheme="light")


EVERYWHERE = None
CARDS = ("dilemma", "chosen")


@pytest.mark.parametrize(
    ("poll", "locale", "level", "looked_at"),
    [
        ("score", "en", 1_000_000, EVERYWHERE),
        ("score", "ar", 500_000, ("welcome", "level", "practice", "dilemma", "about")),
        ("released", "ru", None, ("done",)),
        ("kidney", "ar", None, CARDS),
        ("synthetic", "en", None, CARDS),
    ],
)
def test_on_a_narrow_screen_axe_finds_nothing_and_nothing_scrolls_sideways(poll, locale, level, looked_at, visit):
    """In light and in dark, from left to right and from right to left; axe looks where a page is not as before."""
    voter = visit(poll, locale=locale, viewport={"width": 320, "height": 568})
    found = []

    def look(name):
        if voter.page.evaluate(SCROLLS):
            found.append((name, "scrolls sideways"))
        for scheme in ("dark", "light") if looked_at is EVERYWHERE or name in looked_at else ():
            found.extend((name, scheme, violation) for violation in violations(voter.page, scheme))

    walk(voter, look, level)
    assert found == []


def test_what_is_drawn_is_said_to_a_screen_reader(visit):
    """A choice is called by everything that the study says of either group, in its words, and by what kills whom."""
    study = load_study("moral-machine")
    voter = visit("algorithm-2")
    voter.to_dilemmas()
    for dilemma in voter.memory()["dilemmas"]:
        for side, tag in (("left", "A"), ("right", "B")):
            other, dead = ("right", "B") if side == "left" else ("left", "A")
            whole, lost = (study.describe(Alternative(one, tuple(dilemma[one]))) for one in (side, other))
            values = dict(zip(study.feature_names, dilemma[other], strict=True))
            way = "swerves" if values["intervention"] else "stays on course"
            wall = "the barrier, which kills everybody in the car" if values["barrier"] else dead
            name = voter.page.locator(f"#choose-{side}").get_attribute("aria-label")
            assert re.sub(", and ", " and ", name) == (
                f"Spare {tag}: {whole}. {dead} dies: {lost}. The car {way} and hits {wall}."
            )
            assert voter.page.get_by_role("radio", name=name, exact=True).count() == 1
        voter.page.locator(".in-words summary").click()
        assert voter.page.locator(".in-words dd").count() == 2
        voter.answer("left")
    assert voter.page.locator(".road").count() == 0


def test_the_focus_goes_to_the_heading_of_each_step(visit):
    voter = visit("algorithm-2")
    voter.to_dilemmas()
    heading = voter.page.evaluate("document.activeElement.textContent")
    assert "Dilemma 1 of 5" in heading
    assert "Which group should be spared?" in heading
    voter.answer("left")
    voter.page.locator("progress[value='2']").wait_for()
    assert "Dilemma 2 of 5" in voter.page.evaluate("document.activeElement.textContent")


def test_what_a_choice_means_is_announced(visit):
    voter = visit("algorithm-2")
    voter.to_dilemmas()
    voter.page.locator("label.left").click()
    live = voter.page.locator("[role=status].outcome")
    assert "B dies: " in live.text_content()
    assert "The car " in live.text_content()


def test_nothing_moves_for_those_who_asked_for_stillness(visit):
    for motion, moving in (("reduce", False), ("no-preference", True)):
        voter = visit("algorithm-2", reduced_motion=motion)
        voter.to_dilemmas()
        voter.page.locator("label.left").click()
        name = voter.page.locator(".common .way.hit .way-line").evaluate("e => getComputedStyle(e).animationName")
        assert (name != "none") is moving


def test_everything_to_touch_is_large_enough(visit):
    """24 by 24 pixels at least (WCAG 2.5.8)."""
    voter = visit("score")
    voter.to_dilemmas(1_000_000)
    for control in voter.page.locator("button:visible, label.choice:visible, select:visible, summary:visible").all():
        box = control.bounding_box()
        assert min(box["width"], box["height"]) >= 24, json.dumps(box)
