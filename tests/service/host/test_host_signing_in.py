"""Who gets in: the one-time link, the password, sessions that end, and forms of other websites that are refused."""

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from tests.service.host.website import PASSWORD, code_at, website

from crowdveil.service.host.attempts import MOST_ATTEMPTS, MOST_VISITORS, WINDOW_SECONDS, Attempts
from crowdveil.service.host.routes import PAGES
from crowdveil.service.settings import ServiceSettings
from crowdveil.service.store.hosts import LINK_SECONDS, SESSION_SECONDS


def link_of(site):
    return site.store.hosts.create_sign_in_link(site.service.now())


def set_password(site):
    return site.submit("/host/password", "/host/password", password=PASSWORD, again=PASSWORD)


def sign_in_by_password(site, password, status=200):
    return site.submit("/host/sign-in", "/host/sign-in", status, password=password)


def forget_cookies(site):
    site.browser.cookies.clear()


@pytest.fixture
def site(tmp_path):
    """A website of its own for each test: it remembers who tried to sign in."""
    with website(tmp_path) as made:
        yield made


@pytest.mark.parametrize(("method", "path"), [(page.method, page.path) for page in PAGES if page.path != "/sign-in"])
def test_every_page_is_for_hosts_only(shared_site, method, path):
    asked = "/host" + path.format(poll="trusted", file="ballots.csv", release="latest", effects="latest")
    answer = shared_site.browser.request(method, asked, follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["Location"] == "/host/sign-in"
    assert answer.text == ""


def test_a_one_time_link_signs_in_once(site):
    token = link_of(site)
    assert site.submit("/host/sign-in", "/host/sign-in", link=token).url.path == "/host/password"
    assert "Polls" in site.get("/host/").text
    forget_cookies(site)
    refused = site.submit("/host/sign-in", "/host/sign-in", 403, link=token)
    assert "used already" in refused.text
    assert site.get("/host/").url.path == "/host/sign-in"


def test_a_link_is_too_old_after_a_day(site):
    token = link_of(site)
    site.later(LINK_SECONDS)
    site.submit("/host/sign-in", "/host/sign-in", 403, link=token)


def test_a_password_is_chosen_and_then_signs_in(site):
    site.sign_in()
    assert "are not the same" in site.submit("/host/password", "/host/password", 400, password=PASSWORD, again="x").text
    assert "12 to 200" in site.submit("/host/password", "/host/password", 400, password="short", again="short").text
    assert set_password(site).url.path == "/host/"
    forget_cookies(site)
    sign_in_by_password(site, PASSWORD + "!", 403)
    assert sign_in_by_password(site, PASSWORD).url.path == "/host/"


def test_a_new_password_ends_every_other_session(site):
    site.sign_in()
    other = site.browser.cookies["crowdveil-host"]
    set_password(site)
    assert site.browser.cookies["crowdveil-host"] != other
    forget_cookies(site)
    site.browser.cookies.set("crowdveil-host", other, domain="crowd.example", path="/host")
    assert site.get("/host/").url.path == "/host/sign-in"


def test_a_session_ends_by_signing_out_and_by_time(site):
    site.sign_in()
    kept = site.browser.cookies["crowdveil-host"]
    assert site.submit("/host/", "/host/sign-out").url.path == "/host/sign-in"
    site.browser.cookies.set("crowdveil-host", kept, domain="crowd.example", path="/host")
    assert site.get("/host/").url.path == "/host/sign-in"
    forget_cookies(site)
    site.sign_in()
    site.later(SESSION_SECONDS - 1)
    assert site.get("/host/").url.path == "/host/"
    site.later(1)
    assert site.get("/host/").url.path == "/host/sign-in"


def test_wrong_passwords_make_the_visitor_wait(site):
    site.sign_in()
    set_password(site)
    forget_cookies(site)
    for _ in range(MOST_ATTEMPTS):
        sign_in_by_password(site, "wrong", 403)
    refused = sign_in_by_password(site, PASSWORD, 429)
    assert int(refused.headers["Retry-After"]) <= WINDOW_SECONDS + 1
    site.later(WINDOW_SECONDS + 1)
    assert sign_in_by_password(site, PASSWORD).url.path == "/host/"


def test_of_many_attempts_at_the_same_time_no_more_than_allowed_are_checked(site):
    token = re.search(r'name="form_token" value="(\w+)"', site.get("/host/sign-in").text)[1]
    together = Barrier(20)

    def attempt(number):
        together.wait()
        wrong = {"form_token": token, "name": "nobody", "password": f"wrong {number}"}
        return site.browser.post("/host/sign-in", data=wrong).status_code

    with ThreadPoolExecutor(20) as visitors:
        answers = Counter(visitors.map(attempt, range(20)))
    assert answers == {403: MOST_ATTEMPTS, 429: 20 - MOST_ATTEMPTS}


def test_wrong_codes_make_the_visitor_wait(site):
    site.sign_in()
    key, now = site.store.hosts.new_key(), site.service.now()
    site.store.hosts.set_second_factor("host", key, code_at(key, now), now)
    page, action = "/host/second-factor", "/host/second-factor/off"
    for _ in range(MOST_ATTEMPTS):
        site.submit(page, action, 400, code="wrong")
    site.later(60)
    refused = site.submit(page, action, 429, code=code_at(key, site.service.now()))
    assert "Try again in 15 minutes" in refused.text
    assert int(refused.headers["Retry-After"]) <= WINDOW_SECONDS
    assert site.store.hosts.get("host").has_second_factor
    site.later(WINDOW_SECONDS)
    site.submit(page, action, code=code_at(key, site.service.now()))
    assert not site.store.hosts.get("host").has_second_factor


def test_attempts_are_counted_for_each_network():
    attempts = Attempts()
    for number in range(MOST_ATTEMPTS):
        assert attempts.begin(f"2001:db8::{number}", 0) == 0
        assert attempts.begin(f"192.0.2.{number}", 0) == 0
    assert attempts.begin("2001:db8::ffff", 1) > 0
    assert attempts.begin("2001:db8:1::", 1) == 0
    assert attempts.begin("192.0.2.0", 1) == 0


def test_an_attempt_that_succeeds_is_taken_back_and_no_other():
    attempts = Attempts()
    for at in range(MOST_ATTEMPTS):
        assert attempts.begin("192.0.2.0", at) == 0
    attempts.succeeded("192.0.2.0", 2)
    attempts.succeeded("192.0.2.1", 2)
    assert attempts.begin("192.0.2.0", MOST_ATTEMPTS) == 0
    assert attempts.begin("192.0.2.0", MOST_ATTEMPTS) == WINDOW_SECONDS - MOST_ATTEMPTS + 1
    assert attempts.begin("192.0.2.0", WINDOW_SECONDS) == 0  # The first is forgotten.


def test_attempts_of_a_bounded_number_of_visitors_are_remembered():
    attempts = Attempts()
    visitors = [f"2001:db8:{number:x}::" for number in range(MOST_VISITORS + 5)]
    for visitor in visitors:
        assert attempts.begin(visitor, 0) == 0
        attempts.succeeded(visitor, 0)
    assert not attempts._counted  # Whoever has not failed is not remembered.
    for number, visitor in enumerate(visitors):
        for _ in range(MOST_ATTEMPTS + 2):
            attempts.begin(visitor, number / len(visitors))
    assert len(attempts._counted) == MOST_VISITORS
    assert max(map(len, attempts._counted.values())) == MOST_ATTEMPTS
    assert [attempts.begin(visitor, 1) > 0 for visitor in reversed(visitors)] == [True] * MOST_VISITORS + [False] * 5


def test_a_form_without_its_pages_token_is_refused_and_does_nothing(hosted):
    for token in ({}, {"form_token": ""}, {"form_token": "0" * 64}):
        assert "load it again" in hosted.post("/host/polls/trusted/close", token, 403).text
    assert not hosted.store.polls.get("trusted").closed_by_host


@pytest.mark.parametrize("encoding", ["punycode", "undefined", "unicode_escape"])
@pytest.mark.parametrize("field", ['name="form_token"', r'name="x"; filename="\ud800"'])
def test_a_form_in_another_encoding_is_refused(shared_site, encoding, field):
    body = f"--x\r\nContent-Disposition: form-data; {field}\r\n\r\n".encode() + b"\\ud800\xff\r\n--x--\r\n"
    kind = f"multipart/form-data; boundary=x; charset={encoding}"
    answer = shared_site.post("/host/sign-in", None, 400, content=body, headers={"Content-Type": kind})
    assert "UTF-8" in answer.text


def test_the_token_of_another_session_does_not_serve(hosted):
    theirs = re.search(r'name="form_token" value="(\w+)"', hosted.get("/host/").text)[1]
    forget_cookies(hosted)
    hosted.sign_in()
    hosted.post("/host/polls/trusted/close", {"form_token": theirs}, 403)
    assert not hosted.store.polls.get("trusted").closed_by_host


def test_a_form_sent_by_another_website_is_refused(hosted):
    ours = re.search(r'name="form_token" value="(\w+)"', hosted.get("/host/").text)[1]
    answer = hosted.post(
        "/host/polls/trusted/close", {"form_token": ours}, 403, headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert "another website" in answer.text


def test_signing_in_needs_the_pages_token_too(site):
    site.post("/host/sign-in", {"link": link_of(site)}, 403)
    assert "crowdveil-host" not in site.browser.cookies


@pytest.mark.parametrize(("url", "secure"), [("", False), ("https://crowd.example", True)])
def test_the_cookie_is_out_of_reach(tmp_path, url, secure):
    with website(tmp_path, base_url=url or "http://crowd.example", settings=ServiceSettings(public_url=url)) as site:
        page = site.get("/host/sign-in")
        hidden = re.search(r'name="form_token" value="(\w+)"', page.text)[1]
        answer = site.browser.post(
            "/host/sign-in", data={"form_token": hidden, "link": link_of(site)}, follow_redirects=False
        )
        (cookie,) = (c for c in answer.headers.get_list("set-cookie") if c.startswith("crowdveil-host="))
        flags = {part.strip().lower() for part in cookie.split(";")[1:]}
        assert {"httponly", "samesite=strict", "path=/host"} <= flags
        assert ("secure" in flags) is secure


def test_the_database_cannot_be_used_to_sign_in(hosted):
    """Whoever reads the tables finds hashes: neither the session nor the link is in them."""
    cookie, link = hosted.browser.cookies["crowdveil-host"], link_of(hosted)
    with hosted.store.database.engine.connect() as connection:
        tables = ("host", "session", "sign_in_link")
        held = str([connection.exec_driver_sql(f"SELECT * FROM {table}").all() for table in tables])
    assert cookie not in held
    assert link not in held
