"""What a host sees of a poll: how far voters come, what the crowd prefers, releases with names, and their making."""

import json
import math
import re
from datetime import date

import pytest
from tests.kinds_of_question import CHECK, NOISY, TEXT
from tests.service.host.website import flat
from tests.service.voters import ballot

from crowdveil.privacy.epsilon import Epsilon
from crowdveil.protocol.submission import new_token, report_id
from crowdveil.service.host.participation import about_tallies, attention_tally
from crowdveil.service.poll import poll_from_dict
from crowdveil.service.poll_release import make_release


def token_of(page):
    return re.search(r'name="form_token" value="(\w+)"', page)[1]


def funnel_of(page):
    steps = re.search(r'<ul class="funnel">(.*?)</ul>', flat(page))[1]
    return [re.sub(r"<[^>]+>", "", step).strip() for step in re.findall(r"<li>(.*?)</li>", steps)]


def test_those_who_come_to_each_step_are_counted(hosted):
    """The vote is a program's, which tells of no step, and has come to all of them."""
    for _ in range(9):
        hosted.get("/p/untrusted/")
    hosted.get("/api/polls/untrusted/session?example=true")  # Nobody votes in these.
    for _ in range(6):
        hosted.get("/api/polls/untrusted/session")
    for step, times in {"half": 5, "all": 2}.items():
        for _ in range(times):
            hosted.browser.post("/api/polls/untrusted/steps", json={"step": step})
    hosted.vote("untrusted", 1)
    assert funnel_of(hosted.get("/host/polls/untrusted").text) == [
        "9 opened the page",
        "7 started the dilemmas 2 stopped before",
        "5 answered half of them 2 stopped before",
        "2 answered all of them 3 stopped before",
        "1 came to the last page 1 stopped before",
        "1 sent a report",
    ]


def test_nothing_is_counted_in_a_poll_with_a_relay(hosted):
    relayed = {"name": "relayed", "study": "kidney", "paradigm": "vldp", "mechanism": "one-bit"}
    terms = {"relay": "https://relay.example", "batch": 1000, "levels": {"only": "1"}}
    hosted.store.polls.add(poll_from_dict({**relayed, **terms}))
    hosted.get("/p/relayed/")
    hosted.get("/api/polls/relayed/session")
    assert hosted.browser.post("/api/polls/relayed/steps", json={"step": "half"}).status_code == 409
    assert hosted.store.steps.reached("relayed", hosted.service.today()) == {}
    assert "How far voters get" not in hosted.get("/host/polls/relayed").text


def test_the_overview_shows_what_the_crowd_prefers(hosted):
    hosted.vote("untrusted", 3)
    assert "What the crowd prefers" not in hosted.get("/host/polls/untrusted").text
    token = token_of(hosted.get("/host/polls/untrusted/releases").text)
    hosted.post("/host/polls/untrusted/release", {"form_token": token, "spent": ""})
    page = hosted.get("/host/polls/untrusted").text
    assert page.count('class="track"') == 5


def test_a_release_has_a_name_a_time_and_a_note_for_hosts_only(hosted):
    hosted.vote("untrusted", 3)
    token = token_of(hosted.get("/host/polls/untrusted/releases").text)
    fields = {"form_token": token, "spent": "", "name": "First <week>", "note": "Before the newspapers."}
    made = hosted.post("/host/polls/untrusted/release", fields)
    assert "Before the newspapers." in made.text
    listed = hosted.get("/host/polls/untrusted/releases").text
    assert "2026-03-01 12:00" in listed
    assert "First &lt;week&gt;" in listed
    id = made.url.path.rpartition("/")[2]
    assert "newspapers" not in hosted.get(f"/r/untrusted/{id}/").text
    assert "newspapers" not in hosted.get(f"/api/releases/{id}").text
    hosted.submit(f"/host/releases/{id}", f"/host/releases/{id}/describe", name="x", note="")
    assert (hosted.store.releases.get(id).name, hosted.store.releases.get(id).note) == ("x", "")
    assert hosted.store.releases.get(id).made_at == hosted.service.now()
    hosted.submit(f"/host/releases/{id}", f"/host/releases/{id}/describe", 400, name="x" * 81)


def test_a_release_that_a_withdrawal_makes_again_is_the_current_one_with_its_new_name(hosted):
    hosted.vote("untrusted", 3)
    token = token_of(hosted.get("/host/polls/untrusted/releases").text)

    def release(**words):
        fields = {"form_token": token, "spent": "", **words}
        return hosted.post("/host/polls/untrusted/release", fields).url.path.rpartition("/")[2]

    first = release(name="first", note="before")
    (more,) = hosted.vote("untrusted", 1, seed=2)
    second = release(name="second")
    hosted.store.submissions.withdraw("untrusted", report_id(more))
    hosted.later(60)
    assert release(name="after the withdrawal") == first != second
    assert hosted.get("/api/polls/untrusted").json()["release"] == first
    newest, older = hosted.store.releases.all("untrusted")
    assert (newest.id, newest.name, newest.note) == (first, "after the withdrawal", "before")
    assert (older.id, older.name, newest.made_at) == (second, "second", hosted.service.now())
    release()
    assert hosted.store.releases.get(first).name == "after the withdrawal"


def test_the_making_of_a_release_is_told_line_by_line(hosted):
    hosted.vote("trusted", 4)
    token = token_of(hosted.get("/host/polls/trusted/releases").text)
    fields = {"form_token": token, "epsilon": "1", "spent": "0", "name": "Told"}
    told = hosted.post("/host/polls/trusted/release/progress", fields).text.splitlines()
    *steps, end = [json.loads(line) for line in told]
    assert steps == [{"read": 4, "of": 4}]
    (made,) = hosted.store.releases.all("trusted")
    assert end == {"done": {"to": f"/host/releases/{made.id}"}}
    assert made.name == "Told"
    assert hosted.store.audit_log.latest()[0].detail == made.id
    again = json.loads(hosted.post("/host/polls/trusted/release/progress", fields).text)
    assert "made in the meantime" in again["wrong"]
    assert str(hosted.store.releases.account("trusted").spent) == "1"


def test_answers_of_every_kind_are_tallied(hosted):
    """By hand: of 40 who ticked, 10 by bus; ages 28 and 88, 30 and 10 of them, have the mean 43."""
    asked = {"study": "kidney", "questions": [*NOISY, TEXT, CHECK], "failed_checks": "left-out"}
    hosted.store.polls.add(poll_from_dict({"name": "kinds", "paradigm": "vlcp", **asked}))
    poll = hosted.store.polls.known("kinds")
    counted = [
        ({"travel": ["bus", "foot"], "years": 28, "trust": 5, "blue": "blue"}, 10),
        ({"travel": [], "years": 28, "blue": "red"}, 20),
        ({"travel": ["foot"], "years": 88, "why": "So."}, 10),
    ]
    travel, years, trust, why, _ = about_tallies(poll, counted)
    assert [(words, share.share) for words, share in travel.options] == [
        ("By bus", 0.25),
        ("On foot", 0.5),
        ("By bicycle", 0),
    ]
    assert years.mean.mean == 43
    assert [words for words, _ in years.options][:2] == ["18 to 27", "28 to 37"]
    assert [words for words, _ in trust.options] == ["1 (never)", "2", "3", "4", "5 (any day)"]
    assert (why.answered, why.words) == (10, True)
    tally = attention_tally(poll, counted)
    assert (tally.passed, tally.voters, tally.left_out) == (10, 40, True)
    page = hosted.get("/host/polls/kinds").text
    assert "Releases leave the others out, as the poll declared before it opened" in page
    assert "Why?" in page


def test_ticks_that_came_through_coins_are_corrected_for_each_option(hosted):
    """Of 20 reports about the bus 15 say yes: (0.75 - 0.269) / 0.462 = 104 %, cut off at 100 %."""
    asked = {"name": "ticks", "study": "kidney", "paradigm": "vldp", "questions": [NOISY[0]], "about_epsilon": 1}
    poll = poll_from_dict(asked)
    counted = [({"travel": {"bus": True}}, 15), ({"travel": {"bus": False}}, 5), ({"travel": {"foot": True}}, 8)]
    counted.append(({"travel": {"foot": False}}, 12))
    (tally,) = about_tallies(poll, counted)
    shares = [share.share for _, share in tally.options]
    assert shares[0] == 1
    assert shares[1] == pytest.approx((0.4 - 1 / (1 + math.e)) / math.tanh(0.5), abs=1e-6)
    assert tally.options[2][1].high == 1


def test_releases_leave_out_who_failed_a_check_only_where_the_poll_declared_it(hosted):
    """Six of ten pass; the release of the poll that declared it is of six voters and says so, the other of all."""
    for name, rule in (("strict", "left-out"), ("lenient", "counted")):
        asked = {"study": "kidney", "paradigm": "vlcp", "questions": [CHECK], "failed_checks": rule}
        hosted.store.polls.add(poll_from_dict({"name": name, **asked}))
        known = hosted.store.polls.known(name)
        for voter in range(10):
            body = {**ballot(known, 3), "about": {"blue": "blue" if voter < 6 else "red"}}
            headers = {"Crowdveil-Ballot": new_token()}
            sent = hosted.browser.put(f"/api/polls/{name}/ballot", content=json.dumps(body), headers=headers)
            assert sent.status_code == 201
    made = {
        name: make_release(hosted.store, name, date(2026, 3, 1), Epsilon(1)).read() for name in ("strict", "lenient")
    }
    assert {name: release.guarantee.voters for name, release in made.items()} == {"strict": 6, "lenient": 10}
    assert made["strict"].facts["selected_by"] == "attention checks passed"
    assert "selected_by" not in made["lenient"].facts
    told = {name: hosted.get(f"/r/{name}/").text for name in made}
    assert [name for name, page in told.items() if "Whoever failed an attention check is left out" in page] == [
        "strict"
    ]


def test_what_voters_said_of_themselves_is_tallied_and_corrected(hosted):
    """Two of three reports say young, at epsilon 1 with two options: 0.667 is (0.667 - 0.269) / 0.462 = 86 %."""
    question = {"id": "age", "text": {"en": "How <old>?"}, "options": [{"id": "young", "text": {"en": "Young"}}]}
    question["options"].append({"id": "old", "text": {"en": "Old"}})
    common = {"study": "kidney", "questions": [question]}
    hosted.store.polls.add(poll_from_dict({"name": "asked", "paradigm": "vldp", "about_epsilon": 1, **common}))
    page = hosted.get("/host/polls/asked").text
    assert "How &lt;old&gt;? (0 answered)" in page
    counted = [({"age": "young"}, 20), ({"age": "old"}, 10), ({}, 5)]
    (tally,) = about_tallies(hosted.store.polls.known("asked"), counted)
    assert tally.answered == 30
    words, share = tally.options[0]
    assert words == "Young"
    assert share.share == pytest.approx((2 / 3 - 1 / (1 + math.e)) / math.tanh(0.5), abs=1e-6)
    hosted.vote("asked", 6)
    stored = hosted.store.submissions.about_counts("asked")
    (tally,) = about_tallies(hosted.store.polls.known("asked"), stored)
    assert f"({tally.answered} answered)" in hosted.get("/host/polls/asked").text
    assert sum(times for _, times in stored) == 6


def test_one_voter_is_a_voter_on_every_page(hosted):
    for name, paradigm in (("central", "rlcp"), ("devices", "rldp")):
        hosted.store.polls.add(poll_from_dict({"name": name, "study": "fairness", "paradigm": paradigm, "quota": 1}))
        hosted.vote(name, 1)
        pages = {
            part: flat(hosted.get(f"/host/polls/{name}{part}").text) for part in ("", "/data", "/delete", "/recruit")
        }
        for told in pages.values():
            assert not re.search(r"\b1 (voters|reports|ballots|links|days|were|are)\b", told)
        assert "1 voter on 1 day, by level of privacy" in pages[""]
        assert "1 voter</dd>" in pages[""]
        assert ("the exact answers of 1 voter, who trusts you" in pages["/data"]) is (name == "central")
        assert ("1 report, with the noise" in pages["/data"]) is (name == "devices")


def test_one_feature_and_one_dilemma_are_counted_as_such(hosted):
    fact = {"name": "x", "low": 0, "high": 1, "levels": [0, 1]}
    drawing = {"method": "independent", "dilemmas": 1}
    study = {"name": "x", "title": "X", "question": "Which?", "drawing": drawing, "features": [fact]}
    hosted.store.polls.add(poll_from_dict({"name": "single", "study": study, "paradigm": "rlcp"}))
    assert "1 feature, 1 dilemma a voter" in flat(hosted.get("/host/polls/single").text)
