"""Everything that voters sent, as a table: exact answers in a central poll, noisy reports in a distributed one.

Ballots have the columns that ``crowdveil import table`` reads. A row carries the day and no order of arrival.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl
from starlette.responses import Response

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.ledger.statement import decimal_text
from crowdveil.service.host.people import attachment
from crowdveil.service.host.visit import Missing, Visit
from crowdveil.service.poll import Poll
from crowdveil.service.store.store import Store

Row = dict[str, Any]


def data_page(visit: Visit) -> Response:
    """Show what can be downloaded and deleted."""
    standing = visit.standing()
    return visit.show("data.html", poll=standing.poll, tab="data", standing=standing)


def download(visit: Visit) -> Response:
    """Send all reports or ballots of a poll as a file."""
    poll, wanted = visit.standing().poll, visit.path("file")
    kind, _, ending = wanted.partition(".")
    if kind != ("reports" if poll.distributed else "ballots") or ending not in _WRITERS:
        raise Missing(f"poll {poll.name} has no file {wanted!r}")
    table = table_of(visit.store, poll)
    if table.is_empty():
        raise CrowdveilError(f"nobody has taken part in {poll.name} yet: there is nothing to download")
    write, media = _WRITERS[ending]
    return attachment(write(table), f"{poll.name}-{wanted}", media)


def table_of(store: Store, poll: Poll) -> pl.DataFrame:
    """Return what voters sent as a table."""
    columns = _report_columns(poll) if poll.distributed else _ballot_columns(poll)
    rows = _report_rows(store, poll) if poll.distributed else _ballot_rows(store, poll)
    return pl.from_dicts(list(rows), schema=columns) if columns else pl.DataFrame()


def _about(poll: Poll) -> dict[str, Any]:
    return {f"about_{question.id}": pl.String for question in poll.questions}


def _report_columns(poll: Poll) -> dict[str, Any]:
    return {"report": pl.String, "day": pl.Date, "epsilon": pl.String, **_about(poll), "body": pl.String}


def _report_rows(store: Store, poll: Poll) -> Iterator[Row]:
    for chunk in store.reports(poll.name):
        for one in chunk:
            yield {
                "report": one.id,
                "day": one.day,
                "epsilon": decimal_text(one.body["epsilon_micro"]),
                **{f"about_{question.id}": one.about.get(question.id) for question in poll.questions},
                "body": json.dumps(one.body, separators=(",", ":")),
            }


def _ballot_columns(poll: Poll) -> dict[str, Any]:
    sides = {f"{side}_{name}": pl.Float64 for side in ("left", "right") for name in poll.study.feature_names}
    return {"voter": pl.String, "day": pl.Date, "chosen": pl.String, **sides, **_about(poll)}


def _ballot_rows(store: Store, poll: Poll) -> Iterator[Row]:
    for chunk in store.ballots(poll.name):
        for one in chunk:
            about = {f"about_{question.id}": one.about.get(question.id) for question in poll.questions}
            for answer in one.answers:
                sides = {
                    f"{side}_{name}": float(value)
                    for side in ("left", "right")
                    for name, value in zip(poll.study.feature_names, answer[side], strict=True)
                }
                yield {"voter": one.id, "day": one.day, "chosen": answer["chosen"], **sides, **about}


def _csv(table: pl.DataFrame) -> bytes:
    return table.write_csv().encode()


def _parquet(table: pl.DataFrame) -> bytes:
    written = io.BytesIO()
    table.write_parquet(written)
    return written.getvalue()


_WRITERS: dict[str, tuple[Callable[[pl.DataFrame], bytes], str]] = {
    "csv": (_csv, "text/csv"),
    "parquet": (_parquet, "application/vnd.apache.parquet"),
}
