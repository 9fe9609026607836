"""A poll as a form: the fields that a host fills in, and the plain data of a poll file, one from the other.

Both say the same. Whatever the form has no field for (factors, units of one's own, words for single values) is for the
file; a poll with such things is shown as a file and not as a form.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.guarantee import PARADIGMS, Place
from crowdveil.service.poll_file import DEFAULT_BUDGET, DEFAULT_LEVELS, poll_as_dict, poll_from_dict
from crowdveil.study.bundled import BUNDLED, load_study
from crowdveil.study.translations import INTERFACE_LANGUAGES

OWN_STUDY = "own"
MOST_FEATURES, MOST_LEVELS, MOST_QUESTIONS = 12, 5, 8
"""As many as the form has rows for."""
DEFAULT_ABOUT = "1"
_PLAIN = ("name", "contact", "completion_code", "return_url", "opens_on", "closes_on", "entry")
_NORM_BOUND = 2.0
_DILEMMAS = "10"

Fields = dict[str, str]


def empty_form() -> Fields:
    """Return the form as it comes."""
    levels = {
        f"level{k}_{part}": value
        for k, pair in enumerate(DEFAULT_LEVELS.items())
        for part, value in zip(("name", "epsilon"), pair, strict=True)
    }
    return {"study": BUNDLED[0], "paradigm": "rldp", "entry": "open", "budget": DEFAULT_BUDGET, **levels}


def data_of_form(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the plain data of a poll file that says what a form says."""
    given = {name: value.strip() for name, value in form.items()}
    paradigm = given.get("paradigm", "")
    if paradigm not in PARADIGMS:
        raise CrowdveilError("say who is protected, and by whom: choose one of the promises")
    central = PARADIGMS[paradigm].place is Place.CENTRAL
    data: dict[str, Any] = {"study": _study(given), "paradigm": paradigm}
    data |= {name: given[name] for name in _PLAIN if given.get(name)}
    if given.get("repeat"):
        data["repeat"] = True
    data.setdefault("name", _slug(_title(data["study"])))
    data |= {"budget": given.get("budget") or DEFAULT_BUDGET} if central else {"levels": _levels(given)}
    if given.get("quota"):
        data["quota"] = _whole(given["quota"], "how many voters at most")
    if central and given.get("destroy_on"):
        data["destroy_on"] = given["destroy_on"]
    consent = {code: given[f"consent_{code}"] for code in INTERFACE_LANGUAGES if given.get(f"consent_{code}")}
    questions = [one for k in range(MOST_QUESTIONS) if (one := _question(given, k)) is not None]
    if consent:
        data["consent"] = consent
    if questions:
        data["questions"] = questions
        if not central:
            data["about_epsilon"] = given.get("about_epsilon") or DEFAULT_ABOUT
    return data


def form_of_data(data: Mapping[str, Any]) -> Fields | None:
    """Return the form that says what a poll file says; None where the form has no fields for it."""
    fields = {name: str(data[name]) for name in (*_PLAIN, "paradigm", "quota", "budget", "destroy_on") if name in data}
    fields |= {f"consent_{language}": text for language, text in data.get("consent", {}).items()}
    for k, (name, epsilon) in enumerate(data.get("levels", {}).items()):
        fields |= {f"level{k}_name": str(name), f"level{k}_epsilon": str(epsilon)}
    for k, question in enumerate(data.get("questions", [])):
        fields[f"q{k}_text"] = question["text"].get("en", "")
        fields[f"q{k}_options"] = "\n".join(option["text"].get("en", "") for option in question["options"])
    if "about_epsilon" in data:
        fields["about_epsilon"] = str(data["about_epsilon"])
    fields |= _study_fields(data["study"]) | ({"repeat": "yes"} if data.get("repeat") else {})
    try:
        same = _without_ids(poll_as_dict(poll_from_dict(data_of_form(fields)))) == _without_ids(
            poll_as_dict(poll_from_dict(data))
        )
    except CrowdveilError:
        return None
    return fields if same else None


def _without_ids(data: dict[str, Any]) -> dict[str, Any]:
    """Leave out what nobody reads: the ids of questions and options."""
    questions = [
        {"text": question["text"], "options": [option["text"] for option in question["options"]]}
        for question in data.get("questions", [])
    ]
    return {**data, "questions": questions}


def _study(given: Mapping[str, str]) -> str | dict[str, Any]:
    chosen = given.get("study", "")
    if chosen != OWN_STUDY:
        if chosen not in BUNDLED:
            raise CrowdveilError(f"say what is asked: choose a study, or describe your own; got {chosen!r}")
        return chosen
    for field, what in (("own_title", "a title"), ("own_question", "the question that voters are asked")):
        if not given.get(field):
            raise CrowdveilError(f"a study of your own needs {what}")
    rows = [_feature(given, k) for k in range(MOST_FEATURES) if given.get(f"f{k}_label") or given.get(f"f{k}_values")]
    if not rows:
        raise CrowdveilError("a study of your own needs a fact in which outcomes differ, with its values")
    features, categories = [r for r in rows if "low" in r], [r for r in rows if "low" not in r]
    return {
        "name": _slug(given["own_title"]),
        "title": given["own_title"],
        "question": given["own_question"],
        "norm_bound": _NORM_BOUND,
        "drawing": {
            "method": "independent",
            "dilemmas": _whole(given.get("own_dilemmas") or _DILEMMAS, "how many dilemmas a voter gets"),
        },
        "features": features,
        **({"categories": categories} if categories else {}),
    }


def _study_fields(study: Any) -> Fields:
    if isinstance(study, str):
        return {"study": study}
    if study.get("repeat"):
        return {**_study_fields({key: value for key, value in study.items() if key != "repeat"}), "repeat": "yes"}
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
    said = {one["name"]: one.get("words", {}).get("1", "") for one in study.get("features", [])}
    for k, category in enumerate(categories, len(numbers)):
        words = category.get("words", {})
        named = [(level, said.get(f"{category['name']}-{level}")) for level in category["levels"]]
        fields[f"f{k}_label"] = category["label"]
        fields[f"f{k}_values"] = ", ".join(words.get(level) or spoken or level for level, spoken in named)
    return fields


def _feature(given: Mapping[str, str], k: int) -> dict[str, Any]:
    """Return a feature with its numbers, or a category with its words. A step between values is its unit."""
    label = given.get(f"f{k}_label", "")
    values = [value.strip() for value in given.get(f"f{k}_values", "").split(",") if value.strip()]
    if not label or len(set(values)) < 2:
        raise CrowdveilError(
            f"fact {k + 1} needs a name and two or more different values, with commas between them: "
            f"got {label or 'no name'!r} with {', '.join(values) or 'no values'}"
        )
    try:
        numbers = sorted({float(value) for value in values})
    except ValueError:
        words = {_slug(value): value for value in values}
        return {"name": _slug(label), "label": label, "levels": list(words), "words": words}
    unit = min(right - left for left, right in itertools.pairwise(numbers))
    return {
        "name": _slug(label).replace("-", "_"),
        "label": label,
        "low": numbers[0],
        "high": numbers[-1],
        "unit": unit,
        "levels": numbers,
    }


def _levels(given: Mapping[str, str]) -> dict[str, str]:
    rows = [(given.get(f"level{k}_name", ""), given.get(f"level{k}_epsilon", "")) for k in range(MOST_LEVELS)]
    named = {name: epsilon for name, epsilon in rows if name or epsilon}
    if not named or not all(name and epsilon for name, epsilon in named.items()):
        raise CrowdveilError("give at least one level of privacy, each with a name and an epsilon")
    return named


def _question(given: Mapping[str, str], k: int) -> dict[str, Any] | None:
    text = given.get(f"q{k}_text", "")
    options = [option.strip() for option in given.get(f"q{k}_options", "").splitlines() if option.strip()]
    if not text and not options:
        return None
    if not text or len(options) < 2:
        raise CrowdveilError(f"question {k + 1} needs its words and two or more answers, one a line")
    slugs = [f"{_slug(option)[:30]}" for option in options]
    ids = slugs if len(set(slugs)) == len(slugs) else [f"{number}" for number in range(1, len(options) + 1)]
    return {
        "id": f"q{k + 1}",
        "text": {"en": text},
        "options": [{"id": id, "text": {"en": option}} for id, option in zip(ids, options, strict=True)],
    }


def _title(study: str | Mapping[str, Any]) -> str:
    return study if isinstance(study, str) else str(study["title"])


def _slug(words: str) -> str:
    """Make a name of words: small letters, digits and -.

    >>> _slug("Who gets the last café?"), _slug("誰")
    ('who-gets-the-last-cafe', 'poll')
    """
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-") or "poll"


def _whole(given: str, what: str) -> int:
    if not given.isdecimal():
        raise CrowdveilError(f"{what}: give a whole number, got {given!r}")
    return int(given)
