"""Take the pictures of the README and the documentation: a voter's page, and the page about a release.

python -m tests.web.pictures
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from tests.service.running import COMMAND, Server
from tests.web.browsers import ARGUMENTS, INSTRUCTION, find_browser
from tests.web.page.voter import Voter

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 860}
PAGE = {"width": 900, "height": 1000}


def main():
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = find_browser(playwright)
        if path is None:
            sys.exit(INSTRUCTION)
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        picture_a_voters_way(browser, Path(folder))
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
    page.screenshot(path=PICTURES / "release.png")


if __name__ == "__main__":
    main()
