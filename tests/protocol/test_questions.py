"""About-you questions of every kind: what can be asked, and what is an answer."""

import pytest
from tests.kinds_of_question import CHECK, NOISY, NUMBER, SCALE, SEVERAL, TEXT

from crowdveil.errors import CrowdveilError, Refusal
from crowdveil.protocol.description import describe_poll, read_poll
from crowdveil.protocol.polls import PollState
from crowdveil.protocol.submission import check_about, exact_answers
from crowdveil.service.poll import poll_as_dict, poll_from_dict

CENTRAL = {"name": "p", "study": "kidney", "paradigm": "vlcp"}
DISTRIBUTED = {"name": "p", "study": "kidney", "paradigm": "vldp", "about_epsilon": 1}


def asking(*questions, **rules):
    return poll_from_dict({**CENTRAL, "questions": list(questions), **rules})


def asking_noisily(*questions, **rules):
    return poll_from_dict({**DISTRIBUTED, "questions": list(questions), **rules})


@pytest.mark.parametrize(
    ("question", "given", "leaves"),
    [
        (SEVERAL, ["bike", "bus"], ["bus", "bike"]),
        (SEVERAL, [], []),
        (NUMBER, 18, 18),
        (NUMBER, 27, 18),
        (NUMBER, 28, 28),
        (NUMBER, 97, 88),
        (SCALE, 5, 5),
        (TEXT, "Because\nof 猫 ☃", "Because\nof 猫 ☃"),
        (CHECK, "red", "red"),
    ],
)
def test_what_leaves_a_device_of_an_answer(question, given, leaves):
    """Of a number only its range of ten; of ticks, the options in the question's order."""
    poll = asking({**question, "required": False})
    assert exact_answers({question["id"]: given}, poll) == {question["id"]: leaves}
    check_about({question["id"]: leaves}, poll)


@pytest.mark.parametrize(
    ("question", "wrong"),
    [
        (SEVERAL, ["boat"]),
        (SEVERAL, "bus"),
        (SEVERAL, ["bus", "bus"]),
        (SEVERAL, ["bike", "bus"]),
        (SEVERAL, {"bus": True}),
        (NUMBER, 17),
        (NUMBER, 98),
        (NUMBER, 19),
        (NUMBER, 18.0),
        (NUMBER, "18"),
        (NUMBER, True),
        (SCALE, 0),
        (SCALE, 6),
        (SCALE, None),
        (TEXT, ""),
        (TEXT, "  \n"),
        (TEXT, "x" * 1001),
        (TEXT, "a\x00b"),
        (TEXT, "\ud800"),
        (TEXT, 5),
    ],
)
def test_no_honest_device_of_a_central_poll_sends_this(question, wrong):
    with pytest.raises(Refusal, match=f"the answer to question {question['id']} must"):
        check_about({question["id"]: wrong}, asking({**question, "required": False}))


@pytest.mark.parametrize(
    "wrong", [["bus"], {}, {"bus": True, "foot": False}, {"boat": True}, {"bus": 1}, {"bus": "yes"}, "bus", None]
)
def test_of_several_a_noisy_report_tells_one_option_and_whether_it_was_ticked(wrong):
    poll = asking_noisily(SEVERAL)
    check_about({"travel": {"foot": False}}, poll)
    with pytest.raises(Refusal, match="must be one of bus, foot, bike and whether it was ticked"):
        check_about({"travel": wrong}, poll)


def test_what_is_wrong_with_an_answer_is_told():
    for question, wrong, told in (
        (NUMBER, 19, "must be the first number of its range of 10, from 18, got 19"),
        (SEVERAL, ["bike", "bus"], "must list its options once each, in their order"),
        (SCALE, 6, "must be a whole number from 1 to 5, got 6"),
    ):
        with pytest.raises(Refusal, match=told):
            check_about({question["id"]: wrong}, asking({**question, "required": False}))


def test_a_question_that_has_to_be_answered_is_asked_for():
    with pytest.raises(Refusal, match="question years has to be answered"):
        check_about({"trust": 2}, asking(NUMBER, SCALE))
    check_about({"years": 28}, asking(NUMBER, SCALE))


def test_nothing_of_an_attention_check_is_taken_in_a_distributed_poll():
    poll = asking_noisily(SCALE, CHECK)
    assert [question.id for question in poll.sent_questions] == ["trust"]
    with pytest.raises(Refusal, match="some of the poll's questions: trust"):
        check_about({"blue": "blue"}, poll)
    alone = poll_from_dict({**DISTRIBUTED, "about_epsilon": None, "questions": [CHECK]})
    assert (alone.sent_questions, alone.attention.checks) == ((), 1)


def test_what_passes_a_check_is_told_to_devices_that_judge_it_and_to_nobody_else():
    for poll, told in ((asking(CHECK, failed_checks="left-out"), None), (asking_noisily(SCALE, CHECK), "blue")):
        described = describe_poll(poll, ["en"], PollState.OPEN, None)
        assert described["questions"][-1]["expected"] == told
        assert described["attention"] == {"checks": 1, "left_out": told is None}
        assert read_poll(described).attention == poll.attention


def test_whoever_leaves_a_check_open_or_answers_otherwise_has_failed_it():
    twice = asking(CHECK, {**SCALE, "expected": 5})
    failed = [twice.failed_checks(about) for about in ({}, {"blue": "blue"}, {"blue": "red", "trust": 5})]
    assert failed == [2, 1, 1]
    assert twice.failed_checks({"blue": "blue", "trust": 5}) == 0


def test_every_kind_comes_back_from_a_file_and_from_a_description():
    poll = asking(SEVERAL, NUMBER, SCALE, TEXT, CHECK, failed_checks="left-out", minimum_age=18)
    assert poll_from_dict(poll_as_dict(poll)) == poll
    read = read_poll(describe_poll(poll, ["en"], PollState.OPEN, None))
    assert [question.as_dict(expected=False) for question in poll.questions] == [
        question.as_dict() for question in read.questions
    ]
    assert read.minimum_age == 18
    noisy = asking_noisily(*NOISY)
    assert read_poll(describe_poll(noisy, ["en"], PollState.OPEN, None)).questions == noisy.questions


@pytest.mark.parametrize(
    ("question", "complaint"),
    [
        ({**SCALE, "kind": "slider"}, "kind must be one of single, several, number, scale, text, got 'slider'"),
        ({**SCALE, "colour": 1}, "unknown setting 'colour'"),
        ({**SCALE, "high": 12}, "a scale has 2 to 11 points"),
        ({**SCALE, "low": 5}, "low < high"),
        ({**SCALE, "low": 1.5}, "low must be a whole number, got 1.5"),
        ({**SCALE, "step": 2}, "no step"),
        ({**SCALE, "ends": [{"en": "never"}]}, "ends are two texts"),
        ({**SCALE, "required": 1}, "required must be true or false"),
        ({**SCALE, "expected": 9}, "expected must be a whole number from 1 to 5, got 9"),
        ({**NUMBER, "step": 0}, "step must be from 1 to 79"),
        ({**NUMBER, "ends": SCALE["ends"]}, "ends are the words of a scale"),
        ({**NUMBER, "options": SEVERAL["options"]}, "takes no options"),
        ({**SEVERAL, "options": SEVERAL["options"][:1]}, "two or more options"),
        ({**SEVERAL, "low": 1}, "low, high and step are for kinds number and scale"),
        ({**TEXT, "expected": "no"}, "a free text cannot be an attention check"),
        ({"id": "x"}, "a question is a table with id, text"),
    ],
)
def test_questions_that_cannot_be_asked_are_refused_in_one_line(question, complaint):
    with pytest.raises(CrowdveilError, match=complaint) as told:
        asking(question)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("questions", "rules", "complaint"),
    [
        ([TEXT], {}, "asks for free text, which no noise can protect: ask it in a central poll"),
        ([{**NUMBER, "step": 1, "high": 150}], {}, "has 133 ranges.*give a larger step"),
        ([SCALE, CHECK], {"failed_checks": "left-out"}, "judged on the device and nothing about them is sent"),
        ([SCALE], {"failed_checks": "left-out"}, "failed_checks needs a question with expected"),
        ([SCALE, CHECK], {"failed_checks": "ignored"}, "failed_checks must be 'counted' or 'left-out'"),
        ([SCALE], {"minimum_age": 0}, "minimum_age must be from 1 to 120, got 0"),
    ],
)
def test_polls_that_nobody_could_protect_are_refused_in_one_line(questions, rules, complaint):
    with pytest.raises(CrowdveilError, match=complaint):
        asking_noisily(*questions, **rules)
