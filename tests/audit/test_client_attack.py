"""A server that is mistaken or lies, before the Python client: the page's lies, and none is taken."""

import pytest

from crowdveil.audit.client_attack import CASES, CLIENT_MUTANTS, ClientHarness, lies_against_client, open_server
from crowdveil.audit.lying_server import UNTRUE_POLLS, UNTRUE_SESSIONS, try_case


@pytest.fixture(scope="module")
def server():
    with open_server() as started:
        yield started


@pytest.mark.parametrize("case", CASES)
def test_no_lie_is_taken(server, case):
    assert try_case(ClientHarness(server), case, CASES[case]) is None


def test_the_client_is_told_all_lies_that_the_page_is_told():
    assert {*UNTRUE_POLLS, *UNTRUE_SESSIONS} <= set(CASES)


@pytest.mark.parametrize("mutant", CLIENT_MUTANTS, ids=lambda mutant: mutant.mistake)
def test_a_client_without_one_of_its_checks_is_caught(server, mutant):
    (finding,) = lies_against_client(server, mutant)
    assert finding is not None
