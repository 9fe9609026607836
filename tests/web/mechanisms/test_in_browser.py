"""The same checks in a real browser: vectors and privacy, with the modules as they are served."""

import json
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
FOLDERS = {"web": ROOT / "src/crowdveil/web", "checks": HERE / "checks"}
SITE = "http://crowdveil.test"

CHECK = """async (vectors) => {
  const { checkVectors } = await import("/checks/vectors.js");
  const { checkPrivacy } = await import("/checks/privacy.js");
  const base = "/web/mechanisms/";
  return [...(await checkVectors(vectors, base)), ...(await checkPrivacy(base))];
}"""


def opened(browser, damaged=None):
    """A page at an address that nothing answers but these folders; ``damaged`` is (file, text, text in its place)."""
    page = browser.new_page()

    def answer(route):
        _, folder, *rest = route.request.url.removeprefix(SITE).split("/")
        if folder not in FOLDERS:
            route.fulfill(body="<!doctype html><title>checks</title>", content_type="text/html")
            return
        text = FOLDERS[folder].joinpath(*rest).read_text(encoding="utf-8")
        if damaged and rest[-1] == damaged[0]:
            assert damaged[1] in text
            text = text.replace(damaged[1], damaged[2])
        route.fulfill(body=text, content_type="text/javascript")

    page.route("**/*", answer)
    page.goto(f"{SITE}/")
    return page


def vectors():
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "vectors").glob("*.json")}


def test_the_browser_meets_the_vectors(browser):
    assert opened(browser).evaluate(CHECK, vectors()) == []


def test_the_browser_notices_a_wrong_factor(browser):
    damaged = ("score.js", "= 2n * BigInt(RECORD_CLIP)", "= 1n * BigInt(RECORD_CLIP)")
    assert opened(browser, damaged).evaluate(CHECK, vectors())
