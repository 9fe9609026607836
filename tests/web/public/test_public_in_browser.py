"""Everybody's pages in a real browser: the result is read, the crowd is asked, on a phone, by keyboard, in Arabic."""

from datetime import date

import pytest
from tests.client.running import running
from tests.web.axe import violations

from crowdveil.audit.browser import PATIENCE
from crowdveil.client.client import Client
from crowdveil.pages.release_page import release_page
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.service.poll import poll_from_dict
from crowdveil.service.poll_release import make_effects, make_release
from crowdveil.simulated_voters import send_crowd

AGE = {
    "id": "age",
    "text": {"en": "How old are you?", "ar": "كم عمرك؟"},
    "options": [
        {"id": "young", "text": {"en": "under 40", "ar": "أقل من 40"}},
        {"id": "old", "text": {"en": "40 or more", "ar": "40 أو أكثر"}},
    ],
}
POLLS = [
    {"name": "road", "study": "moral-machine", "paradigm": "vlcp", "budget": 50, "questions": [AGE]},
    {"name": "service", "study": "fairness", "paradigm": "vlcp", "budget": 9},
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with running(tmp_path_factory.mktemp("public"), [poll_from_dict(poll) for poll in POLLS]) as (store, address):
        for poll in POLLS:
            with Client(address) as client:
                send_crowd(client, client.poll(poll["name"]), 40, connections=2)
            make_release(store, poll["name"], date(2026, 3, 1), Epsilon("8"))
        for by in (None, "age"):
            make_effects(store, "road", date(2026, 3, 1), by, Epsilon("20"))
        yield store, address


@pytest.fixture
def page(browser, site):
    """A visitor's phone. Whatever the page complains about fails the test."""
    context = browser.new_context(viewport={"width": 320, "height": 640}, base_url=site[1], locale="en-GB")
    page, complaints = context.new_page(), []
    page.set_default_timeout(PATIENCE)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    yield page
    context.close()
    assert complaints == []


def ask(page, name="What would the crowd choose?"):
    """Press the button, and return what the page's own request was answered."""
    with page.expect_response("**/decisions") as answered:
        page.get_by_role("button", name=name).click()
    return answered.value.request.post_data_json["alternatives"], answered.value.json()


def test_a_visitor_puts_people_on_the_road_and_asks_the_crowd(page):
    page.goto("/r/road/")
    page.locator(".decide-picture svg.road").wait_for()
    first = page.get_by_role("group", name="Outcome A")
    while first.get_by_role("button", name="Remove:").count():
        before = first.get_by_role("button", name="Remove:").count()
        first.get_by_role("button", name="Remove:").first.click()
        page.wait_for_function(
            "n => document.querySelectorAll('#decider fieldset:first-child .there button').length < n", arg=before
        )
    page.get_by_role("button", name="What would the crowd choose?").click()
    page.get_by_text("On either side there must be 1 to 5 figures.").wait_for()
    for _ in range(5):
        first.get_by_role("button", name="Add: a girl").click()
    assert first.get_by_role("button", name="Add: a cat").is_disabled()
    alternatives, decided = ask(page)
    assert alternatives[0]["features"]["girl"] == 5
    assert alternatives[0]["features"]["intervention"] + alternatives[1]["features"]["intervention"] == 1
    said = page.get_by_role("status")
    expected = "Too close to call." if decided["too_close_to_call"] else f"The crowd would choose {decided['choice']}."
    said.get_by_text(expected).wait_for()


def test_facts_of_any_study_can_be_chosen_by_keyboard(page):
    page.goto("/r/service/")
    page.locator("#decider select").first.wait_for()
    field = page.locator("#decider select").first
    chosen = field.evaluate("one => one.value")
    field.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp") if field.evaluate("one => one.value") == chosen else None
    assert page.evaluate("document.activeElement.tagName") == "SELECT"  # The form is drawn anew, the focus stays.
    _, decided = ask(page)
    expected = "Too close to call." if decided["too_close_to_call"] else f"The crowd would choose {decided['choice']}."
    page.get_by_role("status").get_by_text(expected).wait_for()


def test_everybody_can_use_every_public_page(page, site):
    """On a screen of 320 pixels nothing has to be scrolled sideways, and axe finds nothing, by day and by night."""
    for path in ("/", "/r/road/", "/r/road/?lang=ar", "/r/service/?lang=ja"):
        page.goto(path)
        if path != "/":
            page.locator("#decider fieldset select").first.wait_for()
            ask(page, name=page.locator("#decide .links button").first.text_content())
            page.locator(".table summary").click()
        assert page.evaluate("document.documentElement.scrollWidth") <= 320, path
        for scheme in ("light", "dark"):
            assert violations(page, scheme) == [], f"{path} ({scheme})"


WORDS_ON_TWO_LINES = """() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const broken = [];
  while (texts.nextNode()) {
    const { currentNode: text } = texts;
    const unseen = text.parentElement.closest("thead")?.offsetWidth <= 1;
    if (unseen || text.parentElement.closest("code, .away")) continue;
    for (const { 0: word, index } of text.data.matchAll(/\\p{L}+/gu)) {
      const range = document.createRange();
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) broken.push(word);
    }
  }
  return broken;
}"""


def test_no_word_of_a_page_about_releases_is_broken(browser, site):
    """On any screen, also where a browser has none but a wide font."""
    with Client(site[1]) as client:
        release = client.release(poll="road")
    page = browser.new_page()
    page.set_content(release_page([release, release]))
    page.evaluate("document.documentElement.style.setProperty('--sans', 'DejaVu Sans, Verdana, sans-serif')")
    for width in (256, 320, 641, 700, 1100):
        page.set_viewport_size({"width": width, "height": 640})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(WORDS_ON_TWO_LINES) == [], width
    page.close()


def test_groups_stand_side_by_side_and_can_be_taken_away(page):
    page.goto("/r/road/")
    groups = page.locator("section.effects").filter(has_text="By group: How old are you?")
    first = groups.locator(".leanings li").first
    assert first.locator("svg.track").count() == 2
    assert first.locator(".group").all_text_contents() == ["under 40", "40 or more"]
    with page.expect_download() as downloading:
        groups.get_by_role("link", name="Table of choices (CSV)").click()
    assert downloading.value.path().read_text(encoding="utf-8").count("under 40") == 9


def test_a_language_is_picked_without_a_script(browser, site):
    context = browser.new_context(base_url=site[1], java_script_enabled=False, locale="en-GB")
    page = context.new_page()
    page.goto("/r/road/")
    page.get_by_text("This part needs JavaScript.").wait_for()
    page.locator(".languages summary").click()
    page.get_by_role("link", name="Français").click()
    page.get_by_role("heading", name="Ce que préfère le groupe").wait_for()
    context.close()
