"""The host's own study, with its translations: conversions between rows of the poll form and plain data."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from crowdveil.errors import CrowdveilError, plural, shown
from crowdveil.estimation.design import leaves_out
from crowdveil.study.bundled import BUNDLED, load_study
from crowdveil.study.translations import INTERFACE_LANGUAGES

Fields = dict[str, str]

_LANGUAGES = {
    "ar": "Arabic",
    "zh": "Chinese",
    "fr": "French",
    "de": "German",
    "ja": "Japanese",
    "ko": "Korean",
    "pt": "Portuguese",
    "ru": "Russian",
    "es": "Spanish",
}
OWN_STUDY = "own"
UNNAMED = "poll"
"""Name of a poll or a study whose title has no letter that a name may have."""
LONGEST_SLUG = 40
MOST_FEATURES = 12
"""The number of rows in the form."""
_NORM_BOUND = 2.0
_DILEMMAS = "10"


def language_name(language: str) -> str:
    """Return the English name of a language of the interface."""
    return _LANGUAGES.get(language, language)


def slug(words: str) -> str:
    """Turn words into a name of lower-case letters, digits and -; an empty one if they have none of these.

    >>> slug("Who gets the last café?"), slug("誰")
    ('who-gets-the-last-cafe', '')
    """
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:LONGEST_SLUG].strip("-")


def slugs(texts: Sequence[str], before_number: str = "", longest: int = LONGEST_SLUG) -> list[str]:
    """Turn each of several texts into a name of its own: a number, if two would have the same name or one has none.

    >>> slugs(["car", "motor bike"]), slugs(["A+", "A-"]), slugs(["年", "car"], "fact-")
    (['car', 'motor-bike'], ['1', '2'], ['fact-1', 'fact-2'])
    """
    made = [slug(words)[:longest] for words in texts]
    if all(made) and len(set(made)) == len(made):
        return made
    return [f"{before_number}{number}" for number in range(1, len(made) + 1)]


def whole(given: str, what: str) -> int:
    """Read a whole number."""
    if not re.fullmatch(r"-?\d{1,12}", given):
        raise CrowdveilError(f"{what}: give a whole number, got {shown(given)}")
    return int(given)


def decimal(given: str, what: str) -> float:
    """Read a number."""
    try:
        return float(given)
    except ValueError:
        raise CrowdveilError(f"{what}: give a number, got {shown(given)}") from None


def lines(given: str) -> list[str]:
    """Return the non-empty lines of a field."""
    return [line.strip() for line in given.splitlines() if line.strip()]


def between_commas(given: str) -> list[str]:
    """Return the non-empty values between the commas of a field."""
    return [value.strip() for value in given.split(",") if value.strip()]


def study_of_form(given: Mapping[str, str]) -> str | dict[str, Any]:
    """Return the study that a form describes, or the name of a bundled one."""
    chosen = given.get("study", "")
    if chosen != OWN_STUDY:
        if chosen not in BUNDLED:
            raise CrowdveilError(f"say what is asked: choose a study, or describe your own; got {chosen!r}")
        return chosen
    for field, what in (("own_title", "a title"), ("own_question", "the question that voters are asked")):
        if not given.get(field):
            raise CrowdveilError(f"a study of your own needs {what}")
    facts = _facts(given).values()
    if not facts:
        raise CrowdveilError("a study of your own needs a fact in which outcomes differ, with its values")
    features = [fact for fact in facts if "low" in fact]
    categories = [fact for fact in facts if "low" not in fact]
    return {
        "name": slug(given["own_title"]) or UNNAMED,
        "title": given["own_title"],
        "question": given["own_question"],
        "norm_bound": _NORM_BOUND,
        "drawing": {
            "method": "independent",
            "dilemmas": whole(given.get("own_dilemmas") or _DILEMMAS, "how many dilemmas a voter gets"),
        },
        "features": features,
        **({"categories": categories} if categories else {}),
    }


def may_measure(study: str | Mapping[str, Any]) -> bool:
    """Whether a form may say what is measured of a study: one of the host's own has no factors but its features."""
    return isinstance(study, str) and leaves_out(load_study(study))


def form_of_study(study: Any) -> Fields:
    """Return the fields that describe a study."""
    if isinstance(study, str):
        return {"study": study}
    for field, filled in (("repeat", "yes"), ("along", study.get("along"))):
        if study.get(field):
            rest = {key: value for key, value in study.items() if key != field}
            return {**form_of_study(rest), field: str(filled)}
    for name in BUNDLED:
        if load_study(name).as_dict() == study:
            return {"study": name}
    fields = {"study": OWN_STUDY, "own_title": study.get("title", ""), "own_question": study.get("question", "")}
    fields["own_dilemmas"] = str(study.get("drawing", {}).get("dilemmas", ""))
    categories = study.get("categories", [])
    levels = {f"{one['name']}-{level}" for one in categories for level in one["levels"]}
    numbers = [one for one in study.get("features", []) if one["name"] not in levels]
    for k, feature in enumerate(numbers):
        fields[f"f{k}_label"] = feature.get("label", "")
        fields[f"f{k}_values"] = ", ".join(f"{value:g}" for value in feature.get("levels", []))
        fields[f"f{k}_icon"] = feature.get("icon", "")
    said = {one["name"]: one.get("words", {}).get("1", "") for one in study.get("features", [])}
    pictures = {one["name"]: one.get("icon", "") for one in study.get("features", [])}
    for k, category in enumerate(categories, len(numbers)):
        words = category.get("words", {})
        named = [(level, said.get(f"{category['name']}-{level}")) for level in category["levels"]]
        fields[f"f{k}_label"] = category["label"]
        fields[f"f{k}_values"] = ", ".join(words.get(level) or spoken or level for level, spoken in named)
        first = pictures.get(f"{category['name']}-{category['levels'][0]}", "")
        fields[f"f{k}_icon"] = category.get("icon", first)
    return fields


def _facts(given: Mapping[str, str]) -> dict[int, dict[str, Any]]:
    """Return the facts of a form by row, as features and categories: numbers before words, as in a study."""
    rows = [k for k in range(MOST_FEATURES) if given.get(f"f{k}_label") or given.get(f"f{k}_values")]
    facts = dict(sorted(((k, _fact(given, k)) for k in rows), key=lambda fact: "low" not in fact[1]))
    names = slugs([fact["label"] for fact in facts.values()], "fact-")
    for fact, name in zip(facts.values(), names, strict=True):
        fact["name"] = name.replace("-", "_") if "low" in fact else name
    return facts


def _fact(given: Mapping[str, str], k: int) -> dict[str, Any]:
    """Return a feature with its numbers, or a category with its words. The smallest step of a feature is its unit."""
    label = given.get(f"f{k}_label", "")
    values = list(dict.fromkeys(between_commas(given.get(f"f{k}_values", ""))))
    numbers = _numbers(values)
    if not label or len(values if numbers is None else numbers) < 2:
        raise CrowdveilError(
            f"fact {k + 1} needs a name and two or more different values, with commas between them: "
            f"got {label or 'no name'!r} with {', '.join(values) or 'no values'}"
        )
    picture = {"icon": given[f"f{k}_icon"]} if given.get(f"f{k}_icon") else {}
    if numbers is None:
        words = dict(zip(slugs(values), values, strict=True))
        return {"label": label, "levels": list(words), "words": words, **picture}
    unit = min(right - left for left, right in itertools.pairwise(numbers))
    return {
        "label": label,
        "low": numbers[0],
        "high": numbers[-1],
        "unit": unit,
        "levels": numbers,
        **picture,
    }


def _numbers(values: Sequence[str]) -> list[float] | None:
    """Return values as different numbers in order; None if one of them is none."""
    try:
        return sorted({float(value) for value in values})
    except ValueError:
        return None


def translations_of_form(given: Mapping[str, str], study: Any) -> list[dict[str, Any]]:
    """Return the translations of the host's own study, in every language with a filled-in field."""
    if isinstance(study, str):
        return []
    filled = [code for code in INTERFACE_LANGUAGES[1:] if any(given.get(name) for name in _translated(code))]
    return [_translation(given, study, language) for language in filled]


def form_of_translations(translations: Sequence[Mapping[str, Any]], study: Any) -> Fields:
    """Return the fields of a study's translations."""
    fields: Fields = {}
    if isinstance(study, str):
        return fields
    levels = {f"{one['name']}-{level}" for one in study.get("categories", []) for level in one["levels"]}
    numbers = [one["name"] for one in study.get("features", []) if one["name"] not in levels]
    for said in translations:
        start = f"t_{said['language']}_"
        features = said["features"]
        fields |= {f"{start}title": said["title"], f"{start}question": said["question"]}
        fields |= {f"{start}f{k}_label": features[name]["label"] for k, name in enumerate(numbers)}
        for k, category in enumerate(study.get("categories", []), len(numbers)):
            of_levels = [features[f"{category['name']}-{level}"] for level in category["levels"]]
            words = [one["words"]["1"] for one in of_levels]
            fields[f"{start}f{k}_label"] = of_levels[0]["label"].removesuffix(f": {words[0]}")
            fields[f"{start}f{k}_values"] = ", ".join(words)
    return fields


def _translated(language: str) -> list[str]:
    rows = [f"t_{language}_f{k}_{part}" for k in range(MOST_FEATURES) for part in ("label", "values")]
    return [f"t_{language}_title", f"t_{language}_question", *rows]


def _translation(given: Mapping[str, str], study: Mapping[str, Any], language: str) -> dict[str, Any]:
    """Return a study's words in one language; raise an error that names the first missing one."""

    def said(field: str, what: str) -> str:
        if not given.get(f"t_{language}_{field}"):
            raise CrowdveilError(f"the study in {language_name(language)}: {what} is missing")
        return given[f"t_{language}_{field}"]

    features: dict[str, Any] = {}
    categories: dict[str, Any] = {}
    for k, fact in _facts(given).items():
        label = said(f"f{k}_label", f"the name of fact {k + 1}")
        if "low" in fact:
            features[fact["name"]] = {"label": label}
            continue
        words = between_commas(said(f"f{k}_values", f"what the values of fact {k + 1} are called"))
        if len(words) != len(fact["levels"]):
            raise CrowdveilError(
                f"the study in {language_name(language)}: fact {k + 1} has {len(words)} "
                f"{plural(len(words), 'value')} and {len(fact['levels'])} in English: write the same number, with "
                "commas"
            )
        categories[fact["name"]] = {"label": label, "words": dict(zip(fact["levels"], words, strict=True))}
    return {
        "study": study["name"],
        "language": language,
        "title": said("title", "the title"),
        "question": said("question", "the question"),
        "features": features,
        **({"categories": categories} if categories else {}),
    }
