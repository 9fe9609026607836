"""Reloads, lost connections, double clicks, second tabs: nothing is lost, and nothing is sent twice or differently."""

import json
from dataclasses import replace

import pytest

from crowdveil.audit.browser import PATIENCE

REPORT = "**/api/polls/*/report"
NO_ANSWERS = {"dilemmas": [], "choices": [], "about": {}, "body": None}

NO_STORAGE = """
Object.defineProperty(window, "localStorage", { get() { throw new DOMException("denied", "SecurityError"); } });
Object.defineProperty(window, "sessionStorage", { get() { throw new DOMException("denied", "SecurityError"); } });
"""


def test_a_reload_in_the_middle_goes_on_at_the_same_place(visit):
    voter = visit("algorithm-2")
    voter.to_dilemmas()
    voter.answer("left")
    voter.answer("right")
    before = voter.memory()
    asked = voter.page.locator("label.left").inner_text()
    voter.page.reload()
    voter.page.locator("progress[value='3']").wait_for()
    assert voter.memory() == before
    assert voter.page.locator("label.left").inner_text() == asked
    voter.go_back()
    voter.page.locator("progress[value='2']").wait_for()
    assert voter.page.locator("#choose-right").is_checked()


def test_a_reload_before_sending_keeps_the_same_report(visit):
    voter = visit("algorithm-2")
    voter.to_review()
    body = voter.shown_body()
    voter.page.reload()
    voter.page.locator(".sent").wait_for()
    assert voter.shown_body() == body


def test_after_sending_the_answers_are_gone_and_the_receipt_stays(visit):
    voter = visit("algorithm-2")
    voter.to_review()
    voter.press_primary()
    report_id = voter.done()
    memory = voter.memory()
    assert (memory["dilemmas"], memory["choices"], memory["about"], memory["body"]) == ([], [], {}, None)
    voter.page.reload()
    assert voter.done() == report_id
    assert len(voter.sent()) == 1


def test_the_report_is_stored_before_it_is_sent_and_sent_again_byte_for_byte(visit, stored):
    """The connection drops twice, then the page is reloaded, then the connection is back."""
    voter = visit("algorithm-2")
    voter.to_review()
    body = voter.shown_body()
    remembered = []

    def drop(route):
        remembered.append(voter.memory()["body"])
        route.abort()

    voter.page.route(REPORT, drop)
    voter.press_primary()
    voter.page.get_by_text("Nothing is lost").wait_for()
    voter.page.get_by_role("button", name="Try now").click()
    voter.page.locator("main button.primary:not([hidden])").first.wait_for()
    voter.page.reload()
    voter.page.get_by_text("Nothing is lost").wait_for()
    voter.page.unroute(REPORT)
    voter.page.get_by_role("button", name="Try now").click()
    report_id = voter.done()
    assert len(voter.sent()) >= 4
    assert {request.post_data for request in voter.sent()} == {body}
    assert len({request.headers["crowdveil-ballot"] for request in voter.sent()}) == 1
    assert set(remembered) == {body}
    assert report_id in stored("algorithm-2")
    voter.complaints.clear()  # The browser reports each lost connection itself.


def test_a_lost_answer_of_the_server_makes_no_second_report(visit, stored):
    """The server stores the report, but its answer does not arrive."""
    voter = visit("algorithm-3")
    voter.to_review()
    before = set(stored("algorithm-3"))
    tries = []

    def lose_the_first_answer(route):
        tries.append(route)
        if len(tries) > 1:
            return route.continue_()
        route.fetch()
        return route.abort()

    voter.page.route(REPORT, lose_the_first_answer)
    voter.press_primary()
    report_id = voter.done()
    first, second = voter.sent()
    assert first.post_data == second.post_data
    assert second.response().status == 200
    assert json.loads(second.response().text())["status"] == "already-stored"
    assert set(stored("algorithm-3")) - before == {report_id}
    voter.complaints.clear()


def test_a_busy_server_is_asked_again_after_the_time_that_it_names(visit):
    voter = visit("algorithm-2")
    voter.to_review()
    busy = {"error": {"reason": "too-many-requests", "message": "slower, please"}}
    voter.page.route(REPORT, lambda route: route.fulfill(status=429, headers={"Retry-After": "7"}, json=busy), times=1)
    voter.press_primary()
    voter.page.get_by_text("the next try is in 7 s").wait_for()
    voter.page.get_by_role("button", name="Try now").click()
    voter.done()
    voter.complaints.clear()


def test_a_device_whose_report_is_refused_forgets_the_answers_and_keeps_the_report(visit, stored):
    """A poll that closed while somebody answered may open again: then the same bytes are sent."""
    voter = visit("algorithm-2")
    voter.to_review()
    body = voter.shown_body()
    closed = {"error": {"reason": "closed", "message": "this poll is closed"}}
    voter.page.route(REPORT, lambda route: route.fulfill(status=410, json=closed))
    voter.press_primary()
    voter.page.get_by_text("This poll is closed.").wait_for()
    left = voter.memory()
    assert (left["dilemmas"], left["choices"], left["about"]) == ([], [], {})
    assert left["body"] == body
    voter.page.unroute(REPORT)
    voter.page.reload()
    assert voter.done() in stored("algorithm-2")
    assert {request.post_data for request in voter.sent()} == {body}
    voter.complaints.clear()  # The browser reports the refusal itself.


def another_poll(service, name, like="algorithm-2", **changed):
    """Add a poll like one that is there, for a test that ends it."""
    service.store.polls.add(replace(service.store.polls.known(like), name=name, **changed))
    return name


def kept(voter):
    """What the device remembers of the answers."""
    return {key: voter.memory()[key] for key in NO_ANSWERS}


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("close", "This poll is closed."),
        ("archive", "This poll is closed."),
        ("delete", "There is no poll at this address."),
    ],
)
def test_a_device_forgets_the_answers_to_a_poll_that_has_ended(end, told, visit, service):
    voter = visit(another_poll(service, f"to-{end}"))
    voter.to_review()
    other = voter.page.context.new_page()
    other.goto(voter.page.url)
    other.locator(".sent").wait_for()
    getattr(service.store.polls, end)(f"to-{end}")
    voter.reload()
    assert told in voter.words
    assert kept(voter) == NO_ANSWERS
    other.locator("#agree").wait_for()
    voter.reload()
    assert told in voter.words
    voter.complaints.clear()  # The browser reports the missing poll itself.


def test_a_device_forgets_the_answers_to_a_poll_that_is_full(visit, service):
    voter = visit(another_poll(service, "of-one", quota=1))
    voter.to_review()
    first = visit("of-one")
    first.to_review()
    first.press_primary()
    first.done()
    voter.reload()
    assert "has all the voters that it needs" in voter.words
    assert kept(voter) == NO_ANSWERS


def test_a_device_forgets_the_answers_of_a_link_that_somebody_else_has_used(visit, service):
    name = another_poll(service, "link-shared", "by-link")
    (token,) = service.store.submissions.create_links(name, 1)
    voter, first = (visit(name, fragment=f"#ballot={token}") for _ in range(2))
    for each in (voter, first):
        each.to_review()
    first.press_primary()
    first.done()
    voter.reload()
    assert "somebody has already taken part" in voter.words
    assert kept(voter) == NO_ANSWERS


def test_a_device_forgets_the_answers_to_a_poll_that_has_ended_also_without_the_link(visit, service, address):
    name = another_poll(service, "link-lost", "by-link")
    (token,) = service.store.submissions.create_links(name, 1)
    voter = visit(name, fragment=f"#ballot={token}")
    voter.to_review()
    service.store.polls.close(name)
    other = voter.page.context.new_page()
    other.goto(f"{address}/p/{name}/")
    other.get_by_text("This poll is closed.").wait_for()
    assert kept(voter) == NO_ANSWERS


def test_a_report_that_may_have_been_sent_stays_when_the_poll_is_gone(visit, service):
    name = another_poll(service, "gone")
    voter = visit(name)
    voter.to_review()
    body = voter.shown_body()
    voter.page.route(REPORT, lambda route: route.abort())
    voter.press_primary()
    voter.page.get_by_text("Nothing is lost").wait_for()
    service.store.polls.delete(name)
    voter.reload()
    assert "There is no poll at this address." in voter.words
    assert kept(voter) == {**NO_ANSWERS, "body": body}
    assert voter.step == "sending"
    voter.complaints.clear()  # The browser reports the missing poll itself.


def test_a_pause_or_a_lost_connection_costs_no_answer(visit):
    voter = visit("algorithm-2")
    voter.to_review()
    before = voter.memory()
    poll = "**/api/polls/algorithm-2"

    def not_open_yet(route):
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "state": "not-open-yet"})

    voter.page.route(poll, not_open_yet)
    voter.reload()
    assert "This poll is not open yet." in voter.words
    assert voter.memory() == before
    voter.page.unroute(poll)
    voter.page.route(poll, lambda route: route.abort())
    voter.reload()
    assert "The server cannot be reached." in voter.words
    assert voter.memory() == before
    voter.page.unroute(poll)
    voter.reload()
    voter.page.locator(".sent").wait_for()
    voter.complaints.clear()


def test_offline_is_said_and_sending_goes_on_by_itself(visit):
    voter = visit("algorithm-2")
    voter.to_review()
    voter.page.context.set_offline(True)
    voter.press_primary()
    voter.page.get_by_text("You are offline").wait_for()
    voter.page.context.set_offline(False)
    voter.done()
    voter.complaints.clear()


def test_a_double_click_sends_once(visit):
    voter = visit("algorithm-2")
    voter.to_review()
    voter.page.locator("main button.primary").dblclick()
    voter.done()
    assert len(voter.sent()) == 1


def test_a_report_that_may_have_been_sent_cannot_be_changed(visit):
    voter = visit("algorithm-2")
    voter.to_review()
    body = voter.shown_body()
    voter.page.route(REPORT, lambda route: route.abort())
    voter.press_primary()
    voter.page.get_by_text("Nothing is lost").wait_for()
    assert voter.page.locator("main .actions").count() == 0
    voter.page.reload()
    voter.page.get_by_text("Nothing is lost").wait_for()
    assert voter.memory()["body"] == body
    voter.complaints.clear()


def test_a_second_tab_goes_along_with_the_first(visit, stored):
    """Whoever answers in two tabs has sent once."""
    voter = visit("algorithm-2")
    voter.to_review()
    before = set(stored("algorithm-2"))
    other = voter.page.context.new_page()
    other.goto(voter.page.url)
    other.locator(".sent").wait_for()
    voter.press_primary()
    report_id = voter.done()
    other.get_by_text(report_id).wait_for()
    assert set(stored("algorithm-2")) - before == {report_id}


def test_without_storage_it_works_and_warns(browser, address, stored):
    context = browser.new_context(viewport={"width": 360, "height": 640})
    context.add_init_script(NO_STORAGE)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    for poll in ("algorithm-2", "central"):
        page.goto(f"{address}/p/{poll}/")
        page.get_by_text("keep this page open until you are done").wait_for()
        page.locator("#agree").check()
        if poll == "central":
            page.locator(".from-host > summary").click()
        page.locator("main button.primary").click()
        page.locator(".practice").wait_for()
        page.locator("main button.primary").click()
        page.locator(".dilemma").wait_for()
        for place in range(int(page.locator("progress").get_attribute("max"))):
            page.locator(f"progress[value='{place + 1}']").wait_for()
            page.keyboard.press("ArrowLeft")
            page.keyboard.press("Enter")
        page.locator(".sent, fieldset").first.wait_for()
        if poll == "central":
            page.locator("main button.primary").click()
        page.locator(".sent").wait_for()
        page.locator("main button.primary").click()
        assert page.locator(".facts code").inner_text() in stored(poll)
    context.close()


def test_a_changed_poll_starts_anew(visit):
    """What was remembered for another study is not carried over."""
    voter = visit("algorithm-2")
    voter.to_dilemmas()
    voter.answer("left")
    voter.page.evaluate(
        """() => {
          const [key] = Object.keys(localStorage).filter((name) => name.startsWith("crowdveil:ballot:"));
          const stored = JSON.parse(localStorage.getItem(key));
          stored.value.promise = "0".repeat(64);
          localStorage.setItem(key, JSON.stringify(stored));
        }"""
    )
    voter.page.reload()
    voter.page.locator("#agree").wait_for()


def test_whoever_stops_leaves_nothing_behind(visit):
    voter = visit("algorithm-2")
    voter.to_dilemmas()
    voter.answer("left")
    voter.page.once("dialog", lambda dialog: dialog.accept())
    voter.page.get_by_role("button", name="Stop, and delete my answers from this device").click()
    voter.page.locator("#agree").wait_for()
    memory = voter.memory()
    assert (memory["dilemmas"], memory["choices"], memory["step"]) == ([], [], "welcome")
    assert voter.sent() == []


def test_a_page_that_did_not_come_whole_says_so_at_the_start_and_is_loaded_again(visit):
    """The welcome can be read without the rest of the page; to start, all of it has to be there."""
    voter = visit("algorithm-2")
    voter.page.route("**/voting.js", lambda route: route.abort())
    voter.page.reload()
    voter.page.locator("#agree").check()
    voter.press_primary()
    voter.page.get_by_text("The server cannot be reached").wait_for()
    voter.page.unroute("**/voting.js")
    voter.press_primary()
    voter.page.locator("#agree").wait_for()
    voter.to_dilemmas()
    voter.complaints.clear()  # The browser reports the lost connection itself.
