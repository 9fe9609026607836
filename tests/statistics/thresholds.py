"""How often the 95 % interval of a threshold covers the population's: python tests/statistics/thresholds.py [RUNS]

Simulated crowds of a study with a third answer, whose voters differ; the truth is the exact threshold of a crowd of
20,000 from the same population.
"""

import sys
from dataclasses import replace

import numpy as np

from crowdveil.estimation.threshold import exact_threshold
from crowdveil.publish.release import release_for_experiments
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study

PARADIGMS = ("vlcp", "rlcp", "alcp", "vldp", "rldp", "aldp")
VOTERS, EPSILON, DILEMMAS = 500, 1, 10


def crowd(study, voters, seed, tau):
    return next(iter(simulated_batches(study, voters, np.random.default_rng(seed), tau=tau)))


def main(runs):
    for name in ("kidney", "moral-machine"):
        study = load_study(name)
        study = replace(study, indifference="Toss a coin", drawing=replace(study.drawing, dilemmas=DILEMMAS))
        for tau in (0.2, 0.6):
            truth = exact_threshold(crowd(study, 16_000, 10_000, tau)).tau
            for paradigm in PARADIGMS:
                inside, widths, means = 0, [], []
                for seed in range(runs):
                    ballots = crowd(study, VOTERS, seed, tau)
                    third = release_for_experiments(ballots, paradigm, epsilon=EPSILON, seed=seed).indifference
                    inside += third.low <= truth <= third.high
                    widths.append(third.high - third.low)
                    means.append(third.tau)
                print(
                    f"{name} tau {truth:.3f} {paradigm}: covered {inside} of {runs}, mean {np.mean(means):.3f}, "
                    f"width {np.mean(widths):.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
