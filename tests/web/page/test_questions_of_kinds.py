"""About-you questions of every kind on the voter's page: by touch, by keyboard, in Arabic, and what is sent of them."""

import json

import pytest
from tests.web.axe import violations

PHONE = {"width": 360, "height": 740}


def to_questions(voter):
    voter.to_dilemmas()
    voter.answer_all()
    voter.page.locator("form.about").wait_for()


def sent_about(voter):
    """Go on to the review, and return what will be sent of the answers."""
    voter.press_primary()
    voter.page.locator(".sent").wait_for()
    return json.loads(voter.shown_body())["about"]


def test_exact_answers_of_every_kind_are_given_by_keyboard_and_sent(visit, stored):
    voter = visit("central-kinds", viewport=PHONE)
    page = voter.page
    unfold = "all => all.forEach((details) => (details.open = true))"
    page.locator("details").evaluate_all(unfold)
    consent = page.locator("main").inner_text()
    for said in (
        "I have read this information and take part voluntarily",
        "I am at least 18 years old.",
        "Whoever fails is left out of the published result",
        "Some of the questions have to be answered",
    ):
        assert said in consent
    to_questions(voter)
    assert "What you answer is sent with your choices." in page.locator(".lead").inner_text()
    voter.press_primary()
    assert page.locator("#wrong-years").inner_text() == "Please answer this question."
    assert page.evaluate("document.activeElement.id") == "question-years"
    assert violations(page, "light") == []
    page.keyboard.type("17")
    page.keyboard.press("Enter")
    assert page.locator("#wrong-years").inner_text() == "A whole number from 18 to 97."
    page.keyboard.press("Backspace")
    page.keyboard.type("9")
    page.keyboard.press("Shift+Tab")  # Back to the last box of the question before: none of these.
    page.keyboard.press("Space")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")  # On foot: no longer none of these.
    page.locator("#question-years").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowUp")  # From what is chosen at first, rather not, to the highest point.
    page.keyboard.press("Tab")
    page.keyboard.type("Because.")
    page.get_by_label("Blue").check()
    assert sent_about(voter) == {"travel": ["foot"], "years": 18, "trust": 5, "why": "Because.", "blue": "blue"}
    page.keyboard.press("Tab")
    voter.press_primary()
    report = voter.done()
    assert stored("central-kinds")[report].about["why"] == "Because."


def test_on_a_phone_in_arabic_all_kinds_are_there_and_axe_finds_nothing(visit):
    voter = visit("central-kinds", viewport=PHONE, locale="ar")
    to_questions(voter)
    page = voter.page
    for scheme in ("light", "dark"):
        assert violations(page, scheme) == []
    assert not page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    lowest, highest = (page.locator(f".point input[value='{point}']").bounding_box()["x"] for point in (1, 5))
    assert lowest > highest  # From right to left.
    page.locator("#question-years").fill("40")
    page.locator("#question-why").fill("لأن")
    page.locator("#language").select_option("en")
    page.get_by_text("How do you travel?").wait_for()
    assert (page.locator("#question-years").input_value(), page.locator("#question-why").input_value()) == ("40", "لأن")
    assert sent_about(voter) == {"years": 38, "why": "لأن"}


def test_noisy_answers_leave_as_levels_and_an_attention_check_only_warns(visit, stored):
    voter = visit("kinds", viewport=PHONE)
    page = voter.page
    to_questions(voter)
    lead = page.locator(".lead").inner_text()
    assert "nobody can bet more than 2.72 : 1" in lead
    assert "For all 3 questions together: at most 20.1 : 1 (ε = 3)." in lead
    page.get_by_label("By bus").check()
    page.get_by_label("None of these").check()
    assert not page.get_by_label("By bus").is_checked()
    page.get_by_label("By bicycle").check()
    assert not page.get_by_label("None of these").is_checked()
    page.locator("#question-years").fill("63")
    page.get_by_label("3", exact=True).check()
    page.get_by_label("Red").check()
    voter.press_primary()
    warning = page.locator("form.about > .missing")
    assert "nothing about it is sent" in warning.inner_text()
    assert voter.step == "about"
    about = sent_about(voter)
    assert set(about) == {"travel", "years", "trust"}
    ((option, ticked),) = about["travel"].items()
    assert option in {"bus", "foot", "bike"}
    assert isinstance(ticked, bool)
    assert about["years"] in range(18, 98, 10)
    assert about["trust"] in range(1, 6)
    voter.press_primary()
    report = voter.done()
    assert stored("kinds")[report].about == about
    assert voter.memory()["about"] == {}
    assert "blue" not in "".join(request.post_data or "" for request in voter.sent())


@pytest.mark.parametrize("nothing", ["\x7f", "\x85", " \x01 "])
def test_control_characters_alone_are_no_answer_and_block_nothing(nothing, visit, stored):
    voter = visit("central-kinds")
    to_questions(voter)
    voter.page.locator("#question-years").fill("18")
    voter.page.locator("#question-why").evaluate("(field, text) => (field.value = text)", nothing)
    voter.page.get_by_label("Blue").check()
    assert sent_about(voter) == {"years": 18, "blue": "blue"}
    voter.press_primary()
    report = voter.done()
    assert "why" not in stored("central-kinds")[report].about
