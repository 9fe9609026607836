"""Polls, and honest reports and ballots to them, made by the library."""

from __future__ import annotations

from functools import lru_cache
from itertools import cycle, islice
from typing import Any

import numpy as np

from crowdveil.ballots.ballots import concatenate
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.protocol.report import write_reports
from crowdveil.protocol.submission import SubmissionKind, new_token, report_id
from crowdveil.service.api.submissions import read_submission
from crowdveil.service.poll import HostedPoll as Poll
from crowdveil.service.poll import poll_from_dict
from crowdveil.service.store.submissions import SubmissionRow
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.drawing import draw_session
from crowdveil.study.plain_data import canonical_json


@lru_cache(maxsize=64)
def poll(name: str = "p", paradigm: str = "rldp", study: str = "kidney", **rules: Any) -> Poll:
    """A poll of a small study."""
    return poll_from_dict({"name": name, "study": study, "paradigm": paradigm, **rules})


@lru_cache(maxsize=32)
def reports(asked: Poll, voters: int) -> tuple[dict[str, Any], ...]:
    """Honest reports, of the poll's levels in turn."""
    epsilons = Epsilons(islice(cycle(level.epsilon for level in asked.levels), voters))
    ballots = concatenate(asked.study, list(simulated_batches(asked.study, voters, np.random.default_rng(5))))
    batch = DISTRIBUTED[asked.mechanism].report(ballots, asked.settings, epsilons, BulkNoise())
    return tuple(write_reports(asked.mechanism, asked.study, epsilons, batch))


def ballot(asked: Poll, seed: int) -> dict[str, Any]:
    """A ballot whose voter always chooses the left."""
    drawn = draw_session(asked.study, np.random.default_rng(seed))
    records = [{**{a.name: list(a.values) for a in d.alternatives}, "chosen": "left"} for d in drawn]
    return {"format": "crowdveil ballot 1", "study": asked.study.fingerprint, "records": records}


def report_row(asked: Poll, number: int = 0, token: str | None = None) -> SubmissionRow:
    """The report of one voter, as the store takes it."""
    raw = canonical_json(reports(asked, 12)[number]).encode()
    return read_submission(raw, asked, report_id(token or new_token()), SubmissionKind.REPORT)


def ballot_row(asked: Poll, seed: int = 0, token: str | None = None) -> SubmissionRow:
    """The ballot of one voter, as the store takes it."""
    raw = canonical_json(ballot(asked, seed)).encode()
    return read_submission(raw, asked, report_id(token or new_token()), SubmissionKind.BALLOT)
