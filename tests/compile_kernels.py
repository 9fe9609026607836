"""Compile the numba kernels once, into the cache: ``python -m tests.compile_kernels``.

Workers that run tests side by side would each compile them for themselves. The way from a file to releases is walked
with a few voters, for whole numbers (the Moral Machine) and for others (a synthetic study), by every mechanism.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.conftest import few_draws
from tests.program import answer

from crowdveil.estimation import design
from crowdveil.privacy.epsilon import PrivacyMeasure
from crowdveil.privacy.mechanisms.registry import CENTRAL, DISTRIBUTED


def main() -> None:
    """Walk the way, with estimates that need not be good."""
    design.SAMPLE = 2000
    with tempfile.TemporaryDirectory() as name, few_draws():
        folder = Path(name)
        answer("simulate", "moral-machine", "--voters", 20, "--as-csv", folder / "mm.csv", "--dirty", 0.2)
        answer("import", "moral-machine", folder / "mm.csv", "--out", folder / "mm", "--shards", "--allow-refused", 0.9)
        answer("simulate", "synthetic-3", "--voters", 20, "--records", 5, "--out", folder / "synthetic")
        answer("ledger", "create", folder / "ledger", "--budget", 1000)
        for ballots in ("mm", "synthetic"):
            answer("fit", folder / ballots)
            pure = (mechanism for mechanism in CENTRAL.values() if mechanism.takes is PrivacyMeasure.EPSILON)
            for mechanism in (*pure, *DISTRIBUTED.values()):
                for paradigm in mechanism.paradigms:
                    asked = ("--paradigm", paradigm, "--mechanism", mechanism.name, "--epsilon", 1)
                    place = ("--ledger", folder / "ledger", "--out", folder / "release.json")
                    answer("release", folder / ballots, *asked, *place)


if __name__ == "__main__":
    main()
