"""What holds for all tests of the commands."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def _few_crowds(few_crowds):
    """No test here asks how good a release's probabilities are."""
