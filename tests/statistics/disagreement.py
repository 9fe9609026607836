"""How much voters with hundreds of answers differ from one another, along the axes of their study.

python tests/statistics/disagreement.py BALLOTS        a file of any study, made by `crowdveil import`

Each voter of at least 150 records has a probit of her own, with a weak prior. Its deviation over voters, less what the
fits are off by; and the distance between quartiles in deviations of a normal law, which few odd voters do not move.
"""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np

from crowdveil.ballots.ballot_file import read_ballots
from crowdveil.estimation.design import public_design
from crowdveil.estimation.probit import slopes_and_weights

_RECORDS = 150
_PRIOR = 0.5
_ROUNDS = 40


def own_preference(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a voter's probit along the axes, from the chosen sides (rows), and the variances of its error."""
    gamma, prior = np.zeros(x.shape[1]), _PRIOR * np.eye(x.shape[1])
    for _ in range(_ROUNDS):
        slopes, weights = slopes_and_weights(x @ gamma)
        information = (x * weights[:, None]).T @ x + prior
        gamma = gamma + np.linalg.solve(information, x.T @ slopes - prior @ gamma)
    return gamma, np.diag(np.linalg.inv(information))


def main(path: str) -> None:
    """Print the mean preference along each axis, and both measures of how far voters are from it."""
    ballots = read_ballots(path).decided()
    along = np.asarray(ballots.differences, float) @ public_design(ballots.study).basis
    own = [
        own_preference(along[start:stop])
        for start, stop in pairwise(ballots.offsets.tolist())
        if stop - start >= _RECORDS
    ]
    preferences, errors = (np.array(part) for part in zip(*own, strict=True))
    spread = np.sqrt(np.maximum(preferences.var(axis=0) - errors.mean(axis=0), 0.0))
    quartiles = np.quantile(preferences, [0.25, 0.75], axis=0)
    print(f"{len(own)} voters")
    for name, row in (
        ("mean", preferences.mean(axis=0)),
        ("deviation", spread),
        ("by quartiles", (quartiles[1] - quartiles[0]) / 1.349),
    ):
        print(f"| {name} | {' | '.join(f'{value:.2f}' for value in row)} |")


if __name__ == "__main__":
    main(sys.argv[1])
