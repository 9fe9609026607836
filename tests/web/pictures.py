"""Take the pictures of the README and the documentation: the voter's, the host's and everybody's pages.

python -m tests.web.pictures
"""

import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from playwright.sync_api import sync_playwright
from tests.client.running import running
from tests.service.running import COMMAND, Server
from tests.web.browsers import ARGUMENTS, INSTRUCTION, find_browser
from tests.web.page.voter import Voter

from crowdveil.client.client import Client
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.service.poll import poll_from_dict
from crowdveil.service.poll_release import make_release
from crowdveil.simulated_voters import send_crowd

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 860}
HOST = {"width": 900, "height": 900}
ROAD = {"name": "road", "study": "moral-machine", "paradigm": "vlcp", "budget": 8}
PAGE = {"width": 900, "height": 1000}


def main():
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = find_browser(playwright)
        if path is None:
            sys.exit(INSTRUCTION)
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        picture_a_voters_way(browser, Path(folder))
        picture_a_hosts_way(browser, Path(folder))
        picture_a_release(browser, Path(folder))
        browser.close()


def picture_a_voters_way(browser, folder):
    server = Server(folder / "log", "--data", str(folder / "data"))
    try:
        voter = Voter(browser.new_page(viewport=PHONE, locale="en-GB", reduced_motion="reduce", device_scale_factor=2))
        voter.open(server.page)
        voter.page.screenshot(path=PICTURES / "voter-welcome.png")
        voter.to_dilemmas(1_000_000)
        voter.page.locator("label.left").click()
        voter.page.screenshot(path=PICTURES / "voter.png")
        voter.page.set_viewport_size(DESKTOP)
        voter.page.screenshot(path=PICTURES / "voter-wide.png", scale="css")
        voter.page.set_viewport_size(PHONE)
        voter.answer_all()
        voter.page.locator(".sent").wait_for()
        voter.press_primary()
        voter.done()
        voter.page.locator(".result").screenshot(path=PICTURES / "voter-result.png", scale="css")
    finally:
        server.stop()


def picture_a_hosts_way(browser, folder):
    (folder / "host").mkdir()
    with running(folder / "host", [poll_from_dict(ROAD)]) as (store, address):
        page = browser.new_page(viewport=HOST, base_url=address, locale="en-GB", reduced_motion="reduce")
        page.goto(f"/host/sign-in#link={store.hosts.create_sign_in_link(int(time.time()))}")
        page.get_by_role("button", name="Sign in with the link").click()
        page.goto("/host/new")
        page.screenshot(path=PICTURES / "host-form.png")
        with Client(address) as client:
            send_crowd(client, client.poll("road"), 400, connections=2)
        make_release(store, "road", datetime.now(UTC).date(), Epsilon("4"))
        page.goto("/r/road/")
        page.locator("#decider select").first.wait_for()
        page.screenshot(path=PICTURES / "public.png")


def picture_a_release(browser, folder):
    for words in (
        "simulate moral-machine --voters 2000 --seed 1 --out crowd.parquet",
        "ledger create study.ledger --budget 1",
        "release crowd.parquet --paradigm vlcp --epsilon 1 --ledger study.ledger --out release.json",
        "page release.json",
    ):
        subprocess.run(
            [sys.executable, "-c", COMMAND, *words.split()], cwd=folder, check=True, stdout=subprocess.DEVNULL
        )
    page = browser.new_page(viewport=PAGE)
    page.goto((folder / "release.html").as_uri())
    figure = page.locator("figure").first.bounding_box()
    shown = {"x": 0, "y": 0, "width": PAGE["width"], "height": figure["y"] + figure["height"] + 24}
    page.screenshot(path=PICTURES / "release.png", full_page=True, clip=shown)


if __name__ == "__main__":
    main()
