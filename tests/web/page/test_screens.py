"""What is seen on which screen: the outcome before the choice, both answers, the start, and one's own result."""

import pytest
from tests.web.axe import violations

from crowdveil.study.bundled import load_study
from crowdveil.study.translations import INTERFACE_LANGUAGES

PHONE = {"width": 360, "height": 740}
LANDSCAPE = {"width": 740, "height": 360}
DESKTOP = {"width": 1440, "height": 900}
ZOOMED = {"width": 720, "height": 450}  # the desktop at 200 %
SCREENS = {"phone": PHONE, "landscape": LANDSCAPE, "desktop": DESKTOP, "200 %": ZOOMED}
SCROLLS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


def fits(page, selector, share=1.0):
    """Tell whether something is on the screen without scrolling, or so much of it from its top on."""
    box, size = page.locator(selector).bounding_box(), page.viewport_size
    inside = box["x"] >= 0 and box["x"] + box["width"] <= size["width"] + 1
    return inside and box["y"] >= 0 and box["y"] + share * box["height"] <= size["height"] + 1


def missing_from(page):
    """List what should be on the screen with a dilemma and is not."""
    wanted = {"label.left .choice-title": 1, "label.right .choice-title": 1, "main button.primary": 1}
    wanted |= {f"label.{side} .fate.{fate}": 1 for side in ("left", "right") for fate in ("lives", "dies")}
    return [selector for selector, share in wanted.items() if not fits(page, selector, share)]


@pytest.mark.parametrize("study_poll", ["algorithm-2", "kidney"])
def test_both_answers_are_on_every_screen(study_poll, visit):
    voter = visit(study_poll)
    voter.to_dilemmas()
    page = voter.page
    for place in range(3):
        page.locator(f"progress[value='{place + 1}']").wait_for()
        for name, size in SCREENS.items():
            page.set_viewport_size(size)
            page.evaluate("scrollTo(0, 0)")
            if study_poll == "kidney":
                lost = [s for s in ("label.left", "label.right") if not fits(page, f"{s} .choice-title")]
            else:
                lost = missing_from(page)
            assert lost == [], name
            assert not page.evaluate(SCROLLS), name
        voter.answer("left")
    page.set_viewport_size({"width": 360, "height": 640})


def test_hovering_or_focusing_a_side_shows_what_then_happens_and_chooses_nothing(visit):
    voter = visit("algorithm-2", viewport=PHONE)
    voter.to_dilemmas()
    page = voter.page
    spared, died = page.locator(".common .group.spared"), page.locator(".common .group.hit")
    assert spared.count() == died.count() == 0
    for side, other in (("left", "right"), ("right", "left")):
        page.locator(f"label.{side}").hover()
        assert (spared.get_attribute("data-side"), died.get_attribute("data-side")) == (side, other)
        assert page.locator(f".common .way.hit[data-side={other}]").is_visible()
        assert died.locator(".verdict-plate.dies").is_visible()
        assert spared.locator(".verdict-plate.lives").is_visible()
    page.locator("h1").hover()
    assert spared.count() == 0
    page.locator("#choose-right").focus()
    assert spared.get_attribute("data-side") == "right"
    page.locator(".common .group[data-side=left]").hover()
    assert spared.get_attribute("data-side") == "left"
    assert voter.memory()["choices"] == [None] * 5


def test_nothing_is_shown_without_its_style(browser, address):
    """The skeleton has its style with it, and all else waits for the rest."""
    context = browser.new_context(viewport=PHONE, color_scheme="dark")
    page = context.new_page()
    held, complaints = [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.route("**/page.css", lambda route: held.append(route))
    page.goto(f"{address}/p/algorithm-2/", wait_until="domcontentloaded")
    page.locator("html[dir=ltr]").wait_for()  # the poll and its words have come
    page.wait_for_timeout(300)
    assert page.locator(".consent, select").count() == 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 22, 21)"
    assert page.locator(".bone.picture").bounding_box() == {"x": 16, "y": 54.390625, "width": 328, "height": 76}
    held[0].continue_()
    page.locator(".consent button").wait_for()
    assert page.locator("select").count() == 1
    assert complaints == []
    context.close()


def test_on_a_wide_screen_both_outcomes_stand_side_by_side(visit):
    voter = visit("algorithm-2", viewport=DESKTOP)
    voter.to_dilemmas()
    page = voter.page
    assert not page.locator(".common").is_visible()
    left, right = (page.locator(f"label.{side} .road") for side in ("left", "right"))
    first, second = left.bounding_box(), right.bounding_box()
    assert first["y"] == second["y"]
    assert first["x"] + first["width"] < second["x"]
    assert min(first["height"], second["height"]) > 400
    assert left.locator(".group.hit").get_attribute("data-side") == "right"
    assert right.locator(".group.hit").get_attribute("data-side") == "left"
    page.mouse.click(second["x"] + second["width"] / 2, second["y"] + second["height"] / 2)
    assert voter.memory()["choices"][0] == "right"


def test_the_card_says_that_the_barrier_kills_whoever_is_in_the_car(visit):
    study = load_study("moral-machine")
    barrier = study.feature_names.index("barrier")
    voter = visit("algorithm-2", viewport=PHONE)
    voter.to_dilemmas()
    voter.page.go_back()
    voter.page.locator(".practice").wait_for()
    assert "the barrier, which kills everybody in the car" in voter.page.locator("label.right .how").inner_text()
    voter.press_primary()
    voter.page.locator(".dilemma").wait_for()
    for dilemma in voter.memory()["dilemmas"]:
        for side, other in (("left", "right"), ("right", "left")):
            told = "which kills everybody in the car" in voter.page.locator(f"label.{side} .how").inner_text()
            assert told == (dilemma[other][barrier] == 1)
        voter.answer("left")


def test_the_practice_does_not_count_and_leaves_nothing(visit):
    voter = visit("algorithm-2")
    voter.page.locator("#agree").check()
    voter.press_primary()
    voter.page.locator(".practice").wait_for()
    before, asked = voter.memory(), len(voter.requests)
    voter.page.locator("label.left").click()
    assert voter.page.locator(".common .group.hit").get_attribute("data-side") == "right"
    assert voter.memory() == before
    assert (before["dilemmas"], before["choices"]) == ([], [])
    assert len(voter.requests) == asked
    voter.reload()
    voter.page.locator(".practice").wait_for()
    assert not voter.page.locator("#choose-left").is_checked()
    voter.press_primary()
    voter.page.locator(".dilemma").wait_for()
    assert voter.memory()["choices"] == [None] * 5
    assert not voter.page.locator("#choose-left").is_checked()


@pytest.mark.parametrize(("poll", "shows"), [("algorithm-2", True), ("kidney", False)])
def test_the_practice_promises_to_show_what_happens_where_it_is_drawn(poll, shows, visit):
    voter = visit(poll)
    voter.page.locator("#agree").check()
    voter.press_primary()
    voter.page.locator(".practice").wait_for()
    assert "This one does not count" in voter.words
    assert ("see what then happens" in voter.words) is shows


def start_in_view(voter):
    return fits(voter.page, ".consent .primary") and fits(voter.page, ".three li:last-child")


@pytest.mark.parametrize("locale", ["en", "ar", "de", "fr"])
def test_the_start_is_in_view_on_a_phone(locale, visit):
    for poll in ("score", "central"):
        voter = visit(poll, locale=locale, viewport=PHONE)
        assert start_in_view(voter), poll
        assert voter.page.locator("details[open]").count() == 0


def test_what_the_host_says_is_unfolded_before_the_start(visit):
    voter = visit("central")
    voter.page.locator("#agree").check()
    assert not voter.page.get_by_text("We keep the answers for a year.").is_visible()
    voter.press_primary()
    assert voter.page.get_by_text("We keep the answers for a year.").is_visible()
    assert voter.page.get_by_text("Please read this before you start.").is_visible()
    voter.press_primary()
    voter.page.locator(".practice").wait_for()


def test_what_the_host_says_in_english_ends_at_its_right_on_an_arabic_page(visit):
    """Otherwise its full stop would stand before its first word."""
    voter = visit("central", locale="ar")
    voter.page.locator(".from-host summary").click()
    said = voter.page.get_by_text("We keep the answers for a year.")
    first, last = said.evaluate("""(paragraph) => [0, -1].map((end) => {
        const range = document.createRange(), text = paragraph.firstChild, place = end ? text.length - 1 : 0;
        range.setStart(text, place);
        range.setEnd(text, place + 1);
        return range.getBoundingClientRect().x;
    })""")
    assert first < last


def test_the_odds_are_told_out_of_100(visit):
    """Of 100 guesses at epsilon 1, e / (1 + e) = 73.1 are right at most; at 0.5 to 2, 62.2 to 88.1.

    That holds for whoever knew nothing before: whoever knows what most people choose may be right more often.
    """
    told = visit("algorithm-2").words
    assert "Whoever could only toss a coin about what you chose is then right at most 74 out of 100 times" in told
    assert "right at most 63 to 89 out of 100 times" in visit("score").words


def test_a_voter_who_always_spares_the_larger_group_is_told_so(visit, tmp_path):
    """Before anything is published, on this device alone; and it can be kept as a picture. The receipt comes after."""
    study = load_study("moral-machine")
    people = [k for k, feature in enumerate(study.features) if feature.part == "characters"]
    voter = visit("central")
    voter.to_dilemmas()
    page, unequal = voter.page, 0
    for place, dilemma in enumerate(voter.memory()["dilemmas"]):
        page.locator(f"progress[value='{place + 1}']").wait_for()
        left, right = (sum(dilemma[side][k] for k in people) for side in ("left", "right"))
        unequal += left != right
        page.keyboard.press("ArrowLeft" if left > right else "ArrowRight")
        page.keyboard.press("Enter")
    page.locator("fieldset").wait_for()
    voter.press_primary()
    page.locator(".sent").wait_for()
    voter.press_primary()
    voter.done()
    asked = len(voter.requests)
    assert f"You: more lives in {unequal} of {unequal}" in page.locator(".result").inner_text()
    assert unequal >= 2
    titles = [study_factor.title for study_factor in study.factors]
    assert page.locator(".comparison h3").all_inner_texts() == titles
    assert page.locator(".portraits .portrait").count() == 2
    assert page.locator(".crowd-mark").count() == 0
    order = page.locator(".result, .facts").evaluate_all("found => found.map((one) => one.className)")
    assert [name.split()[-1] for name in order] == ["result", "facts"]
    with page.expect_download() as saving:
        page.get_by_role("button", name="Save as a picture").click()
    saving.value.save_as(tmp_path / "mine.png")
    assert (tmp_path / "mine.png").read_bytes().startswith(b"\x89PNG")
    assert [r.url for r in voter.requests[asked:] if r.url.startswith("http")] == []
    assert len(voter.sent()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("locale", INTERFACE_LANGUAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_screen_in_every_language(locale, scheme, visit):
    """The whole matrix: start and both answers in view, nothing scrolls sideways, axe finds nothing."""
    found = []
    voter = visit("score", locale=locale, viewport=PHONE)
    page = voter.page

    def look(step, check):
        for name, size in SCREENS.items():
            page.set_viewport_size(size)
            page.evaluate("scrollTo(0, 0)")
            if page.evaluate(SCROLLS):
                found.append((step, name, "scrolls sideways"))
            found.extend((step, name, lost) for lost in check(name))
            found.extend((step, name, violation) for violation in violations(page, scheme))
        page.set_viewport_size(PHONE)

    look("welcome", lambda name: [] if name != "phone" or start_in_view(voter) else ["start"])
    voter.agree()
    look("level", lambda _: [])
    page.locator("#level-1000000").check(force=True)
    voter.press_primary()
    page.locator(".practice").wait_for()
    look("practice", lambda _: [])
    voter.press_primary()
    page.locator(".dilemma").wait_for()
    look("dilemma", lambda _: missing_from(page))
    page.locator("label.left").click()
    look("chosen", lambda _: missing_from(page))
    voter.answer_all()
    page.locator("fieldset").wait_for()
    voter.press_primary()
    page.locator(".sent").wait_for()
    voter.press_primary()
    voter.done()
    look("done", lambda _: [])
    assert found == []
