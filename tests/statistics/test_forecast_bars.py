"""Forecast bars are about those of releases, also where bits about long ballots saturate."""

import numpy as np
import pytest
from populations import Population, release
from scipy.optimize import brentq
from scipy.special import ndtr

from crowdveil.estimation.design import public_design
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.planning.plan import plan
from crowdveil.study.bundled import load_study

VOTERS, SPREAD, CROWDS = 2000, 0.3, 8


@pytest.mark.usefixtures("few_crowds")
def test_bars_of_bits_about_long_ballots_are_forecast():
    """Forecast from what an indifferent crowd's bits tell, they were a third as wide."""
    study = load_study("kidney")
    x = public_design(study).along[:4000]
    fainter = np.sqrt(1 + SPREAD**2 * np.square(x).sum(axis=1))
    rng = np.random.default_rng(1)
    widths = []
    for number in range(CROWDS):
        direction = rng.standard_normal(5)
        margins = np.abs(x @ direction) / fainter

        def agreement(size: float, margins: np.ndarray = margins) -> float:
            return float(ndtr(size * margins).mean()) - 0.75

        people = Population(study, brentq(agreement, 0.0, 10.0) * direction, SPREAD)
        made = release("one-bit", people.crowd(VOTERS, 40, rng), Epsilon(1), number)
        low, high = made.factor_intervals.T
        widths.append((high - low) / 2)
    foretold = plan("kidney", "vldp", voters=VOTERS, epsilon=1, design="study").bars
    ratios = np.array(list(foretold.values())) / np.median(widths, axis=0)
    assert 0.6 < np.exp(np.log(ratios).mean()) < 1.7
