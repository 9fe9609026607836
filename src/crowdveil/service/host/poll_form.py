"""A poll as a form: the fields that a host fills in, and the plain data of a poll file, one from the other.

Both say the same. Whatever the form has no field for (factors, units of one's own, words for single values) is for the
file; a poll with such things is shown as a file and not as a form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.guarantee import PARADIGMS, Place
from crowdveil.privacy.relayed import MECHANISM
from crowdveil.service.host.form_fields import Fields, decimal, slug, whole
from crowdveil.service.host.form_questions import form_of_questions, questions_of_form, without_ids
from crowdveil.service.host.form_study import (
    form_of_study,
    form_of_translations,
    study_of_form,
    translations_of_form,
)
from crowdveil.service.poll_file import DEFAULT_BUDGET, DEFAULT_LEVELS, LEFT_OUT, poll_as_dict, poll_from_dict
from crowdveil.study.bundled import BUNDLED
from crowdveil.study.translations import INTERFACE_LANGUAGES

MOST_LEVELS = 5
"""As many as the form has rows for."""
DEFAULT_ABOUT = "1"
_PLAIN = ("name", "contact", "completion_code", "return_url", "opens_on", "closes_on", "entry")
_MORE = ("paradigm", "quota", "budget", "destroy_on", "minimum_age", "relay", "batch", "delta", "honest")


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
    data: dict[str, Any] = {"study": study_of_form(given), "paradigm": paradigm}
    data |= {name: given[name] for name in _PLAIN if given.get(name)}
    if given.get("repeat"):
        data["repeat"] = True
    data.setdefault("name", slug(_title(data["study"])))
    data |= {"budget": given.get("budget") or DEFAULT_BUDGET} if central else {"levels": _levels(given)}
    if given.get("quota"):
        data["quota"] = whole(given["quota"], "how many voters at most")
    if central and given.get("destroy_on"):
        data["destroy_on"] = given["destroy_on"]
    consent = {code: given[f"consent_{code}"] for code in INTERFACE_LANGUAGES if given.get(f"consent_{code}")}
    if given.get("minimum_age"):
        data["minimum_age"] = whole(given["minimum_age"], "how old voters must be")
    if given.get("relay"):
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
    """Return the form that says what a poll file says; None where the form has no fields for it."""
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
    try:
        again, before = (poll_as_dict(poll_from_dict(one)) for one in (data_of_form(fields), data))
    except CrowdveilError:
        return None
    for one in (again, before):
        one["questions"] = without_ids(one.get("questions", []))
    return fields if again == before else None


def _levels(given: Mapping[str, str]) -> dict[str, str]:
    rows = [(given.get(f"level{k}_name", ""), given.get(f"level{k}_epsilon", "")) for k in range(MOST_LEVELS)]
    named = {name: epsilon for name, epsilon in rows if name or epsilon}
    if not named or not all(name and epsilon for name, epsilon in named.items()):
        raise CrowdveilError("give at least one level of privacy, each with a name and an epsilon")
    return named


def _relay(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the terms of a relay, with the mechanism whose reports it carries."""
    if not given.get("batch"):
        raise CrowdveilError(
            "a relay needs the fewest reports that it hands over together: no default, as the promise rests on it"
        )
    terms: dict[str, Any] = {"relay": given["relay"], "mechanism": MECHANISM}
    terms["batch"] = whole(given["batch"], "the fewest reports that are handed over together")
    for part, words in (("delta", "the delta of the relay's promise"), ("honest", "the share of honest reports")):
        if given.get(part):
            terms[part] = decimal(given[part], words)
    return terms


def _title(study: str | Mapping[str, Any]) -> str:
    return study if isinstance(study, str) else str(study["title"])
