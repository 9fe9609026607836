"""Websites for a test."""

import pytest
from tests.service.host.website import website


@pytest.fixture
def site(tmp_path):
    """Nobody is signed in, nobody has voted."""
    with website(tmp_path) as made:
        yield made


@pytest.fixture
def hosted(site):
    """The host is signed in."""
    site.sign_in()
    return site
