"""The host's pages of a poll with a relay: whole addresses, the relay's batches and promise, and nothing to link."""

import json
from collections import Counter

import pytest
from tests.service.host.website import flat, website

from crowdveil.protocol.description import relayed_promise
from crowdveil.service.poll import poll_from_dict
from crowdveil.service.poll_release import make_release
from crowdveil.service.store.batches import OpenedReport
from crowdveil.study.plain_data import canonical_json

RULES = {"study": "kidney", "paradigm": "vldp", "levels": {"one": 3}, "relay": "https://relay.example", "batch": 20}
OPEN, LINKED = (
    poll_from_dict({"name": "open", **RULES}),
    poll_from_dict({"name": "linked", "entry": "links", **RULES}),
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with website(tmp_path_factory.mktemp("relayed")) as made:
        made.sign_in()
        for poll in (OPEN, LINKED):
            made.store.polls.add(poll)
        report = {"format": "crowdveil report 1", "study": OPEN.study.fingerprint, "mechanism": "one-bit"}
        report |= {"epsilon_micro": 3_000_000, "kind": "direction", "axes": [0], "bits": [1]}
        opened = [OpenedReport(f"{n:064x}", canonical_json(report)) for n in range(24)]
        made.store.batches.put(OPEN, "a" * 32, 26, opened, Counter({"unreadable": 2}), made.service.today())
        make_release(made.store, "open", made.service.today())
        yield made


def test_the_address_for_voters_carries_the_fingerprint_everywhere(site):
    key = site.store.batches.key(OPEN).configuration.fingerprint
    for page in ("/host/polls/open", "/host/", "/host/polls/open/recruit", "/r/open/", "/"):
        assert f"/p/open/#key={key}" in site.browser.get(page).text, page


def test_the_page_of_the_poll_tells_batches_and_promise(site):
    shown = flat(site.get("/host/polls/open").text)
    assert "https://relay.example, which hands over 20 reports or more at a time. So far: 24." in shown
    assert relayed_promise(OPEN).lines[2][:60] in shown
    assert "sealed to another key" in shown


def test_links_and_withdrawals_are_the_relays(site):
    assert "you must not know whose link is whose" in site.get("/host/polls/linked/recruit").text
    assert "nobody can tell whose they are" in site.get("/host/polls/open/data").text
    rows = site.get("/host/polls/open/data/reports.csv").text.splitlines()
    assert len(rows) == 25
    assert rows[1].startswith("a" * 20 + "0" * 12)


def test_the_public_page_and_the_file_carry_the_promise(site):
    (stored,) = site.store.releases.all("open")
    assert json.loads(stored.file)["facts"]["relayed"]["batches"] == [24]
    assert "δ = 1e-06" in site.browser.get("/r/open/").text


def test_the_page_for_voters_may_speak_with_the_relay_and_with_nobody_else(site):
    policy = site.get("/p/open/").headers.get_list("content-security-policy")
    assert len(policy) == 1
    assert "connect-src 'self' https://relay.example;" in policy[0]
