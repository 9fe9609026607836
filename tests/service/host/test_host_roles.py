"""Several hosts: each may do what the role says and no more, invitations bring them in, and the log tells all."""

import re

import pytest
from tests.service.host.website import PASSWORD, code_at

from crowdveil.service.host.routes import PAGES
from crowdveil.service.store.hosts import Role

VIEWER = {
    "GET /",
    "GET /password",
    "POST /password",
    "GET /second-factor",
    "POST /second-factor",
    "POST /second-factor/off",
    "POST /sign-out",
    "GET /polls/{poll}",
    "GET /polls/{poll}/live",
    "GET /polls/{poll}/recruit",
    "GET /polls/{poll}/qr.svg",
    "GET /polls/{poll}/releases",
    "GET /polls/{poll}/compare",
    "GET /releases/{release}",
    "GET /releases/{release}/file",
    "GET /effects/{effects}",
    "GET /effects/{effects}/{file}",
}
ANALYST = VIEWER | {
    "POST /polls/{poll}/links",
    "GET /polls/{poll}/data",
    "GET /polls/{poll}/data/{file}",
    "POST /polls/{poll}/preview",
    "POST /polls/{poll}/effects/preview",
    "POST /polls/{poll}/effects",
    "POST /polls/{poll}/effects/progress",
    "POST /polls/{poll}/release",
    "POST /polls/{poll}/release/progress",
    "POST /releases/{release}/describe",
    "POST /polls/{poll}/mark",
}
ALLOWED = {"viewer": VIEWER, "analyst": ANALYST}
"""What a host with less than all rights may do; everything else is the owner's."""
EVERYWHERE = [page for page in PAGES if page.path != "/sign-in"]


def address(page):
    return "/host" + page.path.format(poll="trusted", file="ballots.csv", release="none", effects="none")


@pytest.fixture(scope="module")
def hosts(shared_hosted):
    """Cookies of a host of each role, on a website where three have voted."""
    store, now = shared_hosted.store, shared_hosted.service.now()
    for role in (Role.VIEWER, Role.ANALYST):
        store.hosts.invite(f"the-{role.value}", role, now)
    store.hosts.create_sign_in_link(now, "the-owner")
    return {role.value: store.hosts.start_session(f"the-{role.value}", now) for role in Role}


@pytest.fixture
def as_role(shared_hosted, hosts):
    def become(role):
        shared_hosted.browser.cookies.clear()
        shared_hosted.browser.cookies.set("crowdveil-host", hosts[role], domain="crowd.example", path="/host")
        return shared_hosted

    return become


@pytest.mark.parametrize("page", EVERYWHERE, ids=lambda page: f"{page.method} {page.path}")
@pytest.mark.parametrize("role", ["viewer", "analyst"])
def test_a_role_opens_what_it_should_and_nothing_else(as_role, role, page):
    site = as_role(role)
    answer = site.browser.request(page.method, address(page), follow_redirects=False)
    refused = f"and you are {role}" in answer.text
    assert refused is (f"{page.method} {page.path}" not in ALLOWED[role])
    assert answer.status_code == 403 if refused else answer.status_code < 500


@pytest.mark.parametrize("page", [p for p in PAGES if p.method == "POST"], ids=lambda page: page.path)
def test_every_form_needs_its_token_and_a_page_of_this_website(as_role, page):
    site = as_role("owner")
    for token in ({}, {"form_token": "0" * 64}):
        answer = site.browser.post(address(page), data=token, follow_redirects=False)
        assert answer.status_code == 403
        assert "load it again" in answer.text
    answer = site.browser.post(address(page), headers={"Sec-Fetch-Site": "same-site"}, follow_redirects=False)
    assert (answer.status_code, "another website" in answer.text) == (403, True)


def test_every_action_of_every_host_is_logged_by_a_name():
    unlogged = {page.path for page in PAGES if page.method == "POST" and page.action is None}
    nothing_done = {"/new", "/new/again", "/new/file", "/polls/{poll}/preview", "/polls/{poll}/effects/preview"}
    logged_elsewhere = {"/sign-in", "/polls/{poll}/release/progress", "/polls/{poll}/effects/progress"}
    assert unlogged == nothing_done | logged_elsewhere


def test_menus_show_what_a_role_may_do(as_role):
    assert "/host/hosts" in as_role("owner").get("/host/").text
    assert "/host/hosts" not in as_role("analyst").get("/host/").text
    assert "/host/polls/trusted/data" not in as_role("viewer").get("/host/polls/trusted").text


def test_an_invited_host_comes_by_link_chooses_a_password_and_comes_back(hosted):
    page = hosted.submit("/host/hosts", "/host/hosts", name="ana", role="analyst").text
    token = re.search(r"/host/sign-in#link=([\w-]+)", page)[1]
    hosted.browser.cookies.clear()
    assert hosted.submit("/host/sign-in", "/host/sign-in", link=token).url.path == "/host/password"
    hosted.submit("/host/password", "/host/password", password=PASSWORD, again=PASSWORD)
    hosted.browser.cookies.clear()
    hosted.submit("/host/sign-in", "/host/sign-in", 403, password=PASSWORD)  # That is the first host's form.
    assert hosted.submit("/host/sign-in", "/host/sign-in", name="ana", password=PASSWORD).url.path == "/host/"
    hosted.get("/host/hosts", 403)
    logged = [(entry.host, entry.action, entry.detail) for entry in hosted.store.audit_log.latest()]
    assert ("host", "invited a host", "ana as analyst") in logged
    assert ("ana", "signed in", "with a password") in logged


def test_a_host_who_is_removed_is_out_at_once(hosted):
    hosted.store.hosts.invite("ana", Role.OWNER, hosted.service.now())
    theirs = hosted.store.hosts.start_session("ana", hosted.service.now())
    hosted.submit("/host/hosts", "/host/hosts/remove", host="ana")
    assert hosted.store.hosts.session(theirs, hosted.service.now()) is None
    assert "somebody must own" in hosted.submit("/host/hosts", "/host/hosts/remove", 400, host="host").text.lower()


def test_a_second_factor_is_asked_for_at_every_password(hosted):
    hosted.submit("/host/password", "/host/password", password=PASSWORD, again=PASSWORD)
    key = re.search(r'name="key" value="(\w+)"', hosted.get("/host/second-factor").text)[1]
    fields = re.search(r'name="form_token" value="(\w+)"', hosted.get("/host/second-factor").text)[1]
    wrong = hosted.post("/host/second-factor", {"form_token": fields, "key": key, "code": "000000"}, 400)
    assert "not the code of this moment" in wrong.text
    code = code_at(key, hosted.service.now())
    hosted.post("/host/second-factor", {"form_token": fields, "key": key, "code": code})
    hosted.browser.cookies.clear()
    hosted.submit("/host/sign-in", "/host/sign-in", 403, password=PASSWORD)
    hosted.submit("/host/sign-in", "/host/sign-in", 403, password=PASSWORD, code=code)  # It was used already.
    hosted.later(60)
    fresh = code_at(key, hosted.service.now())
    hosted.submit("/host/sign-in", "/host/sign-in", 403, password="not the password", code=fresh)
    assert hosted.submit("/host/sign-in", "/host/sign-in", password=PASSWORD, code=fresh).url.path == "/host/"
    hosted.later(60)
    fresh = code_at(key, hosted.service.now())
    hosted.submit("/host/second-factor", "/host/second-factor/off", code=fresh)
    assert not hosted.store.hosts.get("host").has_second_factor


def test_a_second_factor_is_not_replaced_without_its_code(hosted):
    key, other = (hosted.store.hosts.new_key() for _ in range(2))
    now = hosted.service.now()
    token = re.search(r'name="form_token" value="(\w+)"', hosted.get("/host/second-factor").text)[1]
    hosted.post("/host/second-factor", {"form_token": token, "key": key, "code": code_at(key, now)})
    replacing = {"form_token": token, "key": other, "code": code_at(other, now)}
    assert "There is a second factor already" in hosted.post("/host/second-factor", replacing, 400).text
    hosted.later(60)
    now = hosted.service.now()
    hosted.submit("/host/second-factor", "/host/second-factor/off", code=code_at(key, now))
    hosted.post("/host/second-factor", {**replacing, "code": code_at(other, now)})
    assert hosted.store.hosts.get("host").has_second_factor


def test_whoever_lost_the_phone_comes_back_by_a_link_and_sets_up_another(hosted):
    key, now = hosted.store.hosts.new_key(), hosted.service.now()
    hosted.store.hosts.set_second_factor("host", key, code_at(key, now), now)
    hosted.browser.cookies.clear()
    hosted.sign_in()
    assert not hosted.store.hosts.get("host").has_second_factor


def test_the_log_tells_who_did_what(hosted):
    hosted.submit("/host/polls/trusted", "/host/polls/trusted/close")
    hosted.vote("untrusted", 3)
    hosted.browser.head("/host/polls/untrusted/data/reports.csv")
    assert "downloaded data" not in hosted.get("/host/log").text  # Nobody has got the file yet.
    hosted.get("/host/polls/untrusted/data/reports.csv")
    page = hosted.get("/host/log").text
    assert "closed the poll" in page
    assert "downloaded data" in page
    assert "2026-03-01 12:00" in page
