"""The page and the documentation: well-formed, self-contained, and with everything in them."""

from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
from made_up_results import DATA, MadeUpResults

from crowdveil.evaluation.paper import reproduction
from crowdveil.evaluation.paper.figures import FIGURE_NAMES, figures
from crowdveil.evaluation.paper.page import reproduction_page, write_docs
from crowdveil.evaluation.paper.reproduction import ReproductionRequest, figure_files, reproduce

SOME = ("norm-bound", "moral-machine-comparison")
VOID = {"meta", "img", "br", "link", "input", "hr"}


class Page(HTMLParser):
    """Checks that tags nest, and collects what a reader could follow or load."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.sources, self.words = [], [], [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag not in VOID:
            self.open.append(tag)
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found["href"]] if "href" in found else []
        self.sources += [found["src"]] if "src" in found else []
        assert tag not in {"script", "iframe", "object", "link"}
        if tag == "img":
            assert found["alt"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    request = ReproductionRequest(
        folder, 4, 1, DATA, "crowdveil reproduce --crowds 4", "a file with <b>tags</b> & signs"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reproduction, "_run", lambda *asked: MadeUpResults())
        # Every figure is drawn elsewhere; a synthetic and a real one stand for all.
        some = {name: plan for name, plan in figures(DATA).items() if name in SOME}
        patch.setattr(reproduction, "figures", lambda data: some)
        return reproduce(request, lambda total: None)


def test_the_page(made):
    text = reproduction_page(made)
    page = Page(text)
    assert page.open == []
    assert len(set(page.ids)) == len(page.ids)
    assert all(link[0] == "#" and link[1:] in page.ids for link in page.links)
    assert all(source.startswith("data:image/svg+xml;base64,") for source in page.sources)
    assert "@import" not in text
    assert "url(" not in text
    for one in made.figures:
        assert one.plan.title in page.words
        assert one.plan.beside_the_paper in page.words
    for claim in (*made.claims, *made.recommended):
        assert claim.quote in page.words
        assert claim.why in page.words
    assert "<b>tags</b> & signs" in page.words
    assert "crowdveil reproduce --crowds 4" in page.words
    assert f"numpy {made.versions['numpy']}" in page.words


def test_the_files(made):
    for one in made.figures:
        files = figure_files(made.request.folder, one.plan.name)
        assert files["png"].read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert ElementTree.parse(files["svg"]).getroot().tag.endswith("svg")
        table = pl.read_parquet(files["parquet"])
        assert table.columns == ["panel", "line", "x", "mean", "low", "high", "crowds"]
        assert table.equals(one.numbers)
        assert pl.read_csv(files["csv"]).height == table.height


def test_the_same_numbers_give_the_same_files(made, tmp_path):
    again = reproduction._draw(ReproductionRequest(tmp_path, 4, 1, DATA, "", ""), made.figures[0].plan, MadeUpResults())
    for kind, file in figure_files(tmp_path, again.plan.name).items():
        assert file.read_bytes() == figure_files(made.request.folder, again.plan.name)[kind].read_bytes()


def test_the_documentation(made, tmp_path):
    write_docs(made, tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert "crowdveil reproduce --crowds 4" in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    claims = [line for line in rows if "**" in line]
    assert len(claims) == len(made.claims) + len(made.recommended)
    assert {line.count(" | ") for line in claims} == {4}
    for one in made.figures:
        assert f"]({one.plan.name}.png)" in text
        assert (tmp_path / f"{one.plan.name}.png").exists()


def test_the_committed_documentation_has_every_claim_and_figure(made):
    docs = Path(__file__).parents[3] / "docs" / "reproduction"
    text = (docs / "README.md").read_text()
    for claim in (*made.claims, *made.recommended):
        assert claim.quote in text
    for name in FIGURE_NAMES:
        assert f"]({name}.png)" in text
        assert (docs / f"{name}.png").exists()
    assert sum(file.stat().st_size for file in docs.iterdir()) < 3_000_000
