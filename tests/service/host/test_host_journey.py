"""A host's day: voters come, a release is looked at, paid for and made, data is downloaded, a voter withdraws."""

import csv
import io
import re

import numpy as np
import polars as pl
import pytest
from tests.service.host.website import CENTRAL, flat, website

from crowdveil.errors import Reason
from crowdveil.privacy.epsilon import Amount
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.ledger.entries import Charge, Crowd
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.protocol.report import read_reports
from crowdveil.protocol.submission import report_id
from crowdveil.releases import release_from_dict
from crowdveil.service.host.participation import REASONS
from crowdveil.service.poll import poll_from_dict
from crowdveil.service.store.submissions import Submissions
from crowdveil.sources.mapping import TableMapping
from crowdveil.sources.table import load_table
from crowdveil.study.bundled import load_study
from crowdveil.study.plain_data import canonical_json


def numbers(page):
    """The large numbers on top of a page, by their words."""
    return {
        re.sub(r"<[^>]+>", "", term).strip(): re.sub(r"<[^>]+>", "", value).strip()
        for term, value in re.findall(r"<dt>(.*?)</dt><dd[^>]*>(.*?)</dd>", flat(page))
    }


def release(site, poll, **fields):
    """Look first, then make the release, by the two pages' own forms."""
    looked = site.submit(f"/host/polls/{poll}/releases", f"/host/polls/{poll}/preview", **fields).text
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', looked.split('/release"')[1]))
    return site.post(f"/host/polls/{poll}/release", hidden)


def test_participation_is_shown_by_day_and_level(hosted):
    hosted.vote("untrusted", 6)
    hosted.later(2 * 86400)
    hosted.sign_in()
    hosted.vote("untrusted", 3, seed=2)
    page = hosted.get("/host/polls/untrusted").text
    assert numbers(page)["voters"] == "9"
    cells = r'(?:<td class="number">\d+</td>)*<td class="number">(\d+)</td></tr>'
    days = dict(re.findall(rf'<tr><th scope="row">(2026-\d\d-\d\d)</th>{cells}', flat(page)))
    assert days == {"2026-03-01": "6", "2026-03-02": "0", "2026-03-03": "3"}
    levels = r'<th scope="row">(strong|light)</th><td class="number">[^<]+</td><td class="number">(\d+)</td>'
    mix = {name: int(voters) for name, voters in re.findall(levels, flat(page))}
    assert "strong" in page
    assert page.count('<rect class="level-') >= 2
    assert sum(mix.values()) == 9
    assert hosted.get("/host/polls/untrusted/live").text.strip() in page


def test_refusals_are_counted_with_their_meaning(hosted):
    for body in ({"format": "?"}, {}):
        hosted.browser.put("/api/polls/untrusted/report", json=body, headers={"Crowdveil-Ballot": "A" * 22})
    hosted.vote("untrusted", 1)  # refusals are written with the next vote at the latest
    page = hosted.get("/host/polls/untrusted").text
    assert numbers(page)["refused"] == "2"
    assert REASONS["malformed"] in page


def test_every_reason_of_a_refused_vote_has_its_meaning():
    of_other_requests = {"unknown-poll", "unknown-release", "unknown-language", "nothing-stored", "not-found"}
    of_other_requests |= {"method-not-allowed", "wrong-dilemma", "bad-request", "internal", "unavailable"}
    of_other_requests |= {"batch-too-small", "bad-signature", "handed-over"}
    assert {reason.value for reason in Reason} - of_other_requests <= set(REASONS)


def test_a_distributed_release_costs_nothing_and_is_made_once(hosted):
    hosted.vote("untrusted", 8)
    page = release(hosted, "untrusted")
    (stored,) = hosted.store.releases.all("untrusted")
    assert page.url.path == f"/host/releases/{stored.id}"
    assert release(hosted, "untrusted").url.path == page.url.path
    reports = [report.body for batch in hosted.store.submissions.reports("untrusted") for report in batch]
    poll = hosted.store.polls.known("untrusted")
    expected = DISTRIBUTED[poll.mechanism].aggregate([read_reports(reports, poll.terms)], poll.settings)
    assert np.allclose(stored.read().parameter, expected.parameter)


def test_a_central_release_is_looked_at_then_charged(hosted):
    hosted.vote("trusted", 5)
    looked = hosted.submit("/host/polls/trusted/releases", "/host/polls/trusted/preview", epsilon="0.5").text
    assert numbers(looked)["cost in epsilon"] == "0.5"
    assert numbers(looked)["left afterwards"] == "1.5"
    # Algorithm 1: Laplace noise of scale 2 B / (N epsilon), beyond b ln 20 with probability 5 %.
    assert numbers(looked)["expected noise"] == f"± {2 * 2 / (5 * 0.5) * np.log(20):.3f}"
    assert hosted.store.releases.account("trusted").spent == Amount(0)
    made = release(hosted, "trusted", epsilon="0.5")
    account = hosted.store.releases.account("trusted")
    assert account.spent == Amount(500_000)
    assert [charge.release for charge in account.charges] == [made.url.path.rpartition("/")[2]]
    ledger = flat(hosted.get("/host/polls/trusted/releases").text)
    assert "1.5 of 2 are left" in ledger
    assert "vlcp algorithm-1" in ledger


def test_a_form_sent_twice_pays_once(hosted):
    hosted.vote("trusted", 3)
    looked = hosted.submit("/host/polls/trusted/releases", "/host/polls/trusted/preview", epsilon="0.5").text
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', looked.split('/release"')[1]))
    hosted.post("/host/polls/trusted/release", hidden)
    assert "in the meantime" in hosted.post("/host/polls/trusted/release", hidden, 400).text
    assert hosted.store.releases.account("trusted").spent == Amount(500_000)


@pytest.mark.parametrize("form", ["release", "effects"])
def test_a_form_that_another_process_pays_for_meanwhile_is_refused(hosted, monkeypatch, form):
    hosted.vote("trusted", 3)
    (token,) = set(re.findall(r'name="form_token" value="(\w+)"', hosted.get("/host/polls/trusted/releases").text))
    charge = Charge("", Crowd("", 3), Unit.VOTER, Amount(500_000), 1, "elsewhere")
    read = Submissions.crowd

    def pay_and_read(self, *given):
        hosted.store.releases.ledger("trusted", hosted.service.today()).charge(charge)
        return read(self, *given)

    monkeypatch.setattr(Submissions, "crowd", pay_and_read)
    fields = {"form_token": token, "epsilon": "0.5", "spent": "0"}
    assert "in the meantime" in hosted.post(f"/host/polls/trusted/{form}", fields, 400).text
    assert [paid.purpose for paid in hosted.store.releases.account("trusted").charges] == ["elsewhere"]


def test_more_than_the_budget_is_refused(hosted):
    hosted.vote("trusted", 3)
    looked = hosted.submit("/host/polls/trusted/releases", "/host/polls/trusted/preview", epsilon="3").text
    assert "does not cover it" in looked
    assert '/host/polls/trusted/release"' not in looked
    token = re.search(r'name="form_token" value="(\w+)"', looked)[1]
    forced = {"form_token": token, "epsilon": "3", "spent": "0"}
    assert "remaining 2" in hosted.post("/host/polls/trusted/release", forced, 400).text
    assert hosted.store.releases.account("trusted").charges == ()


@pytest.mark.parametrize("epsilon", ["", "abc", "-1", "nan", "1e999999"])
def test_what_is_no_epsilon_is_told_so(shared_hosted, epsilon):
    page, action = "/host/polls/trusted/releases", "/host/polls/trusted/preview"
    told = shared_hosted.submit(page, action, 400, epsilon=epsilon).text
    (words,) = re.findall(r'role="alert">(.*?)</p>', told)
    assert "epsilon" in words.lower()
    assert words.endswith(".")
    assert not words.endswith("..")


def test_a_release_needs_a_crowd(hosted):
    assert "at least 2" in hosted.submit("/host/polls/untrusted/releases", "/host/polls/untrusted/preview", 400).text


def test_a_release_is_shown_with_picture_and_table_and_no_style_of_its_own(hosted):
    hosted.vote("trusted", 5)
    made = release(hosted, "trusted", epsilon="1")
    page = made.text
    assert " style=" not in page
    assert page.count('role="img"') >= 3
    released = hosted.store.releases.all("trusted")[0].read()
    for feature in released.study.features:
        assert f"</span>{feature.label}" in page.replace("\n", "")
    downloaded = hosted.get(made.url.path + "/file")
    assert "attachment" in downloaded.headers["Content-Disposition"]
    assert release_from_dict(downloaded.json()).digest == released.digest


def test_the_host_marks_which_release_decisions_use(hosted):
    hosted.vote("trusted", 5)
    first = release(hosted, "trusted", epsilon="0.5").url.path.rpartition("/")[2]
    second = release(hosted, "trusted", epsilon="1").url.path.rpartition("/")[2]
    assert hosted.store.polls.get("trusted").current_release == second
    page = hosted.submit("/host/polls/trusted/releases", "/host/polls/trusted/mark", release=first)
    assert "the release that you have marked" in page.text
    assert hosted.get("/api/polls/trusted").json()["release"] == first
    page = hosted.submit("/host/polls/trusted/releases", "/host/polls/trusted/mark", release="")
    assert "Decisions use the newest release" in page.text
    assert hosted.get("/api/polls/trusted").json()["release"] == second
    other = hosted.submit("/host/polls/trusted/releases", "/host/polls/trusted/mark", 400, release="0" * 64)
    assert "has no release" in other.text


def test_two_releases_are_compared(hosted):
    hosted.vote("trusted", 5)
    first = release(hosted, "trusted", epsilon="0.5").url.path.rpartition("/")[2]
    second = release(hosted, "trusted", epsilon="1").url.path.rpartition("/")[2]
    page = hosted.get(f"/host/polls/trusted/compare?first={first}&second={second}").text
    one, other = (hosted.store.releases.get(id).read() for id in (first, second))
    moved = np.abs(one.parameter - other.parameter) > one.error_bars + other.error_bars
    assert page.count('class="moved"') == moved.sum()
    for feature in one.study.features:
        assert f'<th scope="row">{feature.label}</th>' in page
    assert "different" not in page
    hosted.get(f"/host/polls/untrusted/compare?first={first}&second={second}", 400)
    hosted.get(f"/host/polls/trusted/compare?first={first}&second=nothing", 404)


def test_ballots_are_downloaded_as_the_import_reads_them(hosted, tmp_path):
    hosted.vote("trusted", 4)
    crowd = hosted.store.submissions.crowd("trusted")
    for ending in ("csv", "parquet"):
        answer = hosted.get(f"/host/polls/trusted/data/ballots.{ending}")
        path = tmp_path / f"ballots.{ending}"
        path.write_bytes(answer.content)
        imported = load_table(path, TableMapping(load_study("kidney")))
        assert imported.report.refused == {}
        assert imported.ballots.voters == 4
        assert sorted(map(tuple, imported.ballots.differences.tolist())) == sorted(
            map(tuple, crowd.differences.tolist())
        )
    table = pl.read_parquet(tmp_path / "ballots.parquet")
    assert set(table["about_age"].unique()) <= {"young", "old", None}


def test_reports_are_downloaded_as_they_were_sent(hosted):
    tokens = hosted.vote("untrusted", 3)
    rows = list(csv.DictReader(io.StringIO(hosted.get("/host/polls/untrusted/data/reports.csv").text)))
    assert {row["report"] for row in rows} == {report_id(token) for token in tokens}
    stored = {report.id: report.body for batch in hosted.store.submissions.reports("untrusted") for report in batch}
    for row in rows:  # Every number of a report is a column.
        body = stored[row["report"]]
        sent = {key: part for key, part in body.items() if isinstance(part, list)}
        assert sent
        for key, part in sent.items():
            assert [float(row[f"{key}_{place}"]) for place in range(1, len(part) + 1)] == part
        assert float(row["epsilon"]) == body["epsilon_micro"] / 1e6
    table = pl.read_parquet(io.BytesIO(hosted.get("/host/polls/untrusted/data/reports.parquet").content))
    assert table["report"].to_list() == [row["report"] for row in rows]


@pytest.mark.parametrize("file", ["ballots.csv", "reports.xlsx", "reports", "x.csv"])
def test_a_distributed_poll_has_no_ballots(shared_hosted, file):
    shared_hosted.get(f"/host/polls/untrusted/data/{file}", 404)


def test_nothing_can_be_downloaded_before_somebody_came(hosted):
    assert "nobody has taken part" in hosted.get("/host/polls/trusted/data/ballots.csv", 400).text.lower()


def test_a_withdrawal_deletes_by_report_id_or_token(hosted):
    by_id, by_token = hosted.vote("trusted", 2)
    page, action = "/host/polls/trusted/data", "/host/polls/trusted/withdraw"
    assert "is gone" in hosted.submit(page, action, report=report_id(by_id)).text
    assert "is gone" in hosted.submit(page, action, report=by_token).text
    assert hosted.store.polls.get("trusted").participants == 0
    assert "nothing is stored" in hosted.submit(page, action, 400, report=by_token).text.lower()
    assert "32 digits" in hosted.submit(page, action, 400, report="?").text
    again = hosted.browser.put("/api/polls/trusted/ballot", json={}, headers={"Crowdveil-Ballot": by_token})
    assert again.status_code >= 400


def test_what_is_deleted_is_overwritten_on_disk(tmp_path):
    with website(tmp_path) as site:
        site.vote("trusted", 5)
        ids = [ballot.id for batch in site.store.submissions.ballots("trusted") for ballot in batch]
        shown = {
            ballot.id: canonical_json(ballot.records)
            for batch in site.store.submissions.ballots("trusted")
            for ballot in batch
        }
        assert site.store.submissions.withdraw("trusted", ids[2])
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert [answers.encode()[:400] in held for answers in map(shown.get, ids)] == [True, True, False, True, True]


def test_more_links_than_the_poll_takes_voters_are_warned_of(hosted):
    hosted.store.polls.add(poll_from_dict({**CENTRAL, "name": "small", "quota": 4}))
    hosted.store.submissions.create_links("small", 4)
    page = flat(hosted.get("/host/polls/small/recruit").text)
    assert "the poll takes 4 voters" in page
    assert "than the poll takes voters" not in page
    hosted.store.submissions.create_links("small", 1)
    page = flat(hosted.get("/host/polls/small/recruit").text)
    assert "1 more link was made than the poll takes voters" in page


def test_links_are_shown_once_and_their_tokens_are_not_kept(hosted):
    answer = hosted.submit("/host/polls/trusted/recruit", "/host/polls/trusted/links", number="5")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == 5
    tokens = [row["link"].removeprefix("http://crowd.example/p/trusted/#ballot=") for row in rows]
    assert [row["report"] for row in rows] == [report_id(token) for token in tokens]
    page = flat(hosted.get("/host/polls/trusted/recruit").text)
    assert "5 were made so far" in page
    assert CENTRAL["completion_code"] in page
    with hosted.store.database.engine.connect() as connection:
        held = str(connection.exec_driver_sql("SELECT * FROM link").all())
    assert not any(token in held for token in tokens)
    for number in ("0", "-1", "10001", "many", "", "9" * 5000):
        hosted.submit("/host/polls/trusted/recruit", "/host/polls/trusted/links", 400, number=number)


def test_a_poll_is_closed_and_opened_again(hosted):
    hosted.submit("/host/polls/untrusted", "/host/polls/untrusted/close")
    assert hosted.get("/api/polls/untrusted").json()["state"] == "closed"
    assert "Close the poll" in hosted.submit("/host/polls/untrusted", "/host/polls/untrusted/open").text
    assert hosted.get("/api/polls/untrusted").json()["state"] == "open"


def test_a_page_from_before_the_answers_were_destroyed_does_not_open_the_poll(site):
    site.later(11 * 3600)  # To 23:00 UTC.
    site.sign_in()
    brief = {**CENTRAL, "name": "brief", "entry": "open", "destroy_on": "2026-03-02"}
    site.store.polls.add(poll_from_dict(brief), pilot=True)
    site.vote("brief", 1)
    site.store.polls.close("brief")
    token = re.search(r'name="form_token" value="(\w+)"', site.get("/host/polls/brief").text)[1]
    site.later(2 * 3600)
    site.store.polls.destroy_answers(site.service.today())
    refused = site.post("/host/polls/brief/open", {"form_token": token}, 400)
    assert "were destroyed on 2026-03-02" in refused.text
    assert site.get("/api/polls/brief").json()["state"] == "closed"
    assert "on trial" not in site.get("/host/").text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing was given"),
        ("= = =", "not TOML"),
        ("name = 'x'\nstudy = '/etc/passwd'", "cannot name the file"),
        ("name = 'X Y'\nstudy = 'kidney'", "poll name"),
        ("name = 'x'\nstudy = 'kidney'\ncolour = 1", "unknown setting"),
        ("name = 'x'\nstudy = 'kidney'\nparadigm = 'none'", "no paradigm"),
        ("name = 'x'\n[study]\nname = 'y'\ndrawing = 3", "study"),
        ("<script>alert(1)</script>", "not TOML"),
    ],
)
def test_a_wrong_file_is_told_so(shared_hosted, text, said):
    answer = shared_hosted.submit("/host/new/file", "/host/new/file", 400, text=text)
    assert said.lower() in answer.text.lower()
    assert "<script>alert" not in answer.text


def test_a_file_that_is_too_large_or_no_text_is_refused(hosted):
    token = re.search(r'name="form_token" value="(\w+)"', hosted.get("/host/new").text)[1]
    hosted.post("/host/new/file", {"form_token": token}, 400, files={"file": ("a.toml", b"\xff\xfe")})
    hosted.post("/host/new/file", {"form_token": token}, 413, files={"file": ("a.toml", b"#" * (1 << 20))})


def test_what_is_not_there_is_told_so(hosted):
    assert "there is no poll" in hosted.get("/host/polls/nothing", 404).text.lower()
    assert "there is no release" in hosted.get(f"/host/releases/{'0' * 64}", 404).text.lower()


def test_pages_load_nothing_from_elsewhere_and_run_nothing_inline(hosted):
    hosted.vote("trusted", 3)
    made = release(hosted, "trusted", epsilon="1").url.path
    pages = ["/host/", "/host/polls/trusted", "/host/polls/trusted/releases", made, "/host/new", "/host/password"]
    for path in pages:
        answer = hosted.get(path)
        assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Cache-Control"] == "no-store"
        assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|<style|\sstyle=", answer.text), path
        assert all(found.startswith(("/", "#")) for found in re.findall(r'(?:src|href)="([^"]*)"', answer.text)), path
