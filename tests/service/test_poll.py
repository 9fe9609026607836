"""A poll file says what is asked and promised, and mistakes in it are told in words."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.service.voters import poll, reports

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.protocol.description import describe_poll, read_poll
from crowdveil.protocol.polls import Poll, PollState
from crowdveil.service.poll import default_poll, find_poll, load_poll, poll_as_dict, poll_from_dict
from crowdveil.study.bundled import load_study
from crowdveil.study.plain_data import canonical_json

QUESTION = {
    "id": "age",
    "text": "How old are you?",
    "options": [{"id": "young", "text": "up to 30"}, {"id": "old", "text": "over 30"}],
}
FULL = {
    "name": "full",
    "study": "kidney",
    "paradigm": "rldp",
    "mechanism": "algorithm-3",
    "levels": {"light": 2, "strong": "0.5"},
    "entry": "links",
    "quota": 100,
    "opens_on": "2026-05-01",
    "closes_on": "2026-05-31",
    "return_url": "https://example.org/back",
    "completion_code": "C0DE",
    "contact": "host@example.org",
    "consent": {"en": "Yes?", "fr": "Oui ?"},
    "questions": [QUESTION],
    "about_epsilon": "0.7",
}


@pytest.mark.parametrize("data", [FULL, {"name": "c", "study": "kidney", "paradigm": "vlcp", "budget": 3}])
def test_a_poll_survives_being_written_and_read(data: dict[str, Any]) -> None:
    made = poll_from_dict(data)
    again = poll_from_dict(poll_as_dict(made))
    assert again == made
    assert canonical_json(poll_as_dict(again)) == canonical_json(poll_as_dict(made))


def test_what_is_not_said_is_as_the_docs_say() -> None:
    made = default_poll(load_study("moral-machine"))
    assert [(level.name, level.epsilon.micro) for level in made.levels] == [
        ("strong", 500_000),
        ("balanced", 1_000_000),
        ("light", 2_000_000),
    ]
    assert (made.name, made.paradigm.name, made.mechanism, made.entry.value) == (
        "moral-machine",
        "rldp",
        "score",
        "open",
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"name": "Not An Id"}, "small letters"),
        ({"colour": "red"}, "unknown setting 'colour'"),
        ({"paradigm": "xldp"}, "no paradigm"),
        ({"mechanism": "algorithm-1"}, "does not serve rldp"),
        ({"levels": {"a": 1, "b": 1}}, "different names and epsilons"),
        ({"levels": {}}, "there must be one"),
        ({"budget": 1}, "not a budget"),
        ({"entry": "anyone"}, "open or links"),
        ({"quota": 0}, "1 or more"),
        ({"quota": True}, "whole number"),
        ({"closes_on": "2026-04-01"}, "before it opens"),
        ({"opens_on": "tomorrow"}, "a day like"),
        ({"return_url": "javascript:alert(1)"}, "must start with https://"),
        (
            {"consent": {"en": "Yes?", "fr": " \n"}},
            "consent is empty in fr: write what voters read, or leave it out",
        ),
        ({"consent": ""}, "consent is empty in en"),
        ({"questions": [QUESTION, QUESTION]}, "same id"),
        ({"questions": [{**QUESTION, "options": QUESTION["options"][:1]}]}, "two or more options"),
        ({"about_epsilon": None}, "about_epsilon protects"),
        ({"study": "no-such-study"}, "no study"),
        ({"study": "../secret.toml"}, "cannot name the file"),
        ({"translations": ["x.toml"]}, "cannot name files"),
    ],
)
def test_mistakes_are_told(change: dict[str, Any], told: str) -> None:
    with pytest.raises(CrowdveilError, match=told):
        poll_from_dict({**FULL, **change})


def test_a_poll_says_what_its_devices_measure() -> None:
    plain = {"name": "streets", "study": "moral-machine"}
    made = poll_from_dict({**plain, "along": "features"})
    assert made.study.along == "features"
    assert poll_from_dict(poll_as_dict(made)) == made
    assert poll_from_dict(plain).study.along is None
    with pytest.raises(CrowdveilError, match="along is 'axes': use 'factors' or 'features'"):
        poll_from_dict({**plain, "along": "axes"})


def test_a_central_poll_has_a_budget_and_no_levels() -> None:
    with pytest.raises(CrowdveilError, match="has a budget"):
        poll_from_dict({"name": "p", "study": "kidney", "paradigm": "vlcp", "levels": {"only": 1}})
    assert poll(paradigm="vlcp").budget is not None
    assert poll().budget is None


def test_a_study_file_without_numbers_is_a_study_and_no_poll(tmp_path: Path) -> None:
    path = tmp_path / "words.toml"
    path.write_text(
        'name = "words"\ndrawing = { method = "independent", dilemmas = 5 }\n'
        '[[categories]]\nname = "colour"\nlabel = "colour"\nlevels = ["red", "green"]\n'
    )
    assert find_poll(str(path), "vldp").study.feature_names == ("colour-red", "colour-green")


def test_a_poll_file_names_files_beside_it(tmp_path: Path) -> None:
    study = (Path(load_study.__code__.co_filename).parent / "kidney.toml").read_text(encoding="utf-8")
    (tmp_path / "mine.toml").write_text(study.replace('"kidney"', '"mine"', 1), encoding="utf-8")
    words = "\n".join(
        f'{f.name} = {{ label = "{f.name} (nl)", words = {{ other = "{{n}}" }} }}'
        for f in load_study("kidney").features
    )
    factors = "\n".join(
        f'{f.name} = {{ title = "{f.name} (nl)", poles = ["min", "meer"] }}' for f in load_study("kidney").factors
    )
    (tmp_path / "mine.nl.toml").write_text(
        'study = "mine"\nlanguage = "nl"\ntitle = "De nier"\nquestion = "Wie?"\n'
        f"[features]\n{words}\n[factors]\n{factors}\n",
        encoding="utf-8",
    )
    (tmp_path / "poll.toml").write_text(
        'name = "mine"\nstudy = "mine.toml"\ntranslations = ["mine.nl.toml"]\nlevels = {only = 1}\n', encoding="utf-8"
    )
    made = load_poll(tmp_path / "poll.toml")
    assert made == find_poll(str(tmp_path / "poll.toml")) == poll_from_dict(poll_as_dict(made))
    assert made.study.name == "mine"
    assert [translation.language for translation in made.translations] == ["nl"]
    with pytest.raises(CrowdveilError, match="leave the options out"):
        find_poll(str(tmp_path / "poll.toml"), paradigm="vldp")
    assert find_poll(str(tmp_path / "mine.toml"), "vldp").paradigm.name == "vldp"


@pytest.mark.parametrize(
    ("day", "closed", "participants", "state"),
    [
        (date(2026, 4, 30), False, 0, PollState.NOT_OPEN_YET),
        (date(2026, 5, 1), False, 0, PollState.OPEN),
        (date(2026, 5, 31), False, 99, PollState.OPEN),
        (date(2026, 5, 31), False, 100, PollState.FULL),
        (date(2026, 6, 1), False, 100, PollState.CLOSED),
        (date(2026, 5, 2), True, 0, PollState.CLOSED),
    ],
)
def test_states(day: date, closed: bool, participants: int, state: PollState) -> None:
    assert poll_from_dict(FULL).state(day, closed, participants) is state


@pytest.mark.parametrize(
    ("day", "closed", "state"),
    [
        (date(2026, 5, 9), False, PollState.OPEN),
        (date(2026, 5, 9), True, PollState.CLOSED),
        (date(2026, 5, 10), False, PollState.CLOSED),
        (date(2026, 5, 11), False, PollState.CLOSED),
    ],
)
@pytest.mark.parametrize("pilot", [True, False])
def test_no_answer_is_taken_from_the_day_of_destruction_on(
    day: date, closed: bool, state: PollState, pilot: bool
) -> None:
    asked = poll("brief", "vlcp", destroy_on="2026-05-10")
    assert asked.state(day, closed, 0, pilot) is state


@pytest.mark.parametrize("key", ["contact", "completion_code", "return_url", "mechanism", "relay", "failed_checks"])
def test_an_empty_text_says_nothing(key: str) -> None:
    given = {"name": "p", "study": "kidney"}
    made = poll_from_dict({**given, key: ""})
    assert made == poll_from_dict(given)
    assert poll_from_dict(poll_as_dict(made)) == made


@pytest.mark.parametrize("data", [FULL, {"name": "c", "study": "kidney", "paradigm": "vlcp", "budget": 3}])
def test_a_device_reads_what_the_server_describes(data: dict[str, Any]) -> None:
    made = poll_from_dict(data)
    told = json.loads(json.dumps(describe_poll(made, ["en"], PollState.OPEN, None)))
    read = read_poll(told)
    assert type(read) is Poll
    assert all(getattr(read, field.name) == getattr(made, field.name) for field in fields(Poll))


@pytest.mark.parametrize("name", list(DISTRIBUTED))
def test_every_distributed_mechanism_can_be_described(name: str) -> None:
    (paradigm, *_) = DISTRIBUTED[name].paradigms
    made = poll(paradigm=paradigm, mechanism=name)
    told = describe_poll(made, ["en"], PollState.OPEN, None)
    assert (told["mechanism"], told["place"], told["state"]) == (name, "distributed", "open")
    assert (told["method"]["axes"] is None) == (name not in ("score", "one-bit"))
    sizes = [level["size"] for level in told["levels"]]
    assert all((size is None) == (name not in ("score", "one-bit", "subset-selection", "one-choice")) for size in sizes)
    assert sizes == [DISTRIBUTED[name].report_size(made.study, level.epsilon) for level in made.levels]


def test_sizes_are_those_of_real_reports() -> None:
    made = poll()
    for body in reports(made, 12):
        assert len(body["coordinates"]) == DISTRIBUTED[made.mechanism].report_size(
            made.study, Epsilon.of_millionths(body["epsilon_micro"])
        )
