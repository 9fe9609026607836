"""Import of the public Moral Machine layout beside polars and duckdb: rows a second and memory, in one run.

Each reads the same file, applies the same checks to every row, pairs rows by dilemma, groups pairs by voter and writes
Parquet; the results are compared answer by answer. polars and duckdb get the shortest way that does this, with typed
columns and their own streaming. Each runs in a process of its own, after one run that warms the file cache and the
compiled code. ``polars, bare read`` only parses all columns: what reading alone costs. ``crowdveil, to a release`` goes
on to a VLCP release by Algorithm 1.

Run: python benchmarks/import.py [--voters 20000 100000] [--folder FOLDER] [--only NAME ...]

A file N.csv that is in the folder already is taken as it is, one of N voters is written otherwise.
"""

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from memory import peak_memory

from crowdveil.ballots.ballot_file import open_ballots, read_ballots
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.publish.release import release
from crowdveil.sources.moral_machine.importing import import_moral_machine
from crowdveil.sources.moral_machine.layout import DILEMMA, GROUP, HIGHEST, SAVED, SIGNAL, SIZE, VOTER
from crowdveil.sources.simulated_layout import write_public_layout
from crowdveil.study.bundled import load_study

NUMBERS = [SAVED, SIZE, *HIGHEST]


def crowdveil(source: str, target: str) -> None:
    import_moral_machine(source, target)


def polars(source: str, target: str) -> None:
    import polars as pl

    group = pl.sum_horizontal(GROUP)
    whole = pl.all_horizontal(pl.col(NUMBERS).is_not_null() & (pl.col(NUMBERS) % 1 == 0))
    within = pl.all_horizontal(pl.col(c).is_between(0, high) for c, high in {SAVED: 1, **HIGHEST}.items())
    named = (pl.col(VOTER).str.strip_chars() != "") & (pl.col(DILEMMA).str.strip_chars() != "")
    sign = 2 * pl.col(SAVED) - 1
    legality = pl.when(pl.col(SIGNAL) == 2).then(-1).otherwise(pl.col(SIGNAL)).alias(SIGNAL)
    (
        pl.scan_csv(
            source, schema_overrides={VOTER: pl.String, **dict.fromkeys(NUMBERS, pl.Float32)}, ignore_errors=True
        )
        .select(DILEMMA, VOTER, *NUMBERS)
        .filter(named & whole & within & group.is_between(1, 5) & (group == pl.col(SIZE)))
        .with_columns(legality)
        .group_by(DILEMMA)
        .agg(
            pl.len().alias("rows"),
            pl.col(VOTER).first(),
            pl.col(VOTER).n_unique().alias("voters"),
            pl.col(SAVED).sum().alias("chosen"),
            *((pl.col(c) * sign).sum().cast(pl.Int8).alias(c) for c in HIGHEST),
        )
        .filter((pl.col("rows") == 2) & (pl.col("voters") == 1) & (pl.col("chosen") == 1))
        .select(VOTER, pl.concat_list(list(HIGHEST)).alias("record"))
        .group_by(VOTER)
        .agg(pl.col("record").list.explode(keep_nulls=False, empty_as_null=False))
        .sink_parquet(target)
    )


def duckdb(source: str, target: str) -> None:
    import duckdb as database

    numbers = ", ".join(f"TRY_CAST({c} AS FLOAT) AS {c}" for c in NUMBERS)
    checks = " AND ".join(
        [
            *(f"{c} IS NOT NULL AND {c} % 1 = 0" for c in NUMBERS),
            *(f"{c} BETWEEN 0 AND {high}" for c, high in {SAVED: 1, **HIGHEST}.items()),
            f"trim({VOTER}) <> '' AND trim({DILEMMA}) <> ''",
            f"{' + '.join(GROUP)} BETWEEN 1 AND 5",
            f"{' + '.join(GROUP)} = {SIZE}",
        ]
    )
    value = {c: f"CASE {SIGNAL} WHEN 2 THEN -1 ELSE {SIGNAL} END" if c == SIGNAL else c for c in HIGHEST}
    sums = ", ".join(f"CAST(sum({v} * (2 * {SAVED} - 1)) AS TINYINT) AS {c}" for c, v in value.items())
    database.sql("SET memory_limit = '12GB'")
    database.sql(f"""
        COPY (
            WITH good AS (
                SELECT * FROM (
                    SELECT {DILEMMA}, {VOTER}, {numbers}
                    FROM read_csv('{source}', header = true, all_varchar = true)
                ) WHERE {checks}
            ), pairs AS (
                SELECT first({VOTER}) AS voter, {sums} FROM good GROUP BY {DILEMMA}
                HAVING count(*) = 2 AND count(DISTINCT {VOTER}) = 1 AND sum({SAVED}) = 1
            )
            SELECT voter AS {VOTER}, flatten(list([{", ".join(HIGHEST)}])) AS record FROM pairs GROUP BY voter
        ) TO '{target}' (FORMAT parquet)""")


def bare_read(source: str, target: str) -> None:
    import polars as pl

    types = {"UserID": pl.String, **dict.fromkeys(NUMBERS, pl.Float32)}
    pl.scan_csv(source, schema_overrides=types, ignore_errors=True).select(pl.all().count()).collect(engine="streaming")


def to_a_release(source: str, target: str) -> None:
    """Do what ``crowdveil release`` does with a file of answers: import, census, fit, charge, noise, write."""
    import_moral_machine(source, target)
    beside = Path(target).parent
    for name in ("ledger", "ledger.key", "release.json"):
        (beside / name).unlink(missing_ok=True)
    made = release(
        open_ballots(target), "vlcp", epsilon=1, mechanism="paper", ledger=Ledger.open(beside / "ledger", budget=1)
    )
    made.save(beside / "release.json")


WAYS = {
    "crowdveil": crowdveil,
    "crowdveil, to a release": to_a_release,
    "polars": polars,
    "duckdb": duckdb,
    "polars, bare read": bare_read,
}


def fingerprint(path: Path) -> tuple[int, int, str]:
    """Return voters, records, and a hash of every voter's differences in which no order matters."""
    if b"crowdveil" in (pq.read_metadata(path).metadata or {}):
        ballots = read_ballots(path)
        voters, ends, values = ballots.voter_names(), ballots.offsets, ballots.differences
    else:
        table = pq.read_table(path)
        records = table.column(1).combine_chunks()
        voters, ends = table.column(0).to_pylist(), records.offsets.to_numpy() // len(HIGHEST)
        values = records.values.to_numpy().astype(np.int8).reshape(-1, len(HIGHEST))
    total = 0
    for name, start, stop in zip(voters, ends, ends[1:], strict=False):
        differences = sorted(map(bytes, values[start:stop]))
        total += int.from_bytes(hashlib.blake2b(name.encode() + b"".join(differences), digest_size=8).digest())
    return len(voters), int(ends[-1] - ends[0]), f"{total % 2**64:016x}"


def measured(way: str, source: Path, target: Path) -> dict[str, float]:
    """Run one way in a process of its own."""
    command = [sys.executable, __file__, "--run", way, str(source), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{way} failed:\n{done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def run(way: str, source: str, target: str) -> None:
    begun = time.perf_counter()
    WAYS[way](source, target)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    told = {
        "seconds": time.perf_counter() - begun,
        "cpu": usage.ru_utime + usage.ru_stime,
        "memory": peak_memory(),
    }
    print(json.dumps(told))


def compare(voters: int, folder: Path, ways: list[str]) -> None:
    source = folder / f"{voters}.csv"
    if not source.exists():
        write_public_layout(source, load_study("moral-machine"), voters, np.random.default_rng(0))
    first = measured("crowdveil", source, folder / "warm")
    size, rows = source.stat().st_size, int(open_ballots(folder / "warm").origin["rows"])
    print(f"\n{voters:,} voters, {rows:,} rows, {size / 1e9:.2f} GB of CSV")
    heads = ("seconds", "rows/s", "CPU s", "memory GB", "time / crowdveil", "memory / crowdveil")
    print(f"{'':>18} {heads[0]:>8} {heads[1]:>12} {heads[2]:>7} {heads[3]:>10} {heads[4]:>12} {heads[5]:>14}")
    results = {}
    for way in ways:
        target = folder / "result"
        target.unlink(missing_ok=True)
        told = measured(way, source, target)
        first = told if way == "crowdveil" else first
        if target.exists():
            results[way] = fingerprint(target)
        print(
            f"{way:>18} {told['seconds']:>8.2f} {rows / told['seconds']:>12,.0f} {told['cpu']:>7.1f}"
            f" {told['memory'] / 1e9:>10.2f} {told['seconds'] / first['seconds']:>12.2f}"
            f" {told['memory'] / first['memory']:>14.2f}"
        )
    assert len(set(results.values())) == 1, results
    print(f"the same result: {next(iter(results.values()))}")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--voters", type=int, nargs="+", default=[20_000, 100_000])
    asked.add_argument("--folder", type=Path)
    asked.add_argument("--only", nargs="+", choices=list(WAYS), default=list(WAYS))
    asked.add_argument("--run", nargs=3, metavar=("WAY", "SOURCE", "TARGET"), help=argparse.SUPPRESS)
    given = asked.parse_args()
    if given.run:
        run(*given.run)
        return
    with tempfile.TemporaryDirectory() as folder:
        for voters in given.voters:
            compare(voters, given.folder or Path(folder), given.only)


if __name__ == "__main__":
    main()
