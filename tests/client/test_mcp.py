"""An agent's program asks the crowd: the protocol's own client, over a real pipe."""

import re
import sys

import anyio
import pytest
from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from tests.program import crowdveil, refused

from crowdveil.decision import decide
from crowdveil.mcp import INSTRUCTIONS, SingleRelease, mcp_server
from crowdveil.protocol.decisions import ALTERNATIVES_SCHEMA, CURRENT
from crowdveil.releases import read_release

DILEMMA = [
    {"name": "Ana", "features": {"life_years_gained": 20, "years_waiting": 1}},
    {"name": "Ben", "features": {"life_years_gained": 5, "years_waiting": 1}},
]


def session(*words):
    """Start ``crowdveil`` with these words as an agent's program would, and return what was said."""

    async def talk(requests):
        program = "from crowdveil.cli.app import main; main()"
        started = StdioServerParameters(command=sys.executable, args=["-c", program, "mcp", *map(str, words)])
        async with Client(stdio_client(started)) as client:
            tools = await client.list_tools()
            return tools.tools, [await client.call_tool(name, arguments) for name, arguments in requests]

    return lambda *requests: anyio.run(talk, requests)


@pytest.fixture(scope="module")
def told(release_file):
    """Everything is asked in one session: starting the program takes the time."""
    tools, answers = session("--release", release_file)(
        ("list_releases", {}),
        ("describe_study", {}),
        ("decide_dilemma", {"alternatives": DILEMMA}),
        ("decide_dilemma", {"alternatives": [DILEMMA[0], {"features": DILEMMA[0]["features"]}]}),
        ("decide_dilemma", {"alternatives": [{"features": {"life_yeers_gained": 20}}, DILEMMA[1]]}),
        ("decide_dilemma", {"alternatives": DILEMMA, "release": "0" * 64}),
        ("decide_dilemma", {"alternatives": DILEMMA[:1]}),
        ("decide_dilemma", {"alternatives": {one["name"]: one["features"] for one in DILEMMA}}),
        ("decide_dilemma", {"dilemma": DILEMMA, "poll": None}),
        ("decide_dilemma", {"alternatives": DILEMMA, "certainty": "sure"}),
    )
    names = ("list", "describe", "decided", "close", "misspelt", "unknown", "alone", "by name", "misnamed", "unsure")
    return tools, dict(zip(names, answers, strict=True))


def test_the_tools_say_what_they_are_for(told):
    tools, _ = told
    assert {tool.name for tool in tools} == {"list_releases", "describe_study", "decide_dilemma"}
    for tool in tools:
        assert tool.description
        assert tool.annotations.read_only_hint is True
    (decide_tool,) = (tool for tool in tools if tool.name == "decide_dilemma")
    assert decide_tool.input_schema["required"] == ["alternatives"]
    assert "a list of their features" in decide_tool.input_schema["properties"]["alternatives"]["description"]


@pytest.mark.parametrize(
    ("alternatives", "allowed"),
    [
        (DILEMMA, True),
        ([{"upbringing": "poor"}, {"upbringing": "upper"}], True),
        ({"Ana": {"race": "black", "children": "two"}, "Ben": {"race": "white", "children": "none"}}, True),
        ([{"girl": None}, {"dog": 2}], False),
        ([{"girl": 1}], False),
    ],
)
def test_what_the_tools_announce_is_what_a_study_reads(alternatives, allowed):
    """An agent's program checks what it asks by the schema, also where a study has categories."""
    assert Draft202012Validator(ALTERNATIVES_SCHEMA).is_valid(alternatives) == allowed


def test_the_instructions_name_only_tools_that_there_are(told):
    named = set(re.findall(r"\b[a-z]+_[a-z]+\b", INSTRUCTIONS))
    assert named == {tool.name for tool in told[0]}


def test_the_decision_is_the_releases(told, release_file):
    release = read_release(release_file)
    local = decide(release, release.study.dilemma(DILEMMA))
    said = told[1]["decided"]
    assert not said.is_error
    assert said.structured_content == {**local.as_dict(), "release": release.digest}
    assert said.structured_content["choice"] == "Ana"
    assert told[1]["by name"].structured_content == said.structured_content


def test_too_close_to_call_is_said(told):
    said = told[1]["close"].structured_content
    assert said["choice"] is None
    assert said["too_close_to_call"] is True


def test_the_study_is_described(told, release_file):
    study = read_release(release_file).study
    said = told[1]["describe"].structured_content
    assert said["question"] == study.question
    assert [feature["name"] for feature in said["features"]] == list(study.feature_names)
    assert "400 voters" in said["guarantee"][0]
    listed = told[1]["list"].structured_content["releases"]
    assert [one["id"] for one in listed] == [said["release"]]


def test_mistakes_are_told_to_the_agent(told):
    answers = told[1]
    assert all(answers[name].is_error for name in ("misspelt", "unknown", "alone"))
    assert "did you mean life_years_gained" in answers["misspelt"].content[0].text
    assert "there is no release" in answers["unknown"].content[0].text
    assert (
        answers["misnamed"].content[0].text.startswith("decide_dilemma: got dilemma, poll: give alternatives, a list")
    )
    assert answers["unsure"].content[0].text.startswith("decide_dilemma: certainty is 'sure': ")
    assert not any("pydantic" in answers[name].content[0].text for name in ("misnamed", "unsure"))


def test_the_usual_poll_is_asked_where_the_agent_names_none(release_file):
    asked = []

    class Website(SingleRelease):
        def release(self, id=CURRENT, *, poll=None):
            asked.append(poll)
            return super().release(id)

    server = mcp_server(Website(read_release(release_file)), "cats")
    anyio.run(server.call_tool, "describe_study", {})
    anyio.run(server.call_tool, "describe_study", {"poll": "dogs"})
    assert asked == ["cats", "dogs"]


def test_a_poll_is_a_websites():
    refused(crowdveil("mcp", "--release", "r.json", "--poll", "cats"), "--poll cats names a poll of a website")
