"""A program takes part as a voter, against the real service."""

import json
import math
from dataclasses import replace
from datetime import date

import anyio
import httpx
import numpy as np
import pytest
from mcp import Client as McpClient
from tests.client.running import running
from tests.program import answer, crowdveil, refused

from crowdveil.client.client import Client
from crowdveil.client.voting import _perturbed, make_submission
from crowdveil.errors import CrowdveilError, Refusal
from crowdveil.estimation.society import society
from crowdveil.mcp import mcp_server
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.privacy.noise.coins import Coin
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.protocol.description import describe_poll, read_poll
from crowdveil.protocol.polls import PollState
from crowdveil.protocol.submission import read_session, report_id, write_session
from crowdveil.service.poll import poll_from_dict
from crowdveil.service.poll_release import make_release
from crowdveil.simulated_voters import find_poll, send_crowd, tokens_of_links
from crowdveil.study.drawing import draw_session

AGE = {"id": "age", "text": "Age?", "options": [{"id": id, "text": id} for id in ("young", "middle", "old")]}
BY_MECHANISM = {
    name: {"paradigm": mechanism.paradigms[0], "mechanism": name} for name, mechanism in DISTRIBUTED.items()
}
CENTRAL = {"paradigm": "vlcp", "mechanism": "algorithm-1", "questions": [AGE], "completion_code": "DONE-1", "budget": 2}
BY_LINK = {"paradigm": "vldp", "mechanism": "algorithm-2", "entry": "links", "questions": [AGE], "about_epsilon": "1"}
POLLS = {**BY_MECHANISM, "central": CENTRAL, "by-link": BY_LINK}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A website with a poll for every mechanism."""
    made = [poll_from_dict({"name": name, "study": "kidney", **given}) for name, given in POLLS.items()]
    with running(tmp_path_factory.mktemp("site"), made) as (store, address):
        yield store, address


@pytest.fixture
def client(site):
    with Client(site[1], first_pause=0.001) as made:
        yield made


def left(dilemma):
    return "left"


def stored_reports(store, name):
    return {report.id: report for batch in store.submissions.reports(name) for report in batch}


@pytest.mark.parametrize("name", list(BY_MECHANISM))
def test_a_report_of_every_mechanism_is_accepted(site, client, name):
    poll = client.poll(name)
    submission = client.submission(poll, left, "balanced")
    receipt = client.send(submission)
    assert (receipt.status, receipt.id) == ("stored", report_id(receipt.token))
    assert stored_reports(site[0], name)[receipt.id].body == json.loads(submission.body)
    assert client.send(submission).status == "already-stored"


def test_only_the_report_is_sent(site):
    """Between the dilemmas and the receipt, one request is made, and what it holds is the report."""
    sent = []
    http = httpx.Client(event_hooks={"request": [lambda request: sent.append(request)]})
    with Client(site[1], http=http) as client:
        client.vote(client.poll("randomised-response"), left, "strong")
    assert [(request.method, request.url.path.rpartition("/")[2]) for request in sent] == [
        ("GET", "randomised-response"),
        ("GET", "session"),
        ("PUT", "report"),
    ]
    body = json.loads(sent[-1].content)
    assert set(body) == {"format", "study", "mechanism", "epsilon_micro", "dilemmas", "choices"}
    assert body["epsilon_micro"] == 500_000


def test_without_a_level_the_most_private_one_is_taken(client):
    poll = client.poll("score")
    assert json.loads(client.submission(poll, left).body)["epsilon_micro"] == 500_000
    with pytest.raises(CrowdveilError, match="no level of privacy 'none'"):
        client.submission(poll, left, "none")


def test_a_lost_acknowledgement_counts_once(site):
    """The server stores the report, the answer gets lost, and the same bytes are sent again."""

    class Losing(httpx.HTTPTransport):
        lost = 0

        def handle_request(self, request):
            answer = super().handle_request(request)
            if request.method == "PUT" and not Losing.lost:
                Losing.lost += 1
                answer.close()
                raise httpx.ReadError("lost", request=request)
            return answer

    store, address = site
    before = len(stored_reports(store, "algorithm-2"))
    with Client(address, http=httpx.Client(transport=Losing()), first_pause=0.001) as client:
        receipt = client.vote(client.poll("algorithm-2"), left)
    assert receipt.status == "already-stored"
    assert Losing.lost == 1
    assert len(stored_reports(store, "algorithm-2")) == before + 1


def test_a_second_report_of_one_token_is_refused(client):
    poll = client.poll("algorithm-2")  # whose noise is the same twice with a probability below 2^-100
    receipt = client.vote(poll, left)
    with pytest.raises(Refusal) as refusal:
        client.vote(poll, left, token=receipt.token)
    assert refusal.value.reason == "different-report"


def test_exact_answers_go_to_a_central_poll_only(site, client):
    receipt = client.vote(client.poll("central"), left, about={"age": "old"})
    (chunk,) = site[0].submissions.ballots("central")
    (ballot,) = (one for one in chunk if one.id == receipt.id)
    assert {record["chosen"] for record in ballot.records} == {"left"}
    assert ballot.about == {"age": "old"}
    assert receipt.completion_code == "DONE-1"


def test_a_vote_is_withdrawn_for_good(client):
    poll = client.poll("score")
    submission = client.submission(poll, left)
    token = client.send(submission).token
    assert client.withdraw("score", token) is True
    assert client.withdraw("score", token) is False
    with pytest.raises(Refusal) as refusal:
        client.send(submission)
    assert refusal.value.reason == "withdrawn"


def test_what_is_not_offered_is_refused_before_anything_is_sent(client):
    poll = client.poll("central")
    with pytest.raises(CrowdveilError, match="must be one of young, middle, old, got 'ancient'"):
        client.submission(poll, left, about={"age": "ancient"})
    with pytest.raises(CrowdveilError, match="choose 'left' or 'right'"):
        client.submission(client.poll("score"), lambda dilemma: "middle")


# --- What a server may say -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def described():
    """A poll's description, as the service gives it."""
    poll = poll_from_dict(
        {"name": "p", "study": "kidney", "paradigm": "vldp", "questions": [AGE], "about_epsilon": "1"}
    )
    return json.loads(json.dumps(describe_poll(poll, ["en"], PollState.OPEN, None)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"study_fingerprint": "0" * 64}, "not the one that its fingerprint names"),
        ({"levels": []}, "there must be one"),
        ({"levels": [{"name": "none", "epsilon_micro": 10**9}]}, "epsilon"),
        ({"paradigm": "none"}, "no paradigm"),
        ({"method": None}, "cannot be read"),
        ({"study": None}, "the study is None"),
        ({"unit": "choice"}, "says unit 'choice'"),
        ({"place": "central"}, "says place 'central'"),
        ({"method": {"norm_bound": 100.0}}, "norm bound is not the study's"),
    ],
)
def test_a_description_that_does_not_hold_is_refused(described, change, said):
    with pytest.raises(CrowdveilError, match=said):
        read_poll({**described, **change})


@pytest.mark.parametrize(
    ("mechanism", "said"), [("algorithm-1", "makes no report"), ("score", "does not keep"), ("none", "makes no report")]
)
def test_a_mechanism_that_does_not_keep_the_promise_is_refused(described, mechanism, said):
    with pytest.raises(CrowdveilError, match=said):
        read_poll({**described, "mechanism": mechanism})
    poll = replace(read_poll(described), mechanism=mechanism)
    dilemmas = draw_session(poll.study, np.random.default_rng(0))
    with pytest.raises(CrowdveilError, match=said):
        make_submission(poll, dilemmas, ["left"] * len(dilemmas), poll.levels[0], {}, "A" * 22, BulkNoise())


@pytest.mark.parametrize("values", [[0, 5, 0, 0], [0, 5, 0, 0, 1e9], [0, "5", 0, 0, 1], [0, math.nan, 0, 0, 1]])
def test_dilemmas_outside_the_study_are_refused(described, values):
    study = read_poll(described).study
    drawn = write_session(draw_session(study, np.random.default_rng(2)))["dilemmas"]
    with pytest.raises(CrowdveilError, match=r"cannot be read|must be a number"):
        read_session(study, {"dilemmas": [*drawn[:-1], {**drawn[-1], "right": values}]})


def test_a_session_of_another_length_or_with_repeats_is_refused(described):
    study = read_poll(described).study
    good = write_session(draw_session(study, np.random.default_rng(1)))["dilemmas"]
    assert len(read_session(study, {"dilemmas": good})) == study.drawing.dilemmas
    with pytest.raises(CrowdveilError, match=f"drew {len(good) - 1} dilemmas"):
        read_session(study, {"dilemmas": good[1:]})
    mirrored = {"left": good[0]["right"], "right": good[0]["left"]}
    for repeated in (good[0], mirrored):
        with pytest.raises(CrowdveilError, match="more than once"):
            read_session(study, {"dilemmas": [*good[:-1], repeated]})


# --- About-you answers ---------------------------------------------------------------------------------------------


class Scripted(BulkNoise):
    """Tosses and numbers as told; what was asked for is noted."""

    def __init__(self, keep, number):
        self.keep, self.number, self.asked = keep, number, []

    def tosses(self, odds, epsilons, columns):
        self.asked.append((odds, epsilons.micro.tolist()))
        return np.array([[self.keep]])

    def uniform(self, below, rows, columns):
        self.asked.append(below)
        return np.array([[self.number]])


@pytest.mark.parametrize("epsilon", ["0.5", "1", "3"])
def test_about_you_answers_keep_the_odds(described, epsilon):
    poll = read_poll({**described, "about_epsilon_micro": Epsilon(epsilon).micro})
    kept = Scripted(True, 0)
    assert _perturbed(poll, poll.questions[0], "middle", kept) == "middle"
    (odds, (micro,)), others = kept.asked
    assert others == 2
    (floor,) = Coin(odds, micro).floors(40)
    factor = math.exp(float(epsilon))
    assert floor / 2**40 == pytest.approx(factor / (factor + 2), abs=2**-39)
    reported = [_perturbed(poll, poll.questions[0], "middle", Scripted(False, number)) for number in range(2)]
    assert reported == ["young", "old"]


def test_about_you_answers_of_a_distributed_poll_are_never_sent_without_their_epsilon(described):
    with pytest.raises(CrowdveilError, match="about_epsilon protects the questions"):
        read_poll({**described, "about_epsilon_micro": None})


# --- Crowds, and agents that ask -------------------------------------------------------------------------------------


def test_a_crowd_votes_and_leans_as_the_study_says(site, client):
    store, told = site[0], []
    before = store.polls.get("central").participants
    turnout = send_crowd(client, client.poll("central"), 60, connections=4, seed=1, tell=told.append)
    assert (turnout.stored, turnout.refused, sum(told)) == (60, {}, 60)
    assert store.polls.get("central").participants == before + 60
    lean = np.array([feature.lean for feature in store.polls.known("central").study.features])
    made = make_release(store, "central", date(2026, 1, 1), Epsilon("1"))
    assert made.read().guarantee.voters == before + 60
    fitted = society(store.submissions.crowd("central"), None).parameter
    assert np.corrcoef(fitted, lean)[0, 1] > 0.9


def test_a_crowd_with_links_and_levels(site, client):
    store, address = site
    tokens = store.submissions.create_links("by-link", 12)
    poll = client.poll("by-link")
    with pytest.raises(CrowdveilError, match="by links only"):
        send_crowd(client, poll, 5)
    links = [f"{report_id(token)},{address}/p/by-link/#ballot={token}" for token in tokens]
    assert tokens_of_links(["report,link", *links]) == tokens
    turnout = send_crowd(client, poll, 12, connections=3, tokens=tokens, seed=3)
    assert turnout.stored == 12
    assert sum(turnout.levels.values()) == 12
    assert set(turnout.levels) <= {"strong", "balanced", "light"}
    assert send_crowd(client, poll, 12, tokens=tokens).refused == {"different-report": 12}


def test_which_poll_must_be_said_where_there_are_many(client):
    with pytest.raises(CrowdveilError, match="--poll"):
        find_poll(client, None)
    with pytest.raises(CrowdveilError, match="no voter's link"):
        tokens_of_links(["voter,link"])


def test_the_crowd_command(site):
    said = answer("crowd", "--url", site[1], "--voters", "5", "--poll", "algorithm-3", "--level", "light")
    assert (said["stored"], said["levels"], said["refused"]) == (5, {"light": 5}, {})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--voters", "0"), "the number of voters is 0: give a whole number from 1 to 10,000,000"),
        (("--voters", "1" + "0" * 12), "the number of voters is 1000000000000: give at most 10,000,000"),
        (("--connections", "0"), "--connections is 0: give a whole number from 1 to 1,000"),
        (("--seed", "-1"), "the seed is -1: give a whole number from 0 up"),
        (("--links", "binary"), "binary is no text (UTF-8), so it has no links: give the file (CSV)"),
        (("--links", "empty"), "no voter's link in the file: give the one that the host's page"),
        (("--poll", "no/poll"), "the poll is 'no/poll', which is no name"),
        (("--poll", ""), "the poll is '', which is no name"),
        (("--poll", "no-poll"), "there is no poll 'no-poll'"),
    ],
)
def test_a_crowd_that_cannot_vote_is_told_in_a_line(site, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "empty").touch()
    poll = () if "--poll" in words else ("--poll", "algorithm-3")
    refused(crowdveil("crowd", "--url", site[1], *poll, *words), said)


def test_a_website_is_asked_by_client_and_by_agent_alike(site, client):
    send_crowd(client, client.poll("central"), 3, connections=1)
    made = make_release(site[0], "central", date(2026, 1, 2), Epsilon("0.01"))
    dilemma = [
        {"features": {"life_years_gained": 20, "years_waiting": 1}},
        {"features": {"life_years_gained": 5, "years_waiting": 1}},
    ]
    decided = client.decide(dilemma, release=made.id, certainty=0.5)
    assert decided.release == made.id == client.releases("central")[0]["id"]
    assert client.decide_many([dilemma, dilemma[::-1]], release=made.id, certainty=0.5)[0] == decided
    assert client.release(made.id).digest == made.id
    assert client.release(poll="central").digest == client.decide(dilemma, poll="central").release == made.id
    with pytest.raises(Refusal, match="name the poll"):
        client.decide(dilemma)
    listed = {poll.id: poll for poll in client.polls()}
    assert listed["central"].release == made.id
    with pytest.raises(Refusal, match="life_years_gained"):
        client.decide([{"features": {"life_yeers": 1}}, dilemma[1]], release=made.id)

    async def ask():
        async with McpClient(mcp_server(client)) as agent:
            asked = {"alternatives": dilemma, "certainty": 0.5}
            named = ({"release": made.id}, {"poll": "central"}, {})
            return [await agent.call_tool("decide_dilemma", {**asked, **which}) for which in named]

    by_id, by_poll, by_nothing = anyio.run(ask)
    assert by_id.structured_content == by_poll.structured_content == {**decided.as_dict(), "release": made.id}
    assert by_nothing.is_error
    assert "name the poll" in by_nothing.content[0].text
