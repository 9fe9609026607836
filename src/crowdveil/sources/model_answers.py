"""Read AI models' answers to a study's dilemmas as ballots: a voter is a model, and neither side is a refusal.

There are three layouts, distinguished by content:

- a table with one row per answer, as ``import table`` reads it, with the column ``model`` instead of ``voter``; if the
  model did not choose, ``chosen`` is ``refused``;
- JSON lines: ``{"model": "m", "dilemma": [...], "choice": "A"}``, with a dilemma of two alternatives in any form that
  decisions accept, and ``null`` if the model did not choose. A transcript of ``crowdveil align`` is such a file;
- columns of models beside ``ResponseID`` and ``Intervention``, which together name one outcome, that is one row of a
  file in the public layout of the Moral Machine. A model's cell is 1 if it spares this group, 0 if it spares the other,
  and blank in both rows if it was not asked. If the two rows do not contradict each other, the model has refused to
  choose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crowdveil.ballots.ballots import Ballots, concatenate
from crowdveil.errors import CrowdveilError, path_of
from crowdveil.sources.import_report import MOST_REFUSED, REASON, ROW, check_allowed, number
from crowdveil.sources.mapping import TableMapping
from crowdveil.sources.moral_machine.blocks import open_layout
from crowdveil.sources.moral_machine.layout import DILEMMA, GREEN, HIGHEST, RED, SIGNAL, SIZE
from crowdveil.sources.moral_machine.rows import check
from crowdveil.sources.table import load_table
from crowdveil.sources.table_file import TableFile
from crowdveil.study.bundled import find_study, load_study
from crowdveil.study.plain_data import parse_json
from crowdveil.study.study import Dilemma, Study

REFUSED = "refused"
FORMAT = "crowdveil answers 1"
"""Format named in the first line of a transcript; other files of JSON lines have no such line."""
_ALLOWED_BY = "read_answers(..., allow_refused={share}) and align, in Python"


def read_answers(
    paths: str | Path | Sequence[str | Path],
    study: str | Study,
    *,
    dilemmas: str | Path | None = None,
    allow_refused: float = MOST_REFUSED,
) -> Ballots:
    """Read models' answers to dilemmas of a study, from one or more files.

    ``dilemmas`` is the file in the public layout of the Moral Machine whose outcomes the answers name. A file is
    refused if more of its rows are refused than allowed.
    """
    check_allowed(allow_refused, one_record_each=True)
    study = find_study(study)
    several: Sequence[object] = paths if isinstance(paths, Sequence) and not isinstance(paths, str) else [paths]
    given = [path_of(path, "the file of answers") for path in several]
    if dilemmas is not None:
        dilemmas = path_of(dilemmas, "the file of dilemmas")
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
    result = load_table(path, mapping)
    result.report.check(study, allow_refused, one_record_each=True, allowed_by=_ALLOWED_BY)
    return result.ballots


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
                entry = parse_json(line)
                if isinstance(entry, dict) and entry.get("format") == FORMAT:
                    check_study(entry, study, where)
                    continue
                model, dilemma, choice = read_answer(entry, study, where)
                models.append(model)
                left.append(dilemma.alternatives[0].values)
                right.append(dilemma.alternatives[1].values)
                choices.append(choice)
    except UnicodeDecodeError as error:
        raise CrowdveilError(f"{path} is not text: {error}") from None
    except ValueError as error:
        raise CrowdveilError(f"{path}, line {number} is not JSON: {error}") from None
    if not models:
        raise CrowdveilError(f"{path} has no answers: give a line for each")
    refusing = replace(study, indifference=study.indifference or REFUSED)  # in which neither is an answer
    return replace(Ballots.from_arrays(refusing, models, left, right, choices), study=study)


def read_answer(entry: Any, study: Study, where: str) -> tuple[str, Dilemma, int]:
    """Read one answer: the model, the dilemma, and 1 for its first alternative, -1 for the second, 0 for neither."""
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


ACTION = "Intervention"
NAMED_BY = (DILEMMA, ACTION)


def read_model_columns(path: str | Path, dilemmas: str | Path, study: Study, allow_refused: float) -> Ballots:
    """Read the answers of all models in a file, as ballots in which a voter is a model."""
    if study.fingerprint != load_study("moral-machine").fingerprint:
        raise CrowdveilError(f"{path} answers dilemmas of the Moral Machine, and the release is of {study.name}")
    models = [column for column in TableFile(path, NAMED_BY).columns if column not in NAMED_BY]
    if not models:
        raise CrowdveilError(f"{path} has no column of a model's answers beside {' and '.join(NAMED_BY)}")
    table = TableFile(path, [*NAMED_BY, *models])
    answers = _outcomes(pl.concat(table.batches()).drop(ROW), str(path))
    if not len(answers):
        raise CrowdveilError(f"{path} has no dilemma with both of its outcomes")
    differences = _differences(dilemmas)
    joined = answers.join(differences, on=DILEMMA, how="inner", maintain_order="left")
    missing = len(answers) - len(joined)
    if missing > allow_refused * len(answers):
        raise CrowdveilError(
            f"{missing} of {len(answers)} dilemmas that {path} names are not in {dilemmas}: name the file with the "
            "dilemmas that the models were asked"
        )
    records = []
    for model in models:
        cells = joined.select(DILEMMA, *HIGHEST, stays=number(f"{model} 0"), swerves=number(f"{model} 1"))
        asked = cells.filter((joined[f"{model} 0"] != "") | (joined[f"{model} 1"] != ""))
        stays, swerves = pl.col("stays"), pl.col("swerves")
        first, second = (stays == 1) & (swerves == 0), (stays == 0) & (swerves == 1)
        chosen = pl.when(first).then(1).when(second).then(-1).otherwise(0)
        records.append(asked.select(*HIGHEST, choice=chosen.cast(pl.Int8), model=pl.lit(model)))
    answered = pl.concat(records)
    if not len(answered):
        raise CrowdveilError(f"{path} has no answer: the columns of all models are blank")
    counts = answered.group_by("model", maintain_order=True).len()
    return Ballots(
        study,
        np.concatenate([[0], np.cumsum(counts["len"].to_numpy())]).astype(np.int64),
        answered.select(*HIGHEST).to_numpy(),
        answered["choice"].to_numpy(),
        counts["model"].to_arrow().cast("string"),
        origin={"answers_from": Path(path).name, "dilemmas_not_found": missing},
    )


def _outcomes(rows: pl.DataFrame, path: str) -> pl.DataFrame:
    """Join the two outcomes of each dilemma; columns end in 0 if the car stays and in 1 if it swerves."""
    sides = [
        rows.filter(number(ACTION) == action).select(DILEMMA, pl.exclude(NAMED_BY).name.suffix(f" {action}"))
        for action in (0, 1)
    ]
    if any(side[DILEMMA].is_duplicated().any() for side in sides):
        raise CrowdveilError(f"{path} names an outcome twice: keep one row for each {' and '.join(NAMED_BY)}")
    return sides[0].join(sides[1], on=DILEMMA, how="inner", maintain_order="left")


def _differences(path: str | Path) -> pl.DataFrame:
    """Return each dilemma of a file in the public layout: its features if the car stays minus those if it swerves."""
    good = []
    for batch in open_layout(path).batches():
        checked = check(batch if SIZE in batch.columns else batch.with_columns(pl.lit("").alias(SIZE)))
        good.append(checked.filter(pl.col(REASON).is_null()).select(DILEMMA, *HIGHEST))
    legality = pl.col(SIGNAL).replace_strict({0: 0, GREEN: 1, RED: -1}, return_dtype=pl.Int8)
    rows = pl.concat(good).with_columns(legality).unique((DILEMMA, ACTION), keep="first", maintain_order=True)
    sides = [rows.filter(pl.col(ACTION) == action) for action in (0, 1)]
    pairs = sides[0].join(sides[1], on=DILEMMA, how="inner", suffix=" 1")
    return pairs.select(DILEMMA, *(pl.col(column) - pl.col(f"{column} 1") for column in HIGHEST))
