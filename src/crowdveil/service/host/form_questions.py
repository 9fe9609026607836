"""About-you questions as rows of the poll form, and as the plain data of a poll file, one from the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crowdveil.errors import CrowdveilError
from crowdveil.protocol.questions import WITH_NUMBERS, WITH_OPTIONS, QuestionKind
from crowdveil.service.host.form_fields import Fields, language_name, lines, slug, whole
from crowdveil.study.translations import INTERFACE_LANGUAGES, OWN_LANGUAGE

MOST_QUESTIONS = 8
"""As many as the form has rows for."""
KINDS = {
    QuestionKind.SINGLE: "one of several answers",
    QuestionKind.SEVERAL: "as many answers as apply",
    QuestionKind.NUMBER: "a whole number",
    QuestionKind.SCALE: "a point on a scale",
    QuestionKind.TEXT: "free text (only where you are trusted)",
}
BETWEEN_EXPECTED = ";"
"""Between the expected answers to a question of several."""


def questions_of_form(given: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the questions that a form asks."""
    return [made for k in range(MOST_QUESTIONS) if (made := _question(given, k)) is not None]


def form_of_questions(questions: Sequence[Mapping[str, Any]]) -> Fields:
    """Return the rows that ask these questions."""
    fields: Fields = {}
    for k, question in enumerate(questions):
        kind, row = question.get("kind", QuestionKind.SINGLE.value), f"q{k}_"
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
    """Leave out what nobody reads: the ids of questions and options."""
    shown = []
    for question in questions:
        kept = {key: value for key, value in question.items() if key not in ("id", "options", "expected")}
        kept["options"] = [option["text"] for option in question.get("options", [])]
        shown.append({**kept, "expected": _expected_words(question) if "expected" in question else None})
    return shown


def _question(given: Mapping[str, str], k: int) -> dict[str, Any] | None:
    row, place = f"q{k}_", f"question {k + 1}"
    text, answers = given.get(f"{row}text", ""), lines(given.get(f"{row}options", ""))
    if not text and not answers:
        return None
    kind = given.get(f"{row}kind") or QuestionKind.SINGLE.value
    if kind not in list(QuestionKind):
        raise CrowdveilError(f"{place}: say how it is answered: {', '.join(KINDS.values())}")
    made: dict[str, Any] = {"id": f"q{k + 1}", "kind": kind, "text": {OWN_LANGUAGE: text, **_others(given, row)}}
    if not text or (kind in WITH_OPTIONS and len(answers) < 2):
        raise CrowdveilError(f"{place} needs its words and two or more answers, one a line")
    if given.get(f"{row}required"):
        made["required"] = True
    if kind in WITH_NUMBERS:
        for part, words in (("low", "the lowest number"), ("high", "the highest number")):
            made[part] = whole(given.get(f"{row}{part}", ""), f"{place}, {words}")
    if kind == QuestionKind.NUMBER and given.get(f"{row}step"):
        made["step"] = whole(given[f"{row}step"], f"{place}, how many numbers make a range")
    said = _answers(given, row, answers, place) if kind in (*WITH_OPTIONS, QuestionKind.SCALE) else []
    if kind in WITH_OPTIONS:
        slugs = [slug(answer)[:30] for answer in answers]
        ids = slugs if len(set(slugs)) == len(slugs) else [f"{number}" for number in range(1, len(answers) + 1)]
        made["options"] = [{"id": id, "text": text} for id, text in zip(ids, said, strict=True)]
    elif said:
        made["ends"] = said
    if given.get(f"{row}expected"):
        made["expected"] = _expected(given[f"{row}expected"], made, answers, place)
    return made


def _others(given: Mapping[str, str], row: str) -> dict[str, str]:
    """Return the words of a question in languages beside English."""
    said = {language: given.get(f"t_{language}_{row}text", "") for language in INTERFACE_LANGUAGES[1:]}
    return {language: words for language, words in said.items() if words}


def _answers(given: Mapping[str, str], row: str, answers: Sequence[str], place: str) -> list[dict[str, str]]:
    """Return the words of each answer, or of the ends of a scale, by language."""
    said = [{OWN_LANGUAGE: answer} for answer in answers]
    for language in INTERFACE_LANGUAGES[1:]:
        translated = lines(given.get(f"t_{language}_{row}options", ""))
        if translated and len(translated) != len(answers):
            raise CrowdveilError(
                f"{place} in {language_name(language)} has {len(translated)} answers and {len(answers)} in English: "
                "write as many, one a line"
            )
        for texts, words in zip(said, translated, strict=False):
            texts[language] = words
    return said


def _expected(words: str, question: Mapping[str, Any], answers: Sequence[str], place: str) -> Any:
    """Return the answer that passes an attention check, which is written as voters read it."""
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
