"""A host who has never seen a poll file makes, tries out, opens, releases, shares and archives a poll."""

import re
import time

import pytest
from tests.client.running import running
from tests.web.axe import violations

from crowdveil.audit.browser import PATIENCE
from crowdveil.client.client import Client
from crowdveil.simulated_voters import send_crowd


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with running(tmp_path_factory.mktemp("site"), []) as (store, address):
        yield store, address


@pytest.fixture
def page(browser, site):
    store, address = site
    context = browser.new_context(viewport={"width": 1000, "height": 800}, base_url=address, locale="en-GB")
    page, complaints = context.new_page(), []
    page.set_default_timeout(PATIENCE)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    token = store.hosts.create_sign_in_link(int(time.time()))
    page.goto(f"/host/sign-in#link={token}")
    page.get_by_role("button", name="Sign in with the link").click()
    page.get_by_role("button", name="Sign out").wait_for()
    yield page
    context.close()
    assert [said for said in complaints if "status of 400" not in said] == []  # A form that is told what is wrong.


def fill_in(page):
    page.goto("/host/new")
    page.get_by_label("A study of my own").check()
    page.get_by_label("Title", exact=True).fill("Who gets the last parking space?")
    page.get_by_label("The question that voters are asked").fill("Who should get it?")
    page.get_by_label("Dilemmas for each voter").fill("3")
    page.get_by_label("Fact 1", exact=True).fill("children in the car")
    page.locator("#f0_values").fill("0, 1, 2, 3")
    page.get_by_label("Fact 2", exact=True).fill("vehicle")
    page.locator("#f1_values").fill("car, van, motorbike")
    page.locator("input[name=paradigm][value=vlcp]").check()
    page.locator("#budget").fill("8")
    page.get_by_label("Its address on this website").fill("parking")
    page.get_by_label("From the people who run this poll").fill("Run by the town of Example.")


def test_a_host_makes_tries_opens_releases_shares_and_archives_a_poll(page, site):
    store, address = site
    fill_in(page)
    assert page.locator("#level0_name").is_hidden()  # It is not for this promise.
    assert violations(page, "light") == []
    page.get_by_role("button", name="Look at it as voters will").click()
    page.locator("blockquote", has_text="Run by the town of Example.").wait_for()
    assert violations(page, "light") == []
    page.get_by_role("button", name="Make it and try it out").click()
    page.get_by_role("heading", name="This poll is being tried out").wait_for()
    assert violations(page, "light") == []
    page.get_by_role("link", name="Try it as a voter").click()
    page.get_by_text("never counts").wait_for()
    with Client(address) as client:
        send_crowd(client, client.poll("parking"), 2, connections=1)
    page.goto("/host/polls/parking")
    page.get_by_text("2 were sent so far").wait_for()
    page.get_by_role("button", name="Open it").click()
    page.locator(".state.open").wait_for()
    assert store.polls.get("parking").participants == 0
    with Client(address) as client:
        send_crowd(client, client.poll("parking"), 25, connections=2)
    page.get_by_role("link", name="Releases").click()
    page.locator("#epsilon").fill("8")
    page.get_by_role("button", name="Look first").first.click()
    page.get_by_label("Name").fill("The first week")
    page.get_by_role("button", name="Spend ε = 8 and release").click()  # Its making is told as it goes.
    page.wait_for_url("**/host/releases/*")
    page.get_by_role("heading", name="The first week").wait_for()
    page.get_by_role("link", name="The page for everybody").click()
    page.get_by_role("heading", name="What the crowd prefers").wait_for()
    shared = re.search(r"/r/parking/[0-9a-f]{64}/", page.url)[0]
    page.goto("/host/polls/parking")
    page.get_by_role("button", name="Archive the poll").click()
    page.get_by_text("archived").wait_for()
    assert page.goto(shared).status == 200
    assert [entry.action for entry in store.audit_log.latest("parking")][:3] == [
        "archived the poll",
        "made a release",
        "ended the trial: votes count",
    ]


def test_the_form_works_without_a_mouse(page):
    """From the first choice by arrow keys, to a fact more, to the end by Enter."""
    page.goto("/host/new")
    page.locator("input[name=study]").first.focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.get_by_label("Title", exact=True).wait_for()
    page.get_by_role("button", name="Another fact").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "f2_label"
    page.get_by_label("Title", exact=True).focus()
    page.keyboard.press("Enter")  # Sends the form, which is not complete.
    page.get_by_role("alert").get_by_text("A study of your own needs a title").wait_for()


def test_a_host_says_what_is_measured_where_factors_leave_something_out(page, site):
    store, _ = site
    page.goto("/host/new")
    every = page.get_by_label("every direction in which features differ")
    for study, offered in (("kidney", False), ("own", False), ("moral-machine", True)):
        page.locator(f"input[name=study][value={study}]").check()
        assert every.is_visible() is offered
    every.check()
    page.get_by_label("At most so many voters").fill("50000")
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.get_by_role("button", name="Look at it as voters will").click()
    page.get_by_text("That leaves the least error with 50,000 voters at ε = 0.5.").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.get_by_role("button", name="Open it at once").click()
    page.locator("dd", has_text="every direction in which features differ").wait_for()
    assert store.polls.get("moral-machine").poll.study.along == "features"


def test_a_host_asks_questions_of_every_kind_checks_attention_and_speaks_arabic(page, site):
    store, _ = site
    fill_in(page)
    page.get_by_label("Its address on this website").fill("asked")
    page.get_by_label("They declare to be at least").fill("18")
    page.get_by_role("textbox", name="Question 1", exact=True).fill("How do you travel?")
    assert page.locator("#q0_low").is_hidden()
    page.locator("#q0_kind").select_option("several")
    page.locator("#q0_options").fill("By bus\nOn foot")
    page.get_by_role("button", name="Another question").click()
    page.locator("#q1_text").fill("Do you like it?")
    page.locator("#q1_kind").select_option("scale")
    page.locator("#q1_low").fill("1")
    page.locator("#q1_high").fill("7")
    page.locator("#q1_options").fill("not at all\nvery much")
    page.get_by_role("button", name="Another question").click()
    page.locator("#q2_text").fill("Please choose blue.")
    page.locator("#q2_options").fill("Red\nBlue")
    page.locator("#q2_expected").fill("Blue")
    page.get_by_label("Releases leave out whoever fails").check()
    page.get_by_text("Arabic", exact=True).click()
    assert page.locator("#t_ar_q3_text").is_hidden()  # There is no fourth question.
    for field, words in {
        "title": "من يحصل على آخر موقف؟",
        "question": "من ينبغي أن يحصل عليه؟",
        "f0_label": "أطفال في السيارة",
        "f1_label": "المركبة",
        "f1_values": "سيارة, شاحنة, دراجة",
        "q1_text": "هل يعجبك؟",
        "q1_options": "لا أبدًا\nجدًا",
    }.items():
        page.locator(f"#t_ar_{field}").fill(words)
    assert violations(page, "light") == []
    page.get_by_role("button", name="Look at it as voters will").click()
    page.get_by_role("heading", name="Do you like it?").wait_for()
    seen = page.locator("main").inner_text()
    for said in ("a point on a scale from 1 to 7", "1: not at all", "an attention check", "من يحصل على آخر موقف؟"):
        assert said in seen
    assert "Releases leave out whoever fails an attention check" in seen
    assert violations(page, "dark") == []
    page.get_by_role("button", name="Change it").click()
    assert page.locator("#t_ar_title").input_value() == "من يحصل على آخر موقف؟"
    assert page.locator("#q1_kind").input_value() == "scale"
    assert page.locator("#q2_expected").input_value() == "Blue"
    page.get_by_role("button", name="Look at it as voters will").click()
    page.get_by_role("button", name="Open it at once").click()
    page.locator(".state.open").wait_for()
    poll = store.polls.known("asked")
    assert poll.attention.left_out
    page.goto("/p/asked/?lang=ar")
    page.get_by_role("heading", name="من يحصل على آخر موقف؟").wait_for()
