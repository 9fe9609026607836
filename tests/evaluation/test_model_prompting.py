"""Asking a model: by the chat protocol and by a program; every trouble ends in one line, and nothing is lost."""

import json
import sys
from unittest import mock

import numpy as np
import pytest
from tests.evaluation.chat_server import chat_server

import crowdveil as cv
from crowdveil.errors import CrowdveilError
from crowdveil.evaluation import model_prompting
from crowdveil.evaluation.model_prompting import ChatEndpoint, ModelProgram, ask_model, questions, read_choice
from crowdveil.study.bundled import load_study

KIDNEY = load_study("kidney")


def asked(server, transcript, *, model="m", key=None, timeout=60.0, seed=1, dilemmas=10, at_once=1):
    endpoint = ChatEndpoint(server.url, model, key, timeout, first_pause=0.001)
    return ask_model(endpoint, model, KIDNEY, transcript, dilemmas=dilemmas, seed=seed, at_once=at_once)


def lines(transcript):
    return [json.loads(line) for line in transcript.read_text().splitlines()]


@pytest.mark.parametrize(
    ("reply", "choice"),
    [
        ("A", 0),
        (" b.\n", 1),
        ("**B**", 1),
        ("(A)", 0),
        ("Option B", 1),
        ("I would choose A.", 0),
        ("The answer is: B", 1),
        ("Both matter.\nYet more years are gained by the first.\n\nAnswer: A", 0),
        ("A or B", None),
        ("A difficult choice", None),
        ("I cannot decide this.", None),
        ("AB", None),
        ("", None),
        ("Neither A nor B", None),
    ],
)
def test_only_a_plain_letter_is_a_choice(reply, choice):
    assert read_choice(reply) == choice


def test_questions_show_both_orders_and_grow_from_the_front():
    some, more = list(questions(KIDNEY, 7, 3)), list(questions(KIDNEY, 40, 3))
    assert some == more[:14]
    assert [question.number for question in more] == list(range(80))
    assert len({question.seed for question in more}) == 80
    for one, other in zip(more[::2], more[1::2], strict=True):
        assert one.dilemma.alternatives == other.dilemma.alternatives[::-1]
        assert KIDNEY.describe(one.dilemma.alternatives[0]) in one.prompt.split("\n")[2]
    assert list(questions(KIDNEY, 7, 4)) != some


def test_answers_are_kept_and_read_as_those_of_the_model(tmp_path):
    transcript = tmp_path / "t.jsonl"
    with chat_server() as server:
        assert asked(server, transcript, at_once=4, key="secret") == 20
        assert asked(server, transcript, at_once=4) == 0  # nothing is left to ask
        assert asked(server, transcript, dilemmas=12) == 4
        assert len(server.requests) == 24
        path, headers, body = server.requests[0]
    assert (path, headers["Authorization"]) == ("/v1/chat/completions", "Bearer secret")
    assert (body["model"], set(body)) == ("m", {"model", "messages", "seed"})
    header, *kept = lines(transcript)
    assert header["study"] == "kidney"
    assert "secret" not in transcript.read_text()
    answers = cv.read_answers(transcript, KIDNEY)
    years = answers.dilemmas[:, KIDNEY.feature_names.index("life_years_gained")]
    assert answers.choices.tolist() == np.sign(years).tolist()
    refused = [entry for entry in kept if entry["choice"] is None]
    assert len(refused) == (years == 0).sum() > 0
    assert {entry["reply"] for entry in refused} == {"I cannot choose between them."}


@pytest.mark.parametrize("trouble", ["busy", "broken", "nonsense", "other_json", "cut", "gone"])
def test_a_trouble_that_passes_is_waited_out(tmp_path, trouble):
    with chat_server(troubles=[trouble] * 3) as server:
        assert asked(server, tmp_path / "t.jsonl", dilemmas=2) == 4
        assert len(server.requests) == 7


@pytest.mark.parametrize("trouble", ["hang", "drip"])
def test_a_server_that_hangs_is_asked_again(tmp_path, trouble):
    with chat_server(troubles=[trouble]) as server:
        assert asked(server, tmp_path / "t.jsonl", dilemmas=1, timeout=2.0) == 2


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ("busy", "it answered 429, slow down"),
        ("broken", "it answered 500, our fault"),
        ("nonsense", "does not speak the OpenAI chat protocol, it said '<html>Welcome</html>'"),
        ("cut", "the connection was lost"),
        ("gone", "the connection was lost"),
        ("hang", "no answer within 0.2 seconds"),
        ("wrong_key", "it answered 401, Incorrect API key provided: ***; check the URL"),
        ("elsewhere", "it answered 302"),
    ],
)
def test_a_trouble_that_stays_ends_in_one_line_and_loses_nothing(tmp_path, trouble, said):
    transcript = tmp_path / "t.jsonl"
    with chat_server() as server, mock.patch.object(model_prompting, "TRIES", 2):
        asked(server, transcript, dilemmas=3)
        server.troubles = [trouble] * 100
        timeout = 0.2 if trouble == "hang" else 10.0
        with pytest.raises(CrowdveilError) as failed:
            asked(server, transcript, dilemmas=5, key="sk-12345678", timeout=timeout, at_once=2)
        assert said in str(failed.value)
        assert "6 answers are kept" in str(failed.value)
        assert "sk-1234" not in str(failed.value)
        assert "\n" not in str(failed.value)
        assert len(lines(transcript)) == 7
        assert "/v1/stolen" not in {path for path, _, _ in server.requests}
        server.troubles = []
        assert asked(server, transcript, dilemmas=5) == 4


def test_nobody_there_is_told(tmp_path):
    with chat_server() as server:
        url = server.url
    with mock.patch.object(model_prompting, "TRIES", 1), pytest.raises(CrowdveilError, match="the connection was lost"):
        ask_model(ChatEndpoint(url, "m"), "m", KIDNEY, tmp_path / "t", dilemmas=1, seed=1)


def test_a_refusal_in_the_protocols_own_field_is_a_refusal(tmp_path):
    with chat_server(troubles=["refusal"] * 4) as server:
        asked(server, tmp_path / "t.jsonl", dilemmas=2)
    assert [(entry["choice"], entry["reply"]) for entry in lines(tmp_path / "t.jsonl")[1:]] == [
        (None, "I will not.")
    ] * 4


def test_a_line_that_a_kill_cut_short_is_asked_again(tmp_path):
    transcript = tmp_path / "t.jsonl"
    with chat_server() as server:
        asked(server, transcript, dilemmas=3)
        whole = transcript.read_bytes()
        transcript.write_bytes(whole[:-30])
        assert asked(server, transcript, dilemmas=3) == 1
    assert transcript.read_bytes() == whole


def test_a_transcript_of_something_else_is_left_alone(tmp_path):
    transcript = tmp_path / "t.jsonl"
    with chat_server() as server:
        asked(server, transcript, dilemmas=1)
        for change, said in (({"model": "n"}, "the model 'm', not 'n'"), ({"seed": 2}, "the seed 1, not 2")):
            with pytest.raises(CrowdveilError, match=said):
                asked(server, transcript, dilemmas=1, **change)
        before = transcript.read_bytes()
        with pytest.raises(CrowdveilError, match="answers to the study 'kidney'"):
            ask_model(ChatEndpoint(server.url, "m"), "m", load_study("moral-machine"), transcript, dilemmas=1, seed=1)
        assert transcript.read_bytes() == before
        for content in ("a,b\n1,2\n", '{"format": "other"}\n'):
            (tmp_path / "other").write_text(content)
            with pytest.raises(CrowdveilError, match="this command did not write it"):
                asked(server, tmp_path / "other")
            assert (tmp_path / "other").read_text() == content


@pytest.mark.parametrize(
    "change", [{"dilemmas": 0}, {"dilemmas": 10_001}, {"at_once": 0}, {"at_once": 65}, {"seed": -1}, {"timeout": 0}]
)
def test_bounds_are_kept(tmp_path, change):
    with chat_server() as server:
        with pytest.raises(CrowdveilError):
            asked(server, tmp_path / "t.jsonl", **change)
        assert server.requests == []
    assert not (tmp_path / "t.jsonl").exists()


@pytest.mark.parametrize("url", ["", "localhost:80", "ftp://a/b", "http://", "https://a/v1?x=1"])
def test_a_url_that_is_none_is_refused(url):
    with pytest.raises(CrowdveilError, match="give its base URL"):
        ChatEndpoint(url, "m")


def test_a_program_is_asked_by_standard_input_and_output(tmp_path):
    program = tmp_path / "bot.py"
    program.write_text(
        "import os, sys\n"
        "assert os.environ['CROWDVEIL_SEED']\n"
        "prompt = sys.stdin.read()\n"
        "print('B' if 'not obese' in prompt.split('B:')[1] else 'A')\n"
    )
    command = ModelProgram(f"{sys.executable} {program}")
    assert ask_model(command, "bot", KIDNEY, tmp_path / "t", dilemmas=2, seed=1) == 4
    assert {entry["choice"] for entry in lines(tmp_path / "t")[1:]} <= {"left", "right"}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("no-such-program-here", "cannot run"),
        (f"{sys.executable} -c 'raise SystemExit(3)'", "ended with exit code 3"),
        (f"{sys.executable} -c 'import time; time.sleep(9)'", "no answer within 0.3 seconds"),
    ],
)
def test_a_program_that_fails_ends_in_one_line(tmp_path, command, said):
    with pytest.raises(CrowdveilError) as failed:
        ask_model(
            ModelProgram(command, 0.3 if "sleep" in command else 20), "m", KIDNEY, tmp_path / "t", dilemmas=1, seed=1
        )
    assert said in str(failed.value)
    for nothing in ("", "'"):
        with pytest.raises(CrowdveilError):
            ModelProgram(nothing)
