"""Downloads come with a codebook, and with labels that R and SPSS read."""

import csv
import io
import re
from html import unescape

from crowdveil.service.poll_file import poll_from_dict

ODD = {"id": "odd", "text": 'It\'s "odd"?', "options": [{"id": "a", "text": "yes, it's"}, {"id": "b", "text": "no"}]}


def codebook_of(site, poll, kind):
    text = site.get(f"/host/polls/{poll}/data/{kind}-codebook.csv").text
    return {row["column"]: row for row in csv.DictReader(io.StringIO(text))}


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
