"""The rest of crowds whose population has none, and how far leaving it out moves their preference along the factors.

python tests/statistics/crowd_rest.py        a row for each crowd: both deviations, times what they fall with
"""

from __future__ import annotations

from itertools import product

import numpy as np
from populations import SPREADS, usual_population

from crowdveil.estimation.crowd_preference import crowd_preference
from crowdveil.estimation.design import public_design
from crowdveil.study.bundled import load_study

_CROWDS = 6


def main() -> None:
    """Print a row for each number of voters and of records, and each spread of voters."""
    study = load_study("moral-machine")
    design = public_design(study)
    factors, k = study.factor_matrix.astype(float), design.directions
    print("| spread | voters | records | rest × √(R − 24) | shift × (R − 24) |")
    for spread, (voters, records) in product(SPREADS, ((50, 4), (50, 13), (500, 1), (500, 13))):
        population, rest, shift = usual_population(study, spread), [], []
        for seed in range(_CROWDS):
            crowd = population.crowd(voters, records, np.random.default_rng(seed))
            whole = crowd_preference(crowd, weighting="choices").preference
            alone = crowd_preference(crowd, weighting="choices", directions=factors).preference
            along = np.linalg.lstsq(design.whole.basis, whole, rcond=None)[0]
            rest.append(along[k:])
            shift.append(along[:k] - np.linalg.lstsq(design.basis, alone, rcond=None)[0])
        telling = voters * records - design.whole.directions - 1
        sizes = (np.sqrt(np.mean(np.square(rest)) * telling), np.sqrt(np.mean(np.square(shift))) * telling)
        print(f"| {spread} | {voters} | {records} | {sizes[0]:.2f} | {sizes[1]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
