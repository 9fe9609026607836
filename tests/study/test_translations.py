import re
import tomllib
from dataclasses import replace
from importlib import resources

import pytest

from crowdveil.errors import CrowdveilError
from crowdveil.study.bundled import load_study
from crowdveil.study.features import Factor, Feature
from crowdveil.study.study import Drawing, Study
from crowdveil.study.translations import INTERFACE_LANGUAGES, languages, load_translation, read_translation, words

TRANSLATED = [(name, code) for name in ("moral-machine", "kidney", "fairness") for code in INTERFACE_LANGUAGES[1:]]

FLOOD = Study(
    name="flood",
    title="One pump, two streets",
    question="Which street should get the pump?",
    drawing=Drawing("independent", 5),
    parts=("people",),
    features=(
        Feature(
            "residents",
            "residents",
            0,
            9,
            levels=(0, 1, 5),
            part="people",
            words={"0": "", "1": "one", "other": "{n} residents"},
        ),
        Feature("depth", "water", 0, 2, levels=(0, 1)),
    ),
)
FRENCH = {
    "study": "flood",
    "language": "fr",
    "title": "Une pompe, deux rues",
    "question": "Quelle rue doit recevoir la pompe ?",
    "features": {
        "residents": {"label": "habitants", "words": {"1": "un habitant", "other": "{n} habitants"}},
        "depth": {"label": "eau"},
    },
}


def without(data, *path):
    """A copy of nested dictionaries without one entry."""
    return {
        key: without(value, *path[1:]) if key == path[0] and len(path) > 1 else value
        for key, value in data.items()
        if key != path[0] or len(path) > 1
    }


def replaced(data, value, *path):
    """A copy of nested dictionaries with one entry replaced or added."""
    return {**data, path[0]: value if len(path) == 1 else replaced(data[path[0]], value, *path[1:])}


@pytest.mark.parametrize(("name", "code"), TRANSLATED)
def test_a_bundled_study_speaks_every_language(name, code):
    study = load_study(name)
    said = words(study, code)
    assert said["language"] == code
    assert said["direction"] == ("rtl" if code == "ar" else "ltr")
    assert set(said["features"]) == set(study.feature_names)
    assert list(said["factors"]) == [factor.name for factor in study.factors]
    assert all(len(set(factor["poles"])) == 2 for factor in said["factors"].values())
    assert said["parts"] == list(study.parts)
    assert said["title"] != study.title


@pytest.mark.parametrize(("name", "code"), TRANSLATED)
def test_a_translation_says_each_value_and_tells_values_apart(name, code):
    """Whatever differs in the study's own words differs in the other language, too, and nothing is left out."""
    study = load_study(name)
    said = words(study, code)["features"]
    for feature in study.features:
        values = feature.levels or list(range(int(feature.low), int(feature.high) + 1))
        table = said[feature.name]["words"]
        phrases = [table.get(f"{v:g}", table.get("other", "")).replace("{n}", f"{v:g}") for v in values]
        assert [bool(p) for p in phrases] == [bool(feature.phrase(v)) for v in values]
        assert len({p for p in phrases if p}) == len({feature.phrase(v) for v in values if feature.phrase(v)})


@pytest.mark.parametrize(("name", "code"), TRANSLATED)
def test_two_features_are_never_called_the_same(name, code):
    said = words(load_study(name), code)["features"]
    assert len({feature["label"] for feature in said.values()}) == len(said)
    if name != "kidney":
        assert len({feature["words"].get("1", feature["words"].get("other")) for feature in said.values()}) == len(said)


SCRIPTS = {
    "ar": "\u0600-\u06ff",
    "zh": "\u4e00-\u9fff",
    "ja": "\u3040-\u30ff\u4e00-\u9fff",
    "ko": "\uac00-\ud7a3",
    "ru": "\u0400-\u04ff",
}


@pytest.mark.parametrize(("name", "code"), [pair for pair in TRANSLATED if pair[1] in SCRIPTS])
def test_words_are_in_the_languages_own_script(name, code):
    said = words(load_study(name), code)
    texts = [said["title"], said["question"], *(f["label"] for f in said["features"].values())]
    texts += [phrase for f in said["features"].values() for phrase in f["words"].values() if phrase]
    assert [text for text in texts if not re.search(f"[{SCRIPTS[code]}]", text)] == []


def test_every_bundled_file_is_used():
    files = {
        file.name
        for file in resources.files("crowdveil.study.bundled").joinpath("languages").iterdir()
        if file.name.endswith(".toml")
    }
    assert files == {f"{name}.{code}.toml" for name, code in TRANSLATED}


@pytest.mark.parametrize(
    ("number", "phrase"),
    [(1, "мужчина"), (2, "{n} мужчины"), (3, "{n} мужчины"), (4, "{n} мужчины"), (5, "{n} мужчин")],
)
def test_russian_counts_as_russian_does(number, phrase):
    table = words(load_study("moral-machine"), "ru")["features"]["man"]["words"]
    assert table.get(str(number), table["other"]) == phrase


def test_arabic_has_a_dual():
    table = words(load_study("moral-machine"), "ar")["features"]["man"]["words"]
    assert (table["1"], table["2"], table["other"]) == ("رجل", "رجلان", "{n} رجال")


def test_the_studys_own_words_are_english():
    study = load_study("kidney")
    said = words(study, "en")
    assert said["title"] == study.title
    assert said["features"]["obesity"]["words"] == dict(study.features[2].words)


def test_a_study_with_other_words_does_not_get_the_bundled_translations():
    """A study that only borrowed the name may mean something else."""
    bundled = load_study("kidney")
    other = Study.from_dict({**bundled.as_dict(), "question": "Which patient should wait?"})
    longer = Study.from_dict({**bundled.as_dict(), "drawing": {"method": "independent", "dilemmas": 7}})
    assert languages(other) == ("en",)
    assert languages(longer) == INTERFACE_LANGUAGES
    assert languages(load_study("synthetic-4")) == ("en",)


def test_a_study_adds_a_language_by_a_file(tmp_path):
    file = tmp_path / "flood.fr.toml"
    file.write_text(
        """
        study = "flood"
        language = "fr"
        title = "Une pompe, deux rues"
        question = "Quelle rue doit recevoir la pompe ?"
        [features]
        residents = { label = "habitants", words = { 1 = "un habitant", other = "{n} habitants" } }
        depth = { label = "eau" }
        """,
        encoding="utf-8",
    )
    added = [load_translation(file, FLOOD)]
    assert languages(FLOOD, added) == ("en", "fr")
    said = words(FLOOD, "fr", added)
    assert said["features"]["residents"] == {
        "label": "habitants",
        "words": {"0": "", "1": "un habitant", "other": "{n} habitants"},
    }
    assert said["features"]["depth"] == {"label": "eau", "words": None}
    assert said["parts"] == ["people"]


def test_an_added_translation_goes_before_a_bundled_one():
    study = load_study("kidney")
    text = (
        resources.files("crowdveil.study.bundled").joinpath("languages", "kidney.fr.toml").read_text(encoding="utf-8")
    )
    own = read_translation(tomllib.loads(text) | {"title": "Le rein"}, study, "mine")
    assert words(study, "fr", [own])["title"] == "Le rein"


def test_a_language_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(CrowdveilError, match=r"no words in 'it': it has en; add a translation file"):
        words(FLOOD, "it")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (replaced(FRENCH, "kidney", "study"), "translates the study 'kidney', not 'flood'"),
        (replaced(FRENCH, "French", "language"), "'French' is not a language tag such as fr or pt-BR"),
        (replaced(FRENCH, " ", "title"), "'title' must be a text that is not empty"),
        (without(FRENCH, "question"), "'question' must be a text"),
        (without(FRENCH, "features"), r"the table \[features\] is missing"),
        (without(FRENCH, "features", "depth"), "there are no words for depth"),
        (replaced(FRENCH, {"label": "x"}, "features", "debth"), "study flood has no feature 'debth'"),
        (without(FRENCH, "features", "residents", "label"), "feature residents: 'label' must be a text"),
        (without(FRENCH, "features", "residents", "words"), "feature residents: the table words is missing"),
        (without(FRENCH, "features", "residents", "words", "other"), "no words for the value 5; add it, or other"),
        (replaced(FRENCH, "personne", "features", "residents", "words", "0"), "leaves the value 0 unsaid"),
        (replaced(FRENCH, "x", "features", "residents", "words", "few"), "feature residents: words are for a value"),
        (replaced(FRENCH, {"1": "x"}, "features", "depth", "words"), "feature depth: the study has no phrases"),
        (replaced(FRENCH, "eau", "features", "depth"), "feature depth: must look like"),
        (replaced(FRENCH, 1, "features", "residents", "low"), "unknown setting 'low'; known are label, words"),
        (replaced(FRENCH, 3.0, "norm_bound"), "unknown setting 'norm_bound'"),
        (replaced(FRENCH, {"depth": {}}, "factors"), "study flood has no factor 'depth'"),
    ],
)
def test_a_translation_that_does_not_fit_is_refused_by_name(data, told):
    with pytest.raises(CrowdveilError, match=told):
        read_translation(data, FLOOD, "flood.fr.toml")


NAMED = replace(FLOOD, named_factors=(Factor("water", "Water", ("dry", "wet"), {"depth": 1}),))
NAMED_IN_FRENCH = {**FRENCH, "factors": {"water": {"title": "Eau", "poles": ["sec", "mouillé"]}}}


def test_a_translation_says_the_factors_that_a_study_names():
    said = read_translation(NAMED_IN_FRENCH, NAMED, "flood.fr.toml").as_dict(NAMED)
    assert said["factors"] == {"water": {"title": "Eau", "poles": ["sec", "mouillé"]}}
    assert words(NAMED, "en")["factors"] == {"water": {"title": "Water", "poles": ["dry", "wet"]}}
    assert words(FLOOD, "en")["factors"] == {}


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (FRENCH, r"the table \[factors\] is missing"),
        (without(NAMED_IN_FRENCH, "factors", "water"), "there are no words for water"),
        (replaced(NAMED_IN_FRENCH, {}, "factors", "depth"), "study flood has no factor 'depth'"),
        (replaced(NAMED_IN_FRENCH, "eau", "factors", "water"), "factor water: must look like"),
        (without(NAMED_IN_FRENCH, "factors", "water", "title"), "factor water: 'title' must be a text"),
        (replaced(NAMED_IN_FRENCH, ["sec"], "factors", "water", "poles"), "'poles' must be two different texts"),
        (replaced(NAMED_IN_FRENCH, {"depth": 2}, "factors", "water", "weights"), "unknown setting 'weights'"),
    ],
)
def test_a_translation_of_factors_that_does_not_fit_is_refused_by_name(data, told):
    with pytest.raises(CrowdveilError, match=told):
        read_translation(data, NAMED, "flood.fr.toml")


def test_a_translation_of_categories_needs_no_table_of_features_and_takes_nothing_else_for_it():
    study = load_study("fairness")
    file = resources.files("crowdveil.study.bundled").joinpath("languages", "fairness.fr.toml")
    data = without(tomllib.loads(file.read_text(encoding="utf-8")), "features")
    assert read_translation(data, study, file.name).language == "fr"
    for given in (3, "x", ["y"]):
        with pytest.raises(CrowdveilError, match="'features' must be a dict"):
            read_translation({**data, "features": given}, study, file.name)


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(CrowdveilError, match=r"there is no translation file .*nothing\.toml: check its name"):
        load_translation(tmp_path / "nothing.toml", FLOOD)
    (tmp_path / "bad.toml").write_text("study = ", encoding="utf-8")
    with pytest.raises(CrowdveilError, match="is not a readable TOML file"):
        load_translation(tmp_path / "bad.toml", FLOOD)
