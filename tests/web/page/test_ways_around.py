"""Two tabs, the browser's Back, another language on the way: nothing that was chosen is lost."""

import pytest

DEAF = "window.addEventListener('storage', (event) => event.stopImmediatePropagation(), true);"
"""A tab that does not hear of the others: the browser may tell it late."""


def place(page):
    return int(page.locator("progress").get_attribute("value"))


def at_place(page, value):
    page.locator(f".progress progress[value='{value}']").wait_for()


def test_a_second_tab_goes_along_dilemma_by_dilemma(visit):
    voter = visit("algorithm-2")
    voter.to_dilemmas()
    other = voter.page.context.new_page()
    other.goto(voter.page.url)
    at_place(other, 1)
    voter.answer("left")
    voter.answer("right")
    at_place(other, 3)
    other.locator("label.left").click()
    other.locator("main button.primary").click()
    at_place(voter.page, 4)
    assert voter.memory()["choices"] == ["left", "right", "left", None, None]


def test_a_tab_that_is_behind_overwrites_nothing(visit):
    voter = visit("algorithm-2", script=DEAF)
    voter.to_dilemmas()
    other = voter.page.context.new_page()
    other.goto(voter.page.url)
    at_place(other, 1)
    voter.answer("left")
    voter.answer("right")
    at_place(voter.page, 3)
    assert place(other) == 1
    other.locator("label.right").click()
    at_place(other, 3)
    assert voter.memory()["choices"] == ["left", "right", None, None, None]


def test_a_tab_that_is_behind_makes_no_second_report(visit, stored):
    voter = visit("algorithm-2", script=DEAF)
    voter.to_review()
    before = set(stored("algorithm-2"))
    other = voter.page.context.new_page()
    other.goto(voter.page.url)
    other.locator(".sent").wait_for()
    voter.press_primary()
    report_id = voter.done()
    other.locator("main button.primary").click()
    other.get_by_text(report_id).wait_for()
    assert set(stored("algorithm-2")) - before == {report_id}


def test_the_browsers_back_goes_one_dilemma_back(visit):
    voter = visit("score")
    voter.to_dilemmas(1_000_000)
    for side in ("left", "right", "left"):
        voter.answer(side)
    at_place(voter.page, 4)
    for value, side in ((3, "left"), (2, "right"), (1, "left")):
        voter.page.go_back()
        at_place(voter.page, value)
        assert voter.page.locator(f"#choose-{side}").is_checked()
    voter.page.go_forward()
    at_place(voter.page, 2)
    voter.go_back()  # the page's own button is the same as the browser's
    at_place(voter.page, 1)
    voter.page.go_back()  # the level is fixed by the first choice: consent is before it
    voter.page.locator("#agree").wait_for()
    voter.agree()
    voter.page.locator(".dilemma").wait_for()
    assert voter.memory()["choices"][:3] == ["left", "right", "left"]
    assert voter.memory()["epsilon_micro"] == 1_000_000


def test_back_after_a_reload_goes_one_dilemma_back(visit):
    voter = visit("algorithm-2")
    voter.to_dilemmas()
    voter.answer("left")
    voter.answer("right")
    at_place(voter.page, 3)
    voter.page.reload()
    at_place(voter.page, 3)
    voter.page.go_back()
    at_place(voter.page, 2)
    assert voter.page.locator("#choose-right").is_checked()


def test_back_from_a_tab_that_was_opened_later_goes_one_dilemma_back(visit):
    """It has no history of its own: the page's own button leads back all the same."""
    voter = visit("algorithm-2")
    voter.to_dilemmas()
    voter.answer("left")
    at_place(voter.page, 2)
    other = voter.page.context.new_page()
    other.goto(voter.page.url)
    at_place(other, 2)
    other.locator("main .actions button.quiet").click()
    at_place(other, 1)


def test_another_end_of_the_address_changes_nothing(visit):
    voter = visit("algorithm-2")
    voter.to_dilemmas()
    voter.answer("left")
    at_place(voter.page, 2)
    voter.page.evaluate("location.hash = 'elsewhere'")
    voter.page.wait_for_function("history.state !== null")
    at_place(voter.page, 2)
    voter.answer("right")
    at_place(voter.page, 3)
    voter.go_back()
    at_place(voter.page, 2)
    voter.go_back()
    at_place(voter.page, 1)


def test_forward_leads_past_no_dilemma_that_was_left_open(visit):
    voter = visit("algorithm-2")
    voter.to_review()
    voter.page.once("dialog", lambda dialog: dialog.accept())
    voter.page.get_by_role("button", name="Stop, and delete").click()
    voter.page.locator("#agree").wait_for()
    voter.page.go_back()
    voter.page.locator("#agree").wait_for()
    assert voter.step == "welcome"


def test_back_after_sending_changes_nothing(visit):
    voter = visit("algorithm-2")
    voter.to_review()
    voter.press_primary()
    report_id = voter.done()
    voter.page.go_back()
    assert voter.done() == report_id
    assert len(voter.sent()) == 1


@pytest.mark.parametrize("language", ["ar", "de"])
def test_another_language_loses_nothing(language, visit):
    """Ticks and answers that nobody has submitted yet, and what is unfolded, stay on every step."""
    voter = visit("score")
    page = voter.page

    def speak(code):
        page.select_option("#language", code)
        page.locator(f"html[lang={code}]").wait_for()
        page.locator("main:not([aria-busy])").wait_for()

    page.locator("#agree").check()
    page.locator("details > summary").click()
    speak(language)
    assert page.locator("#agree").is_checked()
    assert page.locator("details").get_attribute("open") is not None
    voter.press_primary()
    page.locator("#level-2000000").check(force=True)
    speak("en")
    assert page.locator("#level-2000000").is_checked()
    voter.press_primary()
    page.locator(".practice").wait_for()
    voter.press_primary()
    page.locator(".dilemma").wait_for()
    page.locator("label.right").click()
    speak(language)
    assert page.locator("#choose-right").is_checked()
    assert page.locator(".common .group.spared").count() == 1
    page.locator("h1").focus()
    voter.answer_all()
    page.locator("fieldset").wait_for()
    page.locator("input[value=middle]").check()
    speak("en")
    assert page.locator("input[value=middle]").is_checked()
    voter.press_primary()
    page.locator(".sent").wait_for()
    assert voter.memory()["about"] == {"age": "middle"}
    body = voter.shown_body()
    speak(language)
    assert voter.shown_body() == body


@pytest.mark.parametrize(
    ("locale", "direction", "words"),
    [
        ("en-GB", "ltr", "There is no poll at this address."),
        ("ar", "rtl", "لا يوجد استطلاع في هذا العنوان"),
        ("pt-BR", "ltr", "Não há pesquisa neste endereço."),
    ],
)
def test_an_address_without_a_poll_says_so_in_the_visitors_language(visit, locale, direction, words):
    voter = visit("nobody", locale=locale)
    assert words in voter.page.locator("main").inner_text()
    root = voter.page.locator("html")
    assert (root.get_attribute("lang"), root.get_attribute("dir")) == (locale[:2], direction)
    voter.complaints.clear()  # The browser reports the missing poll itself.
