"""Personal epsilons from a table: which voter chose which protection, before answering."""

from __future__ import annotations

from os import PathLike

import polars as pl

from crowdveil.arguments import path_of
from crowdveil.ballots import BallotSource, check_source, names_of
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon, Epsilons


def read_personal_epsilons(path: str | PathLike[str], source: BallotSource) -> Epsilons:
    """Read columns ``voter`` and ``epsilon`` (CSV) and return the epsilons in the voters' order.

    Every voter needs exactly one row; rows of people who did not vote are an error too, since a misspelt name would
    silently change somebody's protection.
    """
    path = path_of(path, "the file of epsilons")
    check_source(source)
    try:
        table = pl.read_csv(path, infer_schema=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise CrowdveilError(f"cannot read the epsilons in {path}: {str(error).splitlines()[0]}") from None
    if not {"voter", "epsilon"} <= set(table.columns):
        raise CrowdveilError(f"{path} needs the columns voter and epsilon, it has {', '.join(table.columns)}")
    chosen: dict[str, Epsilon] = {}
    for line, (voter, epsilon) in enumerate(table.select("voter", "epsilon").iter_rows(), start=2):
        if voter is None or voter in chosen:
            raise CrowdveilError(
                f"{path}, line {line}: voter {voter!r} is {'missing' if voter is None else 'there twice'}"
            )
        try:
            chosen[voter] = Epsilon(epsilon or "")
        except CrowdveilError as error:
            raise CrowdveilError(f"{path}, line {line}: {error}") from None
    voters = names_of(source)
    without = [name for name in voters if name not in chosen]
    if without:
        raise CrowdveilError(
            f"{path} has no epsilon for {len(without)} of {len(voters)} voters, the first is {without[0]!r}"
        )
    if strangers := chosen.keys() - set(voters):
        raise CrowdveilError(
            f"{path} names {len(strangers)} people who are not among the voters, one is {min(strangers)!r}"
        )
    return Epsilons.of(chosen[name] for name in voters)
