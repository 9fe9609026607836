"""A decision by a website is the decision that its release makes."""

import json
import subprocess
import sys

import pytest

from crowdveil.client.client import Client
from crowdveil.decision import decide
from crowdveil.errors import CrowdveilError
from crowdveil.releases import read_release

DILEMMA = [
    {"name": "Ana", "features": {"life_years_gained": 20, "years_waiting": 1}},
    {"name": "Ben", "features": {"life_years_gained": 5, "years_waiting": 1}},
]


def test_a_remote_decision_reads_like_a_local_one(talking, release_file):
    release = read_release(release_file)
    local = decide(release, release.study.dilemma(DILEMMA))
    client, heard = talking((200, {**local.as_dict(), "release": release.digest}))
    remote = client.decide(DILEMMA)
    assert remote.as_dict() == local.as_dict()
    assert remote.choice == local.choice is not None
    assert remote.release == release.digest
    assert json.loads(heard[0][3]) == {"alternatives": DILEMMA, "certainty": 0.9}


def test_many_dilemmas_are_asked_at_once(talking, release_file):
    release = read_release(release_file)
    local = [decide(release, release.study.dilemma(some), 0.6) for some in (DILEMMA, DILEMMA[::-1])]
    answer = {"decisions": [{**made.as_dict(), "release": release.digest} for made in local]}
    client, heard = talking((200, answer))
    made = client.decide_many([DILEMMA, DILEMMA[::-1]], release=release.digest, certainty=0.6)
    assert [one.as_dict() for one in made] == [one.as_dict() for one in local]
    assert heard[0][1] == f"/api/releases/{release.digest}/decisions/batch"


def test_a_release_from_a_website_is_checked_as_a_file_is(talking, release_file):
    data = json.loads(release_file.read_text())
    client, _ = talking((200, data), (200, {**data, "mechanism": "none"}))
    assert client.release().digest == data["checksum"]
    with pytest.raises(CrowdveilError, match="checksum does not match"):
        client.release()


def test_what_is_not_plain_data_is_not_sent(talking):
    client, heard = talking()
    with pytest.raises(CrowdveilError, match="not plain data"):
        client.decide([{"features": {"age": float("nan")}}, {"features": {}}])
    assert heard == []


def test_a_program_that_asks_loads_nothing_that_reads_answers():
    code = "import sys; from crowdveil import Client; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {
        "crowdveil.ballots.ballots",
        "crowdveil.sources",
        "crowdveil.estimation",
        "crowdveil.privacy.mechanisms",
    } & set(ran.stdout.split())
    assert Client.__module__ in ran.stdout.split()
