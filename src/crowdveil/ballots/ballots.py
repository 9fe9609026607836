"""Everyone's records as columns: the dilemmas shown, the choices, and where each voter's records begin.

A dilemma is first minus second, and the choice is +1 for the first, -1 for the second and 0 for neither. Estimates use
their product, chosen minus other (the paper's V = X - Z, Eq. 6). A crowd is never a list of objects: a million voters
are a few arrays here, or a file that is read in batches (``ballot_file``).
"""

from __future__ import annotations

import hashlib
import html
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, cast

import numpy as np
import pyarrow as pa

from crowdveil.arrays import BoolArray, IntArray, SmallIntArray, ValueArray
from crowdveil.ballots.columns import (
    DIGEST,
    Categories,
    answered_alike,
    as_array,
    as_digests,
    check_alternatives,
    check_choices,
    check_distinct,
    check_labels,
    check_levels,
    check_voters,
    digest_bytes,
    dilemmas_between,
    join_names,
    keys_of_voters,
    mixed,
)
from crowdveil.errors import (
    CrowdveilError,
    as_pandas,
    check_flag,
    check_text,
    check_type,
    check_whole,
    is_number,
    path_of,
    plural,
    shown,
)
from crowdveil.study.bundled import find_study
from crowdveil.study.study import Study

if TYPE_CHECKING:
    import polars


VOTERS_PER_BATCH = 16_384
BYTES_PER_BATCH = 1 << 25
FEWEST_TO_DOUBT = 20
"""Fewer voters may well have one record each."""


@dataclass(frozen=True, eq=False, repr=False)
class Ballots:
    """A crowd's records in memory.

    ``dilemmas`` has one row per record (int8 if the study's values fit, else float64, in model units) and ``choices``
    one number. The records of voter i are those from ``offsets[i]`` to ``offsets[i + 1]``. Every voter has at least
    one.
    """

    study: Study
    offsets: IntArray
    dilemmas: ValueArray
    choices: SmallIntArray
    names: pa.Array | None = None
    """The voters' names, or digests of them (``with_digests``); None if the source had none."""
    scenarios: Categories | None = None
    """Each record's scenario type."""
    about: Mapping[str, Categories] = field(default_factory=dict)
    """The voters' answers about themselves, by question."""
    origin: Mapping[str, Any] = field(default_factory=dict)
    """The source of the records, in its own words."""
    selection: str | None = None
    """How the voters were selected, if that may depend on their records or on their answers about themselves."""
    alike: SmallIntArray | None = None
    """If the study asks one dilemma twice: 1 for a voter who gave the same answer, -1 for one who did not.

    A repeat is not a record: only the reliability of a crowd is computed from it.
    """

    def __post_init__(self) -> None:
        if self.dilemmas.ndim != 2 or self.dilemmas.shape[1] != self.study.dimension:
            raise CrowdveilError(
                f"study {self.study.name} has {self.study.dimension} features, "
                f"these records have shape {self.dilemmas.shape}"
            )
        if len(self.offsets) < 1 or self.offsets[0] != 0 or self.offsets[-1] != len(self.dilemmas):
            raise CrowdveilError("the voters' offsets do not match the records: the ballots are damaged")
        counts = self.counts
        if np.any(counts < 1):
            raise CrowdveilError(
                f"{int(np.sum(counts < 1))} of {len(counts)} voters have no records: "
                "a preference needs at least one; leave such voters out"
            )
        if self.dilemmas.dtype != np.int8 and not np.isfinite(self.dilemmas).all():
            raise CrowdveilError("some records hold values that are not finite numbers (NaN or infinite)")
        if len(self.choices) != self.records or (
            self.records and not -1 <= self.choices.min() <= self.choices.max() <= 1
        ):
            raise CrowdveilError("a choice is 1 (the first), -1 (the second) or 0 (neither), one for each record")
        if self.names is not None and self.names.null_count:
            raise CrowdveilError(f"{self.names.null_count} of {self.voters} voters have no name: leave them out")
        if (self.alike is not None) != self.study.repeat:
            asks, say = ("asks", "do not say") if self.study.repeat else ("does not ask", "say")
            raise CrowdveilError(
                f"study {self.study.name} {asks} one dilemma twice, and these ballots {say} who answered it alike"
            )
        if self.alike is not None and not np.isin(self.alike, (-1, 1)).all():
            raise CrowdveilError("whether a voter answered alike is 1 or -1")
        for column, length in self._lengths:
            if column is not None and len(column) != length:
                raise CrowdveilError(f"a column of the ballots has {len(column)} entries in place of {length}")

    @classmethod
    def from_differences(
        cls, study: Study, offsets: IntArray, differences: ValueArray, names: pa.Array | None = None
    ) -> Ballots:
        """Make ballots for which it is not known which side was shown first: the chosen one counts as the first.

        It is not known either who gave the same answer twice, so the study is taken without its repeat.
        """
        study = replace(study, repeat=False) if study.repeat else study
        return cls(study, offsets, differences, np.broadcast_to(np.int8(1), len(differences)), names)

    @classmethod
    def from_arrays(
        cls,
        study: str | Study,
        voters: Sequence[object],
        left: Any,
        right: Any,
        choice: Any,
        *,
        repeat: Any = None,
        scenario: Sequence[str | None] | None = None,
        about: Mapping[str, Sequence[str | None]] | None = None,
        levels: Mapping[str, Sequence[str]] | None = None,
    ) -> Ballots:
        """Make ballots from one row per record: the voter, the two alternatives, and the choice.

        ``left`` and ``right`` contain the features' own values in the study's order. ``choice`` is "left", 1 or True
        for the left alternative, "right", -1 or False for the right, and "neither" or 0 for neither, if the study
        allows a third answer. ``repeat`` is True in the row of each voter's second answer to a dilemma, if the study
        asks one twice; such a row is not a record. ``about`` contains the voter's answers, repeated in each row.

        ``levels`` are the public answers to such a question. If they are not given, those that occur are taken as
        public: the list of groups then reveals that somebody gave a rare answer.

        >>> left, right = [[1, 0], [0, 1], [2, 0]], [[0, 0]] * 3
        >>> Ballots.from_arrays("synthetic-2", ["ann", "ann", "bob"], left, right, [1, -1, 1])
        Ballots(synthetic-2: 2 voters, 3 records)
        """
        study = find_study(study)
        whose = pa.array(check_voters(voters), pa.string()).dictionary_encode()
        records = len(whose)
        sides = [check_alternatives(study, name, side, records) for name, side in (("left", left), ("right", right))]
        choices = check_choices(study, choice, records)
        types = None if scenario is None else check_labels(scenario, "scenario", records)
        for name, given in (("about", about), ("levels", levels)):
            if given is not None:
                check_type(given, Mapping, name, 'give a mapping, like {"gender": [...]}')
                for question in given:
                    check_text(question, f"a question of {name}")
        answers = {question: check_labels(column, question, records) for question, column in (about or {}).items()}
        codes = whose.indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        counts = np.bincount(codes, minlength=len(whose.dictionary)).astype(np.int64)
        offsets = _offsets(counts)
        again = _check_repeat(study, repeat, records)[order]
        alike = (
            answered_alike(offsets, sides[0][order], sides[1][order], choices[order], again) if study.repeat else None
        )
        if alike is not None and not alike.all():
            raise CrowdveilError(
                f"repeat: voter {whose.dictionary[int(np.argmin(np.abs(alike)))].as_py()!r} must have one second "
                "answer, to a dilemma that is among the voter's others; leave out voters without it"
            )
        said = {}
        for question, column in answers.items():
            rows = Categories.encode([column[i] for i in order], check_levels((levels or {}).get(question), question))
            said[question] = rows[offsets[:-1]]
            if not np.array_equal(np.repeat(said[question].codes, counts), rows.codes):
                raise CrowdveilError(f"about: some voters have more than one answer to {question!r}")
        order = order[~again]
        return cls(
            study,
            _offsets(counts - study.repeat),
            dilemmas_between(study, sides[0], sides[1])[order],
            choices[order],
            whose.dictionary,
            None if types is None else Categories.encode([types[i] for i in order]),
            said,
            alike=alike,
        )

    @property
    def voters(self) -> int:
        """The number of voters N."""
        return len(self.offsets) - 1

    @property
    def records(self) -> int:
        """The number of records of all voters together."""
        return len(self.dilemmas)

    @property
    def counts(self) -> IntArray:
        """The number of records of each voter."""
        return np.diff(self.offsets)

    @cached_property
    def differences(self) -> ValueArray:
        """Chosen minus other, one row per record: all that estimates use.

        A record in which neither was chosen has no such row. Only the user can say whether it is right to leave it out
        (``decided``): it shows in the number of voters, which every promise treats as public, or in that of records,
        which only the promise to voters keeps secret.
        """
        self.check_decided()
        if not self.records or self.choices.min() == 1:
            return self.dilemmas
        if self.dilemmas.dtype == np.int8:
            signs = np.repeat(self.choices, self.study.dimension).reshape(self.dilemmas.shape)
            return np.multiply(signs, self.dilemmas, out=signs)
        return np.subtract(0.0, self.dilemmas, out=self.dilemmas.copy(), where=(self.choices < 0)[:, None])

    def check_decided(self) -> None:
        """Refuse ballots with records in which neither was chosen."""
        neither = self.records - int(np.count_nonzero(self.choices))
        if neither:
            ways = "leave them out on import, or with ballots.decided()"
            if self.study.indifference is None:
                ways += f"; or let study {self.study.name} allow it, by words for indifference"
            raise CrowdveilError(
                f"in {neither} of {self.records} records neither side was chosen, which this cannot use: {ways}"
            )

    def voter_names(self, before: int = 0) -> list[str]:
        """Return the voters' names or digests; if the source had none, their positions after ``before`` others."""
        if self.names is None:
            return [str(before + i + 1) for i in range(self.voters)]
        if self.names.type == DIGEST:
            return [digest.hex() for digest in self.names.to_pylist()]
        return cast(list[str], self.names.to_pylist())

    def with_digests(self) -> Ballots:
        """Return the same ballots with digests instead of names: enough to tell whether two voters are the same."""
        return self if self.names is None else replace(self, names=as_digests(self.names))

    def decided(self) -> Ballots:
        """Return the ballots without records in which neither was chosen, and without voters who have no others.

        Whoever calls this takes it to be public who decided at least once, as an import does that leaves out such rows.
        """
        kept = self.choices != 0
        if kept.all():
            return self
        counts = np.add.reduceat(kept, self.offsets[:-1], dtype=np.int64)
        voters = np.flatnonzero(counts)
        return self._select(_offsets(counts[voters]), np.flatnonzero(kept), voters)

    def __len__(self) -> int:
        return self.voters

    def __getitem__(self, voters: slice) -> Ballots:
        """Return the ballots of consecutive voters, without copying a record.

        Where the cuts are must not depend on the records: unlike ``take``, this records no selection.
        """
        remedy = "cut out voters with ballots[first:end], or take(positions)"
        check_type(voters, slice, "the part of the ballots", remedy)
        try:
            start, stop, step = voters.indices(self.voters)
        except (TypeError, ValueError):
            raise CrowdveilError(f"the part of the ballots is {shown(voters)}: {remedy}") from None
        if step != 1:
            raise CrowdveilError(f"ballots are cut into consecutive voters, got a step of {step}: use take(positions)")
        stop = max(start, stop)
        records = slice(int(self.offsets[start]), int(self.offsets[stop]))
        cut = self._select(self.offsets[start : stop + 1] - records.start, records, slice(start, stop))
        if "differences" in self.__dict__:  # computed once for all batches and all passes
            cut.__dict__["differences"] = self.differences[records]
        return cut

    def head(self, voters: int = 5) -> Ballots:
        """Return the ballots of the first voters."""
        check_whole(voters, "the number of voters", 1)
        return self[:voters]

    def take(self, positions: IntArray, label: str = "chosen positions") -> Ballots:
        """Return the ballots of the voters at these positions, in this order; they are a selection (``filter``)."""
        places = as_array(positions)
        if places.ndim != 1 or (places.size and places.dtype.kind not in "iu"):
            raise CrowdveilError(f"the positions are {shown(positions)}: give whole numbers from 0 up, like [0, 2]")
        if places.size and not 0 <= places.min() <= places.max() < self.voters:
            there = plural(self.voters, "is 1 voter", f"are {self.voters} voters")
            raise CrowdveilError(f"there {there}: give positions from 0 to {self.voters - 1}")
        given, times = np.unique(places, return_counts=True)
        if len(given) < len(places):
            raise CrowdveilError(
                f"position {given[times.argmax()]} is given {times.max()} times: one voter is one ballot, so give each "
                "position once"
            )
        return replace(self._take(places.astype(np.int64)), selection=narrowed(self.selection, label))

    def _take(self, positions: IntArray) -> Ballots:
        counts = self.counts[positions]
        offsets = _offsets(counts)
        rows = np.repeat(self.offsets[positions] - offsets[:-1], counts) + np.arange(offsets[-1])
        return self._select(offsets, rows, positions)

    def filter(self, keep: BoolArray | Callable[[Ballots], BoolArray], label: str = "a filter") -> Ballots:
        """Return the ballots of the voters for whom the mask is true: ``ballots.filter(lambda b: b.counts >= 5)``.

        Who is kept may depend on what a release has to protect. So a release of them is refused unless it declares the
        label public; it then says that membership in this group is not protected. Of voters who are already a
        selection, the label names both.
        """
        given = keep(self) if callable(keep) else keep
        mask = as_array(given)
        if mask.dtype != np.bool_ or mask.shape != (self.voters,):
            found = f"{mask.dtype} values of shape {mask.shape}" if mask.ndim else shown(given)
            raise CrowdveilError(
                f"a filter needs a mask of {self.voters} booleans, one for each voter: "
                f"{'the function returned' if callable(keep) else 'it is'} {found}"
            )
        return self.take(np.flatnonzero(mask), label)

    def split(self, share: float, seed: int) -> tuple[Ballots, Ballots]:
        """Split the voters at random: this share of them, rounded, and the others, both in their original order.

        Where voters have names, the seed and these decide, and no record does.
        """
        if not (is_number(share) and 0 <= share <= 1):
            raise CrowdveilError(f"a share is a number from 0 to 1, got {shown(share)}")
        check_whole(seed, "the seed", 0)
        order = random_order(seed, self.voters, self.names)
        cut = round(share * self.voters)
        return self._take(np.sort(order[:cut])), self._take(np.sort(order[cut:]))

    def batches(self) -> Iterator[Ballots]:
        """Yield the crowd in batches of bounded size."""
        start = 0
        most = BYTES_PER_BATCH // max(1, self.study.dimension * self.dilemmas.itemsize)
        while start < self.voters:
            fitting = int(np.searchsorted(self.offsets, self.offsets[start] + most, "right")) - 1
            stop = max(start + 1, min(start + VOTERS_PER_BATCH, fitting))
            yield self[start:stop]
            start = stop

    def save(self, path: str | PathLike[str]) -> None:
        """Write the ballots to a file, whole or not at all; ``read_ballots`` reads it."""
        from crowdveil.ballots.ballot_file import write_ballots  # that module imports this one

        write_ballots(path_of(path, "the ballot file"), self.study, [self], self.origin)

    def to_polars(self) -> polars.DataFrame:
        """Return a table with one row per record: voter, dilemma (first minus second), choice, and the rest."""
        import polars as pl

        whose = np.repeat(np.arange(self.voters), self.counts)
        columns: dict[str, Any] = {"voter": np.array(self.voter_names(), object)[whose]}
        columns |= {name: self.dilemmas[:, k] for k, name in enumerate(self.study.feature_names)}
        columns["choice"] = np.ascontiguousarray(self.choices)
        if self.scenarios is not None:
            columns["scenario"] = self.scenarios.to_list()
        columns |= {f"about {question}": said[whose].to_list() for question, said in self.about.items()}
        if self.alike is not None:
            columns["alike"] = self.alike[whose]
        return pl.DataFrame(columns, schema_overrides={"voter": pl.String})

    def to_pandas(self) -> Any:
        """Return ``to_polars`` as a pandas table, if pandas is installed."""
        return as_pandas(self.to_polars())

    def __repr__(self) -> str:
        voters, records = plural(self.voters, "voter"), plural(self.records, "record")
        return f"Ballots({self.study.name}: {self.voters:,} {voters}, {self.records:,} {records})"

    def _repr_html_(self) -> str:
        table = self.head(3).to_polars().head(10)._repr_html_()
        return f"<p>{html.escape(repr(self))}, the first of them:</p>{table}"

    def _select(self, offsets: IntArray, records: IntArray | slice, voters: IntArray | slice) -> Ballots:
        """Keep these records of these voters."""
        names = self.names
        if names is not None:
            names = names[voters] if isinstance(voters, slice) else names.take(pa.array(voters))
        return replace(
            self,
            offsets=offsets,
            dilemmas=self.dilemmas[records],
            choices=self.choices[records],
            scenarios=None if self.scenarios is None else self.scenarios[records],
            names=names,
            about={question: said[voters] for question, said in self.about.items()},
            alike=None if self.alike is None else self.alike[voters],
        )

    @property
    def _lengths(self) -> Iterator[tuple[pa.Array | Categories | SmallIntArray | None, int]]:
        yield self.names, self.voters
        yield self.alike, self.voters
        yield self.scenarios, self.records
        yield from ((said, self.voters) for said in self.about.values())


class BallotSource(Protocol):
    """A crowd that can be read in batches: in memory, or in a file of any size."""

    @property
    def study(self) -> Study:
        """The study that was asked."""

    @property
    def voters(self) -> int:
        """The number of voters N."""

    def batches(self) -> Iterator[Ballots]:
        """Yield the crowd in batches of bounded size, always in the same order."""


def is_source(given: object) -> TypeGuard[BallotSource]:
    """Whether something is a crowd that can be read in batches."""
    return all(hasattr(given, needed) for needed in ("study", "voters", "batches"))


def check_source(source: object) -> None:
    """Refuse anything that is not a crowd, such as the path of one, and a crowd of nobody."""
    if not is_source(source):
        raise CrowdveilError(
            f"the ballots are {shown(source)}: read them first, with read_ballots, read_moral_machine or read_table"
        )
    if not source.voters:
        raise CrowdveilError(
            f"there are no voters in these ballots of the study {source.study.name}: give at least one, or leave "
            "somebody in the filter, split or slice that they come from"
        )


def narrowed(selection: str | None, label: str) -> str:
    """Return how voters were selected of whom a label says who is kept."""
    check_text(label, "the label")
    if not label:
        raise CrowdveilError("the label is '': say how the voters were selected, like 'gender = women'")
    return label if selection is None else f"{selection}, {label}"


def every_selection(selections: Iterable[str | None]) -> str | None:
    """Return how the voters of a crowd were selected whose parts were selected in these ways."""
    return " and ".join(dict.fromkeys(one for one in selections if one is not None)) or None


def random_order(seed: int, voters: int, names: pa.Array | pa.ChunkedArray | None) -> IntArray:
    """Return the positions of voters in a random order, which depends on the seed and on who they are."""
    rng = np.random.default_rng(seed)
    if names is None:
        return rng.permutation(voters)
    keys = keys_of_voters(names, 0, voters) ^ rng.integers(2**64, dtype=np.uint64)
    return np.asarray(np.argsort(mixed(keys), kind="stable"), np.int64)


def resampled(ballots: Ballots, positions: IntArray) -> Ballots:
    """Return the ballots at these positions, each as often as it is given: for experiments, and never to release."""
    return ballots._take(positions)


def names_of(source: BallotSource) -> list[str]:
    """Return the names or digests of all voters; if the source had none, their positions from 1."""
    names: list[str] = []
    for batch in source.batches():
        names += batch.voter_names(before=len(names))
    return names


def concatenate(study: Study, batches: Sequence[Ballots]) -> Ballots:
    """Join batches of one crowd. A voter who is in two of them is refused."""
    check_distinct(join_names([b.names for b in batches]), "these ballots")
    return join_batches(study, batches)


def join_batches(study: Study, batches: Sequence[Ballots]) -> Ballots:
    """Join batches of which it is known that nobody is in two."""
    if not batches:
        raise CrowdveilError(f"there are no voters in these ballots of the study {study.name}")
    first = batches[0]
    if len(batches) == 1 and first.study == study:  # nothing to join, and nothing to copy
        return first
    if any(set(b.about) != set(first.about) or (b.scenarios is None) != (first.scenarios is None) for b in batches):
        raise CrowdveilError("batches of one crowd must have the same columns (scenarios, about)")
    names = join_names([b.names for b in batches])
    scenarios = [b.scenarios for b in batches if b.scenarios is not None]
    return Ballots(
        study,
        _offsets(np.concatenate([b.counts for b in batches])),
        np.concatenate([b.dilemmas for b in batches]),
        np.concatenate([b.choices for b in batches]),
        None if names is None else names.combine_chunks(),
        Categories.concatenate(scenarios) if scenarios else None,
        {question: Categories.concatenate([b.about[question] for b in batches]) for question in first.about},
        first.origin,
        every_selection(b.selection for b in batches),
        None if first.alike is None else np.concatenate([b.alike for b in batches if b.alike is not None]),
    )


@dataclass(frozen=True)
class CrowdCounts:
    """The counts of a crowd, and a fingerprint of exactly its records."""

    voters: int
    records: int
    fewest_records: int
    most_records: int
    most_answers: int
    """Most answers of one voter: the records, and a second answer to a repeated dilemma."""
    fingerprint: str
    """SHA-256 of the study and of every difference in order, the same however the crowd is cut into batches."""
    digests: bytes | None = field(default=None, repr=False)
    """A digest of each voter's name, 16 bytes each; None if not all voters have names."""
    selection: str | None = None
    """How the voters were selected (``Ballots.filter``)."""


def census(source: BallotSource) -> CrowdCounts:
    """Read the crowd once and count it."""
    check_source(source)
    counts, records = hashlib.sha256(), hashlib.sha256()
    each: list[IntArray] = []
    digests: list[bytes | None] = []
    selections: list[str | None] = []
    for batch in source.batches():
        counts.update(np.ascontiguousarray(batch.counts).data)
        records.update(np.ascontiguousarray(_completed(batch).differences).data)
        if batch.study.indifference is not None:
            records.update(np.ascontiguousarray(batch.choices == 0).data)
        if batch.alike is not None:
            records.update(np.ascontiguousarray(batch.alike).data)
        each.append(np.array([batch.voters, batch.records, batch.counts.min(), batch.counts.max()]))
        digests.append(None if batch.names is None else digest_bytes(batch.names))
        selections.append(batch.selection)
    voters, total, fewest, most = np.array(each).T
    name = f"{source.study.fingerprint} {counts.hexdigest()} {records.hexdigest()}"
    fingerprint = hashlib.sha256(name.encode()).hexdigest()
    return CrowdCounts(
        int(voters.sum()),
        int(total.sum()),
        int(fewest.min()),
        int(most.max()),
        int(most.max()) + source.study.repeat,
        fingerprint,
        None if None in digests else b"".join(known for known in digests if known is not None),
        every_selection(selections),
    )


def _completed(ballots: Ballots) -> Ballots:
    """Replace "neither" by the first side, in a study that allows it: for a fingerprint, any side will do."""
    if ballots.study.indifference is None or ballots.choices.all():
        return ballots
    return replace(ballots, choices=np.where(ballots.choices == 0, np.int8(1), ballots.choices))


def check_one_record_each(study: Study, voters: int, records: int, confirmed: bool) -> None:
    """Refuse a crowd in which nearly every voter has one record of many dilemmas, unless that is confirmed.

    The column that names voters may number rows instead: a promise to a voter would then protect only one record.
    """
    check_flag(confirmed, "one_record_each")
    doubtful = study.drawing.dilemmas > 1 and voters >= FEWEST_TO_DOUBT and 10 * records <= 11 * voters
    if doubtful and not confirmed:
        raise CrowdveilError(
            f"{voters} voters have {records} records, nearly all of them one each: does the voter column name rows in "
            "place of people? If they are people, confirm it with one_record_each=True (--one-record-each)"
        )


def _check_repeat(study: Study, given: Any, records: int) -> BoolArray:
    """Read which rows are second answers."""
    if (given is not None) != study.repeat:
        ask = "asks one dilemma twice: say which rows are" if study.repeat else "asks no dilemma twice: leave out"
        raise CrowdveilError(f"study {study.name} {ask} second answers, with repeat")
    repeat = np.zeros(records, bool) if given is None else as_array(given)
    if repeat.dtype != np.bool_ or repeat.shape != (records,):
        raise CrowdveilError(f"repeat must hold True or False for each of {records} rows: it is {shown(given)}")
    return repeat


def _offsets(counts: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
