"""Polls that ask one dilemma twice, from votes through the API to a release that tells the reliability."""

import json
from dataclasses import replace
from datetime import date

import httpx
import numpy as np
import polars as pl
import pytest
from tests.client.running import voted

from crowdveil.client.voting import make_submission
from crowdveil.errors import CrowdveilError, Refusal
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.protocol.submission import (
    Repeat,
    check_ballot,
    mirrored,
    read_session,
    repeatable,
    split_repeat,
    write_ballot,
    write_session,
)
from crowdveil.service.host.data import table_of
from crowdveil.service.poll import poll_from_dict
from crowdveil.service.poll_release import make_effects, make_release
from crowdveil.sources.mapping import TableMapping
from crowdveil.sources.table import read_table
from crowdveil.study.bundled import load_study
from crowdveil.study.drawing import draw_session
from crowdveil.study.study import Study

PLAIN = load_study("kidney").as_dict()
STUDY = {**PLAIN, "repeat": True, "drawing": {**PLAIN["drawing"], "dilemmas": 5}}
POLLS = {
    "central": {"paradigm": "vlcp", "budget": 2},
    "score": {"paradigm": "rldp", "levels": {"balanced": "2"}},
    "choices": {"paradigm": "aldp", "mechanism": "randomised-response", "levels": {"balanced": "2"}},
}
VOTERS = 40


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    polls = [{"name": name, "study": STUDY, **given} for name, given in POLLS.items()]
    with voted(tmp_path_factory.mktemp("repeats"), polls, VOTERS) as voted_site:
        yield voted_site


def stored_ballots(store):
    return [one.records for batch in store.submissions.ballots("central") for one in batch]


def test_every_ballot_ends_with_one_of_its_first_dilemmas_mirrored(site):
    ballots = stored_ballots(site[0])
    for records in ballots:
        again = records[-1]
        first = records[again["repeats"]]
        assert len(records) == 6
        assert (again["left"], again["right"]) == (first["right"], first["left"])
    assert {records[-1]["repeats"] for records in ballots} == {0, 1, 2}  # missed once in 10^7


def test_a_crowd_of_ballots_knows_who_answered_alike_and_counts_no_answer_twice(site):
    crowd = site[0].submissions.crowd("central")
    assert crowd.counts.tolist() == [5] * VOTERS
    for records, alike in zip(stored_ballots(site[0]), crowd.alike.tolist(), strict=True):
        turned = {"left": "right", "right": "left"}[records[-1]["chosen"]]
        assert (alike == 1) == (records[records[-1]["repeats"]]["chosen"] == turned)


@pytest.mark.parametrize("name", list(POLLS))
def test_a_release_of_a_poll_tells_its_reliability(site, name):
    release = make_release(site[0], name, date(2026, 1, 2), Epsilon(1) if name == "central" else None).read()
    assert 0 <= release.reliability.low < release.reliability.high <= 1
    told = httpx.get(f"{site[2]}/api/polls/{name}/releases/current").json()
    assert told["reliability"] == release.reliability.as_dict()
    page = httpx.get(f"{site[2]}/r/{name}/", follow_redirects=True).text
    assert f"{round(100 * release.reliability.share)} of 100 answer it alike" in page


@pytest.mark.parametrize("name", list(POLLS))
def test_effects_of_a_poll_do_without_the_second_answers(site, name):
    made = make_effects(site[0], name, date(2026, 1, 2), None, Epsilon("0.5") if name == "central" else None).read()
    assert made.guarantee.voters == VOTERS
    assert all(-1 <= effect.low <= effect.high <= 1 for effect in made.effects.groups[0].effects)


@pytest.mark.parametrize("name", ["score", "choices"])
def test_reports_are_of_two_kinds(site, name):
    reports = [one.body for batch in site[0].submissions.reports(name) for one in batch]
    assert all((body["preference"] is None) != (body["alike"] is None) for body in reports)


def test_a_download_says_which_rows_are_second_answers_and_can_be_imported(site, tmp_path):
    store = site[0]
    table = table_of(store, store.polls.known("central"))
    assert table["repeat"].sum() == VOTERS
    table.write_csv(tmp_path / "ballots.csv")
    crowd = read_table(tmp_path / "ballots.csv", mapping=TableMapping(Study.from_dict(STUDY)))
    assert crowd.alike.tolist() == store.submissions.crowd("central").alike.tolist()


def test_a_download_of_reports_of_two_kinds_is_a_table(site):
    store = site[0]
    table = table_of(store, store.polls.known("score"))
    nobody = pl.repeat(None, len(table), eager=True, dtype=pl.Int64)  # once in 70 times no report is a bit
    bits = table.get_column("alike", default=nobody)
    assert set(bits.drop_nulls().to_list()) <= {1, -1}
    assert (bits.is_null() != table["records"].is_null()).all()


def answered(place=1, chosen="left"):
    study = Study.from_dict(STUDY)
    dilemmas = [study.dilemma([{"years_waiting": 1, **PATIENT}, {"years_waiting": 2 + n, **PATIENT}]) for n in range(5)]
    named = [
        replace(
            one,
            alternatives=tuple(replace(a, name=s) for a, s in zip(one.alternatives, ("left", "right"), strict=True)),
        )
        for one in dilemmas
    ]
    return study, write_ballot(study, named, ["left"] * 5, {}, Repeat(place, chosen)), named


PATIENT = {feature["name"]: feature["low"] for feature in STUDY["features"] if feature["name"] != "years_waiting"}


def checked(body, study):
    check_ballot({key: value for key, value in body.items() if key != "about"}, study)


def test_a_server_takes_one_declared_repeat_and_no_other():
    study, body, _ = answered()
    checked(json.loads(json.dumps(body)), study)
    *records, again = body["records"]
    for wrong in (
        records,
        [*records, {**again, "repeats": 0}],
        [*records, {**again, "repeats": 4}],
        [*records, {**again, "repeats": True}],
        [*records, {**again, "left": again["right"], "right": again["left"]}],
        [again, *records],
        [*records, again, again],
        [*records[:-1], again, again],
        [again],
    ):
        with pytest.raises(Refusal):
            checked({**body, "records": wrong}, study)
    plain = replace(study, repeat=False)
    with pytest.raises(Refusal):
        checked({**body, "study": plain.fingerprint}, plain)


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        ("left", "right", True),
        ("left", "left", False),
        ("neither", "neither", True),
        ("neither", "left", False),
        ("right", "neither", False),
    ],
)
def test_alike_is_the_same_outcome_not_the_same_side(first, second, alike):
    records = [{"chosen": first}, {"chosen": "left"}, {"chosen": second, "repeats": 0}]
    assert split_repeat(records) == (records[:2], alike)


def test_half_of_the_dilemmas_or_one_more_may_be_asked_again():
    study = Study.from_dict(STUDY)
    sizes = {n: repeatable(replace(study, drawing=replace(study.drawing, dilemmas=n))) for n in (2, 3, 4, 13)}
    assert sizes == {2: 1, 3: 2, 4: 2, 13: 7}
    _, _, dilemmas = answered()
    assert mirrored(mirrored(dilemmas[0])) == dilemmas[0]


def test_a_device_that_forgets_the_repeat_or_adds_one_sends_nothing(site):
    poll = site[1].poll("central")
    dilemmas = site[1].session(poll)
    given = poll.levels[0], {}, "A" * 22, BulkNoise()
    with pytest.raises(CrowdveilError, match="has one second answer"):
        make_submission(poll, dilemmas, ["left"] * 5, *given)
    with pytest.raises(CrowdveilError, match="a voter chose 'up'"):
        make_submission(poll, dilemmas, ["left"] * 5, *given, Repeat(0, "up"))
    plain = replace(poll, study=replace(poll.study, repeat=False))
    with pytest.raises(CrowdveilError, match="has no second answer"):
        make_submission(plain, dilemmas, ["left"] * 5, *given, Repeat(0, "left"))


@pytest.mark.parametrize("again", [mirrored, lambda dilemma: dilemma])
def test_a_repeat_that_a_server_draws_is_refused_where_one_is_declared(again):
    study = Study.from_dict(STUDY)
    dilemmas = draw_session(study, np.random.default_rng(1))
    read_session(study, write_session(dilemmas))
    with pytest.raises(CrowdveilError, match="more than once"):
        read_session(study, write_session([*dilemmas[:-1], again(dilemmas[0])]))
    with pytest.raises(CrowdveilError, match="the server drew 6 dilemmas"):
        read_session(study, write_session([*dilemmas, again(dilemmas[0])]))


def test_a_relay_carries_no_repeat():
    relay = {"url": "https://relay.example", "batch": 100}
    with pytest.raises(CrowdveilError, match="carries no report on a repeat"):
        poll_from_dict(
            {
                "name": "x",
                "study": STUDY,
                "paradigm": "vldp",
                "levels": {"one": "3"},
                "relay": relay["url"],
                "batch": 100,
            }
        )
