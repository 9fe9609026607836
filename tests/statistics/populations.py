"""Populations of voters who differ, the value that a release of a crowd from them estimates, and how often bars cover.

python tests/statistics/populations.py MECHANISM RELEASES        the whole sweep of a mechanism, into docs/sweeps.md
python tests/statistics/populations.py MECHANISM RELEASES EPSILON VOTERS RECORDS        one setting of it

MECHANISM may be 'score --robust 0.02' or 'score --along features', and EPSILON 0.3/1/3: as many voters have each.
'score --dilemmas unknown' releases the crowd as a file, of which nobody says that the generator drew its dilemmas.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np
from scipy.special import ndtr
from tables import write_table

from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation.design import public_design
from crowdveil.estimation.prior import rest_deviation
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.guarantee import PARADIGMS, Guarantee
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.registry import CENTRAL, DISTRIBUTED
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments
from crowdveil.publish.release import release_for_experiments
from crowdveil.releases import Release
from crowdveil.study.bundled import load_study
from crowdveil.study.drawing import draw_dilemmas
from crowdveil.study.study import Study

VOTERS = (50, 500, 5000)
RECORDS = (1, 4, 13)
SPREADS = (0.1, 0.5)
EPSILONS = (Epsilon("0.1"), Epsilon(1), Epsilon(10))
CONFIDENCE = 0.95
HEADER = (
    "mechanism",
    "study",
    "ε",
    "voters",
    "answers",
    "disagreement",
    "releases",
    "covered, worst",
    "covered, all",
    "width, median",
    "width, worst",
)


@dataclass(frozen=True)
class Mixture:
    """Personal epsilons: as many voters have each of these, whoever they are."""

    levels: tuple[Epsilon, ...]

    def of(self, voters: int, seed: int) -> Epsilons:
        """Return everybody's, in an order that a seed draws."""
        dealt = np.resize([level.micro for level in self.levels], voters)
        return Epsilons.of_millionths(np.random.default_rng(seed).permutation(dealt))

    def __str__(self) -> str:
        return "/".join(map(str, self.levels))


def epsilon_or_mixture(text: str) -> Epsilon | Mixture:
    """Read one epsilon for all, or several with strokes between them."""
    levels = tuple(map(Epsilon, text.split("/")))
    return levels[0] if len(levels) == 1 else Mixture(levels)


def probit_of(x: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the probit regression of shares on x, without an intercept, by Newton's method."""
    found = np.zeros(x.shape[1])
    for _ in range(30):
        t = x @ found
        chance, density = ndtr(t), np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
        weight = density / np.maximum(chance * (1 - chance), 1e-12)
        step = np.linalg.solve((x * (weight * density)[:, None]).T @ x, x.T @ (weight * (shares - chance)))
        found += step
        if np.abs(step).max() <= 1e-12:
            break
    return found


@dataclass(frozen=True)
class Population:
    """Voters whose preferences are N(gamma, spread^2) along each axis of the study's design."""

    study: Study
    gamma: np.ndarray
    spread: float
    rest: np.ndarray | float = 0.0
    """What everybody has in common along each direction that factors leave out."""

    def rest_margins(self, dilemmas: np.ndarray) -> np.ndarray:
        """Return what the directions left out add to the margin of each dilemma, in model units."""
        left_out = dilemmas @ public_design(self.study).rest_basis
        return left_out @ np.broadcast_to(self.rest, left_out.shape[1])

    @cached_property
    def value(self) -> np.ndarray:
        """Gamma of the pooled probit: the maximiser of the mean of ln Phi, over the generator's dilemmas.

        By Newton's method, from what is known of everybody: the share that prefers each of 400,000 dilemmas.
        """
        rng = np.random.default_rng(20_260_000)
        left, right = draw_dilemmas(self.study, 400_000 // self.study.drawing.dilemmas, rng)
        dilemmas = (left - right).astype(np.float64) / self.study.units
        x = dilemmas @ public_design(self.study).basis
        margins = x @ self.gamma + self.rest_margins(dilemmas)
        shares = ndtr(margins / np.sqrt(1 + self.spread**2 * (x**2).sum(axis=1)))
        return probit_of(x, shares)

    def crowd(self, voters: int, records: int, rng: np.random.Generator) -> Ballots:
        """Draw voters, each with so many dilemmas of a session and choices of her own."""
        left, right = draw_dilemmas(self.study, voters, rng)
        dilemmas = (left - right).astype(np.float64) / self.study.units
        each = self.study.drawing.dilemmas
        kept = (
            rng.permuted(np.tile(np.arange(each), (voters, 1)), axis=1)[:, :records] + each * np.arange(voters)[:, None]
        )
        shown = dilemmas[kept.ravel()]
        own = np.repeat(rng.normal(self.gamma, self.spread, (voters, len(self.gamma))), records, axis=0)
        margins = (shown @ public_design(self.study).basis * own).sum(axis=1) + self.rest_margins(shown)
        choices = np.where(margins + rng.standard_normal(len(shown)) > 0, 1, -1)
        return Ballots.from_differences(self.study, np.arange(voters + 1) * records, shown * choices[:, None])


def release(mechanism: str, ballots: Ballots, epsilon: Epsilon | Mixture, seed: int, **settings: Any) -> Release:
    """Release a crowd's preference; devices know that the generator drew its dilemmas, unless it is said otherwise."""
    mechanism, *options = mechanism.split(" --")
    given = dict(option.split(" ") for option in options)
    along = given.get("along")
    if mechanism in CENTRAL:
        assert isinstance(epsilon, Epsilon), "a trusted aggregator adds one noise for all"
        paradigm = CENTRAL[mechanism].paradigms[0]
        return release_for_experiments(ballots, paradigm, epsilon=epsilon, seed=seed, mechanism=mechanism, along=along)
    made, voters = DISTRIBUTED[mechanism], ballots.voters
    robust = float(given.get("robust", 0.0))
    drawn = given.get("dilemmas") != "unknown"
    chosen = {"drawn": drawn, "voters": voters, "robust": robust, **settings}
    public = MechanismSettings(replace(ballots.study, along=along), ballots.study.norm_bound, **chosen)
    epsilons = epsilon.of(voters, seed) if isinstance(epsilon, Mixture) else Epsilons.same(epsilon, voters)
    reports = made.report(ballots, public, epsilons, FloatNoiseForExperiments(seed))
    estimate = made.aggregate([reports], public)
    paradigm = PARADIGMS[made.paradigms[-1]]
    guarantee = Guarantee(paradigm, epsilons.largest, epsilons.smallest, ballots.study.norm_bound, voters)
    return Release(
        ballots.study,
        estimate.parameter,
        guarantee,
        mechanism,
        estimate.noise,
        "floating-point noise",
        exact=False,
        facts={},
        ledger=None,
        version="",
        unknown=estimate.unknown,
    )


@dataclass(frozen=True)
class Coverage:
    """How often the bars of each factor covered, and how wide they were."""

    covered: np.ndarray
    half_width: np.ndarray
    miss: np.ndarray
    """Root mean square of the unshrunk estimate's error."""
    runs: int


def coverage(
    mechanism: str,
    population: Population,
    voters: int,
    records: int,
    epsilon: Epsilon | Mixture,
    runs: int,
    seed: int,
    **settings: Any,
) -> Coverage:
    """Release many crowds of a population, and see how often the 95 % intervals of its factors cover its value."""
    study = population.study
    basis = public_design(study).basis
    truth = study.factor_map @ basis @ population.value
    covered, widths, misses = [], [], []
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        made = release(mechanism, population.crowd(voters, records, rng), epsilon, seed * 10_000 + run, **settings)
        low, high = made.factor_intervals.T
        assert made.unknown is not None
        covered.append((low <= truth) & (truth <= high))
        widths.append((high - low) / 2)
        along = made.unknown.along_factors(study.factor_map)
        misses.append(along @ made.unknown.basis @ made.unknown.center - truth)
    return Coverage(
        np.mean(covered, axis=0), np.median(widths, axis=0), np.sqrt(np.mean(np.square(misses), axis=0)), runs
    )


@cache
def usual_population(study: Study, spread: float, rest: float = 0.0) -> Population:
    """Preferences such as real crowds have: margins of a size of 0.8, unequal along the axes.

    The directions that factors leave out move a margin by so many times what their prior says.
    """
    design = public_design(study)
    sizes = np.array([0.41, 0.33, 0.28, 0.06, 0.1, 0.18, 0.31, 0.12, -0.16])
    left_out = design.rest.shape[1]
    drawn = np.random.default_rng(left_out).standard_normal(left_out)
    length = rest * rest_deviation(left_out) * np.sqrt(left_out)
    return Population(
        study, np.resize(sizes, design.directions), spread, length * drawn / max(np.linalg.norm(drawn), 1e-9)
    )


def measure(
    mechanism: str, study: str, spread: float, epsilon: Epsilon | Mixture, voters: int, records: int, runs: int
) -> Coverage:
    """Measure a cell of the sweep, and write its row into the docs."""
    found = coverage(mechanism, usual_population(load_study(study), spread), voters, records, epsilon, runs, seed=4)
    widths = found.half_width / (1.96 * found.miss)
    row = (mechanism, study, epsilon, voters, records, spread, runs)
    shares = (f"{found.covered.min():.3f}", f"{found.covered.mean():.3f}")
    relative = (f"{np.median(widths):.2f}", f"{widths.max():.2f}")
    write_table("sweeps.md", "bars", HEADER, [(*row, *shares, *relative)], "make test-slow", keys=6)
    return found


def main(mechanism: str, runs: str, *setting: str) -> None:
    """Measure the whole sweep, or one setting of it, on the study with most features."""
    cells: Any = product(EPSILONS, VOTERS, RECORDS)
    if setting:
        epsilon, voters, records = setting
        cells = [(epsilon_or_mixture(epsilon), int(voters), int(records))]
    for (epsilon, voters, records), spread in product(cells, SPREADS):
        found = measure(mechanism, "moral-machine", spread, epsilon, voters, records, int(runs))
        print(
            f"{spread} {epsilon} {voters} {records}: {found.covered.min():.3f} {found.covered.mean():.3f}", flush=True
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
