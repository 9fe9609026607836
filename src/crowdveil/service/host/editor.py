"""The study editor: check a study or poll file, see its dilemmas, and put it to voters."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass

import numpy as np
from starlette.responses import Response

from crowdveil.errors import CrowdveilError
from crowdveil.pages.plain_words import mechanism_words, paradigm_title
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.service.host.request import HostRequest, sentence
from crowdveil.service.poll import HostedPoll
from crowdveil.service.poll_file import default_poll, poll_from_dict
from crowdveil.study.drawing import draw_session
from crowdveil.study.study import Study

SHOWN_DILEMMAS = 6
EXAMPLE = """\
name = "parking"

[study]
name = "parking"
title = "Who gets the last parking space?"
question = "Who should get it?"
norm_bound = 2.0
drawing = { method = "independent", dilemmas = 10 }

[[study.features]]
name = "children"
label = "children in the car"
low = 0
high = 3
levels = [0, 1, 2, 3]

[[study.features]]
name = "minutes_waiting"
label = "minutes of waiting"
low = 0
high = 30
unit = 10
levels = [0, 10, 20, 30]
"""


@dataclass(frozen=True)
class ShownDilemma:
    """A dilemma in words, and as the voter's page draws it."""

    left: str
    right: str
    values: dict[str, list[float]]


def editor_page(request: HostRequest) -> Response:
    """Show an empty editor."""
    return _editor(request, "", "rldp")


def check_file(request: HostRequest) -> Response:
    """Check what was written or uploaded, and show it as voters would see it; nothing is stored."""
    text = request.form.get("file") or request.form.get("text", "")
    paradigm = request.form.get("paradigm", "rldp")
    try:
        poll = read_poll_text(text, paradigm)
        if request.store.polls.get(poll.name) is not None:
            raise CrowdveilError(f"there is a poll {poll.name!r} already: give this one another name")
    except CrowdveilError as error:
        return _editor(request, text, paradigm, wrong=sentence(str(error)), status=400)
    return _editor(request, text, paradigm, poll=poll)


def create_poll(request: HostRequest) -> Response:
    """Put a checked file to voters. From now on it cannot be changed: it is what voters agree to."""
    poll = read_poll_text(request.form.get("text", ""), request.form.get("paradigm", "rldp"))
    request.store.polls.add(poll)
    return request.go(f"/polls/{poll.name}")


def read_poll_text(text: str, paradigm: str) -> HostedPoll:
    """Read a poll file, or a study file, which becomes a poll with this paradigm and everything else as it comes."""
    if not text.strip():
        raise CrowdveilError("nothing was given: choose a file, or write into the field")
    try:
        data = tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise CrowdveilError(f"this is not TOML: {error}") from None
    if "features" in data:
        return default_poll(Study.from_dict(data), paradigm)
    return poll_from_dict(data)


def _editor(
    request: HostRequest,
    text: str,
    paradigm: str,
    *,
    poll: HostedPoll | None = None,
    wrong: str | None = None,
    status: int = 200,
) -> Response:
    return request.show(
        "editor.html",
        status,
        text=text,
        example=EXAMPLE,
        paradigm=paradigm,
        paradigms=[(name, paradigm_title(one)) for name, one in PARADIGMS.items()],
        poll=poll,
        wrong=wrong,
        dilemmas=[] if poll is None else _dilemmas(poll.study),
        promise=None if poll is None else (paradigm_title(poll.paradigm), mechanism_words(poll.mechanism)),
    )


def _dilemmas(study: Study) -> list[ShownDilemma]:
    shown = []
    for drawn in draw_session(study, np.random.default_rng())[:SHOWN_DILEMMAS]:
        left, right = drawn.alternatives
        values = {side.name: list(side.values) for side in drawn.alternatives}
        shown.append(ShownDilemma(study.describe(left), study.describe(right), values))
    return shown
