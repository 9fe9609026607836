"""Whether fewer people agree on a long dilemma than a probit says: exact preferences, judged on held-out voters.

python tests/statistics/voters_differ.py BALLOTS ...                                        a table of docs/knowledge.md

Nothing is private here. For each file, choices of a quarter of the voters are forecast by the exact preference of the
others, in 12 splits: by Phi(beta . x), and as a release does, which supposes that voters differ (``disagreement``).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.special import ndtr

from crowdveil.ballots.ballot_file import read_ballots
from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation.crowd_preference import crowd_preference
from crowdveil.estimation.design import public_design
from crowdveil.estimation.disagreement import DISAGREEMENT, common_size, reach

_SPLITS = 12
_DISAGREEMENTS = (0.0, DISAGREEMENT / 2, DISAGREEMENT, 2 * DISAGREEMENT)


def judged(ballots: Ballots) -> tuple[np.ndarray, np.ndarray]:
    """Return the margin of what held-out voters chose, and the dilemma along the axes, of all splits."""
    basis = public_design(ballots.study).basis
    margins = []
    along = []
    for number in range(_SPLITS):
        learned, others = ballots.split(0.75, seed=number)
        margins.append(others.differences @ crowd_preference(learned).preference)
        along.append(others.differences @ basis)
    return np.concatenate(margins), np.concatenate(along)


def main(*paths: str) -> None:
    """Print the loss and the Brier score, and stated less right by how long dilemmas are."""
    print("| people | τ | log loss | Brier | stated − right, all | shortest quarter | | | longest |")
    print("|---|---|---|---|---|---|---|---|---|")
    for path in paths:
        ballots = read_ballots(path).decided()
        margins, along = judged(ballots)
        quarters = np.argsort(np.argsort(np.square(along).sum(axis=1))) * 4 // len(along)
        shown = public_design(ballots.study).along
        for tau in _DISAGREEMENTS:
            stated = margins * common_size(shown, tau) * reach(along, tau)
            chosen = ndtr(stated)
            gaps = ndtr(np.abs(stated)) - (stated > 0) - (stated == 0) / 2
            numbers = [gaps.mean(), *(gaps[quarters == quarter].mean() for quarter in range(4))]
            loss = -np.log(np.maximum(chosen, 1e-12)).mean()
            told = " | ".join(f"{number:+.3f}" for number in numbers)
            print(f"| {Path(path).stem} | {tau:g} | {loss:.4f} | {np.square(1 - chosen).mean():.4f} | {told} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
