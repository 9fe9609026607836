"""What one voter's device sends: a mechanism, an epsilon, and integers that are private already.

A report is a JSON object (``docs/file-formats.md``). It is checked before it is kept: one that no honest device of this
study could have made is refused, with a reason from a fixed list. Nothing in here knows an answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from crowdveil.errors import CrowdveilError, Reason, Refusal
from crowdveil.estimation.design import public_design
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.mechanism import Reports, Settings
from crowdveil.privacy.mechanisms.randomised_response import ChoiceReports, choices_to_report
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.privacy.mechanisms.score import ScoreReports
from crowdveil.study.study import Study

FORMAT = "crowdveil report 1"
LARGEST = 2**63 - 1
"""Numbers of a report fit into 64 bits, with their sign."""


@dataclass(frozen=True)
class Terms:
    """What reports have to keep to: the mechanism, its public settings, and the epsilons on offer."""

    mechanism: str
    settings: Settings
    epsilons: Collection[Epsilon]


def write_reports(mechanism: str, study: Study, epsilons: Epsilons, batch: Any) -> list[dict[str, Any]]:
    """Put what a mechanism made for some voters into the words of a report, one object a voter."""
    return [
        {
            "format": FORMAT,
            "study": study.fingerprint,
            "mechanism": mechanism,
            "epsilon_micro": epsilon.micro,
            **payload,
        }
        for epsilon, payload in zip(epsilons, _form(mechanism).write(batch), strict=True)
    ]


def check_report(body: Any, terms: Terms) -> None:
    """Refuse a report that no honest device could have made under these terms."""
    form, study = _form(terms.mechanism), terms.settings.study
    known = {"format", "study", "mechanism", "epsilon_micro", *form.fields}
    if not isinstance(body, Mapping) or set(body) != known or body["format"] != FORMAT:
        raise Refusal(Reason.MALFORMED, f"a report is an object with {', '.join(sorted(known))}")
    if body["study"] != study.fingerprint:
        raise Refusal(Reason.WRONG_STUDY, f"the report is about another study than {study.name}: load it again")
    if body["mechanism"] != terms.mechanism:
        raise Refusal(Reason.WRONG_MECHANISM, f"this poll takes reports by {terms.mechanism}")
    offered = sorted(epsilon.micro for epsilon in terms.epsilons)
    if type(body["epsilon_micro"]) is not int or body["epsilon_micro"] not in offered:
        raise Refusal(Reason.WRONG_EPSILON, f"epsilon_micro must be one of {', '.join(map(str, offered))}")
    form.check(body, study)
    batch = form.read([body], study)
    if not DISTRIBUTED[terms.mechanism].acceptable(batch, terms.settings)[0]:
        raise Refusal(Reason.OUT_OF_RANGE, "no honest device makes such a report: its numbers are out of range")


def read_reports(bodies: Sequence[Mapping[str, Any]], terms: Terms) -> Any:
    """Gather reports, each checked already, into what their mechanism aggregates."""
    return _form(terms.mechanism).read(bodies, terms.settings.study)


@dataclass(frozen=True)
class _Form:
    """How the reports of a mechanism are written, checked for their shape, and read."""

    fields: frozenset[str]
    write: Callable[[Any], Iterable[dict[str, Any]]]
    check: Callable[[Mapping[str, Any], Study], None]
    read: Callable[[Sequence[Mapping[str, Any]], Study], Any]


def _form(mechanism: str) -> _Form:
    try:
        return _FORMS[mechanism]
    except KeyError:
        raise CrowdveilError(f"{mechanism!r} is not a mechanism with reports: use {', '.join(_FORMS)}") from None


def _plain(length: Callable[[int], int], largest: int = LARGEST) -> _Form:
    """Reports of one row of integers."""

    def write(batch: Reports) -> Iterable[dict[str, Any]]:
        return ({"values": values} for values in batch.values.tolist())

    def check(body: Mapping[str, Any], study: Study) -> None:
        _check_integers("values", body["values"], length(study.dimension), largest)

    def read(bodies: Sequence[Mapping[str, Any]], study: Study) -> Reports:
        return Reports(_epsilons(bodies), np.array([body["values"] for body in bodies], np.int64))

    return _Form(frozenset({"values"}), write, check, read)


def _with_products(dimension: int) -> int:
    return dimension + dimension * (dimension + 1) // 2


def _write_scores(batch: ScoreReports) -> Iterable[dict[str, Any]]:
    for count, reported, values in zip(batch.counts.tolist(), batch.reported, batch.values, strict=True):
        coordinates = np.flatnonzero(reported)
        yield {"records": count, "coordinates": coordinates.tolist(), "values": values[coordinates].tolist()}


def _check_scores(body: Mapping[str, Any], study: Study) -> None:
    axes = public_design(study).directions
    _check_integers("coordinates", body["coordinates"], None, axes - 1, least=0)
    if any(a >= b for a, b in zip(body["coordinates"], body["coordinates"][1:], strict=False)):
        raise Refusal(Reason.MALFORMED, "coordinates must increase")
    _check_integers("values", body["values"], len(body["coordinates"]), LARGEST)
    if type(body["records"]) is not int or body["records"] != study.drawing.dilemmas:
        raise Refusal(Reason.WRONG_SIZE, f"a ballot of this study has {study.drawing.dilemmas} records")


def _read_scores(bodies: Sequence[Mapping[str, Any]], study: Study) -> ScoreReports:
    reported = np.zeros((len(bodies), public_design(study).directions), bool)
    values = np.zeros(reported.shape, np.int64)
    for row, body in enumerate(bodies):
        reported[row, body["coordinates"]] = True
        values[row, body["coordinates"]] = body["values"]
    return ScoreReports(_epsilons(bodies), np.array([body["records"] for body in bodies], np.int64), reported, values)


def _answers(size: Callable[[Study, int], int], split: bool) -> _Form:
    """Reports of answers to public dilemmas; ``split``: all answers of a voter share the epsilon."""

    def write(batch: ChoiceReports) -> Iterable[dict[str, Any]]:
        for start, stop in zip(batch.offsets[:-1], batch.offsets[1:], strict=True):
            yield {
                "dilemmas": batch.dilemmas[start:stop].tolist(),
                "choices": batch.choices[start:stop].tolist(),
            }

    def check(body: Mapping[str, Any], study: Study) -> None:
        expected = size(study, body["epsilon_micro"])
        _check_integers("choices", body["choices"], expected, 1)
        if not isinstance(body["dilemmas"], list) or len(body["dilemmas"]) != expected:
            raise Refusal(Reason.WRONG_SIZE, f"a report of this study has {expected} dilemmas")
        for dilemma in body["dilemmas"]:
            _check_dilemma(dilemma, study)

    def read(bodies: Sequence[Mapping[str, Any]], study: Study) -> ChoiceReports:
        counts = np.array([len(body["choices"]) for body in bodies], np.int64)
        epsilons = _epsilons(bodies)
        return ChoiceReports(
            epsilons.split(counts) if split else epsilons,
            np.concatenate([[0], np.cumsum(counts)]),
            np.array([dilemma for body in bodies for dilemma in body["dilemmas"]], np.float64),
            np.array([choice for body in bodies for choice in body["choices"]], np.int64),
        )

    return _Form(frozenset({"dilemmas", "choices"}), write, check, read)


def _check_dilemma(dilemma: Any, study: Study) -> None:
    if not isinstance(dilemma, list) or len(dilemma) != study.dimension:
        raise Refusal(Reason.WRONG_SIZE, f"a dilemma of this study has {study.dimension} numbers")
    for value, reach in zip(dilemma, study.reach.tolist(), strict=True):
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise Refusal(Reason.MALFORMED, "a dilemma is a list of numbers")
        if abs(value) > reach:
            raise Refusal(Reason.OUT_OF_RANGE, f"the study has no such dilemma: {value:g} is beyond {reach:g}")
    if next((value for value in dilemma if value), 1) < 0:
        raise Refusal(Reason.MALFORMED, "the first number of a dilemma that is not 0 must be positive")


def _check_integers(name: str, given: Any, length: int | None, most: int, least: int | None = None) -> None:
    if not isinstance(given, list) or any(type(value) is not int for value in given):
        raise Refusal(Reason.MALFORMED, f"{name} must be a list of whole numbers")
    if length is not None and len(given) != length:
        raise Refusal(Reason.WRONG_SIZE, f"{name} has {len(given)} numbers, a report of this study {length}")
    if any(not (-most if least is None else least) <= value <= most for value in given):
        raise Refusal(Reason.OUT_OF_RANGE, f"{name} must be from {-most if least is None else least} to {most}")


def _epsilons(bodies: Sequence[Mapping[str, Any]]) -> Epsilons:
    return Epsilons.of_millionths(body["epsilon_micro"] for body in bodies)


@lru_cache(maxsize=256)
def _answers_of(dilemmas: int, epsilon_micro: int) -> int:
    return int(choices_to_report(np.array([dilemmas]), Epsilons.of_millionths([epsilon_micro]))[0])


_FORMS: Mapping[str, _Form] = {
    "algorithm-2": _plain(lambda d: d),
    "algorithm-3": _plain(_with_products),
    "algorithm-3-choices": _plain(_with_products),
    "subset-selection": _plain(lambda d: d, largest=1),
    "score": _Form(frozenset({"records", "coordinates", "values"}), _write_scores, _check_scores, _read_scores),
    "randomised-response": _answers(lambda study, _: study.drawing.dilemmas, split=False),
    "one-choice": _answers(lambda study, micro: _answers_of(study.drawing.dilemmas, micro), split=True),
}
