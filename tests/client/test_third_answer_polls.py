"""Polls that allow a third answer, from votes through the API to a release that decides."""

import json
from collections import Counter
from dataclasses import replace
from datetime import date

import pytest
from tests.client.running import voted

from crowdveil.decision import decide
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.protocol.description import check_mechanism
from crowdveil.service.poll import poll_from_dict
from crowdveil.service.poll_release import make_release
from crowdveil.study.bundled import load_study

STUDY = replace(load_study("kidney"), indifference="Toss a coin").as_dict()
STUDY["drawing"]["dilemmas"] = 6
POLLS = {
    "central": {"paradigm": "vlcp", "budget": 2},
    "one-bit": {"paradigm": "vldp", "levels": {"balanced": "2"}},
    "score": {"paradigm": "rldp", "levels": {"balanced": "2"}},
    "answers": {"paradigm": "aldp", "levels": {"balanced": "2"}},
}
VOTERS = 30


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    polls = [{"name": name, "study": STUDY, **given} for name, given in POLLS.items()]
    with voted(tmp_path_factory.mktemp("third"), polls, VOTERS) as voted_site:
        yield voted_site


def test_exact_answers_hold_neither(site):
    ballots = [one for batch in site[0].submissions.ballots("central") for one in batch]
    chosen = Counter(record["chosen"] for one in ballots for record in one.records)
    assert set(chosen) == {"left", "right", "neither"}
    assert sum(chosen.values()) == VOTERS * STUDY["drawing"]["dilemmas"]


@pytest.mark.parametrize("name", ["one-bit", "score"])
def test_reports_are_of_two_kinds(site, name):
    reports = [one.body for batch in site[0].submissions.reports(name) for one in batch]
    assert all((body["preference"] is None) != (body["indifferent"] is None) for body in reports)
    assert {"preference", "indifferent"} <= set(reports[0])


@pytest.mark.parametrize("name", list(POLLS))
def test_a_release_of_a_poll_tells_its_threshold(site, name):
    store, client, _ = site
    release = make_release(store, name, date(2026, 1, 2), Epsilon(1) if name == "central" else None).read()
    assert release.indifference.low <= release.indifference.tau <= release.indifference.high
    asked = [{"life_years_gained": 25, "years_waiting": 1}, {"life_years_gained": 5, "years_waiting": 7}]
    told = client.decide(asked, poll=name)
    here = decide(release, asked)
    assert told.probabilities == pytest.approx(here.probabilities)
    assert told.choice == here.choice
    assert json.loads(json.dumps(told.as_dict()))["toss_a_coin"] == here.coin


def test_a_device_refuses_a_mechanism_without_a_place_for_neither(site):
    poll = site[1].poll("answers")
    with pytest.raises(CrowdveilError, match="which one-choice cannot carry"):
        check_mechanism(replace(poll, mechanism="one-choice"))


def test_where_people_have_to_choose_neither_is_refused(site):
    poll = site[1].poll("answers")
    forced = replace(poll, study=replace(poll.study, indifference=None))
    with pytest.raises(CrowdveilError, match="a voter chose 'neither': choose 'left' or 'right'"):
        site[1].submission(forced, lambda dilemma: "neither")


def test_a_poll_with_such_a_mechanism_cannot_be_made():
    with pytest.raises(CrowdveilError, match="which algorithm-2 cannot carry"):
        poll_from_dict({"name": "x", "study": STUDY, "paradigm": "vldp", "mechanism": "algorithm-2"})
