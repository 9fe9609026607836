"""Whether stated probabilities come true on voters who were held out, over many releases with fresh noise.

python tests/statistics/calibration.py BALLOTS MECHANISM EPSILON RELEASES [ANSWERS]        a row of a table

BALLOTS is a file of any study, made by `crowdveil import`.
"""

from __future__ import annotations

import sys

import numpy as np
from populations import release
from scipy.special import ndtr

from crowdveil.ballot_file import read_ballots
from crowdveil.ballots import Ballots
from crowdveil.decision import stated_margins
from crowdveil.estimation.crowd_preference import crowd_preference
from crowdveil.evaluation.toolkit.scores import Forecasts, forecasts
from crowdveil.privacy.epsilon import Epsilon


def thinned(ballots: Ballots, most: int, rng: np.random.Generator) -> Ballots:
    """Keep one to ``most`` records of each voter, as many as a draw says, and any of them alike."""
    kept = [
        start + rng.permutation(count)[: rng.integers(1, most + 1)]
        for start, count in zip(ballots.offsets[:-1].tolist(), ballots.counts.tolist(), strict=True)
    ]
    offsets = np.concatenate([[0], np.cumsum([len(records) for records in kept])])
    return Ballots.from_differences(ballots.study, offsets, ballots.differences[np.concatenate(kept)])


def calibration(
    mechanism: str, ballots: Ballots, epsilon: Epsilon, releases: int, seed: int, most: int | None = None
) -> tuple[Forecasts, Forecasts]:
    """Forecast held-out voters' choices by releases of three in four voters, and by the exact preference of these.

    All choices of all splits are pooled; the sides are turned at random, so that nothing is gained by the first.
    """
    rng = np.random.default_rng(seed)
    stated: list[np.ndarray] = []
    exact: list[np.ndarray] = []
    signs: list[np.ndarray] = []
    for number in range(releases):
        asked = ballots if most is None else thinned(ballots, most, rng)
        learned, judged = asked.split(0.75, seed=seed * 10_000 + number)
        turned = rng.choice([-1, 1], judged.records)
        pairs = judged.differences * turned[:, None]
        made = release(mechanism, learned, epsilon, seed * 10_000 + number, drawn=False)
        stated.append(ndtr(stated_margins(made, pairs)))
        exact.append(ndtr(pairs @ crowd_preference(learned).preference))
        signs.append(turned)
    choices = np.concatenate(signs)
    private, limit = (forecasts(np.concatenate(one), choices, weighting="choices") for one in (stated, exact))
    return private, limit


def main(path: str, mechanism: str, epsilon: str, releases: str, most: str | None = None) -> None:
    """Print a row for the releases, and what the exact preference would have had."""
    ballots = read_ballots(path).decided()
    thin = None if most is None else int(most)
    for name, found in zip(
        (mechanism, "no privacy"),
        calibration(mechanism, ballots, Epsilon(epsilon), int(releases), 1, thin),
        strict=True,
    ):
        slope = found.slope
        print(
            f"| {name} | {epsilon} | {found.share_predicted.estimate:.3f} | {found.brier.estimate:.4f} | "
            f"{float('nan') if slope is None else slope.estimate:.2f} | {found.overstatement.estimate:+.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
