"""The public page of a result says what the release says, to everybody, and nothing of a file becomes markup."""

import csv
import io
import math
import re
import struct
from dataclasses import replace

import numpy as np
import pytest
from tests.service.public.conftest import ODD_TITLE

from crowdveil.decision import decide
from crowdveil.pages.feature_estimates import one_line
from crowdveil.privacy.side_answers import Indifference
from crowdveil.publish.release import release_for_experiments
from crowdveil.releases import release_from_dict
from crowdveil.service.host.releases import compare
from crowdveil.service.public.result import read_result
from crowdveil.service.public.words import words_of
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study
from crowdveil.study.translations import words as study_words


def current(site, poll):
    return release_from_dict(site.get(f"/api/polls/{poll}/releases/current").json())


def normal(t):
    return (1 + math.erf(t / math.sqrt(2))) / 2


def test_a_leaning_is_told_by_the_share_that_a_decision_between_its_poles_states(site):
    release = current(site, "preferred")
    result = read_result(release, words_of("en"))
    by_title = {leaning.title: leaning for leaning in result.leanings}
    names = release.study.feature_names
    for factor, step in zip(release.study.factors, release.study.pole_steps, strict=True):
        more = {f.name: max(s, 0) * f.unit + max(f.low, 0) for f, s in zip(release.study.features, step, strict=True)}
        less = {f.name: max(-s, 0) * f.unit + max(f.low, 0) for f, s in zip(release.study.features, step, strict=True)}
        decision = decide(release, release.study.dilemma({"more": more, "less": less}))
        share = decision.probability if decision.ranking[0].name == "more" else 1 - decision.probability
        assert by_title[factor.title].at == pytest.approx(share, abs=1e-9), (factor.name, names)


@pytest.mark.parametrize(("voters", "epsilon", "clear"), [(300, 20, 5), (20, 1, 0)])
def test_where_people_may_toss_a_coin_shares_are_those_that_decisions_state(voters, epsilon, clear):
    """On the rail, half of the coins go to each side. Nobody is said to choose a side who would toss a coin."""
    study = replace(load_study("kidney"), indifference="Toss a coin")
    (crowd,) = simulated_batches(study, voters, np.random.default_rng(1))
    made = release_for_experiments(crowd, "rlcp", epsilon=epsilon, seed=2)
    release = replace(made, indifference=Indifference(1.0, 0.02, 0.96, 1.04, 0.62, 0.01))
    result = read_result(release, words_of("en"))
    by_title = {leaning.title: leaning for leaning in result.leanings}
    for factor, step in zip(release.study.factors, release.study.pole_steps, strict=True):
        more = {f.name: max(s, 0) * f.unit + max(f.low, 0) for f, s in zip(release.study.features, step, strict=True)}
        less = {f.name: max(-s, 0) * f.unit + max(f.low, 0) for f, s in zip(release.study.features, step, strict=True)}
        shares = decide(release, {"more": more, "less": less}).probabilities
        leaning = by_title[factor.title]
        assert leaning.at == pytest.approx(shares["more"] + shares["toss a coin"] / 2), factor.name
        assert leaning.low <= leaning.at <= leaning.high
        poles = [("more", leaning.more), ("less", leaning.less)]
        (first, pole), (second, other) = poles if shares["more"] >= shares["less"] else poles[::-1]
        if leaning.clear:
            one, two, coin = (round(100 * shares[name]) for name in (first, second, "toss a coin"))
            assert leaning.sentence == f"{one} of 100 choose “{pole}”, {two} “{other}”, and {coin} would toss a coin"
        else:
            low, high = map(int, re.search(r"between (\d+) and (\d+) of 100", leaning.sentence).groups())
            assert low <= 100 * shares[first] <= high
            assert leaning.sentence.endswith(f"choose “{pole}”")
    assert sum(leaning.clear for leaning in result.leanings) == clear
    assert result.coins
    assert not read_result(replace(release, indifference=None), words_of("en")).coins


def test_the_clearest_leaning_comes_first_and_an_open_one_is_called_open(site):
    result = read_result(current(site, "preferred"), words_of("en"))
    known = [leaning for leaning in result.leanings if leaning.known]
    distances = [abs(leaning.at - 0.5) for leaning in known]
    assert distances == sorted(distances, reverse=True)
    for leaning in known:
        assert leaning.low <= leaning.at <= leaning.high
        assert leaning.sentence.startswith("Too close to call") is not leaning.clear


def test_a_feature_that_the_study_never_varies_is_told_as_not_known(site):
    release = current(site, "preferred")
    basis, rest = release.unknown.basis.copy(), release.unknown.rest.copy()
    basis[1], rest[1] = 0.0, 0.0
    same = replace(release, unknown=replace(release.unknown, basis=basis, rest=rest))
    (row,) = [row for row in read_result(same, words_of("de")).features if not row.known]
    assert row.label == one_line(
        study_words(release.study, "de", ())["features"][release.study.features[1].name]["label"]
    )
    assert (row.value, row.error_bar) == ("", "Darüber ist noch nichts bekannt.")
    (row,) = [row for row in compare(release, same) if not row.known]
    assert row.label == release.study.features[1].label
    assert (row.picture, row.moved) == ("", False)


def test_a_paper_s_society_is_told_by_values_and_not_by_shares_of_people(site):
    release = current(site, "trusted")
    assert release.unknown is None
    result = read_result(release, words_of("en"))
    assert not result.shares
    assert all("of 100" not in leaning.sentence for leaning in result.leanings)
    farthest = max(max(abs(leaning.low - 0.5), abs(leaning.high - 0.5)) for leaning in result.leanings)
    assert farthest == pytest.approx(0.5)


def test_the_promise_is_rounded_against_the_voters(site):
    said = " ".join(read_result(current(site, "untrusted"), words_of("en")).promises)
    assert f"at most {math.ceil(100 * math.e**2 / (1 + math.e**2))} times in 100" in said
    assert "from ε = 0.5 to ε = 2" in said
    assert "not even the people who run this poll" in said
    assert "not even" not in " ".join(read_result(current(site, "preferred"), words_of("en")).promises)


def test_the_page_shows_it_in_the_language_that_is_asked_for(site):
    page = site.get("/r/preferred/?lang=ar").text
    assert '<html lang="ar" dir="rtl">' in page
    english = site.get("/r/preferred/").text
    assert '<html lang="en" dir="ltr">' in english
    for leaning in read_result(current(site, "preferred"), words_of("en")).leanings:
        assert leaning.sentence.replace("“", "“") in english.replace("&#39;", "'")
    answer = site.browser.get("/r/preferred/", headers={"Accept-Language": "de"})
    assert "Was die Menge bevorzugt" in answer.text
    assert answer.headers["Vary"] == "Accept-Language"


def test_other_websites_find_a_title_a_description_and_a_picture(site):
    page = site.get("/r/preferred/").text
    release = current(site, "preferred").digest
    found = dict(re.findall(r'<meta (?:property|name)="([^"]+)" content="([^"]*)">', page))
    assert found["og:title"] == "One kidney, two patients"
    assert found["og:image"] == f"http://crowd.example/r/preferred/{release}/picture.png"
    assert found["og:description"]
    picture = site.get(found["og:image"].removeprefix("http://crowd.example")).content
    assert picture.startswith(b"\x89PNG")
    assert struct.unpack(">II", picture[16:24]) == (1200, 630)


def test_tables_and_pictures_can_be_taken_away(site):
    release = current(site, "preferred")
    base = f"/r/preferred/{release.digest}/"
    features = list(csv.DictReader(io.StringIO(site.get(base + "features.csv").text)))
    assert [row["feature"] for row in features] == list(release.study.feature_names)
    assert np.allclose([float(row["weight"]) for row in features], release.parameter)
    factors = list(csv.DictReader(io.StringIO(site.get(base + "factors.csv").text)))
    assert [row["factor"] for row in factors] == [factor.name for factor in release.study.factors]
    drawn = site.get(base + "picture.svg?lang=fr").text
    assert drawn.startswith("<svg")
    assert "Un rein" in drawn
    assert release.digest in site.get(base).text  # How to cite it.


def test_words_of_a_file_stay_words(site):
    assert "<script>" not in site.get("/r/odd/").text.replace('<script type="module"', "")
    assert "Cars &amp; &#34;cats&#34; &lt;script&gt;" in site.get("/").text
    drawn = site.get(f"/r/odd/{current(site, 'odd').digest}/picture.svg").text
    assert "<script>" not in drawn
    assert "&lt;script&gt;" in drawn
    assert current(site, "odd").study.title == ODD_TITLE


@pytest.mark.parametrize(
    "path", ["/r/nowhere/", "/r/preferred/unknown/", "/r/trusted/{other}/", "/r/preferred/{own}/other.png"]
)
def test_what_is_not_there_is_said_not_to_be(site, path):
    digest = current(site, "preferred").digest
    page = site.get(path.format(own=digest, other=digest), status=404).text
    assert "There is no such poll or result here." in page


def test_a_poll_without_a_release_says_so_and_invites(tmp_path_factory):
    from tests.service.host.website import website

    with website(tmp_path_factory.mktemp("new")) as new:
        page = new.get("/r/untrusted/").text
        assert "Nothing has been published yet." in page
        assert 'href="/p/untrusted/"' in page
        assert 'href="/p/trusted/"' not in new.get("/r/trusted/").text  # One needs a link there.
        assert "Nothing has been published yet." in new.get("/").text


def test_the_front_page_shows_the_findings_of_every_poll(site):
    page = site.get("/").text
    for poll in ("preferred", "trusted", "untrusted", "odd"):
        assert f'href="/r/{poll}/?lang=en"' in page
