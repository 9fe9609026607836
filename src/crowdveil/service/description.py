"""What everybody may know of a poll, and what a voter's device needs of it. Privacy rests on none of it."""

from __future__ import annotations

from datetime import date
from functools import lru_cache
from typing import Any

import numpy as np

from crowdveil.estimation.design import CLIP, public_design
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.randomised_response import choices_to_report
from crowdveil.privacy.mechanisms.score import coordinates_to_report
from crowdveil.privacy.mechanisms.subset_selection import subset_size
from crowdveil.service.poll import Poll
from crowdveil.service.poll_file import question_as_dict
from crowdveil.service.store.polls import Standing
from crowdveil.study.translations import languages


def describe(standing: Standing, today: date) -> dict[str, Any]:
    """Return what GET /api/polls/{poll} says."""
    return {**_unchanging(standing.poll), "state": standing.state(today).value, "release": standing.latest_release}


@lru_cache(maxsize=256)
def _unchanging(poll: Poll) -> dict[str, Any]:
    study, scored = poll.study, poll.mechanism == "score"
    return {
        "id": poll.name,
        "study": study.as_dict(),
        "study_fingerprint": study.fingerprint,
        "languages": list(languages(study, poll.translations)),
        "paradigm": poll.paradigm.name,
        "unit": poll.paradigm.unit.value,
        "place": poll.paradigm.place.value,
        "mechanism": poll.mechanism,
        "levels": [
            {"name": level.name, "epsilon_micro": level.epsilon.micro, "size": report_size(poll, level.epsilon)}
            for level in poll.levels
        ],
        "method": {
            "norm_bound": poll.settings.norm_bound,
            "record_bound": study.record_bound,
            "axes": public_design(study).axes.tolist() if scored else None,
            "clip": CLIP if scored else None,
        },
        "scene": "road" if study.drawing.method == "moral-machine" else "cards",
        "entry": poll.entry.value,
        "questions": [question_as_dict(question) for question in poll.questions],
        "about_epsilon_micro": None if poll.about_epsilon is None else poll.about_epsilon.micro,
        "budget": None if poll.budget is None else {"epsilon_micro": poll.budget.micro},
        "contact": poll.contact,
        "consent": dict(poll.consent) or None,
        "closes_on": None if poll.closes_on is None else poll.closes_on.isoformat(),
        "return_url": poll.return_url,
        "release_every": None,
    }


def report_size(poll: Poll, epsilon: Epsilon) -> int | None:
    """Return how many coordinates, signs or answers a report of this level has, where the mechanism chooses."""
    study, records, epsilons = poll.study, np.array([poll.study.drawing.dilemmas]), Epsilons.same(epsilon, 1)
    match poll.mechanism:
        case "score":
            return int(coordinates_to_report(public_design(study), records, epsilons)[0])
        case "subset-selection":
            return subset_size(study.dimension, epsilon.value)
        case "one-choice":
            return int(choices_to_report(records, epsilons)[0])
        case _:
            return None
