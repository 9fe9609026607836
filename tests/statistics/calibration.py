"""Whether stated probabilities come true on voters who were held out, over many releases with fresh noise.

python tests/statistics/calibration.py BALLOTS MECHANISM EPSILON RELEASES [ANSWERS]        rows of docs/sweeps.md

BALLOTS is a file of any study, made by `crowdveil import`, or simulated,4,0.1,2: crowds of 2,000 voters with four
answers each, who differ by 0.1 along each axis, and whose margins are twice the usual ones; or features,2,400,0.8:
crowds of 400 voters in a study of two features, with 13 answers each, margins of 0.8, and any direction; or prior,4:
crowds of all sizes and disagreements that score, or one-bit at epsilon 1, supposes to be equally probable. ANSWERS
keeps one to so many of each voter. MECHANISM may be 'score --robust 0.02', and EPSILON 0.3/1/3: as many voters have
each of these.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
from populations import Mixture, Population, epsilon_or_mixture, release, usual_population
from scipy.special import ndtr
from tables import write_table

from crowdveil.ballots.ballot_file import read_ballots
from crowdveil.ballots.ballots import Ballots
from crowdveil.decision import stated_margins
from crowdveil.estimation.ballot_fit import BALLOT_TAUS
from crowdveil.estimation.crowd_preference import crowd_preference
from crowdveil.estimation.design import public_design
from crowdveil.estimation.likely_crowds import faintest_margins
from crowdveil.estimation.likely_preferences import RECORD_TAUS
from crowdveil.estimation.prior import LIKELY_MARGINS, margin_sizes, rest_deviation
from crowdveil.evaluation.toolkit.scores import Forecasts, forecasts
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.mechanisms.one_bit import LENGTH_ONE_IN
from crowdveil.study.bundled import load_study, synthetic_study

HEADER = ("people", "answers", "mechanism", "ε", "releases", "predicted", "Brier", "slope", "stated − right")


def thinned(ballots: Ballots, most: int, rng: np.random.Generator) -> Ballots:
    """Keep one to ``most`` records of each voter, as many as a draw says, and any of them alike."""
    kept = [
        start + rng.permutation(count)[: rng.integers(1, most + 1)]
        for start, count in zip(ballots.offsets[:-1].tolist(), ballots.counts.tolist(), strict=True)
    ]
    offsets = np.concatenate([[0], np.cumsum([len(records) for records in kept])])
    return Ballots.from_differences(ballots.study, offsets, ballots.differences[np.concatenate(kept)])


def simulated(records: int, spread: float = 0.5, times: float = 1.0) -> tuple[str, Callable[[int], Ballots]]:
    """Return the name of simulated crowds of 2,000 voters, and what draws one of them by its number.

    Crowds are drawn anew: of one crowd of 2,000 single choices, a slope is known to a tenth only.
    """
    population = usual_population(load_study("moral-machine"), spread)
    population = replace(population, gamma=times * population.gamma)
    name = f"simulated, {records} each"
    if (spread, times) != (0.5, 1.0):
        name += f", apart by {spread:g}, margins × {times:g}"
    return name, lambda number: population.crowd(2000, records, np.random.default_rng([records, number]))


def of_few_features(features: int, voters: int, margin: float) -> tuple[str, Callable[[int], Ballots]]:
    """Return the name of simulated crowds in a study of a few features, and what draws one of them by its number.

    Voters differ by 0.4 along each axis, and give 13 answers.
    """
    study, spread = synthetic_study(features, 13), 0.4

    def crowd(number: int) -> Ballots:
        rng = np.random.default_rng([features, number])
        direction = rng.standard_normal(features)
        gamma = margin * np.sqrt(1 + features * spread**2) * direction / np.linalg.norm(direction)
        return Population(study, gamma, spread).crowd(voters, 13, rng)

    return f"{voters}, features: {features}, margins of {margin:g}", crowd


def supposed(mechanism: str, records: int) -> tuple[str, Callable[[int], Ballots]]:
    """Return the name of crowds that follow the prior of a mechanism, and what draws one of them by its number.

    On average over these, probabilities are true if the posterior is computed without error (Talts et al. 2018),
    however little reports tell. In any one of these crowds they need not be.
    """
    study = load_study("moral-machine")
    design = public_design(study)
    k, left_out = design.directions, design.rest.shape[1]
    of_voters = mechanism == "score"
    bits = 0.75 * 2000 * (1 - 1 / LENGTH_ONE_IN) * np.tanh(0.5) ** 2 / k
    taus = RECORD_TAUS if of_voters else BALLOT_TAUS
    sizes = LIKELY_MARGINS if of_voters else margin_sizes(faintest_margins(np.full(k, 1 / bits))).tolist()

    def crowd(number: int) -> Ballots:
        rng = np.random.default_rng([records, number])
        size, tau = list(product(sizes, taus))[number % (len(sizes) * len(taus))]
        stretch = 1.0 if of_voters else np.sqrt(1 + k * tau**2)
        gamma = rng.normal(0.0, size * stretch / np.sqrt(k), k)
        rest = rng.normal(0.0, rest_deviation(left_out), left_out)
        return Population(study, gamma, tau, rest).crowd(2000, records, rng)

    return f"of the prior of {mechanism}, {records} each", crowd


def calibration(
    mechanism: str,
    people: Ballots | Callable[[int], Ballots],
    epsilon: Epsilon | Mixture,
    releases: int,
    seed: int,
    most: int | None = None,
    voters: int | None = None,
    *,
    drawn: bool = False,
) -> tuple[Forecasts, Forecasts]:
    """Forecast held-out choices by releases of three in four voters, or of so many, and by their exact preference.

    ``people`` are split anew for every release, or drawn anew, by its number: one crowd of few choices has an error of
    its own, which all its splits share. All choices of all splits are pooled; the sides are turned at random, so that
    nothing is gained by the first. Releases suppose the generator's dilemmas if they are told that it drew them.
    """
    rng = np.random.default_rng(seed)
    stated: list[np.ndarray] = []
    exact: list[np.ndarray] = []
    signs: list[np.ndarray] = []
    for number in range(releases):
        ballots = people(number) if callable(people) else people
        asked = ballots if most is None else thinned(ballots, most, rng)
        learned, judged = asked.split(0.75, seed=seed * 10_000 + number)
        if voters is not None:
            learned, _ = learned.split(voters / learned.voters, seed=number)
        turned = rng.choice([-1, 1], judged.records)
        pairs = judged.differences * turned[:, None]
        made = release(mechanism, learned, epsilon, seed * 10_000 + number, drawn=drawn)
        stated.append(ndtr(stated_margins(made, pairs)))
        exact.append(ndtr(pairs @ crowd_preference(learned).preference))
        signs.append(turned)
    choices = np.concatenate(signs)
    private, limit = (forecasts(np.concatenate(one), choices, weighting="choices") for one in (stated, exact))
    return private, limit


def measure(
    name: str,
    people: Ballots | Callable[[int], Ballots],
    mechanism: str,
    epsilon: Epsilon | Mixture,
    releases: int,
    most: int | None = None,
    voters: int | None = None,
    *,
    drawn: bool = False,
) -> tuple[Forecasts, Forecasts]:
    """Judge a mechanism on a file of people, and write a row for it and one for what no privacy would have had."""
    found = calibration(mechanism, people, epsilon, releases, 1, most, voters, drawn=drawn)
    lengths = "whole" if most is None else f"1 to {most}"
    rows = [
        (
            name,
            lengths,
            *named,
            releases,
            f"{one.share_predicted.estimate:.4f}",
            f"{one.brier.estimate:.4f}",
            "" if one.slope is None else f"{one.slope.estimate:.3f}",
            f"{one.overstatement.estimate:+.4f}",
        )
        for named, one in zip(((mechanism, epsilon), ("no privacy", "")), found, strict=True)
    ]
    write_table("sweeps.md", "probabilities", HEADER, rows, "make test-slow", keys=4)
    return found


def main(path: str, mechanism: str, epsilon: str, releases: str, most: str | None = None) -> None:
    """Judge a mechanism on a file, or on simulated crowds."""
    people: Ballots | Callable[[int], Ballots]
    if path.startswith("simulated,"):
        records, spread, times = path.split(",")[1:]
        name, people = simulated(int(records), float(spread), float(times))
    elif path.startswith("features,"):
        features, crowd, margin = path.split(",")[1:]
        name, people = of_few_features(int(features), int(crowd), float(margin))
    elif path.startswith("prior,"):
        name, people = supposed(mechanism, int(path.split(",")[1]))
    else:
        name, people = path.rsplit("/", 1)[-1].split(".")[0], read_ballots(path).decided()
    found = epsilon_or_mixture(epsilon)
    fewer = None if most is None else int(most)
    measure(name, people, mechanism, found, int(releases), fewer, drawn=path.startswith(("prior,", "features,")))


if __name__ == "__main__":
    main(*sys.argv[1:])
