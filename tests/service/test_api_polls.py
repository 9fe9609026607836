"""What a voter's page is told before anybody answers."""

from __future__ import annotations

import re
import struct
from html import escape

import numpy as np
import pytest
from fastapi.testclient import TestClient
from tests.service.voters import poll

from crowdveil.estimation.record_axes import record_axes
from crowdveil.protocol.voters_page import voters_page
from crowdveil.service.poll import poll_from_dict
from crowdveil.service.service import Service
from crowdveil.study.bundled import load_study
from crowdveil.study.translations import INTERFACE_LANGUAGES


def test_polls_are_listed(client: TestClient, service: Service) -> None:
    assert client.get("/api/polls").json() == {"polls": []}
    service.store.polls.add(poll("b"))
    service.store.polls.add(poll("a", "vlcp"))
    service.store.polls.close("b")
    title = poll().study.title
    assert client.get("/api/polls").json()["polls"] == [
        {"id": "a", "title": title, "state": "open", "paradigm": "vlcp", "release": None},
        {"id": "b", "title": title, "state": "closed", "paradigm": "rldp", "release": None},
    ]


def test_a_distributed_poll_is_described(client: TestClient, service: Service) -> None:
    service.store.polls.add(poll(study="moral-machine"))
    told = client.get("/api/polls/p").json()
    study = poll(study="moral-machine").study
    assert told["study"] == study.as_dict()
    assert told["study_fingerprint"] == study.fingerprint
    assert (told["unit"], told["place"], told["mechanism"]) == ("record", "distributed", "score")
    assert (told["scene"], told["entry"], told["budget"]) == ("road", "open", None)
    assert told["languages"] == list(INTERFACE_LANGUAGES)
    assert [level["epsilon_micro"] for level in told["levels"]] == [500_000, 1_000_000, 2_000_000]
    np.testing.assert_array_equal(told["method"]["axes"], record_axes(study).axes)
    assert (told["method"]["norm_bound"], told["method"]["record_bound"]) == (study.norm_bound, study.record_bound)
    assert [factor["name"] for factor in told["factors"]] == [factor.name for factor in study.factors]
    np.testing.assert_allclose([factor["step"] for factor in told["factors"]], study.pole_steps, atol=1e-9)


def test_a_central_poll_is_described(client: TestClient, service: Service) -> None:
    service.store.polls.add(poll(paradigm="vlcp", budget=3))
    told = client.get("/api/polls/p").json()
    assert told["budget"] == {"epsilon_micro": 3_000_000}
    assert [(level["epsilon_micro"], level["size"]) for level in told["levels"]] == [(3_000_000, None)]
    assert (told["scene"], told["method"]["axes"]) == ("cards", None)


def test_words(client: TestClient, service: Service) -> None:
    service.store.polls.add(poll(study="moral-machine"))
    arabic = client.get("/api/polls/p/words/ar").json()
    assert (arabic["language"], arabic["direction"]) == ("ar", "rtl")
    assert set(arabic["features"]) == set(poll(study="moral-machine").study.feature_names)
    assert arabic["factors"]["species"]["poles"] == ["حيوانات أليفة", "بشر"]
    missing = client.get("/api/polls/p/words/tlh")
    assert (missing.status_code, missing.json()["error"]["reason"]) == (404, "unknown-language")


def test_a_session_is_drawn_anew(client: TestClient, service: Service) -> None:
    service.store.polls.add(poll(study="moral-machine"))
    first, second = (client.get("/api/polls/p/session").json()["dilemmas"] for _ in range(2))
    study = poll(study="moral-machine").study
    assert len(first) == len(second) == study.drawing.dilemmas
    assert first != second
    for dilemma in first:
        for side in ("left", "right"):
            pairs = zip(dilemma[side], study.features, strict=True)
            assert all(feature.low <= value <= feature.high for value, feature in pairs)


@pytest.mark.parametrize("told", [{"step": "sent"}, {"step": "half", "choice": "left"}, {}, "half", {"step": 1}])
def test_nothing_but_the_name_of_a_step_is_counted(client: TestClient, service: Service, told: object) -> None:
    service.store.polls.add(poll())
    refused = client.post("/api/polls/p/steps", json=told)
    assert (refused.status_code, refused.json()["error"]["reason"]) == (422, "malformed")
    assert client.post("/api/polls/p/steps", json={"step": "half"}).status_code == 204
    assert service.store.steps.reached("p", service.today()) == {"half": 1}
    nowhere = client.post("/api/polls/nobody/steps", json={"step": "half"})
    assert (nowhere.status_code, nowhere.json()["error"]["reason"]) == (404, "unknown-poll")


def test_an_unknown_poll(client: TestClient) -> None:
    for path in ("", "/words/en", "/session"):
        answer = client.get(f"/api/polls/nobody{path}")
        assert (answer.status_code, answer.json()["error"]["reason"]) == (404, "unknown-poll")


@pytest.mark.parametrize("typed", ["/host", "/p/a", "/p/a?lang=de", "/r/a", "/r/a?lang=de", "/r/a/0123", "/r/%3Fx"])
def test_an_address_without_its_slash_leads_to_the_page(client: TestClient, typed: str) -> None:
    went = client.get(typed, follow_redirects=False)
    path, ask, query = typed.partition("?")
    assert (went.status_code, went.headers["location"]) == (307, f"{path}/{ask}{query}")


def test_a_host_who_types_the_address_without_its_slash_can_sign_in(client: TestClient) -> None:
    arrived = client.get("/host")
    assert (arrived.status_code, arrived.url.path) == (200, "/host/sign-in")


@pytest.mark.parametrize("typed", ["/p", "/r/", "/host/nowhere", "/host/polls/a/", "/nowhere"])
def test_a_person_at_a_wrong_address_sees_a_page_and_a_program_the_reason(client: TestClient, typed: str) -> None:
    seen = client.get(typed, headers={"Accept": "text/html,*/*;q=0.8", "Accept-Language": "de"})
    assert (seen.status_code, seen.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert seen.headers["content-language"] == "de"
    assert 'href="/"' in seen.text
    for told in (client.get(typed), client.get(f"/api{typed}", headers={"Accept": "text/html"}), client.put(typed)):
        assert told.json()["error"]["reason"] in ("not-found", "method-not-allowed")


def test_the_front_door(client: TestClient, service: Service) -> None:
    assert "no poll yet" in client.get("/").text
    service.store.polls.add(poll("a"))
    went = client.get("/", follow_redirects=False)
    assert (went.status_code, went.headers["location"]) == (307, "/p/a/")
    assert client.get("/p/a", follow_redirects=False).headers["location"] == "/p/a/"
    assert "<main" in client.get("/p/a/").text
    for path in ("/p/nobody", "/p/nobody/", "/p/%22%3E%3Cscript%3E"):
        missing = client.get(path)
        assert (missing.status_code, missing.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert missing.content == voters_page().html()  # It looks the poll up, and says that there is none.
        assert all(one in missing.headers["content-security-policy"] for one in voters_page().inside())
    service.store.polls.add(poll("b"))
    assert 'href="/p/b/"' in client.get("/").text


def test_static_modules_are_compressed_and_checked_before_use(client: TestClient) -> None:
    page = client.get("/web/index.html")
    assert page.headers["cache-control"] == "no-cache"
    again = client.get("/web/index.html", headers={"If-None-Match": page.headers["etag"]})
    assert again.status_code == 304
    assert client.get("/web/index.html", headers={"Accept-Encoding": "gzip"}).headers["content-encoding"] == "gzip"
    assert client.get("/web/../service/app.py").status_code == 404


def test_the_page_names_its_modules_by_their_content_and_browsers_keep_them_for_ever(
    client: TestClient, service: Service
) -> None:
    service.store.polls.add(poll("a"))
    shipped = voters_page()
    html = client.get("/p/a/").text
    named = re.findall(r'(?:href|src)="\.\./\.\./web/([^"]+)"', html)
    assert len(named) > 40
    for address in named:
        digest, _, path = address.partition("/")
        assert digest == shipped.digest
        answer = client.get(f"/web/{address}", headers={"Accept-Encoding": "gzip"})
        assert answer.content == shipped.files[path]
        assert answer.headers["content-encoding"] == "gzip"
        assert "immutable" in answer.headers["cache-control"]
        assert "max-age=31536000" in answer.headers["cache-control"]
    plain = client.get(shipped.address("main.js"), headers={"Accept-Encoding": "identity"})
    assert (plain.content, plain.headers.get("content-encoding")) == (shipped.files["main.js"], None)
    assert client.get(f"/web/{'0' * 20}/main.js").status_code == 404
    assert client.get(shipped.address("nothing.js")).status_code == 404


def test_the_page_itself_is_asked_for_each_time_and_comes_once(client: TestClient, service: Service) -> None:
    service.store.polls.add(poll("a"))
    page = client.get("/p/a/")
    assert page.headers["cache-control"] == "no-cache"
    assert client.get("/p/a/", headers={"If-None-Match": page.headers["etag"]}).status_code == 304
    missing = client.get("/p/nobody/", headers={"If-None-Match": page.headers["etag"]})
    assert (missing.status_code, missing.content) == (404, voters_page().html())


def test_other_websites_show_a_poll_by_its_title_its_question_and_a_picture(
    client: TestClient, service: Service
) -> None:
    study = {**load_study("kidney").as_dict(), "title": 'One <kidney> & "two"'}
    service.store.polls.add(poll_from_dict({"name": "shared", "study": study}))
    html = client.get("/p/shared/").text
    tags = dict(re.findall(r'<meta (?:property|name)="([\w:]+)" content="([^"]*)">', html))
    assert tags["og:title"] == "One &lt;kidney&gt; &amp; &quot;two&quot;"
    assert tags["og:description"] == tags["description"] == escape(study["question"])
    assert tags["og:url"] == "http://crowdveil.test/p/shared/"
    assert tags["twitter:card"] == "summary_large_image"
    assert f"<title>{tags['og:title']}</title>" in html
    picture = client.get(tags["og:image"].removeprefix("http://crowdveil.test"))
    assert picture.headers["content-type"] == "image/png"
    size = struct.unpack(">II", picture.content[16:24])
    assert size == (int(tags["og:image:width"]), int(tags["og:image:height"])) == (1200, 630)
    assert client.get("/p/nobody/picture.png").status_code == 404


def test_what_a_poll_says_of_itself_is_compressed(client: TestClient, service: Service) -> None:
    service.store.polls.add(poll("a"))
    answer = client.get("/api/polls/a", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in client.get("/api/openapi.json", headers={"Accept-Encoding": "gzip"}).headers


@pytest.mark.parametrize(
    ("accepted", "compressed"),
    [
        *[(told, True) for told in ("gzip", "deflate, GZIP;q=0.001", "br;q=1.0, *;q=0.5", "*", "*;q=0, gzip")],
        *[(told, False) for told in ("identity, gzip;q=0", "gzip ; Q=0.000, *", "br", "x-gzip2", "*;q=0", "")],
    ],
)
def test_only_clients_that_accept_it_get_a_compressed_answer(
    client: TestClient, service: Service, accepted: str, compressed: bool
) -> None:
    service.store.polls.add(poll("a"))
    for path in ("/p/a/", voters_page().address("main.js"), "/web/main.js", "/api/polls/a"):
        headers = client.get(path, headers={"Accept-Encoding": accepted}).headers
        assert headers.get("content-encoding") == ("gzip" if compressed else None), path
        assert headers["vary"] == "Accept-Encoding"
