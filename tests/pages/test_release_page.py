from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from crowdveil.decision import Decision, RankedAlternative, decide
from crowdveil.pages.figures import MOST_ROWS
from crowdveil.pages.markup import table
from crowdveil.pages.release_page import CONTENT_SECURITY_POLICY, release_page
from crowdveil.privacy.noise.distribution import EmpiricalNormal, Gaussian, LaplaceSum
from crowdveil.privacy.uncertainty import Uncertainty
from crowdveil.releases import Release, read_release
from crowdveil.study.bundled import load_study, synthetic_study
from crowdveil.study.study import Dilemma, Study

MakeRelease = Callable[..., Release]

VOID = {"meta", "br", "hr", "img", "link", "input"}
BANNER = "Experiment: floating-point noise, protects nobody"


class Page(HTMLParser):
    """A parsed page that refuses tags that do not match."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"{tag} has an attribute twice"
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self.open[-1] if self.open else "", " ".join(data.split())))

    @property
    def words(self) -> str:
        """All that is said, without the style sheet."""
        return " ".join(text for tag, text in self.texts if tag != "style")

    def values(self, attribute: str) -> list[str]:
        return [attrs[attribute] for _, attrs in self.tags if attribute in attrs]


def table_rows(html: str) -> list[list[str]]:
    """Read the first table of features as text."""
    (body,) = re.findall(r'<table class="readings".*?<tbody[^>]*>(.*?)</tbody>', html, re.DOTALL)[:1]
    rows = []
    for row in body.strip().splitlines():
        spoken = re.sub(r"<span.*?</span>", "", row)
        rows.append([re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", spoken)])
    return rows


@pytest.fixture(scope="module")
def dilemma() -> Dilemma:
    return load_study("moral-machine").dilemma(
        [{"name": "stay", "features": {"girl": 1}}, {"name": "swerve", "features": {"dog": 2, "intervention": 1}}]
    )


@pytest.fixture(scope="module")
def four(make_release: MakeRelease) -> list[Release]:
    spread = EmpiricalNormal(tuple(map(tuple, (np.eye(23) * 0.03**2).tolist())))
    return [
        make_release("vlcp", "1"),
        make_release("rlcp", "0.3"),
        make_release(
            "vldp", "1", smallest="0.1", mechanism="algorithm-2", noise=LaplaceSum((0.002, 0.02), (997, 1100))
        ),
        make_release("rldp", "2", mechanism="algorithm-3", noise=spread, facts={"repair": "none", "record_norm": 7.5}),
    ]


@pytest.fixture(scope="module")
def page_of_one(make_release: MakeRelease) -> str:
    return release_page([make_release()])


@pytest.fixture(scope="module")
def page_of_four(four: list[Release], dilemma: Dilemma) -> str:
    return release_page(four, decisions=[decide(release, dilemma) for release in four])


def test_table_shows_the_release_in_order(make_release: MakeRelease) -> None:
    values = np.array([0.123456, -0.2, 0.0321, 0.9, -0.0004])
    release = make_release(study=load_study("kidney"), parameter=values)
    rows = table_rows(release_page([release]))
    assert rows == [
        ["weekly work hours (per 10)", "+0.900", "± 0.060"],
        ["elderly dependents", "+0.123", "± 0.060"],
        ["obesity level", "+0.032", "± 0.060"],
        ["years on the waiting list", "0.000", "± 0.060"],
        ["years of life gained (per 10)", "−0.200", "± 0.060"],
    ]


def test_of_a_crowd_the_table_tells_how_many_voters_prefer_one_more(make_release: MakeRelease) -> None:
    values = np.array([0.123456, -0.2, 0.0321, 0.9, -0.0004])
    noise = LaplaceSum((0.06 / np.log(20).item(),), (1,))
    nothing = np.zeros((5, 5))
    unknown = Uncertainty(np.eye(5), np.zeros((5, 0)), values, nothing, values, nothing, np.zeros(5))
    release = make_release(study=load_study("kidney"), parameter=values, noise=noise, unknown=unknown)
    page = release_page([release])
    # Phi(0.9), Phi(0.123456) and Phi(-0.2) from a table of the normal distribution.
    assert [row[3] for row in table_rows(page)] == ["81.6%", "54.9%", "unclear", "unclear", "42.1%"]
    words = Page(page).words
    assert "how many voters would pick the one with one unit more" in words
    shares = words.partition("What that means in shares")[2].partition("What is promised")[0]
    assert "−0." in shares
    assert not re.search(r"-\d|[+−]0\.00\b", shares)
    assert "An error bar is a bound: it covers the noise that privacy added, the draw of the voters" in words


def test_the_page_says_what_was_measured(make_release: MakeRelease) -> None:
    """Two of three features may be measured, or all of them; or nothing is left out of what is."""
    study = synthetic_study(3)
    release = make_release(study=study, parameter=np.zeros(3))
    basis, nothing = np.eye(3), np.zeros((3, 3))

    def words(measured: int, rest: int, left_out: int) -> str:
        little = nothing[:measured, :measured]
        means = np.zeros(measured)
        unknown = Uncertainty(basis[:, :measured], basis[:, 3 - rest :], means, little, means, little, means)
        return Page(release_page([replace(release, unknown=replace(unknown, left_out=left_out))])).words

    assert "Measured along factors: what these leave out is bounded by its prior" in words(2, 1, 0)
    assert "Measured along features: every direction in which they differ." in words(3, 0, 1)
    assert "Measured along" not in words(3, 0, 0)
    assert "Measured along" not in Page(release_page([release])).words  # A paper's society.


def test_the_page_says_where_nothing_can_be_told_from_zero(make_release: MakeRelease) -> None:
    study = synthetic_study(2)
    for value, said in ((0.1, True), (1.0, False)):
        page = release_page([make_release(study=study, parameter=np.array([value, 0.0]), noise=Gaussian(0.1))])
        assert ("Every interval includes zero" in Page(page).words) is said


def test_factors_come_first_where_a_study_names_them(make_release: MakeRelease) -> None:
    study = load_study("moral-machine")
    theta = [-0.3, 0.1, 0.4, 0.0, 0.02, 0.2, 0.5, -0.05, -0.1]
    html = release_page([make_release(parameter=study.factor_matrix @ np.array(theta), noise=Gaussian(0.03))])
    (table,) = re.findall(r'<table class="factors".*?<tbody[^>]*>(.*?)</tbody>', html, re.DOTALL)
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table.strip().splitlines()]
    assert [row[0] for row in rows[:3]] == ["Law", "Age", "Species"]
    reach = 1.959964 * 0.03 * np.linalg.norm(study.factor_map[0])
    ends = [f"{-0.3 + side * reach:.3f}".replace("-", "−") for side in (-1, 1)]
    assert rows[2] == ["Species", "pets", "people", "−0.300", " to ".join(ends)]
    assert [row[3] for row in rows].count("0.000") == 1
    assert html.index('class="factors"') < html.index('class="readings"')
    assert 'class="factors"' not in release_page([make_release(study=load_study("kidney"), parameter=np.zeros(5))])


def test_every_feature_is_in_the_pictures_and_in_the_table(page_of_one: str) -> None:
    page = Page(page_of_one)
    drawn = Counter(text for tag, text in page.texts if tag == "text")
    listed = {row[0] for row in table_rows(page_of_one)}
    for feature in load_study("moral-machine").features:
        assert feature.label in listed
        assert drawn[feature.label] == 2  # the wide picture and the one for phones


def test_page_opens_with_what_was_asked_of_how_many(page_of_one: str) -> None:
    words = Page(page_of_one).words
    for said in ("The Moral Machine", "The brakes have failed. Which group should be spared?", "2,097", "23", "73.1%"):
        assert said in words
    assert "people tend to prefer alternatives with more of this" in words


@pytest.mark.parametrize("which", ["page_of_one", "page_of_four"])
def test_page_is_well_formed_and_needs_nothing_beside_it(which: str, request: pytest.FixtureRequest) -> None:
    html = request.getfixturevalue(which)
    page = Page(html)
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "form", "base", "foreignobject"}
    assert "://" not in html
    assert "@import" not in html
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", html))
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on") or name == "src"]
    policy = [attrs["content"] for _, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert policy == [CONTENT_SECURITY_POLICY]


def test_ids_are_unique_and_every_reference_leads_somewhere(page_of_four: str) -> None:
    page = Page(page_of_four)
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    referred = {target[1:] for target in page.values("href")}
    referred |= {target.strip("()#") for target in re.findall(r"url(\([^)]*\))", page_of_four)}
    referred |= set(page.values("aria-labelledby")) | set(page.values("aria-describedby"))
    assert referred
    assert referred <= set(ids)


def test_headings_go_down_one_step_at_a_time(page_of_four: str, page_of_one: str) -> None:
    for html in (page_of_four, page_of_one):
        levels = [int(tag[1]) for tag, _ in Page(html).tags if re.fullmatch(r"h[1-6]", tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))


def test_tables_have_captions_and_scopes(page_of_four: str) -> None:
    page = Page(page_of_four)
    tables = sum(tag == "table" for tag, _ in page.tags)
    assert tables == 9  # factors and features of four releases, and their comparison
    assert sum(tag == "caption" for tag, _ in page.tags) == tables
    assert all(attrs.get("scope") in ("row", "col") for tag, attrs in page.tags if tag == "th")
    assert ("html", {"lang": "en"}) in page.tags


def test_comparison_shows_all_releases_side_by_side(page_of_four: str) -> None:
    (table,) = re.findall(r'<table class="comparison".*?</table>', page_of_four, re.DOTALL)
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table.split("<tr")[2:]]
    cells = [[re.sub("<[^>]+>", "", cell) for cell in row] for row in rows]
    assert [row[:4] for row in cells] == [
        ["VLCP", "1", "all records of a voter together", "the aggregator"],
        ["RLCP", "0.3", "each record by itself", "the aggregator"],
        ["VLDP", "0.1 to 1", "all records of a voter together", "nobody"],
        ["RLDP", "2", "each record by itself", "nobody"],
    ]
    # The first two error bars are set; the last is 1.96 standard deviations of 0.03.
    assert [cells[k][5] for k in (0, 1, 3)] == ["± 0.060", "± 0.060", "± 0.059"]


def test_decision_is_told_with_its_certainty(make_release: MakeRelease) -> None:
    release = make_release()
    ranking = (RankedAlternative("left", 0.5, "one girl"), RankedAlternative("right", 0.1, "two dogs"))
    sure = Decision(ranking, 0.66, 0.9512, 0.9234, 0.9, "the margin is wide", 1.0, "vlcp")
    unsure, certain = replace(sure, certainty=0.7), replace(sure, certainty=0.99999)
    words = Page(release_page([release], decisions=[sure])).words
    for said in (
        "The crowd would choose left .",
        "left : one girl (score +0.500)",
        "right : two dogs (score +0.100)",
        "The margin is wide.",
        "Probability: 66%, the share of voters who would choose “left” over “right”",
        "Certainty: 95.1% (90% was asked for), that the voters of this release prefer it",
        "Population certainty: 92.3%, that the people whom these voters were drawn from do",
    ):
        assert said in words
    society = replace(sure, probability=None, population_certainty=None)
    words = Page(release_page([release], decisions=[society])).words
    assert "Certainty: 95.1% (90% was asked for), that privacy noise did not change the choice" in words
    assert "Probability:" not in words
    assert "Population" not in words
    both = Page(release_page([release, release], decisions=[unsure, certain])).words
    assert "too close to call , certain to 70.0%" in both
    assert "Too close to call." in both
    assert "left , certain to more than 99.9%" in both


def test_experiment_is_loud_and_promises_nothing(make_release: MakeRelease, page_of_one: str) -> None:
    experiment = make_release(exact=False, ledger=None)
    assert "protects nobody" not in page_of_one
    alone = Page(release_page([experiment])).words
    assert BANNER in alone
    assert "Nothing is promised" in alone
    assert "What is promised" not in alone
    assert "--allow-experiment" in alone
    assert "charged to no ledger" in alone
    both = Page(release_page([make_release(), experiment])).words
    assert both.count(BANNER) == 2  # above all, and above its own part


def test_provenance_names_everything(make_release: MakeRelease) -> None:
    release = make_release(
        "rldp", mechanism="algorithm-3", facts={"voters_without_a_maximum": 2090, "bounds": [1, 2]}, version="9.8.7"
    )
    words = Page(release_page([release], files=["my release.json"])).words
    for said in (
        release.study.fingerprint,
        release.digest,
        "algorithm-3",
        "voters without a maximum",
        "2090",
        "[1, 2]",
        "crowdveil 9.8.7",
        release.noise.description,
        release.sampler,
        "id 0f4b3f2f, entry 7",
        "crowdveil decide 'my release.json' dilemma.json",
    ):
        assert said in words


def test_pages_of_groups_name_them(make_release: MakeRelease) -> None:
    groups = ["women", "men <40>"]
    women, men = (make_release(facts={"group": group, "groups_not_protected": "declared"}) for group in groups)
    alone = release_page([women])
    assert "What the group “women” of a crowd prefers, released with privacy" in alone
    together = release_page([women, men])
    for shown in ("women", "men &lt;40&gt;"):
        assert together.count(f'data-label="Group"><span class="own">{shown}</span>') == 1
        assert together.count(f"· group “{shown}” · ") == 1
    everybody = release_page([make_release(), make_release()])
    assert "Group" not in everybody
    assert "What a crowd prefers, released with privacy, in 2 ways" in everybody


def test_columns_of_numbers_are_aligned_whatever_their_signs() -> None:
    rows = [
        ["age", "5 years old", "+0.27", "+0.18 to +0.36", "0.08"],
        ["gap", "−", "−0.21", "−0.33 to 0.00", "0.12"],
        ["wait", "less", "", "not known", ""],
    ]
    shown = Page(table(["Factor", "From", "Effect", "Interval", "Noise"], rows, "")).tags
    kinds = [attributes.get("class", "") for tag, attributes in shown if tag in ("td", "th")]
    assert kinds == ["", "", "number", "number", "number"] * 4


ATTACK = "</title></style></svg><script>alert(1)</script><img src=x onerror=alert(2)>\"' onload='x"


def test_nothing_from_a_file_becomes_markup(make_release: MakeRelease) -> None:
    plain = load_study("kidney").as_dict()
    study = Study.from_dict(
        {
            **plain,
            "name": ATTACK,
            "title": ATTACK,
            "question": ATTACK,
            "features": [{**feature, "label": f"{ATTACK} {feature['name']}"} for feature in plain["features"]],
        }
    )
    release = make_release(
        study=study,
        mechanism=ATTACK,
        sampler=ATTACK,
        version=ATTACK,
        facts={ATTACK: {ATTACK: [ATTACK]}},
        ledger={ATTACK: ATTACK},
    )
    decision = Decision(
        (RankedAlternative(ATTACK, 1.0, ATTACK), RankedAlternative(f"{ATTACK}2", 0.0, ATTACK)),
        0.8,
        0.99,
        0.9,
        0.9,
        ATTACK,
        1.0,
        "vlcp",
    )
    harmless = make_release(study=load_study("kidney"))
    for number in (1, 2):
        attacked = Page(
            release_page([release] * number, decisions=[decision] * number, files=[ATTACK] * number, title=ATTACK)
        )
        calm = Page(release_page([harmless] * number, decisions=[decision] * number))
        assert {tag for tag, _ in attacked.tags} == {tag for tag, _ in calm.tags}
        assert {name for _, attrs in attacked.tags for name in attrs} == {
            name for _, attrs in calm.tags for name in attrs
        }
        assert attacked.words.count("<script>alert(1)</script>") >= 10


def test_unprintable_names_do_not_break_the_page(make_release: MakeRelease, tmp_path: Path) -> None:
    plain = load_study("kidney").as_dict()
    features = [{**feature, "label": f"bell \x07 and {feature['name']}"} for feature in plain["features"]]
    study = Study.from_dict({**plain, "title": "nul \x00, turned \u202e", "question": "漢字?", "features": features})
    html = release_page([make_release(study=study)], title="half a pair \ud83d") + release_page(
        [make_release(study=study)]
    )
    (tmp_path / "page.html").write_text(html, encoding="utf-8")
    assert not set(html) & {"\x00", "\x07", "\ud83d", "\u202e"}
    assert "漢字?" in html


def test_a_saved_release_gives_the_same_page(make_release: MakeRelease, tmp_path: Path) -> None:
    release = make_release("rldp", facts={"repair": "none"})
    release.save(tmp_path / "release.json")
    assert release_page([read_release(tmp_path / "release.json")]) == release_page([release])


def test_four_releases_stay_below_a_megabyte(page_of_four: str) -> None:
    assert len(page_of_four.encode()) < 1_000_000


def test_a_study_of_hundreds_of_features_is_drawn_in_part_and_listed_in_full(make_release: MakeRelease) -> None:
    html = release_page([make_release(study=synthetic_study(200))])
    assert len(table_rows(html)) == 200
    assert f"Only the {MOST_ROWS} largest of 200 values are drawn" in Page(html).words


def test_releases_of_different_studies_are_told_apart(make_release: MakeRelease) -> None:
    html = release_page([make_release(), make_release(study=load_study("kidney"))])
    page = Page(html)
    assert ("title", "The Moral Machine and One kidney, two patients") in page.texts
    assert "Study" in [text for tag, text in page.texts if tag == "th"]
    assert {attrs.get("data-label") for _, attrs in page.tags} >= {"Study"}


@pytest.mark.parametrize(("releases", "decisions", "files"), [(0, 0, 0), (2, 1, 0), (1, 0, 2)])
def test_lists_that_do_not_match_are_a_bug(
    make_release: MakeRelease, dilemma: Dilemma, releases: int, decisions: int, files: int
) -> None:
    release = make_release()
    with pytest.raises(ValueError, match="do not match"):
        release_page([release] * releases, decisions=[decide(release, dilemma)] * decisions, files=["f"] * files)


def style_colours() -> dict[str, dict[str, str]]:
    """Read the named colours of each scheme from the style sheet."""
    style = resources.files("crowdveil.pages").joinpath("release_page.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    schemes = [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block)) for block in blocks]
    return dict(zip(("light", "dark", "print"), schemes, strict=True))


def contrast(first: str, second: str) -> float:
    """Contrast ratio after WCAG 2."""

    def luminance(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_words_contrast_with_what_is_behind_them(scheme: str) -> None:
    colours = style_colours()[scheme]
    for ink in ("ink", "muted", "more", "less"):
        for ground in ("paper", "card"):
            assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    assert contrast(colours["alarm"], colours["alarm-ink"]) >= 4.5


def test_pictures_use_the_colours_of_the_page(page_of_one: str) -> None:
    light = style_colours()["light"]
    used = set(re.findall(r"var\(--([a-z]+), (#[0-9a-f]{6})\)", page_of_one))
    assert {name for name, _ in used} == {"ink", "muted", "rule", "paper", "more", "less"}
    assert all(light[name] == colour for name, colour in used)
