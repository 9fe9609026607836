"""How much of the crowd's preference the dilemmas of files show, relative to those of their studies' generators.

python tests/statistics/shown.py BALLOTS ...        a row for each file of ballots, made by `crowdveil import`

The mean square of a dilemma along the axes of the public design is 1 in any direction, over the generator's dilemmas.
A row tells it of the file's, exactly: in the direction of the crowd's preference, and the least and the largest of any.
"""

from __future__ import annotations

import sys

import numpy as np

from crowdveil.ballots.ballot_file import read_ballots
from crowdveil.estimation.crowd_preference import crowd_preference
from crowdveil.estimation.design import public_design


def main(*paths: str) -> None:
    """Print a row for each file."""
    for path in paths:
        ballots = read_ballots(path).decided()
        basis = public_design(ballots.study).basis
        along = ballots.differences @ basis
        squares = along.T @ along / len(along)
        gamma = np.linalg.lstsq(basis, crowd_preference(ballots).preference)[0]
        least, *_, largest = np.linalg.eigvalsh(squares).tolist()
        shown = float(gamma @ squares @ gamma / (gamma @ gamma))
        print(f"| {path.rsplit('/', 1)[-1]} | {shown:.2f} | {least:.2f} | {largest:.2f} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
