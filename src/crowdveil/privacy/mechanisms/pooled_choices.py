"""Pooled choices (choice level, central): the dilemmas are public, the sum of the choices' scores is noised once."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.ballots import BallotSource
from crowdveil.estimation.design import SAMPLE, Design, public_design
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.mechanisms.mechanism import Estimand, Estimate, Loss, Measurement, Settings, measured
from crowdveil.privacy.mechanisms.pooled_score import PooledScore, estimate_from_pool
from crowdveil.privacy.mechanisms.randomised_response import oriented
from crowdveil.privacy.mechanisms.scores import sum_of_scores
from crowdveil.privacy.noise.distribution import CubeNoise
from crowdveil.privacy.noise.source import Noise


class PooledChoices:
    """The pooled score, with the dilemmas that were really shown in place of the study's generator.

    Theorem. Where the dilemmas shown are public and only the choices are secret, this is epsilon-differentially
    private for ALCP.

    Proof. Turning one choice over replaces a record by its negative, which moves every coordinate of the sum of scores
    by at most 2 SCORE_STEPS: Theorem of the pooled score. What the dilemmas were enters without noise, being public.
    """

    name = "pooled-choices"
    title = "Pooled choices: cube noise on the sum of scores, with the dilemmas really shown"
    words = "noise, added once, to the sum of the scores of all choices in dilemmas that are public"
    paradigms = ("alcp",)
    papers = ()
    options = ()
    estimates = Estimand.PREFERENCE
    takes = Loss.EPSILON

    def measure(self, source: BallotSource, settings: Settings, loss: Epsilon) -> Measurement:
        """Add up all scores; keep the dilemmas (some, if they are many), which are public."""
        measurement = measured(source, partial(sum_of_scores, public_design(settings.study).axes, None))
        shown: list[FloatArray] = []
        kept = 0
        for ballots in source.batches():
            shown.append(oriented(ballots)[0][: SAMPLE - kept].astype(np.float64))
            kept += len(shown[-1])
            if kept == SAMPLE:
                break
        return replace(measurement, shown=np.concatenate(shown))

    def release(self, measurement: Measurement, settings: Settings, loss: Epsilon, noise: Noise) -> Estimate:
        """Add the noise and find the preference that explains the mean score on these dilemmas."""
        assert measurement.shown is not None
        design = Design(measurement.shown, public_design(settings.study).axes)
        return estimate_from_pool(measurement, design, loss, noise)

    def expected_noise(self, settings: Settings, voters: int, loss: Epsilon) -> CubeNoise:
        """Return what the pooled score would have."""
        return PooledScore().expected_noise(settings, voters, loss)
