"""A study that lets voters treat both sides equally: a third button, by mouse and by keyboard, in every language."""

import json

from crowdveil.study.translations import INTERFACE_LANGUAGES, TOSS_A_COIN

SAYS = "Both are treated equally."


def test_the_third_answer_is_sent_to_a_host_who_is_trusted(visit, stored):
    voter = visit("central-coin")
    voter.to_dilemmas()
    assert voter.page.locator("label.third").inner_text() == TOSS_A_COIN["en"]
    assert "↓" in voter.page.locator(".keys").inner_text()
    voter.press_primary()
    assert voter.page.get_by_role("alert").inner_text() == "Choose an answer first."
    voter.page.locator("label.third").click()
    assert voter.page.get_by_role("status").inner_text() == SAYS
    voter.press_primary()
    voter.page.locator("progress[value='2']").wait_for()
    voter.page.keyboard.press("ArrowDown")
    assert voter.page.locator("#choose-neither").is_checked()
    voter.page.keyboard.press("ArrowLeft")
    voter.page.keyboard.press("ArrowDown")
    voter.page.keyboard.press("Enter")
    voter.answer_all()
    voter.page.locator(".sent").wait_for()
    chosen = [record["chosen"] for record in json.loads(voter.shown_body())["records"]]
    assert chosen == ["neither", "neither", "left", "right", "left"]
    voter.press_primary()
    number = voter.done()
    assert [record["chosen"] for record in stored("central-coin")[number].records] == chosen


def test_by_randomised_response_any_of_three_answers_may_be_reported(visit, stored):
    voter = visit("coin")
    voter.to_dilemmas()
    for place in range(5):
        voter.page.locator(f".progress progress[value='{place + 1}']").wait_for()
        voter.page.keyboard.press("ArrowDown")
        voter.page.keyboard.press("Enter")
    voter.page.locator(".sent").wait_for()
    report = json.loads(voter.shown_body())
    assert set(report["choices"]) <= {-1, 0, 1}
    assert len(report["choices"]) == len(report["dilemmas"]) == 5
    voter.press_primary()
    number = voter.done()
    assert stored("coin")[number].body == report


def test_the_third_answer_is_there_in_every_language(visit):
    voter = visit("coin")
    voter.to_dilemmas()
    for language in INTERFACE_LANGUAGES[1:]:
        voter.page.select_option("#language", language)
        voter.page.locator("label.third").get_by_text(TOSS_A_COIN[language]).wait_for()


def test_where_people_have_to_choose_the_key_does_nothing(visit):
    voter = visit("kidney")
    voter.to_dilemmas()
    assert voter.page.locator("label.third").count() == 0
    voter.page.keyboard.press("ArrowDown")
    assert voter.memory()["choices"][0] is None
