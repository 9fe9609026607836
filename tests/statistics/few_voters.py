"""How often a choice is wrong and certain in crowds of a few voters, about the crowd and about its population.

python tests/statistics/few_voters.py MECHANISM STUDY VOTERS RECORDS EPSILON SPREAD DRAWS

The population has no preference, and its voters differ by SPREAD along each axis, or belong to two camps of the same
size ("camps"), each of one mind against the other: this is where a choice goes wrong most often. Whichever side is
chosen, it is wrong for one of two populations that lean by next to nothing, so half of the choices count as wrong about
the population. About the crowd they are wrong if its exact preference is against them. Of all dilemmas, the one is
shown that goes wrong most often on half of the draws, as it does on the other half.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from certainty import CERTAINTIES
from populations import Population, release, usual_population

from crowdveil.ballots.ballots import Ballots
from crowdveil.decision import crowd_certainty, population_certainty
from crowdveil.estimation.crowd_preference import crowd_preference
from crowdveil.estimation.design import public_design
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.study.bundled import load_study
from crowdveil.study.drawing import draw_dilemmas
from crowdveil.study.study import Study

_CANDIDATES = 40


def dilemmas_of(study: Study, rng: np.random.Generator) -> np.ndarray:
    """Return some of the study's dilemmas, and those that differ in a single feature, in model units."""
    left, right = draw_dilemmas(study, -(-_CANDIDATES // study.drawing.dilemmas), rng)
    return np.concatenate([(left - right)[:_CANDIDATES], np.eye(study.dimension)]) / study.units


@dataclass(frozen=True)
class Camps(Population):
    """Two camps of the same size, whose preferences are gamma and its opposite."""

    def crowd(self, voters: int, records: int, rng: np.random.Generator) -> Ballots:
        """Draw voters of one camp, and let a coin put each into either."""
        agreed = super().crowd(voters, records, rng)
        sides = np.repeat(rng.choice([-1, 1], voters), records)
        return Ballots.from_differences(self.study, agreed.offsets, agreed.differences * sides[:, None])


def population_of(study: Study, spread: str) -> Population:
    """Return a population without a preference as a whole."""
    if spread == "camps":
        return Camps(study, 3 * usual_population(study, 0.0).gamma, 0.0)
    return Population(study, np.zeros(public_design(study).directions), float(spread))


def wrong_and_certain(
    mechanism: str, population: Population, voters: int, records: int, epsilon: Epsilon, draws: int
) -> np.ndarray:
    """Return how often a choice was wrong and so certain: about the crowd and the population, by draw and dilemma."""
    rng = np.random.default_rng([voters, records])
    weighting = "voters" if mechanism == "voter-score" else "choices"
    dilemmas = dilemmas_of(population.study, rng)
    wrong = np.zeros((2, len(CERTAINTIES), draws, len(dilemmas)))
    for draw in range(draws):
        crowd = population.crowd(voters, records, rng)
        made = release(mechanism, crowd, epsilon, draw)
        truth = crowd_preference(crowd, weighting=weighting).preference
        for column, dilemma in enumerate(dilemmas):
            side = dilemma if dilemma @ made.parameter >= 0 else -dilemma
            against = np.array([side @ truth < 0, 0.5])
            sure = np.array([crowd_certainty(made, side), population_certainty(made, side)])
            wrong[:, :, draw, column] = against[:, None] * (sure[:, None] >= CERTAINTIES)
    return wrong


def worst(wrong: np.ndarray) -> np.ndarray:
    """Return the share of the worst dilemma, found on half of the draws and judged on the others, and the mean."""
    half = wrong.shape[2] // 2
    found, judged = wrong[:, :, :half].mean(axis=2), wrong[:, :, half:].mean(axis=2)
    place = found[:, :1].argmax(axis=2)[:, :, None]
    worst = np.take_along_axis(judged, np.broadcast_to(place, (2, len(CERTAINTIES), 1)), axis=2)[:, :, 0]
    return np.stack([worst, wrong.mean(axis=(2, 3))])


def main() -> None:
    """Measure one setting."""
    mechanism, study, *numbers, epsilon, spread, draws = sys.argv[1:]
    voters, records = map(int, numbers)
    found = wrong_and_certain(
        mechanism, population_of(load_study(study), spread), voters, records, Epsilon(epsilon), int(draws)
    )
    for what, worst_share, mean in zip(("crowd", "population"), *worst(found), strict=True):
        shares = " ".join(
            f"{least}: {a:.3f} ({b:.3f})" for least, a, b in zip(CERTAINTIES, worst_share, mean, strict=True)
        )
        print(f"{' '.join(sys.argv[1:])} {what:10} wrong, worst (mean), at {shares}", flush=True)


if __name__ == "__main__":
    main()
