"""Websites for a test."""

import pytest
from tests.service.host.website import website


@pytest.fixture
def site(tmp_path):
    """Nobody is signed in, nobody has voted."""
    with website(tmp_path) as made:
        yield made


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
