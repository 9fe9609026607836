"""A voter in a real browser behind a relay: what is sealed, who learns what, and which keys the page refuses."""

import json
from urllib.parse import urlsplit

import pytest
from tests.relay.conftest import running_pair
from tests.web.page.test_files import INTERFACE_LANGUAGES

from crowdveil.protocol.relay import SEALED_LENGTH, address_fragment
from crowdveil.study.bundled import load_study
from crowdveil.study.plain_data import canonical_json


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A host and a relay, with a poll by links of three dilemmas and batches of two."""
    folder = tmp_path_factory.mktemp("relay")
    study = load_study("kidney").as_dict()
    study["drawing"]["dilemmas"] = 3
    addresses = [f"sqlite:///{folder / name}.sqlite" for name in ("host", "relay")]
    with running_pair(*addresses, batch=2, study=study, entry="links") as made:
        yield made


@pytest.fixture
def open_link(browser, devices, pair):
    """Open the page of a voter with a link of the relay's, or with what stands behind the # instead."""
    voters = []

    def begin(fragment=None, path="", token=None, **options):
        voter = devices.lend(browser, "", options)
        voters.append(voter)
        token = token or pair.relay.create_links(pair.name, 1)[0]
        key = pair.host.batches.key(pair.poll).configuration.fingerprint
        behind = address_fragment(key, token) if fragment is None else fragment.format(key=key, token=token)
        voter.open(f"{pair.host_url}/p/{pair.name}/{path}#{behind}")
        return voter, token

    yield begin
    for voter in voters:
        devices.take_back(voter)


def test_a_report_is_sealed_sent_to_the_relay_and_opened_by_the_host(open_link, pair):
    voter, token = open_link()
    assert token not in voter.page.url
    voter.to_review()
    voter.page.locator(".sent summary").click()
    shown = json.loads(voter.page.locator(".sent pre").inner_text())
    before = voter.page.locator("main").inner_text()
    assert "sent to the relay" in before
    assert "After that nobody can find it any more, not even you." in before
    voter.press_primary()
    voter.done()
    assert "The relay has your report" in voter.page.locator("main").inner_text()
    (sent,) = [request for request in voter.requests if request.method == "PUT"]
    assert sent.url == f"{pair.relay_url}/api/polls/{pair.name}/report"
    assert sent.headers["crowdveil-ballot"] == token
    assert len(sent.post_data_buffer) == SEALED_LENGTH
    to_host = [request for request in voter.requests if request.url.startswith(pair.host_url)]
    assert to_host
    for request in to_host:
        assert "crowdveil-ballot" not in request.headers
        assert token not in request.url
        assert request.method == "GET"
    (other,) = pair.relay.create_links(pair.name, 1)
    pair.send(pair.sealed(1)[0], other)
    pair.host.polls.close(pair.name)
    assert pair.forwarder.round() == 1
    pair.host.polls.reopen(pair.name)
    pair.forwarder.round()
    assert canonical_json(shown) in [canonical_json(body) for body in pair.stored()]
    # After the hand-over nobody can find the report any more, and the page says so.
    voter.page.get_by_role("button", name="Withdraw").click()
    voter.page.get_by_role("button", name="Yes, delete it").click()
    voter.page.get_by_text("already passed your report on").wait_for()
    voter.complaints.clear()  # The browser reports the refusal itself.


def test_no_request_tells_the_host_who_sends(open_link, pair):
    """Whatever the page needs of the host comes before the first choice: the code that seals, and what is published."""
    voter, _ = open_link("")
    described = f"{pair.host_url}/api/polls/{pair.name}"
    truth = pair.http.get(described).json()
    parameter = {feature["name"]: 0 for feature in truth["study"]["features"]}
    factors = [{"name": factor["name"], "interval": [-1, 1]} for factor in truth["factors"]]
    release = {"parameter": parameter, "factors": factors, "guarantee": {"voters": 12}}
    voter.page.route(described, lambda route: route.fulfill(json={**truth, "release": "f" * 64}))
    voter.page.route("**/api/releases/*", lambda route: route.fulfill(json=release))
    voter.page.goto("about:blank")
    key = pair.host.batches.key(pair.poll).configuration.fingerprint
    voter.open(f"{pair.host_url}/p/{pair.name}/#{address_fragment(key, pair.relay.create_links(pair.name, 1)[0])}")
    voter.to_dilemmas()
    before = [request.url for request in voter.requests]
    assert any("hpke" in url for url in before)
    assert any("/api/releases/" in url for url in before)
    voter.answer_all()
    voter.page.locator(".sent").wait_for()
    voter.press_primary()
    voter.done()
    voter.page.get_by_text("What is published so far, from 12 voters").wait_for()
    after = [request.url for request in voter.requests[len(before) :]]
    assert [url for url in after if url.startswith(pair.host_url)] == []
    assert len(after) == 1


def test_withdrawing_at_the_relay_before_the_hand_over(open_link, pair):
    voter, _ = open_link()
    voter.to_review()
    before = pair.relay.waiting(pair.name)
    voter.press_primary()
    voter.done()
    assert pair.relay.waiting(pair.name) == before + 1
    voter.page.get_by_role("button", name="Withdraw").click()
    voter.page.get_by_role("button", name="Yes, delete it").click()
    voter.page.get_by_text("What you sent has been deleted.").wait_for()
    assert pair.relay.waiting(pair.name) == before


def test_what_is_sent_again_is_the_same_bytes(open_link, pair):
    voter, _ = open_link()
    voter.to_review()
    voter.page.route(f"{pair.relay_url}/**/report", lambda route: route.abort())
    voter.press_primary()
    voter.page.get_by_role("button", name="Try now").wait_for()
    first = voter.memory()["ciphertext"]
    voter.page.unroute(f"{pair.relay_url}/**/report")
    voter.page.reload()
    voter.done()
    puts = [request for request in voter.requests if request.method == "PUT"]
    assert len({request.post_data_buffer for request in puts}) == 1
    assert len(first) > SEALED_LENGTH
    assert voter.memory()["ciphertext"] is None
    voter.complaints.clear()  # The browser reports the lost request itself.


@pytest.mark.parametrize(
    ("fragment", "told"),
    [
        ("ballot={token}", "The address is not complete"),
        (f"key={'0' * 64}&ballot={{token}}", "not the one in the address"),
        ("key={key}", "personal link only"),
        (f"key={{key}}&ballot={'A' * 22}", "not valid for this poll"),
    ],
)
def test_a_wrong_address_stops_before_the_first_dilemma(open_link, fragment, told):
    voter, _ = open_link(fragment)
    voter.page.get_by_text(told).wait_for()
    assert voter.page.locator("#agree").count() == 0
    assert not any(request.method == "PUT" for request in voter.requests)
    voter.complaints.clear()


@pytest.mark.parametrize("lie", [{"fingerprint": "0" * 64}, {"epsilon": 0.001}])
def test_a_relay_that_knows_another_key_or_promise_is_not_used(browser, devices, pair, lie):
    voter = devices.lend(browser, "", {})
    (token,) = pair.relay.create_links(pair.name, 1)
    truth = pair.http.get(f"{pair.relay_url}/api/polls/{pair.name}").json()

    def answer(route):
        route.fulfill(json={**truth, **lie}, headers={"Access-Control-Allow-Origin": "*"})

    voter.page.route(f"{pair.relay_url}/api/polls/{pair.name}", answer)
    key = pair.host.batches.key(pair.poll).configuration.fingerprint
    voter.open(f"{pair.host_url}/p/{pair.name}/#{address_fragment(key, token)}")
    voter.page.get_by_text("the relay knows another").wait_for()
    assert voter.page.locator("#agree").count() == 0
    voter.page.unroute(f"{pair.relay_url}/api/polls/{pair.name}")
    voter.complaints.clear()
    devices.take_back(voter)


def test_the_promise_in_three_lines_and_the_key_are_shown_in_every_language(open_link, pair):
    voter, _ = open_link()
    key = pair.host.batches.key(pair.poll).configuration.fingerprint
    for code in INTERFACE_LANGUAGES:
        voter.page.locator("#language").select_option(code)
        voter.page.locator(f"html[lang={code}]").wait_for()
        # The page is drawn again after its language is known; what is folded has no text.
        voter.page.wait_for_function(
            """key => {
                document.querySelectorAll("details.all-of-it").forEach(details => { details.open = true })
                return document.querySelector("main").innerText.replaceAll(" ", "").includes(key)
            }""",
            arg=key,
        )
        text = voter.page.locator("main").inner_text()
        assert urlsplit(pair.relay_url).netloc in text
        assert "1e-6" in text or "0.000001" in text
