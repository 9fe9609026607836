"""Crowds for experiments: many, joined so that everybody is fitted in one call; or one, released again and again.

The same name always draws the same numbers, wherever and in whatever order they are drawn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from crowdveil.arrays import FloatArray
from crowdveil.ballots.ballots import Ballots, census, concatenate, resampled
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.crowd_preference import CrowdPreference, crowd_preference
from crowdveil.estimation.society import fit_voters, society
from crowdveil.evaluation.toolkit.scores import on_all_gaussian_pairs, same_side, share, sides
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.guarantee import PARADIGMS, Unit
from crowdveil.privacy.mechanisms.mechanism import Estimand, Estimate, FitMechanism, MechanismSettings
from crowdveil.privacy.mechanisms.registry import CENTRAL, DISTRIBUTED
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments
from crowdveil.privacy.noise.source import Noise
from crowdveil.privacy.uncertainty import intervals
from crowdveil.sources.moral_machine.importing import read_moral_machine
from crowdveil.sources.simulated import synthetic_crowd
from crowdveil.study.drawing import draw_dilemmas
from crowdveil.study.study import Drawing, Study

TEST_PAIRS = 1000
"""Fresh pairs that judge each synthetic crowd."""
NORM_BOUND = 2.0
"""B, unless it is what varies."""
FEATURES = 10
"""d, unless specified."""
RECORDS = 50
"""n, unless specified."""

Judge = Callable[[FloatArray, FloatArray], Mapping[str, FloatArray]]


def seed(*name: object) -> int:
    """Return a seed for this name: 128 bits of its SHA-256."""
    return int.from_bytes(hashlib.sha256("|".join(map(str, name)).encode()).digest()[:16], "big")


def generator(*name: object) -> np.random.Generator:
    """Return the random generator for this name."""
    return np.random.default_rng(np.random.SeedSequence(seed(*name)))


def noise(*name: object) -> FloatNoiseForExperiments:
    """Return the noise source for this name. It protects nobody."""
    return FloatNoiseForExperiments(seed(*name))


@dataclass(frozen=True)
class Crowds:
    """Crowds of equal size, their voters one after the other, and the judge of their learned parameters."""

    ballots: Ballots
    crowds: int
    judge: Judge
    """Learned parameters (crowds, points, d) and the crowds' own without privacy (crowds, d) -> accuracy per point."""
    own_preferences: FloatArray | None = None
    """The voters' true preferences, if they are known."""

    @property
    def study(self) -> Study:
        """The study that was asked."""
        return self.ballots.study

    @property
    def voters(self) -> int:
        """The number of voters in each crowd."""
        return self.ballots.voters // self.crowds

    def by_crowd(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Reshape an array with one row per voter into crowds: (crowds, voters, ...)."""
        return values.reshape(self.crowds, self.voters, *values.shape[1:])


class CrowdSource(Protocol):
    """A source of crowds."""

    @property
    def name(self) -> str:
        """Everything that the crowds depend on, apart from their size and number."""

    def draw(self, voters: int, crowds: range) -> Crowds:
        """Draw the crowds with these numbers; a crowd is the same whichever others are drawn with it."""


@dataclass(frozen=True)
class SyntheticSource:
    """The crowds of Section 5.1, each judged against the social parameter m that generated it."""

    records: int = RECORDS
    features: int = FEATURES

    @property
    def name(self) -> str:
        """The paper's n and d."""
        return f"synthetic n={self.records} d={self.features}"

    def draw(self, voters: int, crowds: range) -> Crowds:
        """Draw crowds, and fresh test pairs for each of them."""
        drawn = []
        pairs = []
        for crowd in crowds:
            rng = generator(self.name, f"N={voters}", f"crowd {crowd}")
            drawn.append(synthetic_crowd(voters, self.records, self.features, rng))
            test = replace(drawn[-1].ballots.study, drawing=Drawing("gaussian", TEST_PAIRS))
            pairs.append(np.subtract(*draw_dilemmas(test, 1, rng)))
        social = np.array([c.social for c in drawn])
        preferences = np.concatenate([c.preferences for c in drawn])
        drawn_mean = preferences.reshape(len(crowds), voters, self.features).mean(axis=1)

        def judge(learned: FloatArray, own: FloatArray) -> Mapping[str, FloatArray]:
            return {
                "accuracy": np.stack([same_side(*crowd) for crowd in zip(pairs, social, learned, strict=True)]),
                "accuracy on all pairs": on_all_gaussian_pairs(social[:, None], learned),
                "against the mean of the drawn preferences": on_all_gaussian_pairs(drawn_mean[:, None], learned),
                "against the crowd without privacy": on_all_gaussian_pairs(own[:, None], learned),
            }

        ballots = concatenate(drawn[0].ballots.study, [c.ballots for c in drawn])
        return Crowds(ballots, len(crowds), judge, preferences)


@dataclass(frozen=True)
class MoralMachineSource:
    """Voters sampled from a file in the public Moral Machine layout, judged by two truths on everybody else's dilemmas.

    ``agreement``: decides as the non-private society of all voters in the file (mean of their fits, B = 2) does.
    ``predicted``: decides as the person who was asked did.
    """

    path: Path
    fingerprint: str

    @property
    def name(self) -> str:
        """The records' fingerprint: the path does not matter."""
        return f"moral-machine {self.fingerprint[:16]}"

    def draw(self, voters: int, crowds: range) -> Crowds:
        """Sample each crowd from the file without replacement."""
        everyone, truth = _everyone(self.path)
        draws = [generator("moral-machine", f"N={voters}", f"crowd {crowd}") for crowd in crowds]
        members = np.stack([rng.choice(everyone.voters, voters, replace=False) for rng in draws])
        asked = np.repeat(np.arange(everyone.voters), everyone.counts)
        differs = (everyone.differences != 0).any(axis=1)
        records = everyone.differences.astype(np.float64)

        expected = sides(records, truth[None])

        def judge(learned: FloatArray, own: FloatArray) -> Mapping[str, FloatArray]:
            agreement = []
            predicted = []
            for crowd, parameters in zip(members, learned, strict=True):
                held_out = differs & ~np.isin(asked, crowd)
                chosen = sides(records[held_out], parameters)
                agreement.append(share(chosen, expected[held_out]))
                predicted.append(share(chosen, 1.0))  # a record is the chosen side minus the other
            return {"agreement": np.stack(agreement), "predicted": np.stack(predicted)}

        return Crowds(resampled(everyone, members.reshape(-1)), len(crowds), judge)


def open_moral_machine(path: Path) -> tuple[MoralMachineSource, Ballots]:
    """Read a Moral Machine file once, and identify its records by a fingerprint."""
    everyone, _ = _everyone(path)
    if everyone.voters < 400:
        raise CrowdveilError(
            f"{path} has {everyone.voters} usable voters: the crowds of up to 200 voters need at least 400 to draw from"
        )
    return MoralMachineSource(path, census(everyone).fingerprint), everyone


@lru_cache(maxsize=1)
def _everyone(path: Path) -> tuple[Ballots, FloatArray]:
    ballots = read_moral_machine(path)
    return ballots, society(ballots, NORM_BOUND).parameter


@dataclass(frozen=True)
class Groups:
    """The paper's defaults: the size of each group, and the range of its epsilons."""

    conservative: float = 0.54
    moderate: float = 0.36
    epsilon_c: float = 0.01
    epsilon_m: float = 0.2
    epsilon_l: float = 1.0

    def sizes(self, voters: int) -> tuple[int, int, int]:
        """Return the numbers of conservative, moderate and liberal voters: the fractions, rounded."""
        conservative = round(self.conservative * voters)
        moderate = min(round(self.moderate * voters), voters - conservative)
        return conservative, moderate, voters - conservative - moderate

    def draw(self, voters: int, rng: np.random.Generator) -> Epsilons:
        """Draw each voter's epsilon, rounded to hundredths; the groups are assigned at random."""
        conservative, moderate, liberal = self.sizes(voters)
        drawn = np.concatenate(
            [
                rng.uniform(self.epsilon_c, self.epsilon_m, conservative),
                rng.uniform(self.epsilon_m, self.epsilon_l, moderate),
                np.full(liberal, self.epsilon_l),
            ]
        )
        hundredths = np.rint(drawn * 100).astype(np.int64)
        return Epsilons(rng.permutation(hundredths) / 100)


@dataclass(frozen=True)
class FittedCrowd:
    """A crowd whose voters are already fitted."""

    ballots: Ballots
    settings: MechanismSettings
    fits: FloatArray

    @property
    def society(self) -> FloatArray:
        """The mean of all voters' bounded fits: the paper's society, without privacy."""
        return np.asarray(self.fits.mean(axis=0), np.float64)

    @cached_property
    def pooled(self) -> FloatArray:
        """One fit to everybody's records, without privacy."""
        return crowd_preference(self.ballots, weighting="choices").preference

    def release(
        self, mechanism: str, epsilons: Epsilons, draws: int, noise: Noise, equal_votes: bool = False
    ) -> list[Estimate]:
        """Release the crowd several times, each with fresh noise."""
        settings = replace(self.settings, equal_votes=equal_votes)
        if mechanism in CENTRAL:
            central = CENTRAL[mechanism]
            epsilon = epsilons.largest
            measured = central.measure(self.ballots, settings, epsilon)
            return [central.release(measured, settings, epsilon, noise) for _ in range(draws)]
        distributed = DISTRIBUTED[mechanism]
        learned = []
        for _ in range(draws):
            if isinstance(distributed, FitMechanism):
                reports = distributed.perturb_fits(self.fits, settings, epsilons, noise)
            else:
                reports = distributed.report(self.ballots, settings, epsilons, noise)
            learned.append(distributed.aggregate([reports], settings))
        return learned

    def without_noise(self, mechanism: str) -> FloatArray:
        """Return the exact value of what a mechanism estimates: the society, or the crowd's preference.

        If the mechanism protects voters, every voter counts once in it; if it protects records or choices, every choice
        does.
        """
        estimator = CENTRAL.get(mechanism) or DISTRIBUTED[mechanism]
        if estimator.estimates is Estimand.SOCIETY:
            return self.society
        by_voter = all(PARADIGMS[name].unit is Unit.VOTER for name in estimator.paradigms)
        return self.preference if by_voter else self.pooled

    @cached_property
    def preference(self) -> FloatArray:
        """The crowd's preference without privacy, with every voter counted once."""
        return crowd_preference(self.ballots).preference

    @cached_property
    def along_factors(self) -> CrowdPreference:
        """The crowd's preference along the study's factors, with every voter counted once."""
        study = self.ballots.study
        return crowd_preference(self.ballots, directions=study.factor_matrix.astype(np.float64))

    def coverage(self, released: Sequence[Estimate]) -> float | None:
        """Return the share of the factors' 95 % intervals that contain the crowd's preference; None for a society."""
        exact = self.along_factors
        directions = self.ballots.study.factor_map
        inside = [
            (bars[:, 0] <= exact.coordinates) & (exact.coordinates <= bars[:, 1])
            for one in released
            if one.unknown is not None
            for bars in [intervals(one.unknown, one.noise, one.unknown.along_factors(directions), left_out=False)]
        ]
        return float(np.mean([held[exact.known] for held in inside])) if inside and exact.known.any() else None


def fit_crowd(ballots: Ballots, *, drawn: bool = False) -> FittedCrowd:
    """Fit everybody, once for all releases; ``drawn`` says whether the study's generator drew the dilemmas."""
    settings = MechanismSettings(ballots.study, ballots.study.norm_bound, drawn=drawn, voters=ballots.voters)
    return FittedCrowd(ballots, settings, fit_voters(ballots, settings.norm_bound, threads=1).values)
