"""Releases of files in which a factor differs in few dilemmas, while the study's generator has it differ in most.

python tests/statistics/seldom_asked.py MECHANISM STUDY SHARE RELEASES        a row for 3,000 voters at epsilon 1

Of the generator's dilemmas, all but the given share are made equal in the first feature before anybody is asked. Known
is the share of releases that know anything of this factor; covered, that of its 95 % intervals that hold the value of
the preference, which is 0.4 for a deviation of the factor in the generator's dilemmas.
"""

from __future__ import annotations

import sys

import numpy as np
from populations import release

from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation.design import public_design
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.study.bundled import load_study, synthetic_study
from crowdveil.study.drawing import draw_dilemmas
from crowdveil.study.study import Study

VOTERS = 3000
STUDIES = {"kidney": load_study("kidney"), "synthetic": synthetic_study(3, 13)}


def preference_of(study: Study) -> np.ndarray:
    """Return a preference over the features that gives the first, and half as much any other, a margin of 0.4."""
    sizes = np.full(study.dimension, 0.2)
    sizes[0] = 0.4
    return sizes / public_design(study).differences.std(axis=0)


def crowd(study: Study, share: float, rng: np.random.Generator) -> Ballots:
    """Draw voters who all want the same."""
    left, right = draw_dilemmas(study, VOTERS, rng)
    shown = (left - right).astype(np.float64) / study.units
    shown[rng.random(len(shown)) > share, 0] = 0.0
    chosen = np.where(shown @ preference_of(study) + rng.standard_normal(len(shown)) > 0, 1, -1)
    return Ballots.from_differences(study, np.arange(VOTERS + 1) * study.drawing.dilemmas, shown * chosen[:, None])


def main(mechanism: str, name: str, share: str, releases: str) -> None:
    """Print a row."""
    study = STUDIES[name]
    value = study.factor_map[0] @ preference_of(study)
    known, covered = [], []
    for number in range(int(releases)):
        drawn = crowd(study, float(share), np.random.default_rng([1, number]))
        made = release(mechanism, drawn, Epsilon(1), number)
        low, high = made.factor_intervals[0]
        known.append(made.known[0])
        covered.append(low <= value <= high)
    print(
        f"| `{mechanism}` | {name} | {share} | {releases} | {np.mean(known):.2f} | {np.mean(covered):.2f} |", flush=True
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
