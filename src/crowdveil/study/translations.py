"""A study's words in other languages.

A translation is a TOML file beside the study. It changes what a voter reads and nothing that is measured: it cannot
contain a bound, a level or a unit, and it is checked against the study before anybody sees it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from crowdveil.errors import CrowdveilError
from crowdveil.study.bundled import BUNDLED, load_study
from crowdveil.study.features import Feature, check_phrases, read_poles
from crowdveil.study.plain_data import check_keys, optional, parse_toml, read_toml, text
from crowdveil.study.study import Study

INTERFACE_LANGUAGES = ("en", "ar", "zh", "fr", "de", "ja", "ko", "pt", "ru", "es")
"""The languages of the voter's page and the bundled studies."""

OWN_LANGUAGE = "en"
"""The assumed language of a study's own words."""

TOSS_A_COIN = {
    "en": "Treat them equally: toss a coin",
    "ar": "عاملهم بالتساوي: ألقِ عملة معدنية",
    "zh": "同等对待双方：抛硬币决定",
    "fr": "Les traiter de la même façon : tirer à pile ou face",
    "de": "Beide gleich behandeln: eine Münze werfen",
    "ja": "等しく扱う：コインを投げて決める",
    "ko": "똑같이 대하기: 동전 던지기로 결정",
    "pt": "Tratá-los por igual: lançar uma moeda ao ar",
    "ru": "Отнестись одинаково: бросить монету",
    "es": "Tratarlos por igual: lanzar una moneda",
}
"""The usual words of the third answer: a study with the English ones needs no translation of them."""

_TABLES = {"feature": "features", "category": "categories", "factor": "factors"}
_RIGHT_TO_LEFT = ("ar", "fa", "he", "ur")
_TAG = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


@dataclass(frozen=True)
class FeatureWords:
    """The label of one feature, and its phrases by value (``other`` for the rest, ``{n}`` is the value)."""

    label: str
    words: Mapping[str, str] | None


@dataclass(frozen=True)
class FactorWords:
    """The title of one factor, and the words for its negative and its positive pole."""

    title: str
    poles: tuple[str, str]


@dataclass(frozen=True)
class Translation:
    """A study's words in one language."""

    study: str
    language: str
    title: str
    question: str
    features: Mapping[str, FeatureWords]
    factors: Mapping[str, FactorWords]
    """Words of the factors that the study names."""
    indifference: str | None = None
    """The third answer, in a study that allows it."""

    @property
    def direction(self) -> str:
        """The direction of writing: ``ltr`` or ``rtl``."""
        return "rtl" if self.language.partition("-")[0] in _RIGHT_TO_LEFT else "ltr"

    def as_dict(self, study: Study) -> dict[str, Any]:
        """Return the words as a page needs them; values that the study omits are omitted in every language."""
        return {
            "language": self.language,
            "direction": self.direction,
            "title": self.title,
            "question": self.question,
            **({} if self.indifference is None else {"indifference": self.indifference}),
            "parts": list(study.parts),
            "features": {
                f.name: {"label": self.features[f.name].label, "words": _with_unsaid(f, self.features[f.name].words)}
                for f in study.features
            },
            "factors": {
                f.name: {"title": self.factors[f.name].title, "poles": list(self.factors[f.name].poles)}
                for f in study.named_factors
            },
        }


def languages(study: Study, added: Sequence[Translation] = ()) -> tuple[str, ...]:
    """Return every language in which a study can be shown, its own first."""
    bundled = INTERFACE_LANGUAGES[1:] if _bundled_words_fit(study) else ()
    return tuple(dict.fromkeys((OWN_LANGUAGE, *bundled, *(t.language for t in added))))


def words(study: Study, language: str, added: Sequence[Translation] = ()) -> dict[str, Any]:
    """Return a study's words in a language; an added translation takes precedence over a bundled one."""
    for translation in added:
        if translation.language == language:
            return translation.as_dict(study)
    if language == OWN_LANGUAGE:
        return _own_words(study).as_dict(study)
    if language in languages(study):
        file = resources.files("crowdveil.study.bundled").joinpath("languages", f"{study.name}.{language}.toml")
        return read_translation(parse_toml(file.read_text(encoding="utf-8")), study, file.name).as_dict(study)
    raise CrowdveilError(
        f"study {study.name!r} has no words in {language!r}: it has {', '.join(languages(study, added))}; "
        "add a translation file for another one"
    )


def load_translation(path: str | Path, study: Study) -> Translation:
    """Read a translation file and check it against the study."""
    data = read_toml(Path(path), "translation file", "write the study, the language, a title and a question into it")
    return read_translation(data, study, str(path))


def read_translation(data: Mapping[str, Any], study: Study, where: str) -> Translation:
    """Check the plain data of a translation against its study; ``where`` names the translation in error messages."""
    allowed = ("study", "language", "title", "question", "features", "categories", "factors")
    check_keys(data, allowed if study.indifference is None else (*allowed, "indifference"), where)
    if text(data, "study", where) != study.name:
        raise CrowdveilError(f"{where} translates the study {data['study']!r}, not {study.name!r}")
    language = text(data, "language", where)
    if not _TAG.fullmatch(language):
        raise CrowdveilError(f"{where}: language {language!r} is not a language tag such as fr or pt-BR")
    if levels := _levels(data, study, where):
        data = {**data, "features": {**levels, **optional(data, "features", {}, where)}}
    features = _table(data, "feature", study.feature_names, study, where)
    factors = _table(data, "factor", [f.name for f in study.named_factors], study, where)
    return Translation(
        study=study.name,
        language=language,
        title=text(data, "title", where),
        question=text(data, "question", where),
        features={f.name: _feature_words(f, features[f.name], f"{where}, feature {f.name}") for f in study.features},
        factors={f.name: _factor_words(factors[f.name], f"{where}, factor {f.name}") for f in study.named_factors},
        indifference=_indifference(data, study, language, where),
    )


def _indifference(data: Mapping[str, Any], study: Study, language: str, where: str) -> str | None:
    """Return the words of the third answer, which may be left out if they are the usual ones."""
    if study.indifference is None:
        return None
    if "indifference" not in data and study.indifference == TOSS_A_COIN[OWN_LANGUAGE] and language in TOSS_A_COIN:
        return TOSS_A_COIN[language]
    return text(data, "indifference", where)


def _table(data: Mapping[str, Any], kind: str, names: Sequence[str], study: Study, where: str) -> dict[str, Any]:
    """Return the table of words for exactly these features or factors."""
    table = _TABLES[kind]
    given = data.get(table, None if names else {})
    if not isinstance(given, dict):
        raise CrowdveilError(f"{where}: the table [{table}] is missing")
    unknown = [name for name in given if name not in names]
    if unknown:
        raise CrowdveilError(f"{where}: study {study.name} has no {kind} {unknown[0]!r}")
    missing = [name for name in names if name not in given]
    if missing:
        raise CrowdveilError(f"{where}: there are no words for {', '.join(missing)}")
    return given


def _levels(data: Mapping[str, Any], study: Study, where: str) -> dict[str, Any]:
    """Return the words for the features of categories' levels, each with the label of its category."""
    if "categories" not in data:
        return {}
    given = _table(data, "category", [category.name for category in study.categories], study, where)
    found: dict[str, Any] = {}
    for category in study.categories:
        here = f"{where}, category {category.name}"
        entry = given[category.name]
        if not isinstance(entry, dict) or not isinstance(entry.get("words"), dict):
            raise CrowdveilError(f"{here}: must look like {{ label = ..., words = {{ level = ... }} }}, got {entry!r}")
        check_keys(entry, ("label", "words"), here)
        check_keys(entry["words"], category.levels, here)
        label = text(entry, "label", here)
        for name, level in zip(category.feature_names, category.levels, strict=True):
            word = text(entry["words"], level, here)
            found[name] = {"label": f"{label}: {word}", "words": {"1": word}}
    return found


def _factor_words(given: Any, where: str) -> FactorWords:
    if not isinstance(given, dict):
        raise CrowdveilError(f"{where}: must look like {{ title = ..., poles = [..., ...] }}, got {given!r}")
    check_keys(given, ("title", "poles"), where)
    return FactorWords(text(given, "title", where), read_poles(given, where))


def _feature_words(feature: Feature, given: Any, where: str) -> FeatureWords:
    if not isinstance(given, dict):
        raise CrowdveilError(f"{where}: must look like {{ label = ..., words = {{ ... }} }}, got {given!r}")
    check_keys(given, ("label", "words"), where)
    label = text(given, "label", where)
    if feature.words is None:
        if "words" in given:
            raise CrowdveilError(
                f"{where}: the study has no phrases for it, so a translation cannot have any; leave out words"
            )
        return FeatureWords(label, None)
    table = given.get("words")
    if not isinstance(table, dict):
        raise CrowdveilError(f"{where}: the table words is missing")
    phrases = {str(value): text(table, value, where) for value in table}
    check_phrases(phrases, where)
    for value in _values(feature):
        if feature.phrase(value) and f"{value:g}" not in phrases and "other" not in phrases:
            raise CrowdveilError(f"{where}: there are no words for the value {value:g}; add it, or other")
        if not feature.phrase(value) and phrases.get(f"{value:g}"):
            raise CrowdveilError(f"{where}: the study leaves the value {value:g} unsaid; leave it out here, too")
    return FeatureWords(label, phrases)


def _values(feature: Feature) -> Iterable[float]:
    """List the values that a voter may be shown: the levels, the values with words, and both ends of the range."""
    named = [float(value) for value in feature.words or () if value != "other"]
    return sorted({feature.low, feature.high, *named, *feature.levels})


def _with_unsaid(feature: Feature, phrases: Mapping[str, str] | None) -> dict[str, str] | None:
    if phrases is None or feature.words is None:
        return None
    return {**{value: "" for value, phrase in feature.words.items() if not phrase}, **phrases}


def _own_words(study: Study) -> Translation:
    return Translation(
        study=study.name,
        language=OWN_LANGUAGE,
        title=study.title,
        question=study.question,
        features={f.name: FeatureWords(f.label, f.words) for f in study.features},
        factors={f.name: FactorWords(f.title, f.poles) for f in study.named_factors},
        indifference=study.indifference,
    )


def _bundled_words_fit(study: Study) -> bool:
    """Whether the bundled translations fit: the study's own words must be those of the bundled study."""
    has_translations = study.name in BUNDLED and not study.name.startswith("synthetic")
    if not has_translations or study.indifference not in (None, TOSS_A_COIN[OWN_LANGUAGE]):
        return False
    return _own_words(load_study(study.name)) == replace(_own_words(study), indifference=None)
