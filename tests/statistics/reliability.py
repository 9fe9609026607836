"""How often the interval of a reliability holds the truth, and how wide it is: python tests/statistics/reliability.py

Crowds are drawn anew each time, every voter alike with the same probability; a tenth of epsilon, or of the reports, is
for the share, as in a release.
"""

from __future__ import annotations

import numpy as np

from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.reliability import (
    ONE_IN,
    counted_reliability,
    reliability_split,
    reported_reliability,
)
from crowdveil.privacy.mechanisms.shares import FLIP, STEPS, BitSums, NoisyShare, noisy_share
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments
from crowdveil.privacy.side_answers import Reliability

CROWDS = 400


def central(voters: int, rate: float, epsilon: Epsilon, seed: int) -> Reliability:
    """Count a crowd, with noise."""
    part = reliability_split(epsilon)[1]
    alike = int(np.random.default_rng(seed).binomial(voters, rate))
    share = noisy_share(STEPS * alike, voters, voters, part, FloatNoiseForExperiments(seed))
    return counted_reliability(share, voters, part)


def distributed(voters: int, rate: float, epsilon: Epsilon, seed: int) -> Reliability:
    """Let each device say a bit, or nothing of it."""
    rng = np.random.default_rng(seed)
    asked = int(rng.binomial(voters, 1 / ONE_IN))
    if not asked:
        return reported_reliability(NoisyShare(0.5, 1.0))
    epsilons = Epsilons.same(epsilon, asked)
    turned = FloatNoiseForExperiments(seed).tosses(FLIP, epsilons, 1)[:, 0]
    bits = np.where((rng.random(asked) < rate) ^ turned, 1, -1)
    return reported_reliability(BitSums.of(epsilons, bits).share(equal_votes=False))


def main() -> None:
    """Print a row for each kind of noise, size of the crowd, share and epsilon."""
    print("| noise | voters | answer alike | ε | holds the truth | half of its width |")
    print("|---|---|---|---|---|---|")
    for name, made in (("central", central), ("devices", distributed)):
        for voters in (100, 1000, 10_000):
            for rate, epsilon in ((0.9, Epsilon(1)), (0.9, Epsilon(3)), (0.6, Epsilon(1))):
                found = [made(voters, rate, epsilon, seed) for seed in range(CROWDS)]
                held = np.mean([one.low <= rate <= one.high for one in found])
                width = np.mean([one.high - one.low for one in found]) / 2
                print(f"| {name} | {voters:,} | {rate:.0%} | {epsilon} | {held:.1%} | {width:.3f} |", flush=True)


if __name__ == "__main__":
    main()
