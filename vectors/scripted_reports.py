"""Whole reports made from scripted bytes: what a device must send, to the letter."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from vectors.scripted_noise import ScriptedNoise

from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation.society import fit_voters
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.grid import STEPS
from crowdveil.privacy.mechanisms.about_you import AboutYou
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.one_bit import OneBit
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED, THREE_ANSWERS, distributed
from crowdveil.protocol.description import describe_method
from crowdveil.protocol.report import write_reports
from crowdveil.study.drawing import draw_session
from crowdveil.study.features import Factor, Feature
from crowdveil.study.study import Drawing, Study

STUDY = Study(
    name="vectors",
    title="A study for test vectors",
    question="Which one?",
    features=tuple(
        Feature(name, name, float(min(levels)), float(max(levels)), unit=unit, levels=levels)
        for name, unit, levels in [
            ("a", 1.0, (0.0, 1.0)),
            ("b", 10.0, (0.0, 5.0, 20.0)),
            ("c", 1.0, (0.0, 1.0, 2.0)),
            ("d", 3.0, (0.0, 1.0)),
        ]
    ),
    drawing=Drawing("independent", 8),
)
THIRD_ANSWER = replace(STUDY, name="third-answer", indifference="Toss a coin")
"""The same, where neither side need be chosen."""
REPEATED = replace(STUDY, name="repeated", repeat=True)
"""The same, where one dilemma is asked twice."""
REPEATED_THIRD = replace(THIRD_ANSWER, name="repeated-third", repeat=True)
"""Both."""
FEW_AXES = replace(
    STUDY,
    name="few-axes",
    named_factors=tuple(
        Factor(name, name, ("fewer", "more"), weights)
        for name, weights in [("ac", {"a": 1, "c": 1}), ("bd", {"b": 1, "d": -1})]
    ),
)
"""The same, measured along two factors only."""
SINGLE = ("young", "old", "in between")
SEVERAL = ("bus", "train", "bicycle", "on foot")
QUESTIONS = [
    {"id": "age", "options": [{"id": option} for option in SINGLE]},
    {"id": "travel", "kind": "several", "options": [{"id": option} for option in SEVERAL]},
    {"id": "height", "kind": "number", "low": 140, "high": 219, "step": 10},
    {"id": "check", "kind": "scale", "low": 1, "high": 3, "expected": 2},
    {"id": "trust", "kind": "scale", "low": -2, "high": 2},
]
"""One of each kind that noise can protect, and an attention check, of which nothing is sent."""
ABOUT = {"age": "old", "travel": ["on foot", "train"], "height": 178, "check": 3, "trust": -1}
ABOUT_EPSILON = Epsilon("0.7")
EPSILONS = (Epsilon(1), Epsilon(6))
CARRYING = [mechanism for mechanism in DISTRIBUTED if mechanism in THREE_ANSWERS]
"""The mechanisms whose reports have a place for neither."""


def poll(mechanism: str, study: Study) -> dict[str, Any]:
    """Return what a server tells about a poll of this study, as far as a report needs it."""
    return {
        "study": study.as_dict(),
        "study_fingerprint": study.fingerprint,
        "mechanism": mechanism,
        "levels": [
            {"epsilon_micro": epsilon.micro, "size": DISTRIBUTED[mechanism].report_size(study, epsilon)}
            for epsilon in EPSILONS
        ],
        "method": describe_method(mechanism, study),
        "questions": QUESTIONS,
        "about_epsilon_micro": ABOUT_EPSILON.micro,
    }


def scripted_reports() -> dict[str, Any]:
    """The exact text of a report, given a poll, a session, choices, and the bytes behind all randomness: SHA-256 of
    "<seed> 0", "<seed> 1", ... one after the other.
    """
    dilemmas, choices, ballots = _session()
    cases = [
        _case(mechanism, epsilon, f"{mechanism} {epsilon.micro}", ballots)
        for mechanism in DISTRIBUTED
        for epsilon in EPSILONS
    ]
    return _written(STUDY, DISTRIBUTED, dilemmas, choices, cases)


def few_axes() -> dict[str, Any]:
    """The same for a study with two factors: of the eight records, four are drawn and scored by one-bit."""
    dilemmas, choices, ballots = _session()
    few = replace(ballots, study=FEW_AXES)
    cases = [
        _case(OneBit.name, epsilon, f"few axes {number} {epsilon.micro}", few)
        for epsilon in EPSILONS
        for number in range(10)
    ]
    return _written(FEW_AXES, [OneBit.name], dilemmas, choices, cases)


def third_answer() -> dict[str, Any]:
    """The same for a study that allows a third answer: some reports say a bit about indifference, the others come from
    choices that coins have completed; randomised response is among three answers.
    """
    dilemmas, choices, ballots = _session()
    indifferent, third = _indifferent(THIRD_ANSWER, dilemmas, choices, ballots)
    cases = [
        _case(mechanism, epsilon, f"third answer {number} {mechanism} {epsilon.micro}", third)
        for mechanism in CARRYING
        for epsilon in EPSILONS
        for number in range(20)
    ]
    return _written(THIRD_ANSWER, CARRYING, dilemmas, indifferent, cases)


def repeats() -> dict[str, Any]:
    """The same for a study that asks one dilemma twice, mirrored: some reports say whether it was answered alike."""
    dilemmas, choices, ballots = _session()
    turned = "right" if choices[2] == "left" else "left"
    alike = replace(ballots, study=REPEATED, alike=np.array([1], np.int8))
    cases = [
        _case(mechanism, EPSILONS[0], f"repeat {number} {mechanism}", alike)
        for mechanism in DISTRIBUTED
        for number in range(5)
    ]
    return _written(REPEATED, DISTRIBUTED, dilemmas, choices, cases, {"repeat": {"place": 2, "chosen": turned}})


def repeats_of_three() -> dict[str, Any]:
    """The same where neither side need be chosen: the second answer is a side, the first was neither."""
    dilemmas, choices, ballots = _session()
    indifferent, third = _indifferent(REPEATED_THIRD, dilemmas, choices, ballots, np.array([-1], np.int8))
    cases = [
        _case(mechanism, EPSILONS[0], f"repeat of three {number} {mechanism}", third)
        for mechanism in CARRYING
        for number in range(8)
    ]
    repeat = {"repeat": {"place": 3, "chosen": "left"}}
    return _written(REPEATED_THIRD, CARRYING, dilemmas, indifferent, cases, repeat)


def _written(
    study: Study,
    mechanisms: Iterable[str],
    dilemmas: list[dict[str, Any]],
    choices: list[str],
    cases: list[dict[str, Any]],
    repeat: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Write what a device is given, and what it must send."""
    polls = {mechanism: poll(mechanism, study) for mechanism in mechanisms}
    return {"polls": polls, "dilemmas": dilemmas, "choices": choices, **repeat, "about": ABOUT, "cases": cases}


def _indifferent(
    study: Study, dilemmas: list[dict[str, Any]], choices: list[str], ballots: Ballots, alike: Any = None
) -> tuple[list[str], Ballots]:
    """Let every third choice be neither."""
    indifferent = [choice if place % 3 else "neither" for place, choice in enumerate(choices)]
    shown = np.array([(np.array(d["left"]) - np.array(d["right"])) / STUDY.units for d in dilemmas])
    codes = np.array([{"left": 1, "right": -1, "neither": 0}[choice] for choice in indifferent], np.int8)
    return indifferent, Ballots(study, ballots.offsets, shown, codes, alike=alike)


def _case(mechanism: str, epsilon: Epsilon, seed: str, ballots: Ballots) -> dict[str, Any]:
    study, noise, epsilons = ballots.study, ScriptedNoise(seed), Epsilons.same(epsilon, 1)
    made = distributed(mechanism, study).report(
        ballots, MechanismSettings(study, study.norm_bound, drawn=True), epsilons, noise
    )
    (body,) = write_reports(mechanism, study, epsilons, made)
    body["about"] = _about(noise)
    return {"mechanism": mechanism, "epsilon_micro": epsilon.micro, "seed": seed, "report": _text(body)}


def _about(noise: ScriptedNoise) -> dict[str, Any]:
    """What is reported of ABOUT: the height of 178 is in the range that begins with 170."""
    mechanism, epsilons = AboutYou(), Epsilons.same(ABOUT_EPSILON, 1)
    (age,) = mechanism.report(np.array([1]), len(SINGLE), epsilons, noise)
    (asked,), (said,) = mechanism.report_several(np.array([[False, True, False, True]]), epsilons, noise)
    (height,) = mechanism.report(np.array([3]), 8, epsilons, noise)
    (trust,) = mechanism.report(np.array([1]), 5, epsilons, noise)
    return {
        "age": SINGLE[age],
        "travel": {SEVERAL[asked]: bool(said)},
        "height": 140 + 10 * int(height),
        "trust": int(trust) - 2,
    }


def _session() -> tuple[list[dict[str, Any]], list[str], Ballots]:
    """Draw dilemmas and choices whose fit lies well between the steps of the grid, whoever computes it."""
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        pairs = [dilemma.alternatives for dilemma in draw_session(STUDY, rng)]
        choices = [str(side) for side in rng.choice(["left", "right"], len(pairs))]
        records = [
            STUDY.difference(*((left, right) if side == "left" else (right, left)))
            for (left, right), side in zip(pairs, choices, strict=True)
        ]
        ballots = Ballots.from_differences(STUDY, np.array([0, len(records)]), np.array(records))
        preference = fit_voters(ballots, STUDY.norm_bound).values[0]
        beside = preference / STUDY.norm_bound * STEPS % 1
        if np.abs(preference).sum() < 0.99 * STUDY.norm_bound and (np.abs(beside - 0.5) < 0.3).all():
            dilemmas = [{"left": list(left.values), "right": list(right.values)} for left, right in pairs]
            return dilemmas, choices, ballots
    raise ValueError("no session has such a fit")


def _text(body: dict[str, Any]) -> str:
    """JSON as JavaScript writes it: a whole number has no point."""
    for dilemma in (body.get("preference") or body).get("dilemmas", []):
        dilemma[:] = [int(value) if value == int(value) else value for value in dilemma]
    return json.dumps(body, separators=(",", ":"))
