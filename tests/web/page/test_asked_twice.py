"""A study that asks one dilemma twice, before a real browser: the device draws it, mirrors it, and takes no other."""

import json

import pytest
from tests.web.page.conftest import DILEMMAS

from crowdveil.study.translations import INTERFACE_LANGUAGES

SAYS = "One of them comes a second time at the end, with its sides swapped."


def test_the_last_dilemma_is_one_of_the_first_half_mirrored_and_goes_to_a_trusted_host(visit, stored, service):
    voter = visit("central-twice")
    welcome = voter.page.locator(".three").inner_text()
    assert f"{DILEMMAS + 1} dilemmas" in welcome
    assert SAYS in welcome
    assert f"For all {DILEMMAS + 1} together" in welcome
    dilemmas, chosen = voter.to_review()
    place = voter.memory()["repeat"]
    assert len(dilemmas) == DILEMMAS + 1
    assert place in (0, 1, 2)
    assert dilemmas[-1] == {"left": dilemmas[place]["right"], "right": dilemmas[place]["left"]}
    records = json.loads(voter.shown_body())["records"]
    assert [record["chosen"] for record in records] == chosen
    assert [record.get("repeats") for record in records] == [None] * DILEMMAS + [place]
    voter.press_primary()
    number = voter.done()
    assert [dict(record) for record in stored("central-twice")[number].records] == records
    crowd = service.store.submissions.crowd("central-twice")
    assert (crowd.records, crowd.alike.tolist()) == (DILEMMAS, [1 if chosen[place] != chosen[-1] else -1])
    assert voter.memory()["repeat"] is None  # forgotten with the choices


def test_a_device_says_whether_it_was_answered_alike_or_reports_as_ever(visit, stored):
    voter = visit("twice")
    voter.to_review()
    report = json.loads(voter.shown_body())
    assert (report["preference"] is None) != (report["alike"] is None)
    if report["preference"] is not None:
        assert len(report["preference"]["choices"]) == DILEMMAS
    voter.press_primary()
    number = voter.done()
    assert stored("twice")[number].body == report


def test_the_repeat_can_be_thought_over_and_survives_a_reload(visit):
    voter = visit("central-twice")
    voter.to_review()
    before = voter.memory()
    voter.go_back()
    voter.page.locator(f".progress progress[value='{DILEMMAS + 1}']").wait_for()
    voter.page.reload()
    voter.page.locator(f".progress progress[value='{DILEMMAS + 1}']").wait_for()
    after = voter.memory()
    assert (after["repeat"], after["dilemmas"]) == (before["repeat"], before["dilemmas"])


def test_it_is_said_in_every_language(visit):
    voter = visit("twice")
    said = set()
    for language in INTERFACE_LANGUAGES:
        voter.page.select_option("#language", language)
        voter.page.locator(f"html[lang='{language}']").wait_for()
        said.add(voter.page.locator(".three li").first.inner_text())
    assert len(said) == len(INTERFACE_LANGUAGES)


@pytest.mark.parametrize("mirror", [True, False])
def test_a_server_s_own_repeat_is_refused_where_one_is_declared(modules, address, mirror):
    """The declared repeat is never among what a server draws: neither one more, nor one in the place of another."""
    described = modules.request.get(f"{address}/api/polls/twice").json()
    drawn = modules.request.get(f"{address}/api/polls/twice/session").json()["dilemmas"]
    again = {"left": drawn[0]["right"], "right": drawn[0]["left"]} if mirror else drawn[0]
    refusals = modules.evaluate(
        """async ([study, sessions]) => {
          const { checkedSession } = await import("/web/poll.js");
          return sessions.map((session) => {
            try { checkedSession(study, session); return null; } catch (error) { return error.message; }
          });
        }""",
        [described["study"], [drawn, [*drawn, again], [*drawn[:-1], again]]],
    )
    assert refusals[0] is None
    assert "6 dilemmas came, and the study has 5" in refusals[1]
    assert "more than once" in refusals[2]


def test_every_one_of_the_first_half_may_be_drawn_and_no_other(modules):
    drawn = modules.evaluate(
        """async () => {
          const { drawRepeat } = await import("/web/mechanisms/reliability.js");
          const { systemRandom } = await import("/web/mechanisms/random.js");
          return Array.from({ length: 400 }, () => drawRepeat(7, systemRandom()));
        }"""
    )
    assert set(drawn) == {0, 1, 2, 3}  # one is missed once in 10^49
