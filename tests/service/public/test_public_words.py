"""The public pages speak all languages: the same keys, the same places for values, and the right one for a visitor."""

import json
import re
from importlib import resources

import pytest

from crowdveil.service.public.words import own_name, pick_language, words_of
from crowdveil.study.translations import INTERFACE_LANGUAGES


def read(language):
    file = resources.files("crowdveil.service.public").joinpath("languages", f"{language}.json")
    return json.loads(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", INTERFACE_LANGUAGES)
def test_every_language_says_everything_with_the_same_values(language):
    english, other = read("en"), read(language)
    assert list(other) == list(english)
    for key, words in english.items():
        assert sorted(re.findall(r"\{\w+\}", other[key])) == sorted(re.findall(r"\{\w+\}", words)), key
        assert other[key].strip(), key


def test_arabic_is_written_from_right_to_left():
    assert {language for language in INTERFACE_LANGUAGES if words_of(language).direction == "rtl"} == {"ar"}


@pytest.mark.parametrize(
    ("asked", "header", "picked"),
    [
        (None, "", "en"),
        ("fr", "de", "fr"),
        ("xx", "de-AT,de;q=0.9", "de"),
        (None, "it, ja;q=0.4, ko;q=0.7", "ko"),
        (None, "fr;q=0, es;q=0.1", "es"),
        (None, "nonsense;q=much,;;;", "en"),
    ],
)
def test_a_visitor_reads_what_was_asked_for_or_what_the_browser_prefers(asked, header, picked):
    assert pick_language(INTERFACE_LANGUAGES, asked, header) == picked


def test_a_language_that_the_pages_do_not_speak_is_english_around_the_study_s_words():
    assert words_of("sw")("take_part") == words_of("en")("take_part")
    assert (own_name("sw"), own_name("es")) == ("sw", "Español")


def test_thousands_are_kept_apart():
    assert words_of("en").whole(12345) == "12,345"
    assert words_of("de").whole(12345) == "12\u202f345"
