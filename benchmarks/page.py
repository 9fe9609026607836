"""How long a voter waits on slow 3G: until something is seen, and until the poll can be started.

A real Chromium loads the voter's page of the Moral Machine from a real server, with 400 ms of latency for each request
and 50 kB a second, as its own developer tools emulate them. Each round is a browser that has never been here, and then
later visits of the same one. The tab has shown an empty file of the website before, for a headless browser starts a
process with every new tab, while others keep one in reserve; an empty page is visited in the same way, to tell how much
is the line's and the machine's. The first build showed nothing for 6.6 s, on every visit.
"""

from __future__ import annotations

import argparse
import gzip
import os
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from playwright.sync_api import BrowserContext, Page, ViewportSize
from starlette.responses import HTMLResponse

from crowdveil.audit.browser import open_browser
from crowdveil.protocol.voters_page import voters_page
from crowdveil.service.app import create_app
from crowdveil.service.poll import poll_from_dict
from crowdveil.service.server import served_here
from crowdveil.service.service import Service
from crowdveil.service.settings import ServiceSettings
from crowdveil.service.store.store import open_store

LATENCY_MS = 400
BYTES_A_SECOND = 50_000
FIRST_BUILD = 6.6
ASKED = {"first": 2.0, "later": 0.5}
LATER = 3
"""Later visits in each round."""
PHONE: ViewportSize = {"width": 360, "height": 740}
STILL = "/web/icon.svg"
"""A file of the website in which nothing runs."""
EMPTY = "/empty"
NOW = "() => performance.now() / 1000"
PAINT = """() => new Promise((done) => new PerformanceObserver((list) => {
  const found = list.getEntriesByName("first-contentful-paint")[0];
  if (found) done(found.startTime / 1000);
}).observe({ type: "paint", buffered: true }))"""
SIZE = "() => performance.getEntries().reduce((sum, entry) => sum + (entry.transferSize ?? 0), 0)"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=5)
    given = arguments.parse_args()
    found: dict[str, list[tuple[float, float, float]]] = {"first": [], "later": []}
    empty: list[float] = []
    with _server() as address, open_browser() as browser:
        for _ in range(given.rounds):
            device = browser.new_context(viewport=PHONE, locale="en-GB")
            found["first"].append(_visit(device, address))
            for _ in range(LATER):
                found["later"].append(_visit(device, address))
                empty.append(_visit_empty(device, address))
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
    load = os.getloadavg()[0]
    print(f"An empty page: {statistics.median(empty):.2f} s; load {load:.1f} on {os.cpu_count()} processors")
    page = voters_page()
    compressed = sum(len(gzip.compress(content, 9)) for path, content in page.files.items() if "languages/" not in path)
    print(f"All files of the page without the languages, compressed: {compressed / 1000:.0f} kB")
    sys.exit(0 if met else 1)


def _visit(device: BrowserContext, address: str) -> tuple[float, float, float]:
    """Return the seconds until something is seen and until one can start, and the bytes that came."""
    with _slow_tab(device, address) as tab:
        tab.goto(f"{address}/p/moral-machine/")
        tab.locator(".consent button").wait_for()
        start = tab.evaluate(NOW)
        return tab.evaluate(PAINT), start, tab.evaluate(SIZE)


def _visit_empty(device: BrowserContext, address: str) -> float:
    """Return the seconds until a page of one word is seen."""
    with _slow_tab(device, address) as tab:
        tab.goto(address + EMPTY)
        return float(tab.evaluate(PAINT))


@contextmanager
def _slow_tab(device: BrowserContext, address: str) -> Iterator[Page]:
    """Open a tab of the website on a slow line."""
    tab = device.new_page()
    tab.goto(address + STILL)
    line = device.new_cdp_session(tab)
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
    yield tab
    tab.close()


@contextmanager
def _server() -> Iterator[str]:
    """Run the service with one poll."""
    with TemporaryDirectory() as folder, open_store(f"sqlite:///{folder}/crowdveil.sqlite") as store:
        store.polls.add(poll_from_dict({"name": "moral-machine", "study": "moral-machine"}))
        app = create_app(Service(store, ServiceSettings(port=0)))
        app.add_route(EMPTY, lambda _: HTMLResponse("<!doctype html><p>Empty", headers={"Cache-Control": "no-cache"}))
        with served_here(app) as address:
            yield address


if __name__ == "__main__":
    main()
