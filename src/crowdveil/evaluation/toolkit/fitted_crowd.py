"""One crowd, released again and again: by any mechanism at any epsilon, and without noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.ballots import Ballots
from crowdveil.estimation.society import fit_voters
from crowdveil.privacy.epsilon import GREATEST, Epsilons
from crowdveil.privacy.mechanisms.algorithm2 import Algorithm2
from crowdveil.privacy.mechanisms.mechanism import Estimand, Settings
from crowdveil.privacy.mechanisms.randomised_response import RandomisedResponse
from crowdveil.privacy.mechanisms.registry import CENTRAL, DISTRIBUTED
from crowdveil.privacy.mechanisms.subset_selection import SubsetSelection
from crowdveil.privacy.noise.silent_noise import SilentNoise
from crowdveil.privacy.noise.source import Noise


@dataclass(frozen=True)
class FittedCrowd:
    """A crowd whose voters are fitted already."""

    ballots: Ballots
    settings: Settings
    fits: FloatArray

    @property
    def society(self) -> FloatArray:
        """The mean of all voters' bounded fits: the paper's society, without privacy."""
        return np.asarray(self.fits.mean(axis=0), np.float64)

    @cached_property
    def pooled(self) -> FloatArray:
        """One fit to everybody's records, without privacy."""
        return self._silent(RandomisedResponse.name)

    def release(
        self, mechanism: str, epsilons: Epsilons, draws: int, noise: Noise, equal_votes: bool = False
    ) -> FloatArray:
        """Release the crowd several times, each with fresh noise: a parameter a row."""
        settings = replace(self.settings, equal_votes=equal_votes)
        if mechanism in CENTRAL:
            central, epsilon = CENTRAL[mechanism], epsilons.largest
            measured = central.measure(self.ballots, settings, epsilon)
            return np.array([central.release(measured, settings, epsilon, noise).parameter for _ in range(draws)])
        distributed, learned = DISTRIBUTED[mechanism], []
        for _ in range(draws):
            if isinstance(distributed, Algorithm2 | SubsetSelection):
                reports = distributed.perturb(self.fits, settings, epsilons, noise)
            else:
                reports = distributed.report(self.ballots, settings, epsilons, noise)
            learned.append(distributed.aggregate([reports], settings).parameter)
        return np.array(learned)

    def without_noise(self, mechanism: str) -> FloatArray:
        """Return what a mechanism's noise is added to, as a parameter: its squared error is counted from there.

        Mechanisms that estimate the mean of the fits: that mean. Those that turn
        choices over: one fit to all true choices. Others: their own estimate at the largest epsilon,
        where they clip and leave out (nearly) nothing, with the noise switched off.
        """
        if (CENTRAL.get(mechanism) or DISTRIBUTED[mechanism]).estimates is Estimand.SOCIETY:
            return self.society
        coins = mechanism in DISTRIBUTED and DISTRIBUTED[mechanism].tosses_coins
        return self.pooled if coins else self._silent(mechanism)

    def _silent(self, mechanism: str) -> FloatArray:
        released = self.release(mechanism, Epsilons.same(GREATEST, self.ballots.voters), 1, SilentNoise())
        return np.asarray(released[0], np.float64)


def fit_crowd(ballots: Ballots) -> FittedCrowd:
    """Fit everybody, once for all releases."""
    settings = Settings(ballots.study, ballots.study.norm_bound)
    return FittedCrowd(ballots, settings, fit_voters(ballots, settings.norm_bound, threads=1).values)
