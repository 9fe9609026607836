from __future__ import annotations

import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from crowdveil.pages.feature_estimates import FeatureEstimate
from crowdveil.pages.figures import MOST_ROWS, forest_plot, guess_picture

ROWS = (
    FeatureEstimate("girls", 0.5, 0.1),
    FeatureEstimate("women", 0.2, 0.15),
    FeatureEstimate("cats", 0.05, 0.2),
    FeatureEstimate("cost in $ \\frac{", -0.1, 0.3),
    FeatureEstimate("漢字 <b>&", -0.4, 0.05),
)


def draw(rows: tuple[FeatureEstimate, ...] = ROWS, narrow: bool = False, key: str = "k") -> ElementTree.Element:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return ElementTree.fromstring(forest_plot(rows, key=key, title="T <1>", description="D & d", narrow=narrow))


def dots(svg: ElementTree.Element) -> list[tuple[float, float, str]]:
    """Return where each dot is, and its style: the drawing's only uses of a shape at a place that has a fill."""
    return [
        (float(use.attrib["x"]), float(use.attrib["y"]), use.attrib["style"])
        for use in svg.iter("use")
        if "fill" in use.attrib["style"]
    ]


def bars(svg: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    """Return both ends of each horizontal line."""
    ends = []
    for path in svg.iter("path"):
        numbers = [float(n) for n in re.findall(r"-?[\d.]+", path.attrib["d"])]
        if len(numbers) == 4 and numbers[1] == numbers[3] and numbers[0] != numbers[2]:
            ends.append((numbers[0], numbers[1], numbers[2], numbers[3]))
    return ends


@pytest.mark.parametrize("narrow", [False, True])
def test_dots_and_bars_are_where_the_numbers_are(narrow: bool) -> None:
    svg = draw(narrow=narrow)
    found, lines = dots(svg), bars(svg)
    assert len(found) == len(lines) == len(ROWS)
    scale = (found[0][0] - found[-1][0]) / (ROWS[0].value - ROWS[-1].value)
    assert scale > 0
    for row, (x, y, _), (left, line_y, right, _) in zip(ROWS, found, lines, strict=True):
        assert x - found[-1][0] == pytest.approx(scale * (row.value - ROWS[-1].value), abs=1e-3)
        assert (left, right) == pytest.approx((x - scale * row.error_bar, x + scale * row.error_bar), abs=1e-3)
        assert line_y == y
    steps = [second[1] - first[1] for first, second in pairwise(found)]
    assert steps == pytest.approx([steps[0]] * len(steps), abs=1e-3)
    assert steps[0] > 0


def test_what_may_be_noise_looks_different_beyond_its_colour() -> None:
    fills = [re.findall(r"fill: var\(--(\w+)", style) for _, _, style in dots(draw())]
    assert fills == [["more"], ["more"], ["paper"], ["paper"], ["less"]]


@pytest.mark.parametrize("narrow", [False, True])
def test_words_are_text_and_never_formulas(narrow: bool) -> None:
    said = [element.text for element in draw(narrow=narrow).iter("text")]
    labels = [row.label for row in ROWS]
    assert [words for words in said if words in labels] == labels


def test_screen_readers_get_a_title_and_a_description() -> None:
    svg = draw()
    names = {element.attrib["id"]: element.text for element in svg.iter() if "id" in element.attrib}
    assert svg.attrib["role"] == "img"
    assert names[svg.attrib["aria-labelledby"]] == "T <1>"
    assert names[svg.attrib["aria-describedby"]] == "D & d"


def test_drawings_share_no_ids_and_refer_to_their_own() -> None:
    first, second = (
        {element.attrib["id"] for element in draw(key=key).iter() if "id" in element.attrib} for key in ("a", "b")
    )
    assert first
    assert not first & second
    for key, ids in (("a", first), ("b", second)):
        text = ElementTree.tostring(draw(key=key), encoding="unicode")
        referred = set(re.findall(r'(?:href="|url\()#([^")]+)', text))
        assert referred
        assert referred <= ids


def test_long_labels_are_cut_and_many_rows_are_limited() -> None:
    rows = tuple(FeatureEstimate(f"{k} " + "very " * 30, 1 - 0.01 * k, 0.1) for k in range(MOST_ROWS + 20))
    svg = draw(rows)
    labels = [element.text or "" for element in svg.iter("text") if "very" in (element.text or "")]
    assert len(labels) == MOST_ROWS
    assert all(len(label) <= 33 and label.endswith("…") for label in labels)
    assert labels[0].startswith("0 ")
    assert labels[-1].startswith(f"{MOST_ROWS - 1} ")


def test_a_release_of_nothing_but_zeros_can_be_drawn() -> None:
    assert len(dots(draw((FeatureEstimate("a", 0.0, 0.0), FeatureEstimate("b", 0.0, 0.0))))) == 2


def test_guess_marks_stand_at_their_probabilities() -> None:
    def ends(*marks: float) -> list[float]:
        drawn = guess_picture([(p, f"{p}") for p in marks], key="g", title="t", description="d")
        found = []
        for path in ElementTree.fromstring(drawn).iter("path"):
            numbers = [float(n) for n in re.findall(r"-?[\d.]+", path.attrib["d"])]
            if len(numbers) == 4 and numbers[0] == numbers[2] and "stroke-width: 2" in path.attrib["style"]:
                found.append(numbers[0])
        return found

    (at_all, coin) = ends(1.0)
    assert ends(0.73, 0.9) == pytest.approx(
        [coin + (at_all - coin) * (0.73 - 0.5) / 0.5, coin + (at_all - coin) * 0.8, coin], abs=1e-3
    )


def test_threads_draw_the_same_pictures_as_one_after_the_other() -> None:
    alone = [forest_plot(ROWS, key=f"k{i}", title="t", description="d", narrow=False) for i in range(8)]
    with ThreadPoolExecutor(4) as pool:
        together = list(
            pool.map(lambda i: forest_plot(ROWS, key=f"k{i}", title="t", description="d", narrow=False), range(8))
        )
    assert together == alone
