"""A poll as a form: conversions between the fields that a host fills in and the plain data of a poll file.

Both describe the same poll. Settings without a field in the form (factors, custom units, words for single values) need
the file; a poll with such settings is shown as a file and not as a form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crowdveil.errors import CrowdveilError, plural
from crowdveil.privacy.guarantee import PARADIGMS, Place
from crowdveil.privacy.mechanisms.registry import RELAYED
from crowdveil.protocol.questions import WITH_NUMBERS, WITH_OPTIONS, QuestionKind
from crowdveil.service.host.study_form import (
    UNNAMED,
    Fields,
    decimal,
    form_of_study,
    form_of_translations,
    language_name,
    lines,
    may_measure,
    slug,
    slugs,
    study_of_form,
    translations_of_form,
    whole,
)
from crowdveil.service.poll import DEFAULT_BUDGET, DEFAULT_LEVELS, LEFT_OUT, poll_as_dict, poll_from_dict
from crowdveil.study.bundled import BUNDLED
from crowdveil.study.translations import INTERFACE_LANGUAGES, OWN_LANGUAGE

MOST_LEVELS = 5
"""The number of rows in the form."""
DEFAULT_ABOUT = "1"
_PLAIN = ("name", "contact", "completion_code", "return_url", "opens_on", "closes_on", "entry")
_MORE = ("paradigm", "quota", "budget", "destroy_on", "minimum_age", "relay", "batch", "delta", "honest")
MOST_QUESTIONS = 8
"""The number of rows in the form."""
LONGEST_OPTION = 30
"""The length of an option's id, which columns of downloads are named after."""
KINDS = {
    QuestionKind.SINGLE: "one of several answers",
    QuestionKind.SEVERAL: "as many answers as apply",
    QuestionKind.NUMBER: "a whole number",
    QuestionKind.SCALE: "a point on a scale",
    QuestionKind.TEXT: "free text (only where you are trusted)",
}
BETWEEN_EXPECTED = ";"
"""Separator of the expected answers to a question with several answers."""


def empty_form() -> Fields:
    """Return the form with its defaults."""
    levels = {
        f"level{k}_{part}": value
        for k, pair in enumerate(DEFAULT_LEVELS.items())
        for part, value in zip(("name", "epsilon"), pair, strict=True)
    }
    return {"study": BUNDLED[0], "paradigm": "rldp", "entry": "open", "budget": DEFAULT_BUDGET, **levels}


def data_of_form(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the plain data of the poll file that is equivalent to a form."""
    given = {name: value.strip() for name, value in form.items()}
    paradigm = given.get("paradigm", "")
    if paradigm not in PARADIGMS:
        raise CrowdveilError("say who is protected, and by whom: choose one of the promises")
    central = PARADIGMS[paradigm].place is Place.CENTRAL
    data: dict[str, Any] = {"study": study_of_form(given), "paradigm": paradigm}
    data |= {name: given[name] for name in _PLAIN if given.get(name)}
    if given.get("repeat"):
        data["repeat"] = True
    if given.get("along") and may_measure(data["study"]):
        data["along"] = given["along"]
    data.setdefault("name", slug(_title(data["study"])) or UNNAMED)
    data |= {"budget": given.get("budget") or DEFAULT_BUDGET} if central else {"levels": _levels(given)}
    if given.get("quota"):
        data["quota"] = whole(given["quota"], "how many voters at most")
    if central and given.get("destroy_on"):
        data["destroy_on"] = given["destroy_on"]
    consent = {code: given[f"consent_{code}"] for code in INTERFACE_LANGUAGES if given.get(f"consent_{code}")}
    if given.get("minimum_age"):
        data["minimum_age"] = whole(given["minimum_age"], "how old voters must be")
    if paradigm == "vldp" and given.get("relay"):
        data |= _relay(given)
    if translations := translations_of_form(given, data["study"]):
        data["translations"] = translations
    questions = questions_of_form(given)
    if consent:
        data["consent"] = consent
    if questions:
        data["questions"] = questions
        if not central and any("expected" not in question for question in questions):
            data["about_epsilon"] = given.get("about_epsilon") or DEFAULT_ABOUT
        if central and given.get("failed_checks") and any("expected" in question for question in questions):
            data["failed_checks"] = LEFT_OUT
    return data


def form_of_data(data: Mapping[str, Any]) -> Fields | None:
    """Return the form that is equivalent to a poll file; None if the form does not have all the fields."""
    fields = {name: str(data[name]) for name in (*_PLAIN, *_MORE) if name in data}
    fields |= {f"consent_{language}": text for language, text in data.get("consent", {}).items()}
    for k, (name, epsilon) in enumerate(data.get("levels", {}).items()):
        fields |= {f"level{k}_name": str(name), f"level{k}_epsilon": str(epsilon)}
    fields |= form_of_questions(data.get("questions", []))
    fields |= form_of_translations(data.get("translations", []), data["study"])
    if data.get("failed_checks") == LEFT_OUT:
        fields["failed_checks"] = LEFT_OUT
    if "about_epsilon" in data:
        fields["about_epsilon"] = str(data["about_epsilon"])
    fields |= form_of_study(data["study"]) | ({"repeat": "yes"} if data.get("repeat") else {})
    fields |= {"along": data["along"]} if "along" in data else {}
    try:
        again, before = (poll_as_dict(poll_from_dict(one)) for one in (data_of_form(fields), data))
    except CrowdveilError:
        return None
    for one in (again, before):
        one["questions"] = without_ids(one.get("questions", []))
    return fields if again == before else None


def _levels(given: Mapping[str, str]) -> dict[str, str]:
    rows = [(given.get(f"level{k}_name", ""), given.get(f"level{k}_epsilon", "")) for k in range(MOST_LEVELS)]
    filled = [(name, epsilon) for name, epsilon in rows if name or epsilon]
    if not filled or not all(name and epsilon for name, epsilon in filled):
        raise CrowdveilError("give at least one level of privacy, each with a name and an epsilon")
    named = dict(filled)
    if len(named) < len(filled):
        raise CrowdveilError(f"two levels of privacy have the same name: give each its own ({', '.join(named)})")
    return named


def _relay(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the terms of a relay, with the mechanism whose reports it carries."""
    if not given.get("batch"):
        raise CrowdveilError(
            "a relay needs the fewest reports that it hands over together: no default, as the promise rests on it"
        )
    terms: dict[str, Any] = {"relay": given["relay"], "mechanism": RELAYED}
    terms["batch"] = whole(given["batch"], "the fewest reports that are handed over together")
    for part, words in (("delta", "the delta of the relay's promise"), ("honest", "the share of honest reports")):
        if given.get(part):
            terms[part] = decimal(given[part], words)
    return terms


def _title(study: str | Mapping[str, Any]) -> str:
    return study if isinstance(study, str) else str(study["title"])


def questions_of_form(given: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the questions in a form."""
    return [made for k in range(MOST_QUESTIONS) if (made := _question(given, k)) is not None]


def form_of_questions(questions: Sequence[Mapping[str, Any]]) -> Fields:
    """Return the fields of these questions."""
    fields: Fields = {}
    for k, question in enumerate(questions):
        kind = question.get("kind", QuestionKind.SINGLE.value)
        row = f"q{k}_"
        fields |= {f"{row}kind": kind, f"{row}text": question["text"].get(OWN_LANGUAGE, "")}
        fields |= {f"{row}{part}": str(question[part]) for part in ("low", "high", "step") if part in question}
        if question.get("required"):
            fields[f"{row}required"] = "yes"
        if "expected" in question:
            fields[f"{row}expected"] = _expected_words(question)
        answers = [option["text"] for option in question.get("options", [])] or list(question.get("ends", []))
        fields[f"{row}options"] = "\n".join(text.get(OWN_LANGUAGE, "") for text in answers)
        for language in INTERFACE_LANGUAGES[1:]:
            if language in question["text"]:
                fields[f"t_{language}_{row}text"] = question["text"][language]
            if answers and all(language in text for text in answers):
                fields[f"t_{language}_{row}options"] = "\n".join(text[language] for text in answers)
    return fields


def without_ids(questions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Leave out the ids of questions and options, which nobody reads."""
    shown = []
    for question in questions:
        kept = {key: value for key, value in question.items() if key not in ("id", "options", "expected")}
        kept["options"] = [option["text"] for option in question.get("options", [])]
        shown.append({**kept, "expected": _expected_words(question) if "expected" in question else None})
    return shown


def _question(given: Mapping[str, str], k: int) -> dict[str, Any] | None:
    row = f"q{k}_"
    place = f"question {k + 1}"
    text = given.get(f"{row}text", "")
    answers = lines(given.get(f"{row}options", ""))
    if not text and not answers:
        return None
    kind = given.get(f"{row}kind") or QuestionKind.SINGLE.value
    if kind not in list(QuestionKind):
        raise CrowdveilError(f"{place}: say how it is answered: {', '.join(KINDS.values())}")
    made: dict[str, Any] = {"id": f"q{k + 1}", "kind": kind, "text": {OWN_LANGUAGE: text, **_others(given, row)}}
    if not text or (kind in WITH_OPTIONS and len(answers) < 2):
        raise CrowdveilError(f"{place} needs a text and two or more answers, one per line")
    if given.get(f"{row}required"):
        made["required"] = True
    if kind in WITH_NUMBERS:
        for part, words in (("low", "the lowest number"), ("high", "the highest number")):
            made[part] = whole(given.get(f"{row}{part}", ""), f"{place}, {words}")
    if kind == QuestionKind.NUMBER and given.get(f"{row}step"):
        made["step"] = whole(given[f"{row}step"], f"{place}, how many numbers make a range")
    said = _answers(given, row, answers, place) if kind in (*WITH_OPTIONS, QuestionKind.SCALE) else []
    if kind in WITH_OPTIONS:
        ids = slugs(answers, longest=LONGEST_OPTION)
        made["options"] = [{"id": id, "text": text} for id, text in zip(ids, said, strict=True)]
    elif said:
        made["ends"] = said
    if given.get(f"{row}expected"):
        made["expected"] = _expected(given[f"{row}expected"], made, answers, place)
    return made


def _others(given: Mapping[str, str], row: str) -> dict[str, str]:
    """Return the words of a question in languages other than English."""
    said = {language: given.get(f"t_{language}_{row}text", "") for language in INTERFACE_LANGUAGES[1:]}
    return {language: words for language, words in said.items() if words}


def _answers(given: Mapping[str, str], row: str, answers: Sequence[str], place: str) -> list[dict[str, str]]:
    """Return the words of each answer, or of the ends of a scale, by language."""
    said = [{OWN_LANGUAGE: answer} for answer in answers]
    for language in INTERFACE_LANGUAGES[1:]:
        translated = lines(given.get(f"t_{language}_{row}options", ""))
        if translated and len(translated) != len(answers):
            raise CrowdveilError(
                f"{place} in {language_name(language)} has {len(translated)} {plural(len(translated), 'answer')} and "
                f"{len(answers)} in English: write the same number, one per line"
            )
        for texts, words in zip(said, translated, strict=False):
            texts[language] = words
    return said


def _expected(words: str, question: Mapping[str, Any], answers: Sequence[str], place: str) -> Any:
    """Return the answer that passes an attention check, given as voters read it."""
    if question["kind"] in WITH_NUMBERS:
        return whole(words, f"{place}, the answer that passes")
    if question["kind"] == QuestionKind.TEXT:
        raise CrowdveilError(f"{place}: a free text cannot be an attention check: offer answers")
    ids = dict(zip(answers, (option["id"] for option in question["options"]), strict=True))
    several = question["kind"] == QuestionKind.SEVERAL
    wanted = [one.strip() for one in words.split(BETWEEN_EXPECTED)] if several else [words]
    for one in wanted:
        if one not in ids:
            raise CrowdveilError(f"{place}: the answer that passes must be one of its answers, got {one!r}")
    return [ids[one] for one in wanted] if several else ids[words]


def _expected_words(question: Mapping[str, Any]) -> str:
    said = {str(option["id"]): str(option["text"].get(OWN_LANGUAGE, "")) for option in question.get("options", [])}
    expected = question["expected"]
    if isinstance(expected, list):
        return f"{BETWEEN_EXPECTED} ".join(said[one] for one in said if one in expected)
    return said.get(str(expected), str(expected))
