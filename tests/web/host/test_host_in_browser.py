"""A host at work in a real browser: signs in, looks, releases, compares, downloads; on a phone, and for everybody."""

import csv
import json
import time

import pytest
from tests.client.running import running
from tests.service.host.website import CENTRAL, DISTRIBUTED
from tests.web.axe import violations

from crowdveil.audit.browser import PATIENCE
from crowdveil.client.client import Client
from crowdveil.privacy.epsilon import Amount
from crowdveil.releases import release_from_dict
from crowdveil.service.poll import poll_from_dict
from crowdveil.simulated_voters import send_crowd

PASSWORD = "correct horse battery"
ROAD = 'name = "road"\nstudy = "moral-machine"\n'


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    polls = [poll_from_dict({**CENTRAL, "entry": "open"}), poll_from_dict(DISTRIBUTED)]
    with running(tmp_path_factory.mktemp("site"), polls) as (store, address):
        vote(address, "trusted", 30)
        vote(address, "untrusted", 20)
        yield store, address


def vote(address, poll, voters):
    with Client(address) as client:
        send_crowd(client, client.poll(poll), voters, connections=2)


@pytest.fixture
def complaints():
    """What the page complains about."""
    return []


@pytest.fixture
def page(browser, site, complaints):
    """A signed-in host's page, narrow as a phone. Whatever it complains about fails the test, unless it is expected."""
    store, address = site
    context = browser.new_context(viewport={"width": 320, "height": 640}, base_url=address, locale="en-GB")
    page, asked = context.new_page(), []
    page.set_default_timeout(PATIENCE)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: asked.append(request.url))
    token = store.hosts.create_sign_in_link(int(time.time()))
    page.goto("/host/sign-in")
    page.goto(f"/host/sign-in#link={token}")  # Where the page is open already, only the address changes.
    page.get_by_role("button", name="Sign in with the link").click()
    page.get_by_role("button", name="Sign out").wait_for()
    assert not any(token in url.partition("#")[0] for url in asked)
    yield page
    context.close()
    assert complaints == []


def test_a_host_signs_in_releases_and_downloads(page, site):
    store, _ = site
    page.goto("/host/password")
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_label("The same again").fill(PASSWORD)
    page.get_by_role("button", name="Set the password").click()
    page.get_by_role("heading", name="Polls").wait_for()
    page.get_by_role("button", name="Sign out").click()
    page.goto("about:blank")
    page.goto("/host/sign-in#link=another")
    page.wait_for_function("document.getElementById('link').value === 'another' && !location.hash")
    page.reload()
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("link", name="One kidney").first.click()
    for epsilon in ("0.5", "1"):
        page.goto("/host/polls/trusted/releases")
        page.get_by_label("Epsilon").fill(epsilon)
        page.get_by_role("button", name="Look first").click()
        page.get_by_text("expected noise").wait_for()
        page.get_by_role("button", name=f"Spend ε = {epsilon} and release").click()
        page.wait_for_url("**/host/releases/*")
    assert store.releases.account("trusted").spent == Amount(1_500_000)
    with page.expect_download() as started:
        page.get_by_role("link", name="Download the release").click()
    released = release_from_dict(json.loads(started.value.path().read_text()))
    assert released.digest == store.releases.all("trusted")[0].id
    page.goto("/host/polls/trusted/releases")
    page.get_by_role("button", name="Compare the two").click()
    page.get_by_role("heading", name="Two releases side by side").wait_for()
    page.goto("/host/polls/trusted/data")
    with page.expect_download() as started:
        page.get_by_role("link", name="CSV").click()
    rows = list(csv.DictReader(started.value.path().read_text().splitlines()))
    assert len({row["voter"] for row in rows}) == store.polls.get("trusted").participants


def end_the_session(page):
    page.context.clear_cookies()


def make_the_form_stale(page):
    page.locator("form[data-progress] input[name=form_token]").evaluate("field => (field.value = 'stale')")


def lose_the_connection(page):
    page.route("**/progress", lambda route: route.abort())


def fail_behind_a_proxy(page):
    page.route("**/progress", lambda route: route.fulfill(status=502, body="<h1>Bad gateway</h1>"))


def lose_the_end(page):
    page.route("**/progress", lambda route: route.fulfill(body='{"read": 1, "of": 20}\n'))


NOT_KNOWN = "it is not known whether this was made"


@pytest.mark.parametrize(
    ("happens", "told"),
    [
        (end_the_session, "You are not signed in any more, and nothing was made"),
        (make_the_form_stale, "The page that this form was on is too old, and nothing was done: load it again."),
        (lose_the_connection, NOT_KNOWN),
        (fail_behind_a_proxy, NOT_KNOWN),
        (lose_the_end, NOT_KNOWN),
    ],
)
def test_a_release_of_which_nothing_is_heard_is_looked_for_in_the_list(page, site, complaints, happens, told):
    made = site[0].releases.all("untrusted")
    page.goto("/host/polls/untrusted/releases")
    page.get_by_role("button", name="Look first").click()
    page.get_by_role("button", name="Make the release").wait_for()
    happens(page)
    page.get_by_role("button", name="Make the release").click()
    notice = page.locator(".notice.wrong")
    notice.wait_for()
    assert told in notice.inner_text()
    assert page.locator("progress").count() == 0
    assert violations(page, "light") == []
    notice.get_by_role("link", name="List of releases").click()
    page.wait_for_url("**/host/sign-in" if happens is end_the_session else "**/host/polls/untrusted/releases")
    assert site[0].releases.all("untrusted") == made
    complaints.clear()  # The browser reports the refusal itself.


def test_the_overview_refreshes_by_itself(page, site):
    page.goto("/host/polls/untrusted")
    before = site[0].polls.get("untrusted").participants
    page.locator("dl.numbers dd", has_text=str(before)).first.wait_for()
    page.get_by_text("The picture as a table").click()
    page.locator("body").evaluate("document.activeElement.blur()")
    vote(site[1], "untrusted", 3)
    page.locator("dl.numbers dd", has_text=str(before + 3)).first.wait_for()
    assert page.locator("details").evaluate("part => part.open")


def test_a_new_poll_is_previewed_as_voters_see_it(page, site):
    page.goto("/host/new/file")
    page.get_by_label("Or write it here").fill(ROAD)
    page.get_by_role("button", name="Check and preview").click()
    page.locator(".dilemmas svg.road").nth(3).wait_for()
    page.get_by_role("button", name="Open it at once").click()
    page.wait_for_url("**/host/polls/road")
    assert site[0].polls.known("road").study.name == "moral-machine"


def test_everybody_can_use_every_page(page, site):
    """On a screen of 320 pixels nothing has to be scrolled sideways, and axe finds nothing, by day and by night."""
    store, _ = site
    page.goto("/host/polls/untrusted/releases")
    page.get_by_role("button", name="Look first").click()
    page.get_by_role("button", name="Make the release").click()
    page.wait_for_url("**/host/releases/*")
    made = store.releases.all("untrusted")[0].id
    pages = ["/host/", "/host/password", "/host/second-factor", "/host/hosts", "/host/log", f"/host/releases/{made}"]
    pages += ["/host/new", "/host/new/file", "/host/polls/trusted/delete"]
    pages += [f"/host/polls/trusted{part}" for part in ("", "/releases", "/recruit", "/data")]
    pages += [f"/host/polls/untrusted/compare?first={made}&second={made}"]
    for path in pages:
        page.goto(path)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 320, f"{path} is {wide} pixels wide"
        for scheme in ("light", "dark"):
            assert violations(page, scheme) == [], f"{path} ({scheme})"


def test_a_host_looks_at_the_cost_of_groups_and_makes_them(page, site):
    store, _ = site
    page.goto("/host/polls/trusted/releases")
    form = page.locator("#effects form")
    form.get_by_label("Of").select_option("age")
    form.get_by_label("ε to spend").fill("0.25")
    form.get_by_role("button", name="See the cost first").click()
    page.get_by_role("heading", name="What effects would cost and tell").wait_for()
    page.get_by_text("Who is in which group is protected with the rest.").wait_for()
    assert store.effects.all("trusted") == []
    page.get_by_role("button", name="Spend ε = 0.25 and make them").click()
    page.get_by_role("heading", name="What was preferred").wait_for()
    (stored,) = store.effects.all("trusted")
    assert page.url.endswith(f"/host/effects/{stored.id}")
    assert store.releases.account("trusted").charges[-1].release == stored.id
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    for scheme in ("light", "dark"):
        assert violations(page, scheme) == []
