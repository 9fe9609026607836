"""Websites for a test."""

import pytest
from tests.service.host.website import begin_anew, website

from crowdveil.service.settings import ServiceSettings


@pytest.fixture(scope="module")
def running_site(tmp_path_factory):
    """A website for tests that change something, one after the other."""
    with website(tmp_path_factory.mktemp("running"), settings=ServiceSettings(requests_per_minute=1_000_000)) as made:
        yield made


@pytest.fixture
def site(running_site):
    """Nobody is signed in, nobody has voted."""
    begin_anew(running_site)
    return running_site


@pytest.fixture(scope="module")
def shared_site(tmp_path_factory):
    """A website for tests that change nothing."""
    with website(tmp_path_factory.mktemp("shared")) as made:
        yield made


@pytest.fixture(scope="module")
def shared_hosted(tmp_path_factory):
    """The host is signed in and three have voted, for tests that change nothing."""
    with website(tmp_path_factory.mktemp("shared")) as made:
        made.sign_in()
        made.vote("trusted", 3)
        made.vote("untrusted", 3)
        yield made


@pytest.fixture
def hosted(site):
    """The host is signed in."""
    site.sign_in()
    return site
