"""What a release costs, in time and memory, against the number of voters N, of records n and of features d.

Each point is a process of its own that opens a ballot file, counts it, and releases it: by Algorithm 1 (VLCP: every
voter is fitted), by Algorithm 2 (VLDP: every voter is fitted and draws exact noise) and by scores (RLDP: nobody is
fitted). Times are of the processor, all threads together; NumPy multiplies with one thread, as in the program. Written
to docs/scale.png. With --spark, the same work on two Spark worker processes beside all cores here.

Run: python benchmarks/scale.py [--voters 10000 100000 1000000 4000000] [--spark]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from matplotlib.figure import Figure
from memory import peak_memory

from crowdveil.ballots.ballot_file import open_ballots, write_ballots
from crowdveil.engines.batches import BatchedBallots
from crowdveil.engines.engine import LocalEngine
from crowdveil.engines.spark import spark_engine
from crowdveil.estimation.society import society
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.publish.release import publish
from crowdveil.publish.request import Request
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study, synthetic_study
from crowdveil.study.study import Study

RELEASES = {"VLCP, Algorithm 1": "vlcp", "VLDP, Algorithm 2": "vldp", "RLDP, scores": "rldp"}
MECHANISM = {"vlcp": "algorithm-1", "vldp": "algorithm-2", "rldp": "score"}
COLOURS = ("#0072b2", "#d55e00", "#009e73")
RECORDS, FEATURES, VOTERS = (5, 13, 50, 200), (2, 5, 10, 23, 60), 20_000
MASTER = "local-cluster[2,1,2048]"
PICTURE = Path(__file__).parents[1] / "docs" / "scale.png"

Points = dict[float, dict[str, tuple[float, float]]]
"""Processor seconds and bytes, by the number that grows and by release."""


def simulate(path: Path, study: Study, voters: int) -> None:
    write_ballots(path, study, simulated_batches(study, voters, np.random.default_rng(0)), {})


def release(path: str, paradigm: str) -> None:
    """Make one release, and print what it took: processor time of all threads, and memory.

    Loading the program is not counted, its memory is. A small release comes first, so that everything is compiled.
    """
    for source in (open_ballots(path).batch(0)[:50], open_ballots(path)):
        with tempfile.TemporaryDirectory() as folder:
            ledger = Ledger.create(Path(folder) / "ledger", 1)
            begun = time.process_time()
            request = Request(PARADIGMS[paradigm], Epsilon.of_millionths(10**6), MECHANISM[paradigm])
            publish(source, request, ledger, Path(folder) / "release.json")
            took = time.process_time() - begun
    print(json.dumps([took, peak_memory()]))


def measured(path: Path, paradigm: str) -> tuple[float, float]:
    command = [sys.executable, __file__, "--run", str(path), paradigm]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    seconds, memory = json.loads(told.splitlines()[-1])
    return seconds, memory


def grow(name: str, crowds: dict[float, tuple[Study, int]], folder: Path) -> Points:
    print(f"\n{name}\n{'':>10} " + "".join(f"{title:>32}" for title in RELEASES))
    points: Points = {}
    for number, (study, voters) in crowds.items():
        path = folder / "crowd"
        simulate(path, study, voters)
        points[number] = {title: measured(path, paradigm) for title, paradigm in RELEASES.items()}
        cells = (f"{seconds:.2f} s, {memory / 1e9:.2f} GB" for seconds, memory in points[number].values())
        print(f"{number:>10,} " + "".join(f"{cell:>32}" for cell in cells), flush=True)
    return points


def _short(number: int) -> str:
    """Write 4,000,000 as 4M: ticks stand side by side."""
    for size, letter in ((10**6, "M"), (10**3, "k")):
        if number >= size and number % size == 0:
            return f"{number // size}{letter}"
    return str(number)


def draw(series: dict[str, Points]) -> None:
    figure = Figure(figsize=(11, 5.6), layout="constrained")
    places = figure.subplots(2, len(series), sharex="col", sharey="row")
    for column, (name, points) in zip(places.T, series.items(), strict=True):
        for part, axes in enumerate(column):
            for title, colour in zip(RELEASES, COLOURS, strict=True):
                heights = [of[title][part] / (1, 1e9)[part] for of in points.values()]
                axes.plot(list(points), heights, marker="o", markersize=4, color=colour, label=title)
            axes.set(xscale="log", yscale=("log", "linear")[part])
            axes.set_xticks(list(points), [_short(number) for number in points])
            axes.minorticks_off()
            axes.grid(color="#e4e4e4", linewidth=0.7)
            axes.spines[["top", "right"]].set_visible(False)
        column[1].set_xlabel(name)
    places[0, 0].set_ylabel("processor seconds")
    places[1, 0].set_ylabel("memory, GB")
    most = max(memory for points in series.values() for of in points.values() for _, memory in of.values())
    places[1, 0].set_ylim(0, 1.1 * most / 1e9)
    places[0, 0].legend(frameon=False, fontsize=8)
    figure.savefig(PICTURE, dpi=110)
    print(f"\nWrote {PICTURE.name}")


def beside_spark(voters: int, folder: Path) -> None:
    """Fit and average everybody, here and on two Spark workers, until warm; the societies must be equal to the bit."""
    path, results = folder / "crowd", {}
    simulate(path, load_study("moral-machine"), voters)
    print(f"\n{voters:,} voters: fit and average{'':>4} {'first, s':>9} {'second, s':>10}")
    begun = time.perf_counter()
    with spark_engine(MASTER) as spark:
        started = time.perf_counter() - begun
        for name, engine in (("2 local threads", LocalEngine(2)), ("2 Spark workers", spark)):
            times = []
            for _ in range(2):
                begun = time.perf_counter()
                results[name] = society(BatchedBallots(open_ballots(path), engine), 2.0).parameter.tolist()
                times.append(time.perf_counter() - begun)
            print(f"{name:>36} {times[0]:>9.2f} {times[1]:>10.2f}", flush=True)
    assert results["2 local threads"] == results["2 Spark workers"]
    print(f"the same society, bit for bit; Spark took {started:.1f} s to start")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--voters", type=int, nargs="+", default=[10_000, 100_000, 1_000_000, 4_000_000])
    asked.add_argument("--spark", action="store_true", help="compare with Spark instead")
    asked.add_argument("--run", nargs=2, metavar=("BALLOTS", "PARADIGM"), help=argparse.SUPPRESS)
    given = asked.parse_args()
    if given.run:
        release(*given.run)
        return
    study = load_study("moral-machine")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if given.spark:
            beside_spark(max(given.voters), folder)
            return
        lengths = {n: replace(study, drawing=replace(study.drawing, dilemmas=n)) for n in RECORDS}
        crowds: dict[str, dict[float, tuple[Study, int]]] = {
            "voters": {voters: (study, voters) for voters in given.voters},
            f"records a voter ({VOTERS:,} voters)": {n: (long, VOTERS) for n, long in lengths.items()},
            f"features ({VOTERS:,} voters, 50 records)": {d: (synthetic_study(d, 50), VOTERS) for d in FEATURES},
        }
        draw({name: grow(name, of, folder) for name, of in crowds.items()})


if __name__ == "__main__":
    main()
