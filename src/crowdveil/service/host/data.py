"""Everything that voters sent, as a table: exact ballots in a central poll, noisy reports in a distributed one.

Ballots have the columns that ``crowdveil import table`` reads. Of a report, every number is a column: ``values_3`` is
the third of ``values``. A row carries the day and no order of arrival. With it comes a codebook, and labels for R and
SPSS.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl
from starlette.responses import Response

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.protocol.questions import WITH_NUMBERS, Answer, QuestionKind
from crowdveil.service.host.codebook import (
    FAILED_CHECKS,
    TICKED,
    about_columns,
    codebook,
    write_codebook,
    write_r,
    write_spss,
)
from crowdveil.service.host.request import HostRequest, Missing, attachment
from crowdveil.service.poll import HostedPoll
from crowdveil.service.store.store import Store
from crowdveil.study.category import Category

Row = dict[str, Any]


def data_page(request: HostRequest) -> Response:
    """Show what can be downloaded and deleted."""
    status = request.poll_status()
    return request.show("data.html", poll=status.poll, tab="data", status=status)


def download(request: HostRequest) -> Response:
    """Send all reports or ballots of a poll as a file."""
    poll = request.poll_status().poll
    wanted = request.path("file")
    kind = "reports" if poll.distributed else "ballots"
    beside = {f"{kind}-codebook.csv": "text/csv", f"{kind}-labels.R": "text/plain", f"{kind}-labels.sps": "text/plain"}
    tables = {f"{kind}.{ending}": ending for ending in _WRITERS}
    if wanted not in beside and wanted not in tables:
        raise Missing(f"poll {poll.name} has no file {wanted!r}")
    table = table_of(request.store, poll)
    if table.is_empty():
        raise CrowdveilError(f"nobody has taken part in {poll.name} yet: there is nothing to download")
    request.remarks.append(wanted)
    if wanted in tables:
        write, media = _WRITERS[tables[wanted]]
        return attachment(write(table, poll), f"{poll.name}-{wanted}", media)
    variables = codebook(poll, table.columns)
    file = f"{poll.name}-{kind}.csv"
    if wanted.endswith(".csv"):
        return attachment(write_codebook(variables), f"{poll.name}-{wanted}", beside[wanted])
    write_labels = write_r if wanted.endswith(".R") else write_spss
    return attachment(write_labels(variables, file), f"{poll.name}-{wanted}", beside[wanted])


def table_of(store: Store, poll: HostedPoll) -> pl.DataFrame:
    """Return what voters sent as a table."""
    if poll.distributed:
        rows = list(_report_rows(store, poll))
        names = sorted({name for row in rows for name in row} - set(_report_columns(poll)), key=_in_order)
        columns = {**_report_columns(poll), **{name: _kind([row.get(name) for row in rows]) for name in names}}
        return pl.DataFrame({name: [row.get(name) for row in rows] for name in columns}, schema=columns)
    return pl.from_dicts(list(_ballot_rows(store, poll)), schema=_ballot_columns(poll))


def _about(poll: HostedPoll) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for question in poll.sent_questions:
        kind = pl.Int64 if question.kind in WITH_NUMBERS else pl.String
        columns |= {name: pl.Int8 if name.startswith(TICKED) else kind for name in about_columns(poll, question)}
    return columns if poll.attention is None or poll.distributed else {**columns, FAILED_CHECKS: pl.Int64}


def _about_values(poll: HostedPoll, about: Mapping[str, Answer]) -> Row:
    """Return the columns of what one voter said of herself."""
    row: Row = {}
    for question in poll.sent_questions:
        answer = about.get(question.id)
        if question.kind is not QuestionKind.SEVERAL:
            row[f"about_{question.id}"] = answer
        elif isinstance(answer, dict):
            ((option, ticked),) = answer.items()
            row |= {f"about_{question.id}": option, f"{TICKED}{question.id}": int(ticked)}
        elif isinstance(answer, list):
            row |= {f"{TICKED}{question.id}.{option.id}": int(option.id in answer) for option in question.options}
    if poll.attention is not None and not poll.distributed:
        row[FAILED_CHECKS] = poll.failed_checks(about)
    return row


def _report_columns(poll: HostedPoll) -> dict[str, Any]:
    return {"report": pl.String, "day": pl.Date, "epsilon": pl.String, **_about(poll)}


def _report_rows(store: Store, poll: HostedPoll) -> Iterator[Row]:
    for batch in store.submissions.reports(poll.name):
        for one in batch:
            body = {key: part for key, part in one.body.items() if key not in _THE_SAME_IN_ALL}
            yield {
                "report": one.id,
                "day": one.day,
                "epsilon": str(Epsilon.of_millionths(one.body["epsilon_micro"])),
                **_about_values(poll, one.about),
                **{name: value for key, part in body.items() for name, value in _columns_of(key, part)},
            }


_THE_SAME_IN_ALL = ("format", "study", "mechanism", "epsilon_micro")


def _columns_of(name: str, part: Any) -> Iterator[tuple[str, Any]]:
    """Take a part of a report apart: each number of a list is a column of its own, counted from 1.

    Of a report that is of one of two kinds, the part that is of the other kind has no columns.
    """
    if isinstance(part, list):
        for place, one in enumerate(part, 1):
            yield from _columns_of(f"{name}_{place}", one)
    elif isinstance(part, dict):
        for key, one in part.items():
            yield from _columns_of(key, one)
    elif part is not None:
        yield name, part


def _in_order(name: str) -> tuple[tuple[int, int, str], ...]:
    """Order columns by what they are of and then by number: values_2 before values_10."""
    return tuple((1, int(part), "") if part.isdecimal() else (0, 0, part) for part in name.split("_"))


def _kind(values: list[Any]) -> Any:
    found = {type(value) for value in values if value is not None}
    return pl.String if str in found else pl.Float64 if float in found else pl.Int64


def _ballot_columns(poll: HostedPoll) -> dict[str, Any]:
    kinds = {a.name: pl.String if isinstance(a, Category) else pl.Float64 for a in poll.study.attributes}
    sides = {f"{side}_{name}": kind for side in ("left", "right") for name, kind in kinds.items()}
    again = {"repeat": pl.Int8} if poll.study.repeat else {}
    return {"voter": pl.String, "day": pl.Date, "chosen": pl.String, **again, **sides, **_about(poll)}


def _ballot_rows(store: Store, poll: HostedPoll) -> Iterator[Row]:
    for batch in store.submissions.ballots(poll.name):
        for one in batch:
            about = _about_values(poll, one.about)
            for record in one.records:
                sides = {
                    f"{side}_{name}": value
                    for side in ("left", "right")
                    for name, value in poll.study.plain_values([float(v) for v in record[side]]).items()
                }
                again = {"repeat": int("repeats" in record)} if poll.study.repeat else {}
                yield {"voter": one.id, "day": one.day, "chosen": record["chosen"], **again, **sides, **about}


def _csv(table: pl.DataFrame, poll: HostedPoll) -> bytes:
    """Write a table as CSV; a free text that a spreadsheet would run as a formula has an apostrophe in front."""
    texts = [f"about_{question.id}" for question in poll.questions if question.kind is QuestionKind.TEXT]
    risky = r"^[=+\-@\t\r]"
    kept = [pl.when(pl.col(t).str.contains(risky)).then("'" + pl.col(t)).otherwise(pl.col(t)).alias(t) for t in texts]
    return table.with_columns(kept).write_csv().encode()


def _parquet(table: pl.DataFrame, poll: HostedPoll) -> bytes:
    written = io.BytesIO()
    table.write_parquet(written)
    return written.getvalue()


_WRITERS: dict[str, tuple[Callable[[pl.DataFrame, HostedPoll], bytes], str]] = {
    "csv": (_csv, "text/csv"),
    "parquet": (_parquet, "application/vnd.apache.parquet"),
}
