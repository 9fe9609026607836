"""The page about operations lists every setting that there is, as it is."""

from dataclasses import fields
from pathlib import Path

from crowdveil.service.poll import _KNOWN
from crowdveil.service.settings import PREFIX, ServiceSettings

PAGE = Path(__file__).parents[3] / "docs" / "operations.md"


def test_every_setting_is_in_the_docs():
    section = PAGE.read_text(encoding="utf-8").split("## Settings")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{f.name}` | `{PREFIX}{f.name.upper()}` | `{f.default!r}` | {f.metadata['told']} |"
        for f in fields(ServiceSettings)
    ]


def test_every_poll_setting_is_in_the_tutorial():
    tutorial = (PAGE.parent / "tutorial-host.md").read_text(encoding="utf-8")
    text = tutorial.split("### The same as a file")[1].split("\n### ")[0]
    listed = {
        name for line in text.splitlines() if line.startswith("| `") for name in line.split("|")[1].split("`")[1::2]
    }
    assert listed == set(_KNOWN)
