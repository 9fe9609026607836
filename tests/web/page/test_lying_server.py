"""A server that is mistaken or lies, before a real browser: the page keeps what was promised, or does not take part."""

import json

import numpy as np
import pytest

from crowdveil.study.bundled import load_study
from crowdveil.study.drawing import draw_session
from crowdveil.study.study import Study

POLL = "**/api/polls/{}"
SESSION = "**/api/polls/*/session"
REPORT = "**/api/polls/*/report"


def poll_says(page, name, change):
    """Let the server describe a poll differently from now on."""

    def answer(route):
        response = route.fetch()
        described = response.json()
        change(described)
        route.fulfill(response=response, json=described)

    page.route(POLL.format(name), answer)


def session_shows(page, change):
    """Let the server show other dilemmas than it drew."""

    def answer(route):
        response = route.fetch()
        route.fulfill(response=response, json={"dilemmas": change(response.json()["dilemmas"])})

    page.route(SESSION, answer)


def as_study(described, **changes):
    """Put another study into a poll's description, with the fingerprint that belongs to it."""
    study = Study.from_dict({**described["study"], **changes})
    described.update(study=study.as_dict(), study_fingerprint=study.fingerprint)


def unit(name):
    return lambda poll: poll.update(unit=name)


UNTRUE = {
    "randomised response for all of a voter": ("randomised-response", unit("voter")),
    "randomised response for records": ("randomised-response", unit("record")),
    "single choices for all of a voter": ("one-choice", unit("voter")),
    "scores for all of a voter": ("score", unit("voter")),
    "coefficients for all of a voter": ("algorithm-3", unit("voter")),
    "linear coefficients for records": ("algorithm-3-choices", unit("record")),
    "a unit that there is not": ("algorithm-2", unit("answer")),
    "a mechanism that there is not": ("algorithm-2", lambda poll: poll.update(mechanism="exact")),
    "a mechanism that every object has": ("algorithm-2", lambda poll: poll.update(mechanism="toString")),
    "a place that there is not": ("algorithm-2", lambda poll: poll.update(place="elsewhere")),
    "an epsilon above 50": ("algorithm-2", lambda poll: poll["levels"][0].update(epsilon_micro=50_000_001)),
    "no level": ("algorithm-2", lambda poll: poll.update(levels=[])),
    "a fingerprint that marks the visitor": ("algorithm-2", lambda poll: poll.update(study_fingerprint="a" * 64)),
    "a field that marks the visitor": ("algorithm-2", lambda poll: poll["study"].update(visitor=17)),
    "a feature's field that marks the visitor": (
        "kidney",
        lambda poll: poll["study"]["features"][0].update(visitor=17),
    ),
    "another study than its fingerprint names": (
        "kidney",
        lambda poll: poll["study"]["features"][0].update(lean=0.123),
    ),
    "a range upside down": ("kidney", lambda poll: poll["study"]["features"][0].update(low=9, high=3)),
    "a unit of nothing": ("kidney", lambda poll: poll["study"]["features"][0].update(unit=0)),
    "a factor's field that marks the visitor": ("kidney", lambda poll: poll["study"]["factors"][0].update(visitor=17)),
    "a weight that is not whole": (
        "algorithm-2",
        lambda poll: poll["study"]["factors"][6]["weights"].update(legality=0.5),
    ),
    "a weight of no feature": ("algorithm-2", lambda poll: poll["study"]["factors"][6]["weights"].update(visitor=1)),
    "other weights than its fingerprint names": (
        "algorithm-2",
        lambda poll: poll["study"]["factors"][6]["weights"].update(legality=2),
    ),
    "no factors": ("algorithm-2", lambda poll: poll.pop("factors")),
    "factors that are not the study's": ("algorithm-2", lambda poll: poll["factors"].reverse()),
    "a step that is too short": ("algorithm-2", lambda poll: poll["factors"][0]["step"].pop()),
    "a million dilemmas": ("kidney", lambda poll: as_study(poll, drawing={"method": "gaussian", "dilemmas": 10**6})),
}


REFUSAL = """async ([poll, dilemmas]) => {
  const { checkedPoll, checkedSession } = await import("/web/poll.js");
  try {
    const { study } = checkedPoll(poll);
    if (dilemmas) checkedSession(study, dilemmas);
    return null;
  } catch (error) {
    return error.message;
  }
}"""


@pytest.mark.parametrize("lie", UNTRUE)
def test_a_poll_that_does_not_hold_together_is_refused(lie, modules, address):
    name, change = UNTRUE[lie]
    described = modules.request.get(f"{address}/api/polls/{name}").json()
    assert modules.evaluate(REFUSAL, [described, None]) is None
    change(described)
    assert modules.evaluate(REFUSAL, [described, None])


@pytest.mark.parametrize(
    "lie", ["randomised response for all of a voter", "a fingerprint that marks the visitor", "a million dilemmas"]
)
def test_a_poll_that_is_refused_is_not_shown(lie, visit):
    name, change = UNTRUE[lie]
    voter = visit(name, before=lambda page: poll_says(page, name, change))
    assert "does not hold together" in voter.page.locator("main").inner_text()
    assert voter.page.locator("#agree").count() == 0
    assert voter.sent() == []


def test_in_every_language_it_says_why_it_does_not_take_part(visit):
    voter = visit(
        "randomised-response", before=lambda p: poll_says(p, "randomised-response", unit("voter")), locale="ar"
    )
    words = voter.page.locator("main").inner_text()
    assert "لا تشارك هذه الصفحة" in words
    assert "randomised-response protects each choice, and voter is promised" in words


def turned(dilemma):
    return {"left": dilemma["right"], "right": dilemma["left"]}


def with_value(dilemmas, value):
    changed = json.loads(json.dumps(dilemmas))
    changed[-1]["right"][0] = value
    return changed


UNTRUE_SESSIONS = {
    "one dilemma again and again": ("algorithm-2", lambda d: d[:1] * len(d)),
    "one dilemma twice": ("algorithm-2", lambda d: [*d[:-1], d[0]]),
    "one dilemma the other way round": ("randomised-response", lambda d: [*d[:-1], turned(d[0])]),
    "a dilemma too few": ("algorithm-2", lambda d: d[1:]),
    "twice as many dilemmas": ("algorithm-2", lambda d: d + [turned(one) for one in d]),
    "a value beyond its range": ("algorithm-2", lambda d: with_value(d, 2)),
    "a value between the levels": ("kidney", lambda d: with_value(d, 0.5)),
    "a part of a person": ("algorithm-2", lambda d: with_value(d, 0.5)),
    "a value that is none": ("algorithm-2", lambda d: with_value(d, None)),
    "an alternative of another study": ("algorithm-2", lambda d: [{"left": [0], "right": [1]}] * len(d)),
}


@pytest.mark.parametrize("lie", UNTRUE_SESSIONS)
def test_dilemmas_that_are_not_the_studys_are_refused(lie, modules, address):
    name, change = UNTRUE_SESSIONS[lie]
    described = modules.request.get(f"{address}/api/polls/{name}").json()
    rng = np.random.default_rng(5)
    drawn = draw_session(Study.from_dict(described["study"]), rng)
    dilemmas = [{a.name: list(a.values) for a in dilemma.alternatives} for dilemma in drawn]
    assert modules.evaluate(REFUSAL, [described, dilemmas]) is None
    assert modules.evaluate(REFUSAL, [described, change(dilemmas)])


@pytest.mark.parametrize("lie", ["one dilemma again and again", "a value beyond its range"])
def test_dilemmas_that_are_refused_are_not_shown(lie, visit):
    name, change = UNTRUE_SESSIONS[lie]
    voter = visit(name, before=lambda page: session_shows(page, change))
    voter.agree()
    voter.page.get_by_text("does not hold together").wait_for()
    assert voter.page.locator(".dilemma").count() == 0
    assert voter.memory_or_none() is None


CHANGES = {
    "place": lambda poll: poll.update(place="central", unit="record"),
    "unit": unit("record"),
    "mechanism": lambda poll: poll.update(mechanism="subset-selection", levels=[{**poll["levels"][0], "size": 3}]),
    "level": lambda poll: poll["levels"][0].update(epsilon_micro=3_000_000),
    "study": lambda poll: as_study(poll, question="Whom would you rather hit?"),
    "consent": lambda poll: poll.update(consent={"en": "We sell what you choose."}),
}


def test_a_promise_that_changes_on_the_way_leads_back_to_consent(visit):
    """Nothing that was chosen under the first promise is kept or sent under the second."""
    voter = visit("algorithm-2")
    voter.to_review()
    for change in CHANGES.values():
        poll_says(voter.page, "algorithm-2", change)
        voter.page.reload()
        voter.page.locator("#agree").wait_for()
        assert "This poll has changed since you began." in voter.page.locator("main").inner_text()
        assert not voter.page.locator("#agree").is_checked()
        voter.page.unroute(POLL.format("algorithm-2"))
    voter.agree()
    voter.page.locator(".dilemma").wait_for()
    memory = voter.memory()
    assert set(memory["choices"]) == {None}
    assert (memory["body"], memory["about"], memory["place"]) == (None, {}, 0)
    assert voter.sent() == []


def test_after_sending_a_changed_poll_gets_nothing_more(visit):
    voter = visit("algorithm-2")
    voter.to_review()
    voter.press_primary()
    report_id = voter.done()
    for change in CHANGES.values():
        poll_says(voter.page, "algorithm-2", change)
        voter.page.reload()
        voter.page.get_by_text("the poll has changed since").wait_for()
        assert voter.page.get_by_text(report_id).is_visible()
        assert voter.page.locator("#agree").count() == 0
        assert voter.page.get_by_role("button", name="Withdraw").is_visible()
        voter.page.unroute(POLL.format("algorithm-2"))
    assert len(voter.sent()) == 1


def test_what_is_sealed_is_not_sent_to_a_changed_poll(visit):
    """It may have arrived before the connection was lost: it is neither made again nor sent under other terms."""
    voter = visit("algorithm-2")
    voter.to_review()
    body = voter.shown_body()
    voter.page.route(REPORT, lambda route: route.abort())
    voter.press_primary()
    voter.page.get_by_text("Nothing is lost").wait_for()
    tried = len(voter.sent())
    poll_says(voter.page, "algorithm-2", CHANGES["place"])
    voter.page.unroute(REPORT)
    voter.page.reload()
    voter.page.get_by_text("the poll has changed since").wait_for()
    assert len(voter.sent()) == tried
    assert voter.memory()["body"] == body
    voter.complaints.clear()  # The browser reports the lost connection itself.


def test_the_same_study_under_another_name_gets_no_second_report(visit, address):
    voter = visit("algorithm-2")
    voter.to_review()
    voter.press_primary()
    report_id = voter.done()
    for other in ("subset-selection", "central"):
        voter.open(f"{address}/p/{other}/")
        assert "has another name" in voter.page.locator("main").inner_text()
        assert voter.page.get_by_text(report_id).is_visible()
    voter.open(f"{address}/p/kidney/")
    assert voter.page.locator("#agree").is_visible()
    assert len(voter.sent()) == 1


def test_a_poll_that_forgets_the_browsers_memory_gets_no_second_report(visit):
    """Even where the ballot itself is gone, the device knows that it has taken part."""
    voter = visit("algorithm-2")
    voter.to_review()
    voter.press_primary()
    voter.done()
    voter.page.evaluate(
        "Object.keys(localStorage).filter(key => key.startsWith('crowdveil:ballot:'))"
        ".forEach(key => localStorage.removeItem(key))"
    )
    voter.page.reload()
    voter.page.get_by_text("somebody has already taken part").wait_for()
    assert voter.page.locator("#agree").count() == 0


def test_another_poll_of_the_study_takes_nothing_from_a_ballot_on_the_way(visit, address):
    voter = visit("algorithm-2")
    voter.to_dilemmas()
    voter.answer("left")
    voter.page.locator("progress[value='2']").wait_for()
    voter.open(f"{address}/p/subset-selection/")
    voter.page.locator("#agree").wait_for()
    voter.open(f"{address}/p/algorithm-2/")
    voter.page.locator("progress[value='2']").wait_for()


def test_the_fingerprint_that_is_sent_is_that_of_the_study_that_was_shown(visit):
    voter = visit("kidney")
    voter.to_review()
    shown = {**load_study("kidney").as_dict(), "drawing": {"method": "independent", "dilemmas": 5}}
    assert json.loads(voter.shown_body())["study"] == Study.from_dict(shown).fingerprint
