"""Pages to make a poll, by a form or by an equivalent file, with a preview of what voters would see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tomli_w
from starlette.responses import Response

from crowdveil.errors import CrowdveilError
from crowdveil.pages.plain_words import mechanism_words, paradigm_title
from crowdveil.privacy.guarantee import PARADIGMS, Place, Unit
from crowdveil.privacy.shuffling import DEFAULT_DELTA, DEFAULT_HONEST, SMALLEST_BATCH
from crowdveil.protocol.polls import PollState
from crowdveil.protocol.questions import Question, QuestionKind, host_words
from crowdveil.service.host.measured import MEASURED, measured_advice, measured_words
from crowdveil.service.host.poll_form import KINDS, MOST_LEVELS, MOST_QUESTIONS, data_of_form, empty_form, form_of_data
from crowdveil.service.host.request import HostRequest, sentence
from crowdveil.service.host.study_form import MOST_FEATURES, OWN_STUDY, Fields, language_name, may_measure
from crowdveil.service.poll import HostedPoll, default_poll, poll_as_dict, poll_from_dict
from crowdveil.study.bundled import BUNDLED, load_study
from crowdveil.study.drawing import draw_session
from crowdveil.study.features import ICONS
from crowdveil.study.plain_data import parse_toml
from crowdveil.study.study import Study
from crowdveil.study.translations import INTERFACE_LANGUAGES
from crowdveil.study.translations import words as study_words

SHOWN_DILEMMAS = 4
PROMISES = {
    Unit.VOTER: "all choices of a voter together (the strongest promise, and the most noise)",
    Unit.RECORD: "each single record of a voter",
    Unit.CHOICE: "each single choice, in dilemmas that are public (the least noise)",
}
PLACES = {
    Place.DISTRIBUTED: "Nobody has to be trusted: each voter’s device adds the noise, and no answer leaves it",
    Place.CENTRAL: "You are trusted with the exact answers, and add noise to what you publish (far less noise)",
}


@dataclass(frozen=True)
class DilemmaPreview:
    """A dilemma in words, and as the voter's page draws it."""

    left: str
    right: str
    values: dict[str, list[float]]


def editor_page(request: HostRequest) -> Response:
    """Show the form, empty or filled in from a poll to make again."""
    copied = request.http.query_params.get("from")
    if copied is None:
        return _form(request, empty_form())
    status = request.store.polls.get(copied)
    if status is None:
        raise CrowdveilError(f"there is no poll {copied!r} to make again")
    data = {**poll_as_dict(status.poll), "name": _next_name(request, copied)}
    fields = form_of_data(data)
    return _file(request, tomli_w.dumps(data)) if fields is None else _form(request, fields)


def file_page(request: HostRequest) -> Response:
    """Show the expert's view: the poll as a file."""
    return _file(request, "")


def check_form(request: HostRequest) -> Response:
    """Check a form and show the poll as voters would see it; store nothing."""
    try:
        poll = _new(request, poll_from_dict(data_of_form(request.form)))
    except CrowdveilError as error:
        return _form(request, dict(request.form), sentence(str(error)), 400)
    return _checked(request, poll)


def check_file(request: HostRequest) -> Response:
    """Check a written or uploaded file and show the poll as voters would see it; store nothing."""
    text = request.form.get("file") or request.form.get("text", "")
    try:
        poll = _new(request, read_poll_text(text))
    except CrowdveilError as error:
        return _file(request, text, sentence(str(error)), 400)
    return _checked(request, poll)


def edit_again(request: HostRequest) -> Response:
    """Go back to the filled-in form, or to the file if the form does not have all the fields."""
    data = poll_as_dict(read_poll_text(request.form.get("text", "")))
    fields = form_of_data(data)
    return _file(request, tomli_w.dumps(data)) if fields is None else _form(request, fields)


def create_poll(request: HostRequest) -> Response:
    """Make the poll, with a trial first or open at once. It cannot be changed, because voters agree to its terms."""
    poll = read_poll_text(request.form.get("text", ""))
    pilot = request.form.get("begin") != "open"
    request.store.polls.add(poll, pilot=pilot)
    request.remarks.append(f"{poll.name}, {'to be tried out' if pilot else 'open'}")
    return request.go(f"/polls/{poll.name}")


def read_poll_text(text: str) -> HostedPoll:
    """Read a poll file, or a study file, which becomes a poll with defaults for everything else."""
    if not text.strip():
        raise CrowdveilError("nothing was given: choose a file, or write into the field")
    try:
        data = parse_toml(text.replace("\r\n", "\n"))
    except ValueError as error:
        raise CrowdveilError(f"this is not TOML: {error}") from None
    if "features" in data or "categories" in data:
        return default_poll(Study.from_dict(data))
    return poll_from_dict(data)


def _new(request: HostRequest, poll: HostedPoll) -> HostedPoll:
    if request.store.polls.is_taken(poll.name):
        raise CrowdveilError(
            f"the name {poll.name!r} is taken already, perhaps by a poll that was deleted: give this one another name"
        )
    today = request.pages.today()
    if poll.state(today, False, 0) is PollState.CLOSED:
        over = " and ".join(str(day) for day in (poll.closes_on, poll.destroy_on) if day is not None and day <= today)
        raise CrowdveilError(f"nobody could take part, because {over} is over: choose a later day")
    return poll


def _next_name(request: HostRequest, name: str) -> str:
    """Return an unused name: NAME-2, NAME-3 and so on."""
    number = 2
    while request.store.polls.is_taken(f"{name[:36]}-{number}"):
        number += 1
    return f"{name[:36]}-{number}"


def _form(request: HostRequest, fields: Fields, wrong: str | None = None, code: int = 200) -> Response:
    return request.show(
        "new_poll.html",
        code,
        given=_FormFields(fields),
        wrong=wrong,
        studies=[(name, load_study(name), may_measure(name)) for name in BUNDLED if not name.startswith("synthetic")],
        measured=MEASURED,
        own=OWN_STUDY,
        places=[
            (words, place.value, [(p, PROMISES[p.unit]) for p in PARADIGMS.values() if p.place is place])
            for place, words in PLACES.items()
        ],
        rows={"features": range(MOST_FEATURES), "levels": range(MOST_LEVELS), "questions": range(MOST_QUESTIONS)},
        pictures=ICONS,
        kinds=KINDS,
        relay={"delta": DEFAULT_DELTA, "honest": DEFAULT_HONEST, "batch": SMALLEST_BATCH},
        languages=[(language, language_name(language)) for language in INTERFACE_LANGUAGES[1:]],
    )


def _file(request: HostRequest, text: str, wrong: str | None = None, code: int = 200) -> Response:
    example = tomli_w.dumps(data_of_form({**empty_form(), "name": "my-poll", "study": "kidney"}))
    return request.show("new_file.html", code, text=text or example, wrong=wrong)


def _checked(request: HostRequest, poll: HostedPoll) -> Response:
    return request.show(
        "new_checked.html",
        poll=poll,
        text=tomli_w.dumps(poll_as_dict(poll)),
        dilemmas=_dilemmas(poll.study),
        promise=(paradigm_title(poll.paradigm), mechanism_words(poll.mechanism)),
        measured=(measured_words(poll), measured_advice(poll)),
        questions=[_preview(question) for question in poll.questions],
        english=study_words(poll.study, "en", poll.translations),
        words=[study_words(poll.study, said.language, poll.translations) for said in poll.translations],
    )


@dataclass(frozen=True)
class QuestionPreview:
    """An about-you question in words."""

    text: str
    how: str
    answers: tuple[str, ...]
    required: bool
    check: bool


def _preview(question: Question) -> QuestionPreview:
    how = KINDS[question.kind]
    if question.low is not None:
        how = f"{how} from {question.low} to {question.high}"
    if question.step > 1:
        how = f"{how}, of which only the range of {question.step} leaves the device"
    answers = tuple(host_words(option.text) for option in question.options)
    if question.ends is not None:
        answers = (
            f"{question.low}: {host_words(question.ends[0])}",
            f"{question.high}: {host_words(question.ends[1])}",
        )
    if question.kind is QuestionKind.SEVERAL:
        answers = (*answers, "None of these")
    return QuestionPreview(host_words(question.text), how, answers, question.required, question.expected is not None)


class _FormFields(dict[str, str]):
    """The fields of a form; a missing field is empty."""

    def __missing__(self, key: str) -> str:
        return ""


def _dilemmas(study: Study) -> list[DilemmaPreview]:
    shown = []
    for drawn in draw_session(study, np.random.default_rng())[:SHOWN_DILEMMAS]:
        left, right = drawn.alternatives
        values: dict[str, Any] = {side.name: list(side.values) for side in drawn.alternatives}
        shown.append(DilemmaPreview(study.describe(left), study.describe(right), values))
    return shown
