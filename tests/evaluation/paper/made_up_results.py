"""Results that were never measured: the right shapes, so that figures, claims and pages can be made at once."""

from pathlib import Path

import numpy as np

from crowdveil.evaluation.paper.experiments import (
    GAMMAS,
    NO_PRIVACY,
    Baselines,
    EpsilonSweep,
    ParadigmSweep,
    PersonalEpsilonSweep,
    UtilityTheorems,
)
from crowdveil.evaluation.toolkit.crowds import MoralMachineSource, generator
from crowdveil.evaluation.toolkit.sweep import NO_PRIVACY_AT, Curve

DATA = MoralMachineSource(Path("nowhere.csv"), "0" * 64)
CROWDS = 4


class MadeUpResults:
    def curve(self, experiment, series, measure):
        if isinstance(experiment, Baselines) or (isinstance(experiment, EpsilonSweep) and series == NO_PRIVACY):
            points = (NO_PRIVACY_AT,)
        elif isinstance(experiment, EpsilonSweep | ParadigmSweep):
            points = experiment.epsilons
        elif isinstance(experiment, PersonalEpsilonSweep):
            points = tuple(point for point, _ in experiment.settings)
        elif isinstance(experiment, UtilityTheorems):
            points = GAMMAS
        else:
            points = experiment.bounds
        values = generator(experiment.name, series, measure).uniform(0.5, 0.95, (CROWDS, len(points)))
        return Curve(points, np.sort(values, axis=1))
