"""A poll as its host runs it: the public terms, when it is open and to how many people, and its groups of voters.

Its plain data is read from a TOML file or from the database, checked, and written back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.errors import CrowdveilError
from crowdveil.estimation.design import measured_design
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.guarantee import Place
from crowdveil.privacy.guarantee import paradigm as find_paradigm
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.one_bit import BitReports, bits_to_report
from crowdveil.privacy.mechanisms.registry import check_along_known, mechanism_name
from crowdveil.privacy.shuffling import DEFAULT_DELTA, DEFAULT_HONEST
from crowdveil.protocol.polls import EntryRule, Level, OpeningRules, Poll, PollState, RelayTerms
from crowdveil.protocol.questions import Answer, Attention, Option, Question, QuestionKind, Texts
from crowdveil.protocol.relay import padded
from crowdveil.protocol.report import Terms, write_reports
from crowdveil.study.bundled import load_study
from crowdveil.study.plain_data import need, number, read_toml
from crowdveil.study.study import Study
from crowdveil.study.translations import Translation, load_translation, read_translation

_EXPECTED_VOTERS = 1000
"""Size of the crowd for which a central poll's mechanism is recommended, before anybody has voted."""
MOST_GROUPS = 12
_ONE_ANSWER = (QuestionKind.SINGLE, QuestionKind.NUMBER, QuestionKind.SCALE)
DEFAULT_LEVELS = {"strong": "0.5", "balanced": "1", "light": "2"}
DEFAULT_BUDGET = "1"
BUDGET_LEVEL = "total"
"""The name of a central poll's only level."""
COUNTED, LEFT_OUT = "counted", "left-out"
"""The rules for voters who fail an attention check; a poll declares one of them before it opens."""
_KNOWN = (
    "name",
    "study",
    "repeat",
    "along",
    "paradigm",
    "mechanism",
    "levels",
    "budget",
    "entry",
    "quota",
    "opens_on",
    "closes_on",
    "destroy_on",
    "return_url",
    "completion_code",
    "contact",
    "consent",
    "minimum_age",
    "questions",
    "about_epsilon",
    "failed_checks",
    "translations",
    "relay",
    "batch",
    "delta",
    "honest",
)


@dataclass(frozen=True)
class HostedPoll(Poll):
    """A poll with the settings that only its host needs."""

    quota: int | None = None
    opens_on: date | None = None
    completion_code: str | None = None
    translations: tuple[Translation, ...] = ()
    """Translations of the study in addition to those that come with crowdveil."""

    __hash__ = Poll.__hash__

    def __post_init__(self) -> None:
        super().__post_init__()
        checked = mechanism_name(self.paradigm, self.mechanism, self.study, expected_epsilons(self.levels))
        if checked != self.mechanism:
            raise CrowdveilError(f"poll {self.name}: name the mechanism, {checked!r}, not {self.mechanism!r}")
        if self.quota is not None and not self.quota >= 1:
            raise CrowdveilError(f"poll {self.name}: the quota must be 1 or more, got {self.quota}")
        if self.opens_on and self.closes_on and not self.opens_on <= self.closes_on:
            raise CrowdveilError(f"poll {self.name}: it closes on {self.closes_on}, before it opens on {self.opens_on}")
        if empty := [language for language, words in self.consent.items() if not words.strip()]:
            raise CrowdveilError(
                f"poll {self.name}: consent is empty in {', '.join(empty)}: write what voters read, or leave it out"
            )
        checks = sum(question.expected is not None for question in self.questions)
        if checks != (0 if self.attention is None else self.attention.checks):
            raise CrowdveilError(f"poll {self.name}: voters must be told about its {checks} attention checks")
        if self.relay is not None and self.completion_code is not None:
            raise CrowdveilError(
                f"poll {self.name}: a completion code comes from the host, who does not know who took part behind a "
                "relay: leave it out; the relay's links show who has"
            )
        if self.relay is not None:
            padded(self._longest_report())  # A longer one would reveal its content by its length.

    def _longest_report(self) -> dict[str, Any]:
        """Return a report of the maximum length in this poll."""
        epsilon = self.levels[0].epsilon
        directions = measured_design(self.study).directions
        bits = np.zeros((1, directions), np.int64)
        bits[0, -bits_to_report(directions, epsilon) :] = -1
        epsilons = Epsilons.same(epsilon, 1)
        reports = BitReports(epsilons, np.zeros(1, np.int64), bits)
        return write_reports(self.mechanism, self.study, epsilons, reports)[0]

    @cached_property
    def settings(self) -> MechanismSettings:
        """The mechanism's public settings."""
        return MechanismSettings(self.study, self.study.norm_bound, drawn=True)

    @cached_property
    def terms(self) -> Terms:
        """The terms that reports must meet."""
        return Terms(self.mechanism, self.settings, frozenset(level.epsilon for level in self.levels))

    @property
    def public_selection(self) -> str | None:
        """The rule by which releases select voters, declared before the poll opened; None if they include everybody."""
        return "attention checks passed" if self.attention is not None and self.attention.left_out else None

    def failed_checks(self, about: Mapping[str, Answer]) -> int:
        """Return how many attention checks a voter with these answers has failed; central polls only."""
        checks = (question for question in self.questions if question.expected is not None)
        return sum(not question.passed(about.get(question.id)) for question in checks)

    def state(self, today: date, closed_by_host: bool, participants: int, pilot: bool = False) -> PollState:
        """Return whether submissions are accepted today.

        During a trial, only the host and the day of destruction close it: other dates and the quota do not matter.
        """
        over = closed_by_host or (self.destroy_on is not None and today >= self.destroy_on)
        if pilot and not over:
            return PollState.OPEN
        return OpeningRules(self.opens_on, self.closes_on, self.quota).state(today, over, participants)


def expected_epsilons(levels: tuple[Level, ...]) -> Epsilons:
    """Return the epsilons expected before anybody has voted: each level equally often."""
    each = np.fromiter(islice(cycle(range(len(levels))), _EXPECTED_VOTERS), np.int64)
    return Epsilons(level.epsilon for level in levels)[each]


def grouping_questions(poll: Poll) -> tuple[Question, ...]:
    """Return the questions by which voters can be grouped: a choice of one, a scale, or a number divided into ranges.

    Several answers at once and free text do not form groups, attention checks say nothing about a voter, and too many
    groups would leave nothing to see.
    """
    return tuple(
        question
        for question in poll.sent_questions
        if question.kind in _ONE_ANSWER and question.expected is None and len(question.levels) <= MOST_GROUPS
    )


def group_labels(question: Question) -> tuple[str, ...]:
    """Return the names of the groups: options by their ids, ranges by their numbers."""
    return tuple(group_label(question, level) for level in question.levels)


def group_label(question: Question, answer: Answer) -> str:
    """Return the name of the group of voters with this answer."""
    return question.range_words(answer) if isinstance(answer, int) else str(answer)


def group_of(question: Question, about: Mapping[str, Answer]) -> str | None:
    """Return the group of a voter, given her answers about herself; None if she did not answer."""
    return group_label(question, about[question.id]) if question.id in about else None


def find_poll(reference: str, paradigm: str | None = None, mechanism: str | None = None) -> HostedPoll:
    """Read a poll file, or return the default poll of a study that is bundled or in a file."""
    path = Path(reference)
    if path.is_file() and not {"features", "categories"} & set(_toml(path)):
        if paradigm or mechanism:
            raise CrowdveilError(
                f"{path} is a poll file, which already names its paradigm and mechanism: leave the options out"
            )
        return load_poll(path)
    return default_poll(load_study(reference), paradigm or "rldp", mechanism)


def default_poll(study: Study, paradigm: str = "rldp", mechanism: str | None = None) -> HostedPoll:
    """Return a poll of a study with defaults for everything else."""
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in study.name.lower())[:40]
    wanted = {} if mechanism is None else {"mechanism": mechanism}
    return poll_from_dict({"name": name, "study": study.as_dict(), "paradigm": paradigm, **wanted})


def load_poll(path: str | Path) -> HostedPoll:
    """Read a poll file (TOML). The files that it names are relative to its directory."""
    path = Path(path)
    return poll_from_dict(_toml(path), beside=path.parent)


def poll_from_dict(data: Mapping[str, Any], beside: Path | None = None) -> HostedPoll:
    """Check the plain data of a poll and return the poll. Without ``beside``, it must not name files."""
    where = f"poll {data.get('name', '?')!r}"
    unknown = sorted(set(data) - set(_KNOWN))
    if unknown:
        raise CrowdveilError(f"{where}: unknown setting {unknown[0]!r}; known are {', '.join(sorted(_KNOWN))}")
    study = _study(data.get("study"), beside, where)
    if "repeat" in data:
        study = replace(study, repeat=need(data, "repeat", bool, where))
    if "along" in data:
        study = replace(study, along=need(data, "along", str, where))
    paradigm = find_paradigm(_text(data, "paradigm", where) or "rldp")
    levels = _levels(data, paradigm.place, where)
    entry = _text(data, "entry", where) or EntryRule.OPEN.value
    if entry not in list(EntryRule):
        raise CrowdveilError(f"{where}: entry must be {' or '.join(EntryRule)}, got {entry!r}")
    quota = data.get("quota")
    if quota is not None and type(quota) is not int:
        raise CrowdveilError(f"{where}: quota must be a whole number, got {quota!r}")
    mechanism = mechanism_name(paradigm, _text(data, "mechanism", where), study, expected_epsilons(levels))
    if "along" in data:
        check_along_known(mechanism)
    about = data.get("about_epsilon")
    questions = tuple(_question(given, where) for given in _list(data, "questions", where))
    return HostedPoll(
        name=_text(data, "name", where) or "",
        study=study,
        paradigm=paradigm,
        mechanism=mechanism,
        levels=levels,
        entry=EntryRule(entry),
        quota=quota,
        opens_on=_date(data, "opens_on", where),
        closes_on=_date(data, "closes_on", where),
        destroy_on=_date(data, "destroy_on", where),
        return_url=_text(data, "return_url", where),
        completion_code=_text(data, "completion_code", where),
        contact=_text(data, "contact", where),
        consent=_texts(data.get("consent", {}), f"{where}, consent"),
        minimum_age=_whole(data, "minimum_age", where),
        questions=questions,
        attention=_attention(data, questions, where),
        about_epsilon=None if about is None else Epsilon(about),
        translations=_translations(data, study, beside, where),
        relay=_relay(data, where),
    )


def poll_as_dict(poll: HostedPoll) -> dict[str, Any]:
    """Return a poll as plain data that needs no other file; ``poll_from_dict`` reads it."""
    levels = {level.name: str(level.epsilon) for level in poll.levels}
    optional = {
        "quota": poll.quota,
        "opens_on": poll.opens_on and poll.opens_on.isoformat(),
        "closes_on": poll.closes_on and poll.closes_on.isoformat(),
        "destroy_on": poll.destroy_on and poll.destroy_on.isoformat(),
        "return_url": poll.return_url,
        "completion_code": poll.completion_code,
        "contact": poll.contact,
        "consent": dict(poll.consent),
        "minimum_age": poll.minimum_age,
        "questions": [_question_as_dict(question) for question in poll.questions],
        "failed_checks": poll.attention and poll.attention.left_out and LEFT_OUT,
        "about_epsilon": poll.about_epsilon and str(poll.about_epsilon),
        "translations": [_translation_as_dict(translation) for translation in poll.translations],
        **({} if poll.relay is None else _relay_as_dict(poll.relay)),
    }
    return {
        "name": poll.name,
        "study": poll.study.as_dict(),
        "paradigm": poll.paradigm.name,
        "mechanism": poll.mechanism,
        **({"levels": levels} if poll.distributed else {"budget": levels[BUDGET_LEVEL]}),
        "entry": poll.entry.value,
        **{key: value for key, value in optional.items() if value},
    }


def _toml(path: Path) -> dict[str, Any]:
    return read_toml(path, "poll file", "write a name and a study into it, like study = 'kidney'")


def _study(given: Any, beside: Path | None, where: str) -> Study:
    if isinstance(given, Mapping):
        return Study.from_dict(given)
    if not isinstance(given, str):
        got = "it is missing" if given is None else f"got {given!r}"
        raise CrowdveilError(f"{where}: study must be a bundled name, a path or a table: {got}")
    if beside is not None and (beside / given).is_file():
        return load_study(str(beside / given))
    if beside is None and (Path(given).suffix or "/" in given):
        raise CrowdveilError(
            f"{where}: an uploaded poll cannot name the file {given!r}: put the study into it as [study]"
        )
    return load_study(given)


def _levels(data: Mapping[str, Any], place: Place, where: str) -> tuple[Level, ...]:
    if place is Place.CENTRAL:
        if "levels" in data:
            raise CrowdveilError(f"{where}: a central poll has a budget (budget = 1.0), not levels")
        return (Level(BUDGET_LEVEL, Epsilon(data.get("budget", DEFAULT_BUDGET))),)
    if "budget" in data:
        raise CrowdveilError(f"{where}: a distributed poll has levels (levels = {{balanced = 1}}), not a budget")
    given = data.get("levels", DEFAULT_LEVELS)
    if not isinstance(given, Mapping):
        raise CrowdveilError(f"{where}: levels must be a table like {{strong = 0.5, light = 2}}, got {given!r}")
    made = [Level(str(name), Epsilon(epsilon)) for name, epsilon in given.items()]
    return tuple(sorted(made, key=lambda level: level.epsilon))


def _relay(data: Mapping[str, Any], where: str) -> RelayTerms | None:
    url = _text(data, "relay", where)
    if url is None:
        for key in ("batch", "delta", "honest"):
            if key in data:
                raise CrowdveilError(f"{where}: {key} belongs to a relay: give relay = 'https://...', or leave it out")
        return None
    if type(data.get("batch")) is not int:
        raise CrowdveilError(
            f"{where}: give batch = ..., the minimum number of reports that the relay hands over; it has no default, "
            f"because the promise depends on it (`crowdveil plan relay` proposes one); got {data.get('batch')!r}"
        )
    delta = number(data, "delta", where, DEFAULT_DELTA)
    honest = number(data, "honest", where, DEFAULT_HONEST)
    return RelayTerms(url.rstrip("/"), data["batch"], delta, honest)


def _relay_as_dict(relay: RelayTerms) -> dict[str, Any]:
    return {"relay": relay.url, "batch": relay.batch, "delta": relay.delta, "honest": relay.honest}


def _question(given: Any, where: str) -> Question:
    if not isinstance(given, Mapping) or not {"id", "text"} <= set(given):
        raise CrowdveilError(f"{where}: a question is a table with id, text and what its kind needs, got {given!r}")
    where = f"{where}, question {given['id']!r}"
    known = ("id", "text", "kind", "required", "options", "low", "high", "step", "ends", "expected")
    if unknown := sorted(set(given) - set(known)):
        raise CrowdveilError(f"{where}: unknown setting {unknown[0]!r}; known are {', '.join(known)}")
    kind = given.get("kind", QuestionKind.SINGLE.value)
    if kind not in list(QuestionKind):
        raise CrowdveilError(f"{where}: kind must be one of {', '.join(QuestionKind)}, got {kind!r}")
    options = []
    for option in _list(given, "options", where):
        if not isinstance(option, Mapping) or set(option) != {"id", "text"}:
            raise CrowdveilError(f"{where}: an option has id and text, got {option!r}")
        options.append(Option(_id(option["id"], where), _texts(option["text"], where)))
    ends = _list(given, "ends", where)
    if ends and len(ends) != 2:
        raise CrowdveilError(f"{where}: ends are two texts, of the lowest and of the highest point, got {ends!r}")
    required = given.get("required", False)
    if not isinstance(required, bool):
        raise CrowdveilError(f"{where}: required must be true or false, got {required!r}")
    return Question(
        id=_id(given["id"], where),
        text=_texts(given["text"], where),
        options=tuple(options),
        kind=QuestionKind(kind),
        required=required,
        low=_whole(given, "low", where),
        high=_whole(given, "high", where),
        step=1 if "step" not in given else _whole(given, "step", where) or 0,
        ends=(_texts(ends[0], where), _texts(ends[1], where)) if ends else None,
        expected=given.get("expected"),
    )


def _question_as_dict(question: Question) -> dict[str, Any]:
    """Return a question as plain data without the fields that have their defaults."""
    usual = {"kind": QuestionKind.SINGLE.value, "required": False, "options": [], "step": 1}
    return {key: value for key, value in question.as_dict().items() if value is not None and value != usual.get(key)}


def _attention(data: Mapping[str, Any], questions: tuple[Question, ...], where: str) -> Attention | None:
    rule = _text(data, "failed_checks", where)
    checks = sum(question.expected is not None for question in questions)
    if rule not in (None, COUNTED, LEFT_OUT):
        raise CrowdveilError(f"{where}: failed_checks must be {COUNTED!r} or {LEFT_OUT!r}, got {rule!r}")
    if rule is not None and not checks:
        raise CrowdveilError(f"{where}: failed_checks needs a question with expected = ..., and there is none")
    return Attention(checks, rule == LEFT_OUT) if checks else None


def _whole(data: Mapping[str, Any], key: str, where: str) -> int | None:
    value = data.get(key)
    if value is not None and type(value) is not int:
        raise CrowdveilError(f"{where}: {key} must be a whole number, got {value!r}")
    return value


def _translations(data: Mapping[str, Any], study: Study, beside: Path | None, where: str) -> tuple[Translation, ...]:
    given = _list(data, "translations", where)
    if beside is None and not all(isinstance(one, Mapping) for one in given):
        raise CrowdveilError(f"{where}: an uploaded poll cannot name files: put the translations into it as tables")
    return tuple(
        read_translation(one, study, where)
        if isinstance(one, Mapping)
        else load_translation((beside or Path()) / str(one), study)
        for one in given
    )


def _translation_as_dict(translation: Translation) -> dict[str, Any]:
    return {
        "study": translation.study,
        "language": translation.language,
        "title": translation.title,
        "question": translation.question,
        "features": {
            name: {"label": said.label, **({} if said.words is None else {"words": dict(said.words)})}
            for name, said in translation.features.items()
        },
        "factors": {
            name: {"title": said.title, "poles": list(said.poles)} for name, said in translation.factors.items()
        },
    }


def _id(given: Any, where: str) -> str:
    if not isinstance(given, str) or not given.isascii() or not given.replace("-", "").replace("_", "").isalnum():
        raise CrowdveilError(f"{where}: an id is made of letters, digits, _ and -, got {given!r}")
    return given


def _texts(given: Any, where: str) -> Texts:
    if isinstance(given, str):
        return {"en": given}
    if not isinstance(given, Mapping) or not all(isinstance(text, str) for text in given.values()):
        raise CrowdveilError(f"{where}: a text is given by language, like {{en = '...', fr = '...'}}, got {given!r}")
    return {str(language): text for language, text in given.items()}


def _text(data: Mapping[str, Any], key: str, where: str) -> str | None:
    """Return a text; None if it is left out or empty, which says the same."""
    value = data.get(key)
    if value is not None and not isinstance(value, str):
        raise CrowdveilError(f"{where}: {key} must be a text, got {value!r}")
    return value or None


def _list(data: Mapping[str, Any], key: str, where: str) -> list[Any]:
    value = data.get(key, [])
    if not isinstance(value, list):
        raise CrowdveilError(f"{where}: {key} must be a list, got {value!r}")
    return value


def _date(data: Mapping[str, Any], key: str, where: str) -> date | None:
    value = data.get(key)
    if value is None:
        return None
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        raise CrowdveilError(f"{where}: {key} must be a day like 2026-05-31, got {value!r}") from None
