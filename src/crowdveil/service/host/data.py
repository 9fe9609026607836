"""Everything that voters sent, as a table: exact ballots in a central poll, noisy reports in a distributed one.

Ballots have the columns that ``crowdveil import table`` reads. Every number of a report is a column: ``values_3`` is
the third of ``values``. A row has the day but no order of arrival. The table comes with a codebook, which explains
every column, and with labels for R and SPSS.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from starlette.responses import Response

from crowdveil.errors import CrowdveilError
from crowdveil.pages.feature_estimates import one_line
from crowdveil.pages.plain_words import mechanism_words
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.protocol.questions import MOST_LETTERS, WITH_NUMBERS, Answer, Question, QuestionKind, host_words
from crowdveil.protocol.submission import possible_choices
from crowdveil.service.host.request import HostRequest, NotFound, attachment
from crowdveil.service.poll import HostedPoll
from crowdveil.service.store.store import Store
from crowdveil.study.features import Category

TableRow = dict[str, Any]
_THE_SAME_IN_ALL = ("format", "study", "mechanism", "epsilon_micro")
_BIT = {"1": "yes", "-1": "no"}
FAILED_CHECKS = "failed_checks"
TICKED = "ticked_"
"""Prefix of the columns of single ticks."""
_YES_NO = {"0": "no", "1": "yes"}
SIDES = {"left": "Left outcome", "right": "Right outcome"}


def data_page(request: HostRequest) -> Response:
    """Show the data that can be downloaded and deleted."""
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
        raise NotFound(f"poll {poll.name} has no file {wanted!r}")
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
    """Return the voters' submissions as a table."""
    if poll.distributed:
        rows = list(_report_rows(store, poll))
        names = sorted({name for row in rows for name in row} - set(_report_columns(poll)), key=_in_order)
        columns = {**_report_columns(poll), **{name: _kind([row.get(name) for row in rows]) for name in names}}
        return pl.DataFrame({name: [row.get(name) for row in rows] for name in columns}, schema=columns)
    return pl.from_dicts(list(_ballot_rows(store, poll)), schema=_ballot_columns(poll))


def _about_schema(poll: HostedPoll) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for question in poll.sent_questions:
        kind = pl.Int64 if question.kind in WITH_NUMBERS else pl.String
        columns |= {name: pl.Int8 if name.startswith(TICKED) else kind for name in about_columns(poll, question)}
    return columns if poll.attention is None or poll.distributed else {**columns, FAILED_CHECKS: pl.Int64}


def _about_values(poll: HostedPoll, about: Mapping[str, Answer]) -> TableRow:
    """Return the columns of one voter's answers about herself."""
    row: TableRow = {}
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
    return {"report": pl.String, "day": pl.Date, "epsilon": pl.String, **_about_schema(poll)}


def _report_rows(store: Store, poll: HostedPoll) -> Iterator[TableRow]:
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


def _columns_of(name: str, part: Any) -> Iterator[tuple[str, Any]]:
    """Split a part of a report into columns: one for each number of a list, counted from 1.

    If a report is of one of two kinds, the part for the other kind has no columns.
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
    """Return the sort key of a column, by its words and then by number: values_2 before values_10."""
    return tuple((1, int(part), "") if part.isdecimal() else (0, 0, part) for part in name.split("_"))


def _kind(values: list[Any]) -> Any:
    found = {type(value) for value in values if value is not None}
    return pl.String if str in found else pl.Float64 if float in found else pl.Int64


def _ballot_columns(poll: HostedPoll) -> dict[str, Any]:
    kinds = {a.name: pl.String if isinstance(a, Category) else pl.Float64 for a in poll.study.attributes}
    sides = {f"{side}_{name}": kind for side in ("left", "right") for name, kind in kinds.items()}
    again = {"repeat": pl.Int8} if poll.study.repeat else {}
    return {"voter": pl.String, "day": pl.Date, "chosen": pl.String, **again, **sides, **_about_schema(poll)}


def _ballot_rows(store: Store, poll: HostedPoll) -> Iterator[TableRow]:
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
    """Write a table as CSV. An apostrophe precedes a free text that a spreadsheet would run as a formula."""
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


@dataclass(frozen=True)
class Variable:
    """One column: its name, its meaning, and the meanings of its values if they are few."""

    name: str
    label: str
    kind: str
    """One of text, number or date."""
    values: dict[str, str] = field(default_factory=dict)
    """The meanings of all values; any other value is missing."""
    note: str = ""
    ends: dict[int, str] = field(default_factory=dict)
    """The meanings of the lowest and the highest of many numbers."""
    width: int = 255
    """The maximum length of a text, in bytes."""


def codebook(poll: HostedPoll, columns: Iterable[str]) -> list[Variable]:
    """Describe the columns of a poll's download."""
    known = {variable.name: variable for variable in _variables(poll)}
    return [known.get(name) or _part_of_report(poll, name) for name in columns]


def write_codebook(variables: Sequence[Variable]) -> str:
    """Write a codebook as CSV, with a row for each column."""
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(["column", "label", "type", "values", "note"])
    for one in variables:
        values = "; ".join(f"{value} = {meaning}" for value, meaning in [*one.values.items(), *one.ends.items()])
        rows.writerow([one.name, one.label, one.kind, values, one.note])
    return text.getvalue()


def write_r(variables: Sequence[Variable], file: str) -> str:
    """Write an R script that reads the CSV beside it, with labels and factors."""
    kinds = {"text": "character", "number": "numeric", "date": "Date"}
    classes = ", ".join(f"{_quoted(one.name)} = {_quoted(kinds[one.kind])}" for one in variables)
    lines = [
        "# Reads the download with its labels. Needs nothing beyond R itself.",
        f"data <- read.csv({_quoted(file)}, check.names = FALSE, colClasses = c({classes}))",
    ]
    for one in variables:
        column = f"data[[{_quoted(one.name)}]]"
        if one.values:
            levels = ", ".join(map(_quoted, one.values))
            labels = ", ".join(map(_quoted, one.values.values()))
            lines.append(f"{column} <- factor({column}, levels = c({levels}), labels = c({labels}))")
        if one.ends:
            meanings = ", ".join(f"{_quoted(words)} = {value}" for value, words in one.ends.items())
            lines.append(f'attr({column}, "labels") <- c({meanings})')
        lines.append(f'attr({column}, "label") <- {_quoted(one.label)}')
    return "\n".join(lines) + "\n"


def write_spss(variables: Sequence[Variable], file: str) -> str:
    """Write SPSS syntax that reads the CSV beside it, with labels. Names have _ for -, which SPSS does not allow."""
    formats = {"number": "F17.8", "date": "SDATE10"}
    names = [re.sub(r"[^A-Za-z0-9_.]", "_", one.name) for one in variables]
    fields = "\n".join(
        f"    {name} {formats.get(one.kind, f'A{one.width}')}" for name, one in zip(names, variables, strict=True)
    )
    labels = "\n".join(f"  /{name} {_single(one.label)}" for name, one in zip(names, variables, strict=True))
    coded = [(name, one) for name, one in zip(names, variables, strict=True) if one.values or one.ends]
    meanings = "\n".join(f"  /{name} {_value_labels(one)}" for name, one in coded)
    syntax = (
        f"GET DATA /TYPE=TXT /FILE={_single(file)} /ENCODING='UTF8' /DELIMITERS=',' /QUALIFIER='\"' /FIRSTCASE=2\n"
        f"  /VARIABLES=\n{fields}.\nVARIABLE LABELS\n{labels}.\n"
    )
    return syntax + (f"VALUE LABELS\n{meanings}.\n" if coded else "") + "EXECUTE.\n"


def _variables(poll: HostedPoll) -> list[Variable]:
    made = [
        Variable("voter", "Voter: the id of the ballot, a random number", "text"),
        Variable("report", "The id of the report, a random number", "text"),
        Variable("day", "The day on which it arrived (UTC)", "date", note="nothing more precise is stored"),
        Variable("epsilon", "Epsilon: the level of privacy that the voter chose", "number"),
        Variable("records", "The number of records that the report is about", "number"),
        Variable("chosen", "Which outcome the voter chose", "text", {one: one for one in possible_choices(poll.study)}),
        Variable("repeat", "Whether it is the second answer to a dilemma, mirrored", "number", {"0": "no", "1": "yes"}),
        Variable("alike", "Whether a dilemma was answered alike twice, perhaps turned over", "number", _BIT),
        Variable("indifferent", "Whether neither side was chosen, perhaps turned over", "number", _BIT),
    ]
    for side, words in SIDES.items():
        for one in poll.study.attributes:
            label = f"{words}: {one_line(one.label)}"
            if isinstance(one, Category):
                made.append(Variable(f"{side}_{one.name}", label, "text", {level: level for level in one.levels}))
            else:
                note = f"from {one.low:g} to {one.high:g}, unit {one.unit:g}"
                made.append(Variable(f"{side}_{one.name}", label, "number", note=note))
    for question in poll.sent_questions:
        made.extend(_about_variables(poll, question))
    if poll.attention is not None:
        rule = "releases leave out voters who failed one" if poll.attention.left_out else "releases count everybody"
        made.append(Variable(FAILED_CHECKS, "Attention checks that the voter did not pass", "number", note=rule))
    return made


def about_columns(poll: HostedPoll, question: Question) -> list[str]:
    """Return the columns of an about-you question."""
    if question.kind is not QuestionKind.SEVERAL:
        return [f"about_{question.id}"]
    if poll.distributed:
        return [f"about_{question.id}", f"{TICKED}{question.id}"]
    return [f"{TICKED}{question.id}.{option.id}" for option in question.options]


def _about_variables(poll: HostedPoll, question: Question) -> list[Variable]:
    names = about_columns(poll, question)
    text = _words(question.text)
    options = {option.id: _words(option.text) for option in question.options}
    note = "" if poll.about_epsilon is None else f"replaced at random on the device, epsilon {poll.about_epsilon}"
    match question.kind:
        case QuestionKind.SEVERAL if poll.distributed:
            chance = "the device draws one option at random, and reports on that one only"
            return [
                Variable(names[0], f"{text}: the option that is reported on", "text", options, chance),
                Variable(names[1], f"{text}: whether it was ticked", "number", dict(_YES_NO), note),
            ]
        case QuestionKind.SEVERAL:
            labels = zip(names, options.values(), strict=True)
            return [Variable(name, f"{text}: {option}", "number", dict(_YES_NO)) for name, option in labels]
        case QuestionKind.TEXT:
            guard = "in CSV, ' precedes a text that a spreadsheet would run as a formula"
            return [Variable(names[0], text, "text", note=guard, width=4 * MOST_LETTERS)]
        case QuestionKind.NUMBER | QuestionKind.SCALE:
            reach = f"from {question.low} to {question.high}"
            ranges = "" if question.step == 1 else f", the first of a range of {question.step}"
            ends = {} if question.ends is None else dict(zip(_ends(question), map(_words, question.ends), strict=True))
            noted = "; ".join(filter(None, [reach + ranges, note]))
            return [Variable(names[0], text, "number", note=noted, ends=ends)]
    return [Variable(names[0], text, "text", options, note)]


def _ends(question: Question) -> tuple[int, int]:
    levels = [level for level in question.levels if isinstance(level, int)]
    return levels[0], levels[-1]


def _words(texts: Mapping[str, str]) -> str:
    return one_line(host_words(texts))


def _value_labels(one: Variable) -> str:
    shown = one.values if one.kind != "number" else {}
    plain: dict[Any, str] = {**one.ends, **(one.values if one.kind == "number" else {})}
    texts = [f"{_single(value)} {_single(words)}" for value, words in shown.items()]
    return " ".join([*texts, *(f"{value} {_single(words)}" for value, words in plain.items())])


def _part_of_report(poll: HostedPoll, name: str) -> Variable:
    what, _, place = name.partition("_")
    label = f"Report, {what}" + (f", number {place.replace('_', ' of entry ')}" if place else "")
    return Variable(name, label, "text" if what == "kind" else "number", note=mechanism_words(poll.mechanism))


def _quoted(words: str) -> str:
    escaped = words.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _single(words: str) -> str:
    doubled = words.replace("'", "''")
    return f"'{doubled}'"
