"""Reads what AI models answered to a study's dilemmas, as ballots: a voter is a model, neither side is a refusal.

Three layouts, told apart by content:

- a table with a row an answer, as ``import table`` reads it, with the column ``model`` in place of ``voter``; where the
  model did not choose, ``chosen`` says ``refused``;
- JSON lines: ``{"model": "m", "dilemma": [...], "choice": "A"}``, with a dilemma in any form that decisions are asked
  in, of two alternatives, and ``null`` where the model did not choose. A transcript of ``crowdveil align`` is such a
  file;
- columns of models beside ``ResponseID`` and ``Intervention``, which name the outcomes of a file in the public layout
  of the Moral Machine (``moral_machine.model_columns``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crowdveil.ballots.ballots import Ballots, concatenate
from crowdveil.errors import CrowdveilError, path_of
from crowdveil.sources.import_report import MOST_REFUSED
from crowdveil.sources.mapping import TableMapping
from crowdveil.sources.moral_machine.model_columns import NAMED_BY, read_model_columns
from crowdveil.sources.table import read_table
from crowdveil.sources.table_file import TableFile
from crowdveil.study.study import Dilemma, Study

REFUSED = "refused"
FORMAT = "crowdveil answers 1"
"""The format that the first line of a transcript names; other files of JSON lines have no such line."""


def read_answers(
    paths: str | Path | Sequence[str | Path],
    study: Study,
    *,
    dilemmas: str | Path | None = None,
    allow_refused: float = MOST_REFUSED,
) -> Ballots:
    """Read models' answers to dilemmas of a study, from one file or several.

    ``dilemmas`` is the file in the public layout of the Moral Machine whose outcomes the answers name. A file of which
    a larger share of rows is refused than allowed is refused.
    """
    several: Sequence[object] = paths if isinstance(paths, Sequence) and not isinstance(paths, str) else [paths]
    given = [path_of(path, "the file of answers") for path in several]
    if not given:
        raise CrowdveilError("there is no file of answers: give one or more")
    return concatenate(study, [_read(path, study, dilemmas, allow_refused) for path in given])


def _read(path: Path, study: Study, dilemmas: str | Path | None, allow_refused: float) -> Ballots:
    if _is_json(path):
        return _read_lines(path, study)
    columns = TableFile(path, []).columns
    if set(NAMED_BY) <= set(columns):
        if dilemmas is None:
            raise CrowdveilError(f"{path} names dilemmas by {NAMED_BY[0]}: name the file that they are in (--dilemmas)")
        return read_model_columns(path, dilemmas, study, allow_refused)
    mapping = TableMapping(study, voter="model", neither=REFUSED)
    return read_table(path, mapping=mapping, allow_refused=allow_refused, one_record_each=True)


def _is_json(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip()[:1] == b"{"
    except OSError as error:
        raise CrowdveilError(f"cannot read the answers {path}: {error.strerror or error}") from None


def _read_lines(path: Path, study: Study) -> Ballots:
    models: list[str] = []
    left: list[Sequence[float]] = []
    right: list[Sequence[float]] = []
    choices: list[int] = []
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                where = f"{path}, line {number}"
                entry = json.loads(line)
                if isinstance(entry, dict) and entry.get("format") == FORMAT:
                    check_study(entry, study, where)
                    continue
                model, dilemma, choice = read_answer(entry, study, where)
                models.append(model)
                left.append(dilemma.alternatives[0].values)
                right.append(dilemma.alternatives[1].values)
                choices.append(choice)
    except json.JSONDecodeError as error:
        raise CrowdveilError(f"{path}, line {number} is not JSON: {error}") from None
    except UnicodeDecodeError as error:
        raise CrowdveilError(f"{path} is not text: {error}") from None
    if not models:
        raise CrowdveilError(f"{path} has no answers: give a line for each")
    return Ballots.from_arrays(study, models, left, right, choices)


def read_answer(entry: Any, study: Study, where: str) -> tuple[str, Dilemma, int]:
    """Read one answer: whose it is, the dilemma, and 1 for its first alternative, -1 for the second, 0 for neither."""
    if not isinstance(entry, dict) or not {"model", "dilemma", "choice"} <= set(entry):
        raise CrowdveilError(f'{where}: an answer looks like {{"model": "m", "dilemma": [...], "choice": "A"}}')
    if not (isinstance(entry["model"], str) and entry["model"]):
        raise CrowdveilError(f"{where}: the model is {entry['model']!r:.80}: give its name, a text")
    try:
        dilemma = study.dilemma(entry["dilemma"])
    except CrowdveilError as error:
        raise CrowdveilError(f"{where}: {error}") from None
    names = [alternative.name for alternative in dilemma.alternatives]
    if len(names) != 2:
        raise CrowdveilError(f"{where}: the dilemma has {len(names)} alternatives: models are compared on two")
    if entry["choice"] is None:
        return entry["model"], dilemma, 0
    if entry["choice"] not in names:
        raise CrowdveilError(
            f"{where}: the choice is {entry['choice']!r:.80}: give {names[0]!r}, {names[1]!r}, or null for neither"
        )
    return entry["model"], dilemma, 1 if entry["choice"] == names[0] else -1


def check_study(entry: Mapping[str, Any], study: Study, where: str) -> None:
    """Refuse a transcript of another study."""
    if entry.get("study_fingerprint") != study.fingerprint:
        raise CrowdveilError(
            f"{where}: these are answers to the study {entry.get('study')!r:.80}, and the release is of {study.name} "
            f"({study.fingerprint[:8]}): use answers to its own dilemmas"
        )
