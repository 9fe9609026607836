"""axe-core finds what keeps people from using a page. It comes from npm, in the version that package-lock.json has."""

from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js"


def violations(page):
    """Return what axe-core has against a page as it is now: rule, impact and where."""
    if not SCRIPT.is_file():
        pytest.fail("axe-core is not installed: run `make node_modules`")
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(SCRIPT.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    return [(v["id"], v["impact"], [node["target"] for node in v["nodes"]]) for v in found]
