"""Everyone's answers, as columns: one array of differences V = X - Z, and where each voter's begin.

X is what the voter chose, Z what the voter did not, so a record says no more than V (the paper's Eq. 6).
A crowd is never a list of objects: a million voters are two arrays, or a file read in row groups.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crowdveil.arrays import IntArray, ValueArray
from crowdveil.errors import CrowdveilError
from crowdveil.files import replacing
from crowdveil.study.study import Study

VOTERS_PER_CHUNK = 16_384
BYTES_PER_CHUNK = 1 << 25
_MOST_BYTES_PER_CELL = 2**31 - 1
_FORMAT = 2
_METADATA = b"crowdveil"
_NUMBERS = {"int8": "int8", "float64": "<f8"}
"""How differences are stored."""


@dataclass(frozen=True)
class Ballots:
    """A crowd's answers in memory.

    ``differences`` has one row a record (int8 where the study's values fit, else float64, in model units);
    the records of voter i are the rows ``offsets[i]:offsets[i + 1]``. Every voter has at least one record.
    """

    study: Study
    offsets: IntArray
    differences: ValueArray
    names: pa.StringArray | None = None

    def __post_init__(self) -> None:
        counts = np.diff(self.offsets)
        if self.differences.ndim != 2 or self.differences.shape[1] != self.study.dimension:
            raise CrowdveilError(
                f"study {self.study.name} has {self.study.dimension} features, "
                f"these answers have shape {self.differences.shape}"
            )
        if len(self.offsets) < 1 or self.offsets[0] != 0 or self.offsets[-1] != len(self.differences):
            raise CrowdveilError("the voters' offsets do not match the records: the ballots are damaged")
        if np.any(counts < 1):
            raise CrowdveilError(
                f"{int(np.sum(counts < 1))} of {len(counts)} voters have no records: "
                "a preference needs at least one answer; leave such voters out"
            )
        if self.differences.dtype != np.int8 and not np.isfinite(self.differences).all():
            raise CrowdveilError("some answers hold values that are not finite numbers (NaN or infinite)")

    @property
    def voters(self) -> int:
        """The number of voters N."""
        return len(self.offsets) - 1

    @property
    def records(self) -> int:
        """The number of answers of all voters together."""
        return len(self.differences)

    @property
    def counts(self) -> IntArray:
        """How many records each voter has."""
        return np.diff(self.offsets)

    def voter_names(self) -> list[str]:
        """Return the voters' names; where the source had none, their positions from 1."""
        return [str(i + 1) for i in range(self.voters)] if self.names is None else self.names.to_pylist()

    def of(self, voters: slice) -> Ballots:
        """Return the ballots of consecutive voters, without copying an answer."""
        start, stop, _ = voters.indices(self.voters)
        begin, end = self.offsets[start], self.offsets[max(start, stop)]
        return Ballots(
            self.study,
            self.offsets[start : max(start, stop) + 1] - begin,
            self.differences[begin:end],
            None if self.names is None else self.names[start:stop],
        )

    def choose(self, voters: IntArray) -> Ballots:
        """Return the ballots of the voters at these positions, in this order."""
        counts = self.counts[voters]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        rows = np.repeat(self.offsets[voters] - offsets[:-1], counts) + np.arange(offsets[-1])
        return Ballots(
            self.study,
            offsets,
            self.differences[rows],
            None if self.names is None else self.names.take(pa.array(voters)),
        )

    def batches(self) -> Iterator[Ballots]:
        """Walk the crowd in pieces of bounded size."""
        start, most = 0, BYTES_PER_CHUNK // max(1, self.study.dimension * self.differences.itemsize)
        while start < self.voters:
            fitting = int(np.searchsorted(self.offsets, self.offsets[start] + most, "right")) - 1
            stop = max(start + 1, min(start + VOTERS_PER_CHUNK, fitting))
            yield self.of(slice(start, stop))
            start = stop


class BallotSource(Protocol):
    """A crowd that can be walked in pieces: in memory, or in a file of any size."""

    @property
    def study(self) -> Study:
        """What was asked."""

    @property
    def voters(self) -> int:
        """The number of voters N."""

    def batches(self) -> Iterator[Ballots]:
        """Walk the crowd in pieces of bounded size, always in the same order."""


@dataclass(frozen=True)
class Shard:
    """One Parquet file of ballots, a row a voter."""

    path: Path
    layout: pq.FileMetaData


@dataclass(frozen=True)
class BallotFile:
    """Ballots on disk, in one Parquet file or a folder of them, of which one piece (a row group) at a time is read.

    A voter's differences are the bytes of an array of records x features: int8, or little-endian float64.
    """

    path: Path
    study: Study
    voters: int
    origin: Mapping[str, Any]
    shards: tuple[Shard, ...] = field(repr=False, compare=False)
    numbers: np.dtype[Any] = field(repr=False, compare=False)

    @property
    def pieces(self) -> int:
        """How many pieces the crowd is in."""
        return len(self._places)

    def piece(self, number: int) -> Ballots:
        """Read one piece. Threads may read at the same time."""
        shard, group = self._places[number]
        try:
            with pq.ParquetFile(shard.path, memory_map=True, metadata=shard.layout) as file:
                table = file.read_row_group(group, columns=["voter", "differences"])
        except (pa.ArrowException, OSError) as error:
            raise CrowdveilError(f"{shard.path} is damaged: {_one_line(error)}") from None
        return _ballots(self.study, table, self.numbers)

    def voters_before(self, number: int) -> int:
        """Return how many voters are in the pieces before this one."""
        return int(self._before[number])

    def batches(self) -> Iterator[Ballots]:
        """Read one piece after another."""
        return map(self.piece, range(self.pieces))

    def load(self) -> Ballots:
        """Read the whole crowd into memory."""
        return concatenate(self.study, list(self.batches()))

    @cached_property
    def _places(self) -> list[tuple[Shard, int]]:
        return [(shard, group) for shard in self.shards for group in range(shard.layout.num_row_groups)]

    @cached_property
    def _before(self) -> IntArray:
        return np.cumsum([0] + [shard.layout.row_group(group).num_rows for shard, group in self._places])

    def __reduce__(self) -> tuple[Any, ...]:
        # What is sent to another machine is where the ballots are, and what must be found there.
        return _found_there, (self.path.resolve(), self.voters, self.pieces)


def _found_there(path: Path, voters: int, pieces: int) -> BallotFile:
    file = open_ballots(path)
    if (file.voters, file.pieces) != (voters, pieces):
        raise CrowdveilError(f"{path} is another file here than where the program runs")
    return file


def concatenate(study: Study, pieces: list[Ballots]) -> Ballots:
    """Join pieces of one crowd."""
    if not pieces:
        raise CrowdveilError(f"there are no voters in these answers to the study {study.name}")
    ends = np.cumsum([0] + [p.records for p in pieces])
    offsets = np.concatenate([[0]] + [p.offsets[1:] + end for p, end in zip(pieces, ends, strict=False)])
    named = all(p.names is not None for p in pieces)
    return Ballots(
        study,
        offsets.astype(np.int64),
        np.concatenate([p.differences for p in pieces]),
        pa.chunked_array([p.names for p in pieces]).combine_chunks() if named else None,
    )


@dataclass(frozen=True)
class Census:
    """Whose answers these are, counted, and a name for exactly these answers."""

    voters: int
    records: int
    fewest_records: int
    most_records: int
    fingerprint: str
    """SHA-256 of the study and of every answer in order, the same however the crowd is cut into pieces."""


def census(source: BallotSource) -> Census:
    """Walk the crowd once and count it."""
    counts, answers = hashlib.sha256(), hashlib.sha256()
    voters, records, fewest, most = 0, 0, 2**62, 0
    for chunk in source.batches():
        counts.update(np.ascontiguousarray(chunk.counts).data)
        answers.update(np.ascontiguousarray(chunk.differences).data)
        voters, records = voters + chunk.voters, records + chunk.records
        fewest, most = min(fewest, int(chunk.counts.min())), max(most, int(chunk.counts.max()))
    name = f"{source.study.fingerprint} {counts.hexdigest()} {answers.hexdigest()}"
    return Census(voters, records, fewest, most, hashlib.sha256(name.encode()).hexdigest())


def open_ballots(path: str | Path) -> BallotFile:
    """Open a ballot file, or a folder of ballot files that are one crowd, and check that it is one."""
    path = Path(path)
    if not path.exists():
        raise CrowdveilError(
            f"there is no ballot file {path}: make one with `crowdveil import` or `crowdveil simulate`"
        )
    paths = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not paths:
        raise CrowdveilError(f"{path} is a directory without ballot files (*.parquet)")
    opened = [_open(each) for each in paths]
    first, header = opened[0]
    for shard, other in opened[1:]:
        if (other["study"], other["numbers"]) != (header["study"], header["numbers"]):
            raise CrowdveilError(f"{shard.path} is of another study than {first.path}: one folder is one crowd")
    shards, voters = tuple(shard for shard, _ in opened), sum(shard.layout.num_rows for shard, _ in opened)
    if voters == 0:
        raise CrowdveilError(f"{path} holds no voters")
    numbers = np.dtype(_NUMBERS[header["numbers"]])
    return BallotFile(path, Study.from_dict(header["study"]), voters, header.get("origin", {}), shards, numbers)


def _open(path: Path) -> tuple[Shard, dict[str, Any]]:
    try:
        with pq.ParquetFile(path, memory_map=path.stat().st_size > 0) as file:
            layout, columns = file.metadata, {field.name: field.type for field in file.schema_arrow}
    except (pa.ArrowException, OSError) as error:
        raise CrowdveilError(f"{path} is not a ballot file: {_one_line(error)}") from None
    metadata = layout.metadata or {}
    if _METADATA not in metadata:
        raise CrowdveilError(
            f"{path} is a Parquet file, but no ballot file: import it with `crowdveil import table {path} --mapping MAPPING`"
        )
    try:
        header = dict(json.loads(metadata[_METADATA]))
    except (ValueError, TypeError):
        raise CrowdveilError(f"{path} has an unreadable header: the file is damaged") from None
    if header.get("format") != _FORMAT or not isinstance(header.get("study"), dict):
        raise CrowdveilError(
            f"{path} has ballot format {header.get('format')}, this version of crowdveil reads {_FORMAT}"
        )
    if columns.get("differences") != pa.binary() or header.get("numbers") not in _NUMBERS:
        raise CrowdveilError(f"{path} has no column of differences: the file is damaged")
    return Shard(path, layout), header


def write_ballots(
    path: str | Path,
    study: Study,
    chunks: Iterable[Ballots],
    origin: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
) -> int:
    """Write a crowd piece by piece and return the number of voters.

    The file appears under its name only when it is complete. ``origin`` says where it came from; a function is asked
    when all pieces have come.
    """
    voters, writer = 0, None
    kind: np.dtype[Any] = np.dtype(np.int8)
    with replacing(Path(path)) as unfinished:
        try:
            for chunk in (piece for given in chunks for piece in given.batches()):
                table = _table(chunk, voters)
                if writer is None:
                    kind = chunk.differences.dtype
                    writer = pq.ParquetWriter(unfinished, table.schema, compression="lz4", use_dictionary=False)
                if chunk.differences.dtype != kind:
                    raise ValueError(f"pieces of one crowd hold {kind} and {chunk.differences.dtype}")
                writer.write_table(table, row_group_size=chunk.voters)
                voters += chunk.voters
            if writer is None:
                raise CrowdveilError("there is not one usable answer, so no ballot file was written")
            told = origin() if callable(origin) else origin
            header = {"format": _FORMAT, "numbers": kind.name, "study": study.as_dict(), "origin": dict(told)}
            writer.add_key_value_metadata({_METADATA: json.dumps(header).encode()})
        finally:
            if writer is not None:
                writer.close()
    return voters


def smallest_type(study: Study) -> type[np.int8] | type[np.float64]:
    """Return int8 where every possible difference of the study is a small whole number, else float64."""
    whole = all(
        f.unit == 1 and f.reach <= 127 and all(float(v).is_integer() for v in (f.low, f.high, *f.levels))
        for f in study.features
    )
    return np.int8 if whole and study.drawing.method != "gaussian" else np.float64


def _table(chunk: Ballots, before: int) -> pa.Table:
    names = chunk.names
    if names is None:
        names = pa.array([str(before + i + 1) for i in range(chunk.voters)], pa.string())
    size = chunk.differences.size * chunk.differences.itemsize
    if size > _MOST_BYTES_PER_CELL:  # pieces are cut smaller than this, so it is one voter
        raise CrowdveilError(
            f"voter {names[0]} has {chunk.records} answers, {size / 1e9:.1f} GB: a ballot file holds at most 2 GB a voter"
        )
    data = np.ascontiguousarray(chunk.differences, _NUMBERS[chunk.differences.dtype.name])
    ends = (chunk.offsets * chunk.study.dimension * data.itemsize).astype(np.int32)
    cells = [None, pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.table({"voter": names, "differences": pa.Array.from_buffers(pa.binary(), chunk.voters, cells)})


def _ballots(study: Study, table: pa.Table, numbers: np.dtype[Any]) -> Ballots:
    column = table.column("differences").combine_chunks()
    if column.null_count:
        raise CrowdveilError("some voters' answers are blank (null): the ballot file is damaged")
    _, ends_buffer, data = column.buffers()
    ends = np.frombuffer(ends_buffer, np.int32)[column.offset :][: len(column) + 1].astype(np.int64)
    sizes, record = np.diff(ends), study.dimension * numbers.itemsize
    if np.any(sizes % record):
        raise CrowdveilError(
            f"some voters' answers do not come in groups of {study.dimension} features: the ballot file is damaged"
        )
    values = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]].view(numbers)
    return Ballots(
        study,
        (ends - ends[0]) // record,
        values.astype(numbers.newbyteorder("="), copy=False).reshape(-1, study.dimension),
        table.column("voter").combine_chunks().cast(pa.string()),
    )


def _one_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
