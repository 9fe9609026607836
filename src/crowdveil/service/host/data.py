"""Everything that voters sent, as a table: exact ballots in a central poll, noisy reports in a distributed one.

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
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.service.host.request import HostRequest, Missing
from crowdveil.service.host.voters import attachment
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
    poll, wanted = request.poll_status().poll, request.path("file")
    kind, _, ending = wanted.partition(".")
    if kind != ("reports" if poll.distributed else "ballots") or ending not in _WRITERS:
        raise Missing(f"poll {poll.name} has no file {wanted!r}")
    table = table_of(request.store, poll)
    if table.is_empty():
        raise CrowdveilError(f"nobody has taken part in {poll.name} yet: there is nothing to download")
    write, media = _WRITERS[ending]
    return attachment(write(table), f"{poll.name}-{wanted}", media)


def table_of(store: Store, poll: HostedPoll) -> pl.DataFrame:
    """Return what voters sent as a table."""
    columns = _report_columns(poll) if poll.distributed else _ballot_columns(poll)
    rows = _report_rows(store, poll) if poll.distributed else _ballot_rows(store, poll)
    return pl.from_dicts(list(rows), schema=columns) if columns else pl.DataFrame()


def _about(poll: HostedPoll) -> dict[str, Any]:
    return {f"about_{question.id}": pl.String for question in poll.questions}


def _report_columns(poll: HostedPoll) -> dict[str, Any]:
    return {"report": pl.String, "day": pl.Date, "epsilon": pl.String, **_about(poll), "body": pl.String}


def _report_rows(store: Store, poll: HostedPoll) -> Iterator[Row]:
    for batch in store.submissions.reports(poll.name):
        for one in batch:
            yield {
                "report": one.id,
                "day": one.day,
                "epsilon": str(Epsilon.of_millionths(one.body["epsilon_micro"])),
                **{f"about_{question.id}": one.about.get(question.id) for question in poll.questions},
                "body": json.dumps(one.body, separators=(",", ":")),
            }


def _ballot_columns(poll: HostedPoll) -> dict[str, Any]:
    kinds = {a.name: pl.String if isinstance(a, Category) else pl.Float64 for a in poll.study.attributes}
    sides = {f"{side}_{name}": kind for side in ("left", "right") for name, kind in kinds.items()}
    return {"voter": pl.String, "day": pl.Date, "chosen": pl.String, **sides, **_about(poll)}


def _ballot_rows(store: Store, poll: HostedPoll) -> Iterator[Row]:
    for batch in store.submissions.ballots(poll.name):
        for one in batch:
            about = {f"about_{question.id}": one.about.get(question.id) for question in poll.questions}
            for record in one.records:
                sides = {
                    f"{side}_{name}": value
                    for side in ("left", "right")
                    for name, value in poll.study.plain_values([float(v) for v in record[side]]).items()
                }
                yield {"voter": one.id, "day": one.day, "chosen": record["chosen"], **sides, **about}


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
