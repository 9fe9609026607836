"""A changed page is noticed, whichever of its files was changed."""

import httpx
import pytest
from tests.client.running import running
from tests.program import crowdveil

from crowdveil.client.page_check import check_page
from crowdveil.errors import CrowdveilError
from crowdveil.protocol.voters_page import voters_page
from crowdveil.service.poll import poll_from_dict
from crowdveil.study.bundled import load_study

PAGE = voters_page()
FILES = {PAGE.address(path) for path in PAGE.files}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    poll = poll_from_dict({"name": "kidney", "study": "kidney"})
    with running(tmp_path_factory.mktemp("site"), [poll]) as (_, address):
        yield address


def test_the_served_page_is_the_shipped_one(address):
    with httpx.Client() as http:
        found = check_page(http, address, "kidney")
    assert set(found.same) == FILES | {"/p/kidney/"}
    assert found.different == ()


class Changed(httpx.HTTPTransport):
    """A server that adds one byte to one file, or changes it otherwise."""

    def __init__(self, path, change=lambda content: content + b" "):
        super().__init__()
        self.path = path
        self.change = change

    def handle_request(self, request):
        answer = super().handle_request(request)
        if request.url.path != self.path:
            return answer
        answer.read()
        return httpx.Response(200, content=self.change(answer.content))


@pytest.mark.parametrize("path", ["/p/kidney/", PAGE.address("mechanisms/random.js"), PAGE.address("main.js")])
def test_one_byte_is_enough(address, path):
    with httpx.Client(transport=Changed(path)) as http:
        assert check_page(http, address, "kidney").different == (path,)


class OtherVersion(httpx.HTTPTransport):
    """A server of a page with one other module: all of them stand at another address."""

    def handle_request(self, request):
        ours, theirs = PAGE.digest, "0" * 20
        changed = request.url.path == f"/web/{theirs}/main.js"
        request.url = request.url.copy_with(path=request.url.path.replace(theirs, ours))
        answer = super().handle_request(request)
        answer.read()
        content = answer.content.replace(ours.encode(), theirs.encode())
        return httpx.Response(answer.status_code, content=content + b" " * changed)


def test_of_another_version_only_what_differs_is_named(address):
    with httpx.Client(transport=OtherVersion()) as http:
        found = check_page(http, address, "kidney")
    assert found.different == ("/p/kidney/", f"/web/{'0' * 20}/main.js")
    assert len(found.same) == len(FILES) - 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"One kidney, two patients", b"Another title"),
        (b"requestAnimationFrame(", b"fetch('https://other.example'), requestAnimationFrame("),
        (b"<meta name=", b"<script src=other.js></script><meta name="),
        (b'/p/kidney/"', b'/p/kidney/"><script src="other.js"></script><meta content="'),
    ],
)
def test_what_other_websites_show_is_no_place_to_hide_anything(address, old, new):
    with httpx.Client(transport=Changed("/p/kidney/", lambda content: content.replace(old, new, 1))) as http:
        assert check_page(http, address, "kidney").different == ("/p/kidney/",)


def test_a_title_that_names_an_address_leads_to_no_other_modules(tmp_path):
    """A server could keep honest modules there, and changed ones where the page gets them."""
    study = {**load_study("kidney").as_dict(), "title": f"One kidney /web/{'0' * 20}/"}
    poll = poll_from_dict({"name": "kidney", "study": study})
    with running(tmp_path, [poll]) as (_, address), httpx.Client() as http:
        assert set(check_page(http, address, "kidney").same) == FILES | {"/p/kidney/"}


def test_a_poll_that_is_not_there_and_a_server_that_is_not(address):
    with httpx.Client() as http:
        with pytest.raises(CrowdveilError, match="no poll"):
            check_page(http, address, "nothing")
        with pytest.raises(CrowdveilError, match="cannot reach"):
            check_page(http, "http://127.0.0.1:1", "kidney")


def test_the_command(address):
    done = crowdveil("check-page", "--url", address, "--poll", "kidney")
    assert done.code == 0, done.stderr
    assert f"{len(FILES) + 1} files, all as this crowdveil ships them" in done.stdout
