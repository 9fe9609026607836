"""Every page states only what is true of its release, whatever kind of release and whatever paradigm it is."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from crowdveil.pages.plain_words import guarantee_sentences
from crowdveil.pages.release_page import release_page
from crowdveil.privacy.epsilon import Amount, Epsilon
from crowdveil.privacy.guarantee import PARADIGMS, Place, Unit
from crowdveil.publish.gather import REPORTS_MADE_ON
from crowdveil.publish.release import REPORTS_MADE_BY
from crowdveil.releases import Release
from crowdveil.study.bundled import load_study

MakeRelease = Callable[..., Release]

CENTRAL = [name for name, paradigm in PARADIGMS.items() if paradigm.place is Place.CENTRAL]
DISTRIBUTED = [name for name, paradigm in PARADIGMS.items() if paradigm.place is Place.DISTRIBUTED]
KINDS = [
    *(("central", name) for name in CENTRAL),
    *(("devices", name) for name in DISTRIBUTED),
    *(("personal devices", name) for name in DISTRIBUTED),
    *(("holder", name) for name in DISTRIBUTED),
    *(("personal holder", name) for name in DISTRIBUTED),
    ("zcdp", "vlcp"),
    *(("experiment", name) for name in PARADIGMS),
]
EVERY_KIND = pytest.mark.parametrize(("kind", "name"), KINDS, ids=[f"{kind}-{name}" for kind, name in KINDS])


def release_of(make_release: MakeRelease, kind: str, name: str) -> Release:
    """Return a release of the smallest study, whose pictures are drawn soonest."""
    release = make_release(name, "1", study=load_study("kidney"), smallest="0.5" if "personal" in kind else None)
    if "devices" in kind:
        return replace(release, mechanism="score", facts={"reports_made_on": REPORTS_MADE_ON}, ledger=None)
    if "holder" in kind:
        return replace(release, mechanism="score", facts={"reports_made_by": REPORTS_MADE_BY})
    if kind == "experiment":
        return replace(release, exact=False, ledger=None)
    if kind == "zcdp":
        # OpenDP converts rho = 0.02 to epsilon 0.89994 at delta 1e-6.
        epsilon = Epsilon("0.899936")
        rho = Amount.of("0.02")
        guarantee = replace(release.guarantee, epsilon=epsilon, smallest_epsilon=epsilon, delta=1e-6, rho=rho)
        return replace(release, guarantee=guarantee, mechanism="gaussian-mean")
    return release


@pytest.fixture(scope="module")
def read_pages() -> dict[tuple[str, str], str]:
    return {}


@pytest.fixture
def page_of(make_release: MakeRelease, read_pages: dict[tuple[str, str], str]) -> Callable[[str, str], str]:
    """What the page about a kind of release says. Pages take long to draw, so each is made once."""

    def read(kind: str, name: str) -> str:
        if (kind, name) not in read_pages:
            read_pages[kind, name] = words(release_page([release_of(make_release, kind, name)]))
        return read_pages[kind, name]

    return read


def words(page: str) -> str:
    """Return what a reader sees: no style sheet, no tags."""
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


@EVERY_KIND
def test_who_is_protected_and_who_is_trusted(
    make_release: MakeRelease, page_of: Callable[[str, str], str], kind: str, name: str
) -> None:
    release = release_of(make_release, kind, name)
    for said in (page_of(kind, name), " ".join(guarantee_sentences(release))):
        assert ("is protected" in said) == (kind != "experiment")
        assert ("protects nobody" in said) == (kind == "experiment")
        assert ("not protected against the aggregator" in said) == (kind in ("central", "zcdp"))
        assert ("not protected against the holder of the ballots" in said) == ("holder" in kind)
        assert ("each voter's own device added the noise" in said) == ("devices" in kind)
        assert ("Nothing but that device has to be trusted" in said) == ("devices" in kind)
        assert ("epsilons of their own, from 0.5 to 1" in said) == ("personal" in kind)
        assert ("may fail altogether" in said) == (kind == "zcdp")


@EVERY_KIND
def test_the_account(page_of: Callable[[str, str], str], kind: str, name: str) -> None:
    said = page_of(kind, name)
    assert "nobody kept account" not in said
    charged = kind in ("central", "zcdp") or "holder" in kind
    assert ("charged to a privacy ledger: id 0f4b3f2f, entry 7" in said) == charged
    assert ("the ledger keeps their sum within a budget" in said) == charged
    assert ("of several releases add up" in said) == charged
    assert ("The rhos of several releases" in said) == (kind == "zcdp")
    assert ("nothing to charge to a ledger" in said) == ("devices" in kind)
    assert ("epsilons of several reports on the same choices" in said) == ("devices" in kind)
    assert ("charged to no ledger" in said) == (kind == "experiment")


@EVERY_KIND
def test_the_unit_has_one_word(
    make_release: MakeRelease, page_of: Callable[[str, str], str], kind: str, name: str
) -> None:
    release = release_of(make_release, kind, name)
    said = page_of(kind, name)
    unit = PARADIGMS[name].unit
    assert ("What is promised to each voter" in said) == (unit is Unit.VOTER and release.exact)
    for lesser in (Unit.RECORD, Unit.CHOICE):
        assert (f"What is promised for each {lesser}" in said) == (unit is lesser and release.exact)
        assert (f"ten {lesser}s of the same person" in said) == (unit is lesser and release.exact)
    promise = " ".join(guarantee_sentences(release))
    assert "answer" not in promise
    whose = {Unit.VOTER: "one voter's records", Unit.RECORD: "one single record", Unit.CHOICE: "the choice made in one"}
    assert [unit for unit, thing in whose.items() if thing in promise] == [unit]


@EVERY_KIND
def test_what_an_attacker_learns_is_bounded_only_where_it_is(
    page_of: Callable[[str, str], str], kind: str, name: str
) -> None:
    said = page_of(kind, name)
    assert ("at most" in said) == (kind != "experiment")
    assert ("50% → " in said) == (kind != "experiment")
    assert ("not limited" in said) == (kind == "experiment")
    assert ("Privacy comes from" in said) == (kind != "experiment")
    assert ("is right at most 71.1% + 1e-06 of the time" in said) == (kind == "zcdp")
    if kind not in ("zcdp", "experiment"):
        assert "is right at most 73.1% of the time" in said  # e / (1 + e)


@pytest.mark.parametrize("name", CENTRAL)
def test_a_release_that_nobody_charged_is_told_as_such(make_release: MakeRelease, name: str) -> None:
    said = words(release_page([make_release(name, ledger=None)]))
    assert "nobody kept account of what else was released" in said
    assert "the ledger keeps their sum" not in said


def test_several_releases_are_each_told_as_they_are(make_release: MakeRelease) -> None:
    kinds = [("central", "vlcp"), ("devices", "vldp"), ("holder", "vldp"), ("experiment", "vlcp")]
    page = release_page([release_of(make_release, *one) for one in kinds])
    headings = [words(heading) for heading in re.findall(r"<h2>(.*?)</h2>", page)]
    assert headings[1:] == [
        "Each voter protected, the aggregator trusted",
        "Each voter protected, nobody trusted",
        "Each voter protected, the holder of the ballots trusted",
        "Experiment with VLCP, nobody protected",
    ]
    protected = [words(cell) for cell in re.findall(r'data-label="Protected">(.*?)</td>', page)]
    assert protected == [*["all records of a voter together"] * 3, "nobody"]
    trusted = [words(cell) for cell in re.findall(r'data-label="Trusted">(.*?)</td>', page)]
    assert trusted == ["the aggregator", "nobody", "the holder of the ballots", "the aggregator"]
