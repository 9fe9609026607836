"""Ballots on disk: one Parquet file or a folder of them, with one row per voter, read one batch at a time.

A voter's dilemmas are the bytes of an array of records x features (int8, or little-endian float64), the choices one
int8 per record, and the scenarios one int16 code per record. Voters' answers about themselves are a column of int16
codes for each question. If the study asks one dilemma twice, ``alike`` is an int8 for each voter, 1 or -1. The study,
the labels of all codes and the origin are in the file's metadata.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from crowdveil.arrays import IntArray
from crowdveil.ballots.ballots import Ballots, join_batches
from crowdveil.ballots.columns import CODE, DIGEST, Categories, check_distinct, join_names
from crowdveil.errors import CrowdveilError, check_type, path_of, plural, shown
from crowdveil.files import replacing
from crowdveil.study.study import Study

_FORMAT = 3
_METADATA = b"crowdveil"
_MOST_BYTES_PER_CELL = 2**31 - 1
_NUMBERS: dict[str, np.dtype[Any]] = {"int8": np.dtype(np.int8), "float64": np.dtype("<f8")}
"""The types in which dilemmas may be stored."""
_ABOUT = "about "
"""Prefix of the columns with voters' answers about themselves."""


@dataclass(frozen=True)
class Header:
    """The metadata that all files of one crowd share, and the origin of this file."""

    study: Study
    numbers: str
    scenarios: tuple[str, ...] | None
    """The labels of the scenarios' codes."""
    about: Mapping[str, tuple[str, ...]]
    """The labels of each question's codes."""
    selection: str | None
    """How the voters were selected (``Ballots.filter``)."""
    origin: Mapping[str, Any] = field(compare=False)

    @classmethod
    def of(cls, batch: Ballots, origin: Mapping[str, Any]) -> Header:
        """Describe ballots that are to be written."""
        return cls(
            batch.study,
            batch.dilemmas.dtype.name,
            None if batch.scenarios is None else batch.scenarios.labels,
            {question: said.labels for question, said in batch.about.items()},
            batch.selection,
            origin,
        )

    @classmethod
    @lru_cache(maxsize=16)
    def parse(cls, text: bytes) -> Header:
        """Read the header of a file and check its format. Files of one crowd usually share it, so it is cached."""
        damaged = CrowdveilError("it has an unreadable header: the file is damaged")
        try:
            data = dict(json.loads(text))
        except (ValueError, TypeError):
            raise damaged from None
        if data.get("format") != _FORMAT:
            raise CrowdveilError(
                f"it has ballot format {data.get('format')}, this version of crowdveil reads {_FORMAT}: "
                "import it again from its source"
            )
        try:
            scenarios = None if data["scenarios"] is None else tuple(data["scenarios"])
            about = {str(question): tuple(labels) for question, labels in data["about"].items()}
            header = cls(
                Study.from_dict(data["study"]), data["numbers"], scenarios, about, data["selection"], data["origin"]
            )
        except (KeyError, TypeError, AttributeError):
            raise damaged from None
        if header.numbers not in _NUMBERS:
            raise damaged
        return header

    def as_bytes(self) -> bytes:
        """Return the header as JSON."""
        data = {
            "format": _FORMAT,
            "numbers": self.numbers,
            "study": self.study.as_dict(),
            "scenarios": self.scenarios,
            "about": self.about,
            "selection": self.selection,
            "origin": dict(self.origin),
        }
        try:
            return json.dumps(data).encode()
        except TypeError as error:
            raise CrowdveilError(f"the origin of ballots is plain data, like texts and numbers: {error}") from None

    @property
    def columns(self) -> list[str]:
        """The required columns, besides ``voter``, which may be missing."""
        scenarios = [] if self.scenarios is None else ["scenarios"]
        alike = ["alike"] if self.study.repeat else []
        return ["dilemmas", "choices", *scenarios, *alike, *(_ABOUT + question for question in self.about)]


@dataclass(frozen=True)
class BallotShard:
    """One Parquet file of ballots."""

    path: Path
    layout: pq.FileMetaData
    named: bool
    stamp: tuple[int, ...]
    """Identifies the file as it was when it was opened (``_stamp``)."""

    def read(self, columns: list[str], group: int | None = None) -> pa.Table:
        """Read some columns of one row group, or of all. This is thread-safe."""
        try:
            with pq.ParquetFile(self.path, memory_map=True, metadata=self.layout) as file:
                table = file.read(columns) if group is None else file.read_row_group(group, columns)
        except (pa.ArrowException, OSError) as error:
            self._check_unchanged()
            raise CrowdveilError(f"{self.path} is damaged: {_one_line(error)}") from None
        self._check_unchanged()
        return table

    def names(self) -> list[pa.Array | None]:
        """Read the voters' names or digests, one array per row group; None if there are none."""
        return list(self.read(["voter"])["voter"].chunks) if self.named else [None]

    def _check_unchanged(self) -> None:
        # The charge and the measurement are two passes, which must read the same ballots.
        if _stamp(self.path) != self.stamp:
            raise CrowdveilError(f"{self.path} has changed since it was opened: open it again")


@dataclass(frozen=True)
class BallotFile:
    """A crowd on disk, read one batch (a row group) at a time."""

    path: Path
    header: Header = field(repr=False)
    shards: tuple[BallotShard, ...] = field(repr=False, compare=False)

    @property
    def study(self) -> Study:
        """The study that was asked."""
        return self.header.study

    @property
    def origin(self) -> Mapping[str, Any]:
        """The source of the ballots, in its own words."""
        return self.header.origin

    @cached_property
    def voters(self) -> int:
        """The number of voters N."""
        return sum(shard.layout.num_rows for shard in self.shards)

    @property
    def batch_count(self) -> int:
        """The number of batches."""
        return len(self._places)

    def batch(self, number: int) -> Ballots:
        """Read one batch. This is thread-safe."""
        shard, group = self._places[number]
        table = shard.read([*(["voter"] if shard.named else []), *self.header.columns], group)
        return _ballots(self.header, table)

    def voters_before(self, number: int) -> int:
        """Return the number of voters in the batches before this one."""
        return int(self._before[number])

    def batches(self) -> Iterator[Ballots]:
        """Read one batch after another."""
        return map(self.batch, range(self.batch_count))

    def load(self) -> Ballots:
        """Read the whole crowd into memory."""
        return join_batches(self.study, list(self.batches()))

    def __repr__(self) -> str:
        return f"BallotFile({str(self.path)!r}, {self.study.name}: {self.voters:,} {plural(self.voters, 'voter')})"

    @cached_property
    def _places(self) -> list[tuple[BallotShard, int]]:
        return [(shard, group) for shard in self.shards for group in range(shard.layout.num_row_groups)]

    @cached_property
    def _before(self) -> IntArray:
        return np.cumsum([0] + [shard.layout.row_group(group).num_rows for shard, group in self._places])

    def __reduce__(self) -> tuple[Any, ...]:
        # Another machine receives the path of the ballots, and the size that it must find there.
        return _open_there, (self.path.resolve(), self._size)

    @property
    def _size(self) -> tuple[int, int, int]:
        return self.voters, self.batch_count, sum(shard.stamp[0] for shard in self.shards)


def _open_there(path: Path, size: tuple[int, int, int]) -> BallotFile:
    file = _open(path)
    if file._size != size:
        raise CrowdveilError(f"{path} is another file here than where the program runs")
    return file


def open_ballots(path: str | Path) -> BallotFile:
    """Open a ballot file, or a folder of ballot files that are one crowd, and check that nobody is in it twice."""
    file = _open(path_of(path, "the ballot file"))
    check_distinct(join_names([name for shard in file.shards for name in shard.names()]), str(path))
    return file


def is_ballot_file(path: Path) -> bool:
    """Whether a Parquet file is one of ballots, and not a table."""
    return _METADATA in (pq.read_metadata(path).metadata or {})


def read_ballots(path: str | Path) -> Ballots:
    """Read a ballot file, or a folder of ballot files, into memory, and check that nobody is in it twice."""
    ballots = _open(path_of(path, "the ballot file")).load()
    check_distinct(None if ballots.names is None else pa.chunked_array([ballots.names]), str(path))
    return ballots


def _open(path: Path) -> BallotFile:
    if not path.exists():
        raise CrowdveilError(
            f"there is no ballot file {path}: make one with `crowdveil import` or `crowdveil simulate`"
        )
    paths = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not paths:
        raise CrowdveilError(
            f"{path} is a directory without ballot files (*.parquet): name a ballot file, or a folder that has some"
        )
    opened = [_open_shard(each) for each in paths]
    first, header = opened[0]
    for shard, other in opened[1:]:
        if other != header:
            raise CrowdveilError(f"{shard.path} is of another study than {first.path}: one folder is one crowd")
    file = BallotFile(path, header, tuple(shard for shard, _ in opened))
    if file.voters == 0:
        raise CrowdveilError(f"{path} holds no voters")
    return file


def _open_shard(path: Path) -> tuple[BallotShard, Header]:
    try:
        with pq.ParquetFile(path, memory_map=path.stat().st_size > 0) as file:
            stamp = _stamp(path)
            layout = file.metadata
            columns = {field.name: field.type for field in file.schema_arrow}
    except (pa.ArrowException, OSError) as error:
        if path.name.endswith((".csv", ".csv.gz", ".tsv", ".txt")):
            raise CrowdveilError(
                f"{path} is not a ballot file but a table: make ballots of it with `crowdveil import "
                f"moral-machine {path} --out BALLOTS`, or `crowdveil import table` for other layouts"
            ) from None
        found = "empty" if path.is_file() and path.stat().st_size == 0 else "damaged, or no Parquet file at all"
        raise CrowdveilError(
            f"{path} is not a ballot file, for it is {found} ({_one_line(error)}): copy it again, or make one with "
            "`crowdveil import` or `crowdveil simulate`"
        ) from None
    if _METADATA not in (layout.metadata or {}):
        raise CrowdveilError(
            f"{path} is a Parquet file, but not a ballot file: "
            f"import it with `crowdveil import table {path} --mapping MAPPING`"
        )
    try:
        header = Header.parse(layout.metadata[_METADATA])
    except CrowdveilError as error:
        raise CrowdveilError(f"{path}: {error}") from None
    for name in header.columns:
        expected = pa.int16() if name.startswith(_ABOUT) else pa.int8() if name == "alike" else pa.binary()
        if columns.get(name) != expected:
            raise CrowdveilError(f"{path} has no column {name!r} of type {expected}: the file is damaged")
    if columns.get("voter", pa.string()) not in (pa.string(), DIGEST):
        raise CrowdveilError(f"{path} has voters that are neither names nor digests: the file is damaged")
    return BallotShard(path, layout, "voter" in columns, stamp), header


def _stamp(path: Path) -> tuple[int, ...]:
    """Distinguish a file from others that may replace it: by its size, its inode and its time."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_size, found.st_ino, found.st_mtime_ns


def write_ballots(
    path: str | Path,
    study: Study,
    batches: Iterable[Ballots],
    origin: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
) -> int:
    """Write a crowd batch by batch and return the number of voters.

    The file appears under its name only when it is complete. ``origin`` says where it came from; a function is called
    after the last batch.
    """
    path = path_of(path, "the ballot file")
    check_type(study, Study, "the study", "load it first, with load_study(name)")
    if isinstance(batches, Ballots) or not isinstance(batches, Iterable):
        raise CrowdveilError(
            f"the batches are {shown(batches)}: give a list of ballots; one crowd has ballots.save(path)"
        )
    if not (callable(origin) or isinstance(origin, Mapping)):
        raise CrowdveilError(f"the origin is {shown(origin)}: give a mapping, like {{'imported_from': 'answers.csv'}}")
    voters = 0
    writer = None
    first: Header | None = None
    with replacing(path, private=True) as unfinished:
        try:
            for batch in (small for given in batches for small in _checked(given, study).batches()):
                header = Header.of(batch, {})
                table = _table(batch)
                if writer is None or first is None:
                    first = header
                    writer = pq.ParquetWriter(
                        unfinished, table.schema, compression=_compression(header), use_dictionary=False
                    )
                if header != first or table.schema != writer.schema:
                    names = ("numbers", "scenarios", "about", "selection")
                    unlike = [name for name in names if getattr(header, name) != getattr(first, name)]
                    raise CrowdveilError(
                        f"the batches of one crowd differ in {', '.join(unlike) or 'names'}: give batches that are "
                        "alike, or write a file of each"
                    )
                writer.write_table(table, row_group_size=batch.voters)
                voters += batch.voters
            if writer is None or first is None:
                raise CrowdveilError(
                    f"there is not one usable record, so {path} was not written: give ballots of at least one voter"
                )
            told = origin() if callable(origin) else origin
            writer.add_key_value_metadata({_METADATA: replace(first, origin=told).as_bytes()})
        finally:
            if writer is not None:
                writer.close()
    return voters


def _checked(batch: Ballots, study: Study) -> Ballots:
    check_type(batch, Ballots, "a batch", "give ballots, as read_ballots returns them")
    if batch.study != study:
        raise CrowdveilError(
            f"a batch is about the study {batch.study.name} ({batch.study.fingerprint[:8]}), and the file about "
            f"{study.name} ({study.fingerprint[:8]}): give ballots of one study"
        )
    return batch


def _compression(header: Header) -> dict[str, str]:
    """Choose the compression: fast for dilemmas, which are many bytes; dense for codes, which need only a few bits."""
    return {name: "lz4" if name == "dilemmas" else "zstd" for name in ["voter", *header.columns]}


def _table(batch: Ballots) -> pa.Table:
    size = batch.dilemmas.size * batch.dilemmas.itemsize
    if size > _MOST_BYTES_PER_CELL:  # batches are smaller than this, so it is a single voter
        raise CrowdveilError(
            f"voter {batch.voter_names()[0]} has {batch.records} records, {size / 1e9:.1f} GB: "
            "a ballot file holds at most 2 GB a voter"
        )
    columns: dict[str, pa.Array] = {} if batch.names is None else {"voter": batch.names}
    columns["dilemmas"] = _cells(
        batch.offsets * batch.study.dimension, batch.dilemmas, _NUMBERS[batch.dilemmas.dtype.name]
    )
    columns["choices"] = _cells(batch.offsets, batch.choices, np.dtype(np.int8))
    if batch.scenarios is not None:
        columns["scenarios"] = _cells(batch.offsets, batch.scenarios.codes, CODE)
    if batch.alike is not None:
        columns["alike"] = pa.array(batch.alike)
    columns |= {_ABOUT + question: pa.array(said.codes) for question, said in batch.about.items()}
    return pa.table(columns)


def _ballots(header: Header, table: pa.Table) -> Ballots:
    columns = {name: _uncut(table.column(name)) for name in table.column_names}
    values, dilemmas = _values(columns["dilemmas"], _NUMBERS[header.numbers], header.study.dimension)
    offsets = values // header.study.dimension
    per_record = {"choices": np.dtype(np.int8)} | ({} if header.scenarios is None else {"scenarios": CODE})
    arrays = {}
    for name, numbers in per_record.items():
        ends, arrays[name] = _values(columns[name], numbers, 1)
        if not np.array_equal(ends, offsets):
            raise CrowdveilError(
                f"some voters' {name} are more or fewer than their dilemmas: the ballot file is damaged"
            )
    about = {q: Categories(labels, columns[_ABOUT + q].to_numpy()) for q, labels in header.about.items()}
    return Ballots(
        header.study,
        offsets,
        dilemmas.reshape(-1, header.study.dimension),
        arrays["choices"],
        columns.get("voter"),
        None if header.scenarios is None else Categories(header.scenarios, arrays["scenarios"]),
        about,
        header.origin,
        header.selection,
        columns["alike"].to_numpy() if header.study.repeat else None,
    )


def _uncut(column: pa.ChunkedArray) -> pa.Array:
    # combine_chunks would copy even a column of a single chunk.
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _cells(ends: IntArray, values: NDArray[Any], numbers: np.dtype[Any]) -> pa.Array:
    """Cut an array into one cell of bytes for each voter."""
    data = np.ascontiguousarray(values, numbers)
    buffers = [None, pa.py_buffer((ends * numbers.itemsize).astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, buffers)


def _values(column: pa.Array, numbers: np.dtype[Any], each: int) -> tuple[IntArray, NDArray[Any]]:
    """Read cells of bytes: where each voter's values begin, and all values, which come in groups of ``each``."""
    if column.null_count:
        raise CrowdveilError("some voters' records are blank (null): the ballot file is damaged")
    _, ends_buffer, data = column.buffers()
    ends = np.frombuffer(ends_buffer, np.int32)[column.offset :][: len(column) + 1].astype(np.int64)
    if np.any(np.diff(ends) % (each * numbers.itemsize)):
        raise CrowdveilError(
            f"some voters' records do not come in groups of {each} features: the ballot file is damaged"
        )
    values = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]].view(numbers)
    return (ends - ends[0]) // numbers.itemsize, values.astype(numbers.newbyteorder("="), copy=False)


def _one_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
