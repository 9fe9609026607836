"""Downloads come with a codebook, and with labels that R and SPSS read."""

import csv
import io
import json
import re
from html import unescape

import polars as pl
from tests.kinds_of_question import CHECK, NOISY, TEXT
from tests.service.voters import ballot

from crowdveil.protocol.submission import new_token
from crowdveil.service.poll import poll_from_dict

ODD = {"id": "odd", "text": 'It\'s "odd"?', "options": [{"id": "a", "text": "yes, it's"}, {"id": "b", "text": "no"}]}


def codebook_of(site, poll, kind):
    text = site.get(f"/host/polls/{poll}/data/{kind}-codebook.csv").text
    return {row["column"]: row for row in csv.DictReader(io.StringIO(text))}


def cast(site, poll, about):
    """Send a ballot with these answers to about-you questions."""
    body = {**ballot(site.store.polls.known(poll), 2), "about": about}
    headers = {"Crowdveil-Ballot": new_token()}
    sent = site.browser.put(f"/api/polls/{poll}/ballot", content=json.dumps(body), headers=headers)
    assert sent.status_code == 201, sent.text


def header_of(site, poll, kind):
    return next(csv.reader(io.StringIO(site.get(f"/host/polls/{poll}/data/{kind}.csv").text)))


def test_every_column_of_a_download_is_in_its_codebook(shared_hosted):
    for poll, kind in (("trusted", "ballots"), ("untrusted", "reports")):
        book = codebook_of(shared_hosted, poll, kind)
        assert list(book) == header_of(shared_hosted, poll, kind)
        assert all(row["label"] for row in book.values())
    ballots = codebook_of(shared_hosted, "trusted", "ballots")
    assert ballots["about_age"]["values"] == "young = young; old = old"
    assert ballots["left_life_years_gained"]["label"] == "Left outcome: years of life gained (per 10)"
    assert ballots["left_life_years_gained"]["note"] == "from 0 to 30, unit 10"


def test_noise_on_answers_about_voters_is_told(hosted):
    noisy = {"name": "noisy", "study": "fairness", "paradigm": "rldp", "questions": [ODD], "about_epsilon": "0.5"}
    hosted.store.polls.add(poll_from_dict(noisy))
    hosted.vote("noisy", 3)
    row = codebook_of(hosted, "noisy", "reports")["about_odd"]
    assert row["note"] == "replaced at random on the device, epsilon 0.5"
    assert row["values"] == "a = yes, it's; b = no"
    r = hosted.get("/host/polls/noisy/data/reports-labels.R").text
    assert 'attr(data[["about_odd"]], "label") <- "It\'s \\"odd\\"?"' in r
    assert 'levels = c("a", "b"), labels = c("yes, it\'s", "no"))' in r
    assert 'read.csv("noisy-reports.csv"' in r
    spss = hosted.get("/host/polls/noisy/data/reports-labels.sps").text
    assert "/about_odd 'It''s \"odd\"?'" in spss
    assert "'a' 'yes, it''s' 'b' 'no'" in spss


def test_answers_of_every_kind_have_columns_that_say_what_they_are(hosted):
    asked = {"name": "kinds", "study": "fairness", "paradigm": "rlcp", "questions": [*NOISY, TEXT, CHECK]}
    hosted.store.polls.add(poll_from_dict(asked))
    cast(hosted, "kinds", {"travel": ["foot"], "years": 28, "trust": 5, "why": "=1+1", "blue": "blue"})
    cast(hosted, "kinds", {"travel": [], "years": 88})
    rows = list(csv.DictReader(io.StringIO(hosted.get("/host/polls/kinds/data/ballots.csv").text)))
    told = ("ticked_travel.bus", "ticked_travel.foot", "about_years", "about_trust", "about_why", "failed_checks")
    assert sorted({tuple(row[name] for name in told) for row in rows}) == [
        ("0", "0", "88", "", "", "1"),
        ("0", "1", "28", "5", "'=1+1", "0"),
    ]
    table = pl.read_parquet(io.BytesIO(hosted.get("/host/polls/kinds/data/ballots.parquet").content))
    assert "=1+1" in table["about_why"].to_list()
    assert (table.schema["about_years"], table.schema["ticked_travel.foot"]) == (pl.Int64, pl.Int8)
    book = codebook_of(hosted, "kinds", "ballots")
    assert list(book) == header_of(hosted, "kinds", "ballots")
    assert (book["ticked_travel.foot"]["label"], book["ticked_travel.foot"]["values"]) == (
        "How do you travel?: On foot",
        "0 = no; 1 = yes",
    )
    assert book["about_years"]["note"] == "from 18 to 97, the first of a range of 10"
    assert book["about_trust"]["values"] == "1 = never; 5 = any day"
    r = hosted.get("/host/polls/kinds/data/ballots-labels.R").text
    assert 'attr(data[["about_trust"]], "labels") <- c("never" = 1, "any day" = 5)' in r
    assert 'data[["ticked_travel.foot"]] <- factor(' in r
    spss = hosted.get("/host/polls/kinds/data/ballots-labels.sps").text
    assert "/about_trust 1 'never' 5 'any day'" in spss
    assert "/ticked_travel.foot 0 'no' 1 'yes'" in spss
    assert "    about_why A4000" in spss


def test_of_several_noisy_answers_the_option_and_its_tick_have_a_column_each(hosted):
    asked = {"name": "ticks", "study": "fairness", "paradigm": "rldp", "questions": NOISY, "about_epsilon": 1}
    hosted.store.polls.add(poll_from_dict(asked))
    hosted.vote("ticks", 5)
    rows = list(csv.DictReader(io.StringIO(hosted.get("/host/polls/ticks/data/reports.csv").text)))
    assert {row["about_travel"] for row in rows} <= {"bus", "foot", "bike"}
    assert {row["ticked_travel"] for row in rows} <= {"0", "1"}
    assert all(int(row["about_years"]) in range(18, 98, 10) for row in rows)
    book = codebook_of(hosted, "ticks", "reports")
    assert list(book) == header_of(hosted, "ticks", "reports")
    assert book["about_travel"]["note"] == "the device draws one option at random, and reports on that one only"
    assert book["ticked_travel"]["note"] == "replaced at random on the device, epsilon 1"


def test_names_are_such_as_spss_takes(shared_hosted):
    spss = shared_hosted.get("/host/polls/trusted/data/ballots-labels.sps").text
    names = re.findall(r"^    (\S+) (?:A255|F17.8|SDATE10)", spss, re.MULTILINE)
    assert len(names) == len(header_of(shared_hosted, "trusted", "ballots"))
    assert all(re.fullmatch(r"[A-Za-z]\w*", name) for name in names)


def test_a_host_recruits_by_address_qr_code_and_links_of_services(shared_hosted):
    page = unescape(shared_hosted.get("/host/polls/untrusted/recruit").text)
    assert "http://crowd.example/p/untrusted/?PROLIFIC_PID={{%PROLIFIC_PID%}}" in page
    assert "workerId=${workerId}" in page
    assert "Voters come without https" in page
    drawn = shared_hosted.get("/host/polls/untrusted/qr.svg")
    assert drawn.headers["Content-Type"] == "image/svg+xml"
    assert b"<svg" in drawn.content
