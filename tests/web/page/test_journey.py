"""A voter's whole way, from welcome to receipt, on a phone, in a real browser, through the real service."""

import json
import re

import pytest
from playwright.sync_api import expect
from tests.web.page.conftest import DISTRIBUTED_POLLS

from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.study.bundled import load_study
from crowdveil.study.translations import INTERFACE_LANGUAGES, words

FIELDS = {
    "algorithm-2": {"values"},
    "algorithm-3": {"values"},
    "algorithm-3-choices": {"values"},
    "one-bit": {"kind", "axes", "bits"},
    "subset-selection": {"values"},
    "score": {"records", "coordinates", "values"},
    "randomised-response": {"dilemmas", "choices"},
    "one-choice": {"dilemmas", "choices"},
}
ALWAYS = {"format", "study", "mechanism", "epsilon_micro"}


def unfold(page):
    """Unfold all that there is to know."""
    page.locator("details").evaluate_all("all => all.forEach((details) => (details.open = true))")


def test_every_mechanism_of_the_device_has_a_poll():
    assert set(DISTRIBUTED_POLLS) == set(FIELDS) == set(DISTRIBUTED)


@pytest.mark.parametrize("mechanism", DISTRIBUTED_POLLS)
def test_in_a_distributed_poll_nothing_but_the_report_leaves_the_device(mechanism, visit, stored, address):
    voter = visit(mechanism)
    dilemmas, _ = voter.to_review(1_000_000 if mechanism == "score" else None)
    before = list(voter.requests)
    body = voter.shown_body()
    voter.press_primary()
    report_id = voter.done()

    # Every request but the last was the same whatever was answered: without a query, and without a body but for the
    # name of a step, which follows from how many dilemmas are answered.
    assert [
        r for r in before if "?" in r.url or (r.method, bool(r.post_data)) not in (("GET", False), ("POST", True))
    ] == []
    assert voter.told() == ["half", "all", "review"]
    assert all(request.url.startswith(address) for request in voter.requests)
    (sent,) = voter.sent()
    assert sent.post_data == body
    assert [r for r in voter.requests if r.method not in ("GET", "POST")] == [sent]

    report = json.loads(body)
    assert set(report) == ALWAYS | FIELDS[mechanism] | ({"about"} if mechanism == "score" else set())
    assert not any(word in body for word in ('"left"', '"right"', "chosen"))
    if "dilemmas" in report:  # They are public here. Each is turned so that its first number is positive.
        shown = [[a - b for a, b in zip(d["left"], d["right"], strict=True)] for d in dilemmas]
        assert all(next(x for x in row if x) > 0 for row in report["dilemmas"])
        assert all(row in shown or [-x for x in row] in shown for row in report["dilemmas"])
    assert stored(mechanism)[report_id].body == {k: v for k, v in report.items() if k != "about"}


def test_how_far_voters_come_is_counted_step_by_step(visit, service):
    """One stops after three of five dilemmas, reloads and goes back and forth; another votes."""
    before = service.store.steps.reached("fairness", service.today())
    stopping = visit("fairness")
    stopping.to_dilemmas()
    for side in ("left", "right"):
        stopping.answer(side)
    assert stopping.told() == []
    stopping.answer("left")
    stopping.page.locator("progress[value='4']").wait_for()
    stopping.reload()
    stopping.go_back()
    stopping.page.locator("progress[value='3']").wait_for()
    stopping.press_primary()
    stopping.page.locator("progress[value='4']").wait_for()
    assert stopping.told() == ["half"]
    (told,) = stopping.sent("POST")
    assert told.response().status == 204
    assert not {"cookie", "referer", "crowdveil-ballot"} & set(told.all_headers())

    whole = visit("fairness")
    whole.to_review()
    whole.go_back()
    whole.press_primary()
    whole.page.locator(".sent").wait_for()
    whole.press_primary()
    whole.done()
    assert whole.told() == ["half", "all", "review"]
    assert [one.response().status for one in whole.sent("POST")] == [204, 204, 204]
    counted = service.store.steps.reached("fairness", service.today()) - before
    assert counted == {"opened": 3, "started": 2, "half": 2, "all": 1, "review": 1}


def test_a_step_that_cannot_be_told_disturbs_nobody(visit):
    voter = visit("fairness")
    voter.page.route("**/steps", lambda route: route.abort())
    voter.to_review()
    voter.press_primary()
    voter.done()
    assert voter.told() == ["half", "all", "review"]
    voter.complaints.clear()  # The browser reports each lost connection itself.


def test_what_is_reported_is_drawn_anew_from_the_same_answers(visit):
    """Two reports of the same answers differ: there is noise in them."""
    voter = visit("algorithm-2")
    voter.to_review()
    first = voter.shown_body()
    voter.go_back()
    voter.page.locator("label.left").click()
    voter.page.locator("label.right").click()
    voter.press_primary()
    second = voter.shown_body()
    assert json.loads(first)["values"] != json.loads(second)["values"]


def test_the_chosen_level_is_the_one_that_is_sent(visit):
    voter = visit("score")
    voter.to_review(500_000)
    assert json.loads(voter.shown_body())["epsilon_micro"] == 500_000


def test_the_level_cannot_be_changed_after_the_first_answer(visit):
    """A choice made afterwards could tell something about the answers."""
    voter = visit("score")
    voter.to_dilemmas(500_000)
    voter.go_back()
    voter.page.locator(".practice").wait_for()
    voter.go_back()
    voter.choose_level(2_000_000)
    voter.page.locator(".dilemma").wait_for()
    voter.page.locator("label.left").click()
    assert not voter.page.get_by_role("button", name="Back").is_visible()
    voter.press_primary()
    voter.go_back()
    voter.page.locator("progress[value='1']").wait_for()
    assert not voter.page.get_by_role("button", name="Back").is_visible()
    assert voter.memory()["epsilon_micro"] == 2_000_000


def test_in_a_central_poll_the_exact_answers_are_sent_once_under_a_consent_that_says_so(visit, stored):
    voter = visit("central")
    unfold(voter.page)
    consent = voter.page.locator("main").inner_text()
    assert "exact answers are sent" in consent
    assert "We keep the answers for a year." in consent
    assert "host@example.org" in consent
    voter.to_dilemmas()
    dilemmas, sides = voter.answer_all()
    voter.page.get_by_label("30 to 59").check()
    voter.press_primary()
    voter.page.locator(".sent").wait_for()
    body = voter.shown_body()
    voter.press_primary()
    report_id = voter.done()
    (sent,) = voter.sent()
    assert sent.post_data == body
    records = [{**dilemma, "chosen": side} for dilemma, side in zip(dilemmas, sides, strict=True)]
    assert json.loads(body)["records"] == records
    assert list(stored("central")[report_id].records) == records
    assert stored("central")[report_id].about == {"age": "middle"}
    assert voter.page.locator(".code").inner_text() == "SPARED-42"
    assert voter.page.get_by_role("link", name="Back to where you came from").get_attribute("href") == (
        "https://example.org/done"
    )


@pytest.mark.parametrize("poll", ["kidney", "fairness", "synthetic"])
def test_a_study_that_is_not_about_cars_has_cards(poll, visit, stored):
    voter = visit(poll)
    voter.to_dilemmas()
    assert voter.page.locator(".road").count() == 0
    assert voter.page.locator(".choice.side").count() == 2
    pictures = voter.page.locator("label.left .fact > .icon")
    assert pictures.count() == (0 if poll == "synthetic" else voter.page.locator("label.left .fact").count())
    voter.answer_all()
    voter.page.locator(".sent").wait_for()
    voter.press_primary()
    assert voter.done() in stored(poll)


def test_the_whole_way_in_arabic_runs_from_right_to_left(visit, stored):
    voter = visit("score", locale="ar")
    page = voter.page
    assert page.locator("html").get_attribute("dir") == "rtl"
    assert page.locator("html").get_attribute("lang") == "ar"
    assert page.locator("h1").inner_text() == "آلة الأخلاق"
    voter.to_dilemmas(1_000_000)
    # The left group stays on the left of the picture and of the cards.
    left, right = (page.locator(f"label.{side}").bounding_box() for side in ("left", "right"))
    assert left["x"] < right["x"]
    assert page.locator("label.left").get_attribute("dir") == "rtl"
    back, onward = (page.locator(f".actions .{kind}").bounding_box() for kind in ("quiet", "primary"))
    assert onward["x"] < back["x"]
    voter.answer_all()
    page.get_by_label("60 أو أكثر").check()
    voter.press_primary()
    page.locator(".sent").wait_for()
    voter.press_primary()
    assert voter.done() in stored("score")
    assert page.locator("h1").inner_text() == "شكرًا لك"


def test_the_whole_way_by_keyboard_only(visit, stored):
    voter = visit("score")
    page, keyboard = voter.page, voter.page.keyboard

    def tab_to(selector):
        for _ in range(30):
            keyboard.press("Tab")
            if page.evaluate("s => document.activeElement.matches(s)", selector):
                return
        pytest.fail(f"the Tab key does not reach {selector}")

    tab_to("#agree")
    keyboard.press("Space")
    tab_to("button.primary")
    keyboard.press("Enter")
    page.locator(".levels").wait_for()
    tab_to(".levels input")
    keyboard.press("ArrowDown")
    keyboard.press("Enter")
    page.locator(".practice").wait_for()
    keyboard.press("ArrowRight")
    assert page.locator(".common .group.spared").get_attribute("data-side") == "right"
    keyboard.press("Enter")
    page.locator(".dilemma").wait_for()
    total = len(voter.memory()["dilemmas"])
    for place in range(total):
        page.locator(f"progress[value='{place + 1}']").wait_for()
        assert page.evaluate("document.activeElement.tagName") == "H1"
        if place == 3:
            tab_to("#choose-left")
            keyboard.press("Space")
            tab_to("button.primary")
        else:
            keyboard.press("ArrowRight")
        keyboard.press("Enter")
    page.locator("fieldset").wait_for()
    assert voter.memory()["choices"] == ["right"] * 3 + ["left"] + ["right"] * (total - 4)
    tab_to("fieldset input")
    keyboard.press("ArrowUp")
    keyboard.press("Enter")
    page.locator(".sent").wait_for()
    tab_to("summary")
    keyboard.press("Enter")
    assert page.locator(".sent pre").is_visible()
    tab_to("button.primary")
    keyboard.press("Enter")
    assert voter.done() in stored("score")


def test_a_dilemma_is_not_passed_without_an_answer(visit):
    voter = visit("algorithm-2")
    voter.to_dilemmas()
    voter.press_primary()
    assert voter.page.get_by_text("Choose one of the two first.").is_visible()
    assert voter.page.locator("progress").get_attribute("value") == "1"


@pytest.mark.parametrize(
    ("poll", "epsilon", "bound"),
    [
        ("randomised-response", 5, 100),  # e^5 / (1 + e^5), rounded up: choices are alike, so epsilons add up
        ("one-choice", 1, 74),  # one of them is sent, which is all that can be told
    ],
)
def test_the_odds_on_all_choices_together_are_told_before_consent(poll, epsilon, bound, visit):
    voter = visit(poll)
    assert f"For all 5 together: at most {bound}." in voter.words
    unfold(voter.page)
    told = f"all 5 of your choices together is right at most {bound} times in 100 (ε = {epsilon})."
    assert told in voter.words


def test_without_consent_nothing_begins(visit):
    voter = visit("algorithm-2")
    asked = len(voter.requests)
    voter.press_primary()
    assert voter.page.get_by_text("To take part, tick the box above.").is_visible()
    assert len(voter.requests) == asked


def test_a_choice_shows_what_it_means_before_it_counts(visit):
    voter = visit("algorithm-2")
    voter.to_dilemmas()
    voter.page.locator("label.right").click()
    assert voter.page.locator(".common .group.hit").count() == 1
    assert voter.page.locator(".common .group.spared").get_attribute("data-side") == "right"
    assert "A dies: " in voter.page.locator(".outcome").text_content()
    assert voter.page.locator("progress").get_attribute("value") == "1"


def test_touching_a_group_in_the_picture_spares_it(visit):
    voter = visit("algorithm-2")
    voter.to_dilemmas()
    voter.page.locator(".common .group[data-side=left]").click()
    assert voter.memory()["choices"][0] == "left"


def test_the_language_can_be_changed_on_the_way(visit):
    voter = visit("algorithm-2")
    voter.to_dilemmas()
    voter.answer("left")
    voter.page.select_option("#language", "de")
    voter.page.get_by_text("Die Bremsen haben versagt").wait_for()
    assert voter.page.locator("progress").get_attribute("value") == "2"
    assert voter.page.locator("html").get_attribute("lang") == "de"
    voter.page.reload()
    voter.page.get_by_text("Die Bremsen haben versagt").wait_for()


def test_a_dilemma_is_asked_in_every_language(visit):
    """In the words of Python's translation, put together by the page."""
    study = load_study("moral-machine")
    voter = visit("algorithm-2")
    voter.to_dilemmas()
    (dilemma, *_) = voter.memory()["dilemmas"]
    for code in INTERFACE_LANGUAGES:
        said = words(study, code)
        voter.page.select_option("#language", code)
        voter.page.locator("h1").get_by_text(said["question"]).wait_for()
        phrases = []
        for feature, value in zip(study.features, dilemma["left"], strict=True):
            table = said["features"][feature.name]["words"]
            phrases.append(table.get(f"{value:g}", table.get("other")).replace("{n}", f"{value:g}"))
        button = voter.page.locator("#choose-left")
        expect(button).to_have_attribute("aria-label", re.compile(re.escape(max(phrases, key=len))))
        assert all(phrase in button.get_attribute("aria-label") for phrase in phrases)
        assert voter.page.locator("html").get_attribute("dir") == said["direction"]


def test_the_voter_beside_the_crowd(visit, service):
    """The crowd's shares are those of the release; the voter's own are counted here and asked of nobody."""
    voter = visit("released")
    voter.to_review()
    voter.press_primary()
    voter.done()
    rows = voter.page.locator(".comparison li")
    rows.first.wait_for()
    rows.locator(".crowd-mark").first.wait_for()
    assert rows.count() == rows.locator(".crowd-mark").count() == 9
    assert rows.locator(".own-mark").count() > 0
    after = voter.requests[voter.requests.index(voter.sent()[0]) + 1 :]
    assert [request.url.rsplit("/", 2)[1] for request in after] == ["releases"]
    voter.page.reload()
    rows.locator(".crowd-mark").first.wait_for()
    assert rows.locator(".own-mark").count() == 0
    with voter.page.expect_popup() as opened:
        voter.page.get_by_role("link", name="See the result").click()
    opened.value.get_by_role("heading", name="What the crowd prefers").wait_for()
    opened.value.close()


def test_a_closed_poll_says_so(visit):
    voter = visit("closed")
    assert "This poll is closed." in voter.page.locator("main").inner_text()
    assert voter.page.locator("#agree").count() == 0
    assert voter.page.get_by_role("link").count() == 0  # Nothing has been published.


def test_withdrawing_deletes_what_was_sent(visit, stored):
    voter = visit("algorithm-2")
    voter.to_review()
    voter.press_primary()
    report_id = voter.done()
    assert report_id in stored("algorithm-2")
    voter.page.get_by_role("button", name="Withdraw").click()
    voter.page.get_by_role("button", name="Yes, delete it").click()
    voter.page.get_by_text("What you sent has been deleted.").wait_for()
    assert report_id not in stored("algorithm-2")
    assert voter.memory()["token"] is None
    voter.page.reload()
    voter.page.get_by_text("What you sent has been deleted.").wait_for()


def test_a_personal_link_stays_out_of_every_address(visit, service, stored):
    (token,) = service.store.submissions.create_links("by-link", 1)
    voter = visit("by-link", fragment=f"#ballot={token}")
    assert token not in voter.page.url
    voter.to_dilemmas()
    voter.page.reload()
    voter.page.locator(".dilemma").wait_for()
    voter.answer_all()
    voter.page.locator(".sent").wait_for()
    voter.press_primary()
    assert voter.done() in stored("by-link")
    (sent,) = voter.sent()
    assert sent.headers["crowdveil-ballot"] == token
    assert not any(token in request.url for request in voter.requests)


def test_a_poll_by_links_needs_one(visit):
    voter = visit("by-link")
    assert "personal link" in voter.page.locator("main").inner_text()
    assert voter.page.locator("#agree").count() == 0


def test_a_link_that_the_poll_does_not_know_is_refused_before_the_first_dilemma(visit):
    voter = visit("by-link", fragment=f"#ballot={'A' * 22}")
    assert "Your personal link is not valid for this poll." in voter.page.locator("main").inner_text()
    assert voter.page.locator("#agree").count() == 0
    voter.complaints.clear()  # The browser reports the refusal itself.


def test_a_link_that_was_used_is_refused_before_the_first_dilemma(visit, service):
    """On another device; on its own, the receipt is there."""
    (token,) = service.store.submissions.create_links("by-link", 1)
    voter = visit("by-link", fragment=f"#ballot={token}")
    voter.to_review()
    voter.press_primary()
    report_id = voter.done()
    other = visit("by-link", fragment=f"#ballot={token}")
    assert "somebody has already taken part" in other.page.locator("main").inner_text()
    assert other.page.locator("#agree").count() == 0
    voter.page.reload()
    assert voter.done() == report_id
    voter.page.get_by_role("button", name="Withdraw").click()
    voter.page.get_by_role("button", name="Yes, delete it").click()
    voter.page.get_by_text("What you sent has been deleted.").wait_for()
    third = visit("by-link", fragment=f"#ballot={token}")
    assert "has been withdrawn" in third.page.locator("main").inner_text()
    third.complaints.clear()


def test_a_second_link_on_an_open_page_is_taken(visit, service):
    """It changes only what stands after #, which loads nothing by itself."""
    (token,) = service.store.submissions.create_links("by-link", 1)
    voter = visit("by-link")
    assert "personal link" in voter.page.locator("main").inner_text()
    voter.page.goto(f"{voter.page.url}#ballot={token}")
    voter.page.locator("#agree").wait_for()
