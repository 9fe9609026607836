"""axe-core finds what keeps people from using a page. It comes from npm, in the version that package-lock.json has."""

from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js"

RUN = """rules => axe
  .run({ resultTypes: ["violations"], ...(rules ? { runOnly: rules } : {}) })
  .then((found) => found.violations)"""
"""Of what is well, axe would note every element, and it would all be sent here."""

COLOURS = {"light": None, "dark": ["color-contrast", "link-in-text-block"]}
"""The rules that are about colours, by scheme; all rules in the light."""


def violations(page, scheme):
    """Return what axe-core has against a page in light or in dark: rule, impact and where.

    In the dark only colours are others: what else there is to say was said in the light.
    """
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    if not SCRIPT.is_file():
        pytest.fail("axe-core is not installed: run `make node_modules`")
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(SCRIPT.read_text(encoding="utf-8"))
    found = page.evaluate(RUN, COLOURS[scheme])
    return [(v["id"], v["impact"], [node["target"] for node in v["nodes"]]) for v in found]
