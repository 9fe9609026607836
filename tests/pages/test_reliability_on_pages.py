"""Pages about a release of a study that asks one dilemma twice: how many answer alike, in words, in ten languages."""

from dataclasses import replace

import numpy as np
import pytest

from crowdveil.pages.feature_estimates import reliability_sentences, split_sentences
from crowdveil.pages.release_page import release_page
from crowdveil.pages.sections import ReleaseView, sections
from crowdveil.privacy.guarantee import Place
from crowdveil.privacy.side_answers import Reliability
from crowdveil.publish.release import release_for_experiments
from crowdveil.service.public.result import read_result
from crowdveil.service.public.words import words_of
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study
from crowdveil.study.translations import INTERFACE_LANGUAGES


@pytest.fixture(scope="module")
def release():
    study = replace(load_study("kidney"), repeat=True)
    (crowd,) = simulated_batches(study, 100, np.random.default_rng(1))
    made = release_for_experiments(crowd, "rlcp", epsilon=3, seed=2)
    return replace(made, reliability=Reliability(0.874, 0.01, 0.8531, 0.8904))


def test_the_page_and_the_host_s_page_tell_the_share_and_its_interval(release):
    (sentence,) = reliability_sentences(release)
    assert "about 87% of people like these voters answer it alike (85% to 89%" in sentence
    assert "answer it alike" in release_page([release])
    assert "answer it alike" in sections(ReleaseView(release, "release", None, "r.json"), level=2)
    assert "87% answer alike" in repr(release)


def test_without_a_repeat_there_is_nothing_to_tell(release):
    plain = replace(release, reliability=None)
    assert reliability_sentences(plain) == []
    assert read_result(plain, words_of("en")).alike is None
    assert "reliability" not in plain.as_dict()


@pytest.mark.parametrize("language", INTERFACE_LANGUAGES)
def test_the_public_page_says_it_in_every_language_with_ends_rounded_outwards(release, language):
    said = read_result(release, words_of(language)).alike
    assert all(number in said for number in ("87", "85", "90"))


def test_a_split_is_told_where_there_is_one():
    parts = {"preference": 0.81, "threshold": 0.09, "reliability": 0.1}
    assert split_sentences(parts, Place.CENTRAL) == [
        "Of epsilon: 0.81 for the preference, 0.09 for the threshold and 0.1 for the reliability."
    ]
    reports = split_sentences({"preference": 0.9, "reliability": 0.1}, Place.DISTRIBUTED)
    assert reports == ["Of the reports: 90% about the preference and 10% about the reliability."]
    assert split_sentences({"preference": 1.0}, Place.CENTRAL) == []
