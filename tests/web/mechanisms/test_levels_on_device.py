"""A voter's device checks categories as Python does: one level each, and no dilemma twice."""

import copy
import json
import subprocess
from pathlib import Path

import numpy as np

from crowdveil.protocol.description import describe_poll
from crowdveil.protocol.polls import PollState
from crowdveil.protocol.submission import write_session
from crowdveil.service.poll import poll_from_dict
from crowdveil.study.drawing import draw_session
from crowdveil.study.study import Study

POLL_JS = Path(__file__).parents[3] / "src/crowdveil/web/poll.js"
STUDY = Study.from_dict(
    {
        "name": "lunch",
        "drawing": {"method": "independent", "dilemmas": 2},
        "categories": [{"name": "soup", "levels": ["leek", "pea", "fish"]}, {"name": "bread", "levels": ["a", "b"]}],
    }
)
SCRIPT = f"""
import {{ checkedPoll, checkedSession }} from {json.dumps(POLL_JS.as_uri())};
import {{ readFileSync }} from "node:fs";
const {{ polls, sessions, study }} = JSON.parse(readFileSync(0, "utf8"));
const told = (work) => {{ try {{ work(); return "taken"; }} catch (error) {{ return error.message; }} }};
console.log(JSON.stringify([
  polls.map((poll) => told(() => checkedPoll(poll))),
  sessions.map((session) => told(() => checkedSession(study, session))),
]));
"""


def test_a_device_takes_one_level_of_each_category(node):
    poll = poll_from_dict({"name": "p", "study": STUDY.as_dict(), "paradigm": "rldp", "levels": {"only": 1}})
    good = describe_poll(poll, ["en"], PollState.OPEN, None)
    marked, wide, shared = (copy.deepcopy(good) for _ in range(3))
    marked["study"]["categories"][0]["mark"] = 7
    wide["study"]["features"][1]["high"] = 2.0
    shared["study"]["categories"][1] = {"name": "soup", "label": "soup", "levels": ["pea", "fish"]}
    missing = copy.deepcopy(good)
    missing["study"]["categories"][0]["levels"][0] = "beet"
    drawn = write_session(draw_session(STUDY, np.random.default_rng(0)))["dilemmas"]
    none, two, again = (copy.deepcopy(drawn) for _ in range(3))
    none[0]["left"][:3] = [0, 0, 0]
    two[0]["left"][:3] = [1, 1, 0]
    again[1] = {"left": again[0]["right"], "right": again[0]["left"]}
    given = json.dumps(
        {"polls": [good, marked, wide, shared, missing], "sessions": [drawn, none, two, again], "study": good["study"]}
    )
    done = subprocess.run(
        [node, "--input-type=module", "--eval", SCRIPT],
        input=given, capture_output=True, text=True, encoding="utf-8", check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    polls, sessions = json.loads(done.stdout)
    assert polls == [
        "taken",
        "a category has no field mark",
        "the level soup-pea of a category is no feature from 0 to 1",
        "a level belongs to two categories",
        "the level undefined of a category is no feature from 0 to 1",
    ]
    assert sessions == [
        "taken",
        "an alternative has 0 levels of soup",
        "an alternative has 2 levels of soup",
        "the same dilemma comes more than once",
    ]
