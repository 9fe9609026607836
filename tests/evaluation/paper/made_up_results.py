"""Results that were never measured: the right shapes, so that figures, claims and pages can be made at once."""

from pathlib import Path

import numpy as np

from crowdveil.evaluation.paper.experiments import (
    GAMMAS,
    NO_PRIVACY,
    AcrossEpsilons,
    AcrossParadigms,
    AcrossPersonalEpsilons,
    Baselines,
    UtilityTheorems,
)
from crowdveil.evaluation.toolkit.crowds import MoralMachine, generator
from crowdveil.evaluation.toolkit.sweep import NO_PRIVACY_AT, Curve

DATA = MoralMachine(Path("nowhere.csv"), "0" * 64)
CROWDS = 4


class MadeUpResults:
    def curve(self, experiment, series, measure):
        if isinstance(experiment, Baselines) or (isinstance(experiment, AcrossEpsilons) and series == NO_PRIVACY):
            points = (NO_PRIVACY_AT,)
        elif isinstance(experiment, AcrossEpsilons | AcrossParadigms):
            points = experiment.epsilons
        elif isinstance(experiment, AcrossPersonalEpsilons):
            points = tuple(point for point, _ in experiment.settings)
        elif isinstance(experiment, UtilityTheorems):
            points = GAMMAS
        else:
            points = experiment.bounds
        values = generator(experiment.name, series, measure).uniform(0.5, 0.95, (CROWDS, len(points)))
        return Curve(points, np.sort(values, axis=1))
