"""Polls, and honest reports and ballots to them, made by the library."""

from __future__ import annotations

from functools import lru_cache
from itertools import cycle, islice
from typing import Any

import numpy as np

from crowdveil.ballots import concatenate
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.privacy.noise.bulk_noise import BulkNoise
from crowdveil.protocol.report import write_reports
from crowdveil.protocol.tokens import new_token, report_id
from crowdveil.service.incoming import read_sent_ballot, read_sent_report
from crowdveil.service.poll import Poll
from crowdveil.service.poll_file import poll_from_dict
from crowdveil.service.store.sent import SentBallot, SentReport
from crowdveil.sources.simulated import simulate_crowd
from crowdveil.study.drawing import draw_session
from crowdveil.study.study import canonical_json


@lru_cache(maxsize=64)
def poll(name: str = "p", paradigm: str = "rldp", study: str = "kidney", **rules: Any) -> Poll:
    """A poll of a small study."""
    return poll_from_dict({"name": name, "study": study, "paradigm": paradigm, **rules})


@lru_cache(maxsize=32)
def reports(asked: Poll, voters: int) -> tuple[dict[str, Any], ...]:
    """Honest reports, of the poll's levels in turn."""
    epsilons = Epsilons.of(islice(cycle(level.epsilon for level in asked.levels), voters))
    ballots = concatenate(asked.study, list(simulate_crowd(asked.study, voters, np.random.default_rng(5))))
    batch = DISTRIBUTED[asked.mechanism].report(ballots, asked.settings, epsilons, BulkNoise())
    return tuple(write_reports(asked.mechanism, asked.study, epsilons, batch))


def ballot(asked: Poll, seed: int) -> dict[str, Any]:
    """A ballot whose voter always chooses the left."""
    drawn = draw_session(asked.study, np.random.default_rng(seed))
    answers = [{**{a.name: list(a.values) for a in d.alternatives}, "chosen": "left"} for d in drawn]
    return {"format": "crowdveil ballot 1", "study": asked.study.fingerprint, "answers": answers}


def sent_report(asked: Poll, number: int = 0, token: str | None = None) -> SentReport:
    """The report of one voter, as the store takes it."""
    raw = canonical_json(reports(asked, 12)[number]).encode()
    return read_sent_report(raw, asked, report_id(token or new_token()))


def sent_ballot(asked: Poll, seed: int = 0, token: str | None = None) -> SentBallot:
    """The ballot of one voter, as the store takes it."""
    return read_sent_ballot(canonical_json(ballot(asked, seed)).encode(), asked, report_id(token or new_token()))
