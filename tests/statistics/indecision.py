"""Three-way log loss of held-out people: python tests/statistics/indecision.py FILE PARADIGM EPSILON [SPLITS]

FILE is study 1 of McElfresh et al. (examples/indecision-mapping.toml). Beside each other: the threshold without
privacy, a probit of the decided choices with a constant share of coins, and both from releases; the share of the
forced one is exact, which nobody pays for.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.special import ndtr

from crowdveil.decision import stated_margins
from crowdveil.estimation.crowd_preference import crowd_preference
from crowdveil.estimation.threshold import exact_threshold, three_shares
from crowdveil.publish.release import release_for_experiments
from crowdveil.sources.table import read_table

MAPPING = Path(__file__).parents[2] / "examples/indecision-mapping.toml"


def log_loss(shares, choices):
    """The mean of -ln of what was answered; columns: the first side, the second, neither."""
    return -np.log(np.choose(1 - choices.astype(np.int64), [shares[:, 0], shares[:, 2], shares[:, 1]])).mean()


def main(file, paradigm, epsilon, splits):
    ballots = read_table(file, mapping=MAPPING)
    forced_study = replace(ballots.study, indifference=None)
    losses = []
    for seed in range(splits):
        learned, unseen = ballots.split(0.75, seed)
        dilemmas, share = unseen.dilemmas.astype(np.float64), float((learned.choices == 0).mean())
        decided = replace(learned, study=forced_study).decided()
        exact = exact_threshold(learned, weighting="choices")
        third = release_for_experiments(learned, paradigm, epsilon=epsilon, seed=seed)
        forced = release_for_experiments(decided, paradigm, epsilon=epsilon, seed=seed)
        means, variances = third.unknown.predictive(dilemmas)

        def constant(margins, share=share):
            first = ndtr(margins)
            return np.stack([(1 - share) * first, (1 - share) * (1 - first), np.full(len(first), share)], axis=1)

        stated = [
            three_shares(dilemmas @ exact.preference, exact.tau),
            constant(dilemmas @ crowd_preference(learned, weighting="choices").preference),
            three_shares(means, third.indifference.tau, variances + third.indifference.deviation**2),
            constant(stated_margins(forced, dilemmas)),
        ]
        losses.append([log_loss(shares, unseen.choices) for shares in stated])
    names = ("threshold, no privacy", "constant share, no privacy", "threshold, released", "constant share, released")
    for name, loss in zip(names, np.mean(losses, axis=0).tolist(), strict=True):
        print(f"{name}: {loss:.4f}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 12)
