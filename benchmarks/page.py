"""How long a voter waits on slow 3G: until something is seen, and until the poll can be started.

A real Chromium loads the voter's page of the Moral Machine from a real server, with 400 ms of latency for each request
and 50 kB a second, as its own developer tools emulate them. Each round is a browser that has never been here, and then
a second visit of the same one. The first build showed nothing for 6.6 s, on every visit.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, BrowserContext

from crowdveil.audit.browser import open_browser
from crowdveil.protocol.voters_page import voters_page
from crowdveil.service.app import create_app
from crowdveil.service.poll import poll_from_dict
from crowdveil.service.server import served_here
from crowdveil.service.service import Service
from crowdveil.service.settings import Settings
from crowdveil.service.store.store import open_store

LATENCY_MS = 400
BYTES_A_SECOND = 50_000
FIRST_BUILD = 6.6
ASKED = {"first": 2.0, "later": 0.5}
PHONE = {"width": 360, "height": 740}
NOTE_START = """
new MutationObserver((_, observer) => {
  if (!document.querySelector(".consent button")) return;
  window.canStart = performance.now();
  observer.disconnect();
}).observe(document, { childList: true, subtree: true });
"""
TIMES = """() => [
  performance.getEntriesByName("first-contentful-paint")[0].startTime / 1000,
  window.canStart / 1000,
  performance.getEntries().reduce((sum, entry) => sum + (entry.transferSize ?? 0), 0),
]"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=5)
    given = arguments.parse_args()
    found: dict[str, list[tuple[float, float, float]]] = {"first": [], "later": []}
    with _server() as address, open_browser() as browser:
        for _ in range(given.rounds):
            device = _device(browser)
            for times in found.values():
                times.append(_visit(device, address))
            device.close()
    print(f"Slow 3G: {LATENCY_MS} ms, {BYTES_A_SECOND // 1000} kB/s; medians of {given.rounds} rounds.")
    met = True
    for visit, times in found.items():
        paint, start, size = (statistics.median(column) for column in zip(*times, strict=True))
        met &= paint < ASKED[visit]
        print(
            f"{visit} visit: first paint {paint:.2f} s (asked: under {ASKED[visit]} s; first build {FIRST_BUILD} s), "
            f"can start after {start:.2f} s, {size / 1000:.0f} kB"
        )
    page = voters_page()
    compressed = sum(len(gzip.compress(content, 9)) for path, content in page.files.items() if "languages/" not in path)
    print(f"All files of the page without the languages, compressed: {compressed / 1000:.0f} kB")
    sys.exit(0 if met else 1)


def _device(browser: Browser) -> BrowserContext:
    """Return a browser that has never been here."""
    device = browser.new_context(viewport=PHONE, locale="en-GB")
    device.add_init_script(NOTE_START)
    return device


def _visit(device: BrowserContext, address: str) -> tuple[float, float, float]:
    """Return the seconds until something is seen and until one can start, and the bytes that came."""
    page = device.new_page()
    line = device.new_cdp_session(page)
    line.send("Network.enable")
    line.send(
        "Network.emulateNetworkConditions",
        {
            "offline": False,
            "latency": LATENCY_MS,
            "downloadThroughput": BYTES_A_SECOND,
            "uploadThroughput": BYTES_A_SECOND,
        },
    )
    page.goto(f"{address}/p/moral-machine/")
    page.locator(".consent button").wait_for()
    paint, start, size = page.evaluate(TIMES)
    page.close()
    return paint, start, size


@contextmanager
def _server() -> Iterator[str]:
    """Run the service with one poll."""
    with TemporaryDirectory() as folder, open_store(f"sqlite:///{folder}/crowdveil.sqlite") as store:
        store.polls.add(poll_from_dict({"name": "moral-machine", "study": "moral-machine"}))
        with served_here(create_app(Service(store, Settings(port=0)))) as address:
            yield address


if __name__ == "__main__":
    main()
