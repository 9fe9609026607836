"""A server that is mistaken or lies, before a real browser: the page keeps what was promised, or does not take part."""

import copy

import pytest

from crowdveil.audit import page_attack
from crowdveil.audit.lying_server import CHANGED_PROMISES, UNTRUE_POLLS, lying_server, try_case
from crowdveil.audit.page_attack import CASES, PAGE_MUTANTS, PageHarness, lies_against_page


@pytest.fixture(scope="module")
def harness(browser, tmp_path_factory):
    """The audit's lying server, before a browser of these tests."""
    with lying_server(tmp_path_factory.mktemp("lying")) as server:
        opened = PageHarness(server, browser)
        yield opened
        opened.close()


@pytest.mark.parametrize("case", CASES)
def test_no_lie_is_taken(harness, case, monkeypatch):
    """The page knows a promise by its digest, so two changes of it are seen here; `make test-slow` sees all."""
    some = {what: CHANGED_PROMISES[what] for what in ("place", "study")}
    monkeypatch.setattr(page_attack, "CHANGED_PROMISES", some)
    assert try_case(harness, case, CASES[case]) is None


@pytest.mark.slow
@pytest.mark.parametrize("case", ["another promise on the way", "another promise after sending"])
def test_no_change_of_the_promise_is_taken(harness, case):
    assert try_case(harness, case, CASES[case]) is None


def test_every_change_is_another_promise(harness):
    page = harness.visit("algorithm-2").page
    described = page.request.get(f"{harness.server.address}/api/polls/algorithm-2").json()
    polls = [described]
    for change in CHANGED_PROMISES.values():
        polls.append(copy.deepcopy(described))
        change(polls[-1])
    digests = page.evaluate(
        "async (polls) => { const { promiseOf } = await import('/web/poll.js'); return polls.map(promiseOf); }", polls
    )
    assert len(set(digests)) == len(polls)


ONE_OF_EACH_KIND = (
    "a page that believes any unit",
    "a page that sees no repeats",
    "a page that does not check the dilemmas",
    "a page that forgets what it promised",
    "a page that tells a choice with a step",
)


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(one, marks=() if one.mistake in ONE_OF_EACH_KIND else pytest.mark.slow, id=one.mistake)
        for one in PAGE_MUTANTS
    ],
)
def test_a_page_without_one_of_its_checks_is_caught(harness, mutant):
    (finding,) = lies_against_page(harness, mutant)
    assert finding is not None


def test_in_every_language_it_says_why_it_does_not_take_part(harness):
    harness.server.describe(*UNTRUE_POLLS["randomised response for all of a voter"])
    words = harness.visit("randomised-response", locale="ar").words
    harness.server.tell_the_truth()
    assert "لا تشارك هذه الصفحة" in words
    assert "randomised-response protects each choice, and voter is promised" in words


def test_another_poll_of_the_study_takes_nothing_from_a_ballot_on_the_way(harness):
    voter = harness.visit("algorithm-2")
    voter.agree()
    voter.page.locator("label.left").click()
    voter.press_primary()
    voter.page.locator("progress[value='2']").wait_for()
    voter.open(harness.address_of("subset-selection"))
    assert voter.asks_for_consent
    voter.open(harness.address_of("algorithm-2"))
    voter.page.locator("progress[value='2']").wait_for()
