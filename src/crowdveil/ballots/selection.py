"""Parts of ballot files, by voter, by group, or at random with a seed; and merged files.

Ledgers account for people, not for files: any release about a part is charged to the same people. Membership in a part
that was selected by what voters said or chose is itself something that a release must protect. So such a part records
its selection, and is released only if that is declared public. A random part records nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from crowdveil.arrays import BoolArray
from crowdveil.ballots.ballot_file import BallotFile, open_ballots, write_ballots
from crowdveil.ballots.ballots import Ballots, every_selection, narrowed, random_order
from crowdveil.ballots.columns import check_distinct, join_names, unknown_question
from crowdveil.errors import CrowdveilError, check_whole
from crowdveil.files import make_folder

Mask = Callable[[Ballots, int], BoolArray]
"""Returns whom to keep in a batch, given the number of voters before it."""


@dataclass(frozen=True)
class WrittenBallots:
    """A ballot file that was written, and its number of voters."""

    path: Path
    voters: int
    selection: str | None


def filter_by_voter(source: BallotFile, names: Sequence[str], label: str, out: str | Path) -> WrittenBallots:
    """Keep the voters with these names."""
    held = [array for shard in source.shards for array in shard.names()]
    if any(array is None for array in held):
        raise CrowdveilError(f"{source.path} has no voters' names: filter by group, or split at random")
    wanted = set(names)
    strangers = wanted.difference(*(batch.voter_names() for batch in source.batches()))
    if strangers:
        raise CrowdveilError(
            f"{len(strangers)} of {len(wanted)} names are not among the voters, one is {min(strangers)!r}"
        )
    return _write(
        source,
        lambda batch, before: np.array([name in wanted for name in batch.voter_names()], bool),
        label,
        Path(out),
    )


def filter_by_group(source: BallotFile, question: str, levels: Sequence[str], out: str | Path) -> WrittenBallots:
    """Keep the voters who gave one of these answers to a question about themselves."""
    known = levels_of(source, question)
    for level in levels:
        if level not in known:
            raise CrowdveilError(f"{question!r} has no level {level!r}: choose from {', '.join(known)}")
    codes = [known.index(level) for level in levels]
    return _write(
        source,
        lambda batch, before: np.isin(batch.about[question].codes, codes),
        f"{question} = {' or '.join(levels)}",
        Path(out),
    )


def split_by_group(source: BallotFile, question: str, folder: str | Path) -> list[WrittenBallots]:
    """Write a ballot file for each level of a question, except for levels that nobody has."""
    known = levels_of(source, question)
    folder = Path(folder)
    make_folder(folder)
    held = np.zeros(len(known), np.int64)
    for batch in source.batches():
        codes = batch.about[question].codes
        held += np.bincount(codes[codes >= 0], minlength=len(known))
    return [
        filter_by_group(source, question, [level], folder / f"{number}-{_file_name(level)}.parquet")
        for number, (level, voters) in enumerate(zip(known, held.tolist(), strict=True), start=1)
        if voters
    ]


def split_at_random(
    source: BallotFile, share: float, seed: int, out: str | Path, rest: str | Path
) -> tuple[WrittenBallots, WrittenBallots]:
    """Write a random part of the voters, and the others, exactly as ``Ballots.split`` does."""
    if not 0 < share < 1:
        raise CrowdveilError(f"a share is a number between 0 and 1, got {share}")
    check_whole(seed, "the seed", 0)
    if Path(out).resolve() == Path(rest).resolve():
        raise CrowdveilError(f"both parts would be written to {out}: give them two names")
    chosen = np.zeros(source.voters, bool)
    names = join_names([names for shard in source.shards for names in shard.names()])
    chosen[random_order(seed, source.voters, names)[: round(share * source.voters)]] = True
    return (
        _write(source, lambda batch, before: chosen[before : before + batch.voters], None, Path(out)),
        _write(source, lambda batch, before: ~chosen[before : before + batch.voters], None, Path(rest)),
    )


def merge(paths: Sequence[str | Path], out: str | Path) -> WrittenBallots:
    """Merge several crowds of one study; a voter who is in two of them is refused."""
    files = [open_ballots(path) for path in paths]
    if len(files) < 2:
        raise CrowdveilError("give two ballot files or more to merge")
    twice = [file.path for k, file in enumerate(files) if file.path.resolve() in {o.path.resolve() for o in files[:k]}]
    if twice:
        raise CrowdveilError(f"{twice[0]} is given twice, and each of its voters would count twice: give it once")
    first = files[0].header
    for file in files[1:]:
        if file.study != first.study:
            raise CrowdveilError(f"{file.path} is about another study than {files[0].path}: nothing was written")
        if (file.header.scenarios, file.header.about, file.header.numbers) != (
            first.scenarios,
            first.about,
            first.numbers,
        ):
            raise CrowdveilError(
                f"{file.path} has other scenarios or questions about voters than {files[0].path}: import both alike"
            )
    named = [names for file in files for shard in file.shards for names in shard.names()]
    check_distinct(join_names(named), "these files")
    selection = every_selection(file.header.selection for file in files)
    batches = (replace(batch, selection=selection) for file in files for batch in file.batches())
    origin = {"merged": [file.path.name for file in files]}
    return WrittenBallots(
        Path(out), write_ballots(_other_than(files, Path(out)), first.study, batches, origin), selection
    )


def levels_of(source: BallotFile, question: str) -> tuple[str, ...]:
    """Find the public levels of a question about voters."""
    about: Mapping[str, tuple[str, ...]] = source.header.about
    if question not in about:
        raise unknown_question(question, about, f"the ballots in {source.path}")
    return about[question]


def _write(source: BallotFile, mask: Mask, selection: str | None, out: Path) -> WrittenBallots:
    """Write the voters whom the mask keeps, batch by batch."""
    before = source.header.selection
    label = before if selection is None else narrowed(before, selection)

    def batches() -> Iterator[Ballots]:
        for number, batch in enumerate(source.batches()):
            kept = batch.filter(mask(batch, source.voters_before(number)))
            if kept.voters:
                yield replace(kept, selection=label)

    out = _other_than([source], out)
    rest = batches()
    first = next(rest, None)
    if first is None:
        raise CrowdveilError(f"nobody is left of {source.path}: nothing was written")
    origin = {"part_of": source.path.name, "origin": dict(source.origin)}
    return WrittenBallots(out, write_ballots(out, source.study, chain([first], rest), origin), label)


def _other_than(sources: Sequence[BallotFile], out: Path) -> Path:
    if any(out.resolve() == source.path.resolve() for source in sources):
        raise CrowdveilError(f"{out} is the file that is read: write to another one")
    return out


def _file_name(level: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in level).strip("-") or "level"
