"""Which experiments the paper's evaluation is made of."""

from __future__ import annotations

from crowdveil.evaluation.paper import settings
from crowdveil.evaluation.paper.across_bounds import AcrossNormBounds, AcrossRecordBounds
from crowdveil.evaluation.paper.across_epsilons import AcrossEpsilons
from crowdveil.evaluation.paper.across_paradigms import AcrossParadigms
from crowdveil.evaluation.paper.across_personal_epsilons import AcrossPersonalEpsilons
from crowdveil.evaluation.paper.baselines import Baselines
from crowdveil.evaluation.paper.crowds import RECORDS, MoralMachine, Source, Synthetic
from crowdveil.evaluation.paper.groups import Groups
from crowdveil.evaluation.paper.theorems import UtilityTheorems

PANELS: dict[str, tuple[tuple[float, Groups], ...]] = {
    "f_C": settings.CONSERVATIVE_FRACTIONS,
    "eps_C": settings.CONSERVATIVE_EPSILONS,
    "eps_M": settings.MODERATE_EPSILONS,
}
"""The panels of Figure 6; Figure 9 has the last two."""


def synthetic(voters: int, records: int = RECORDS) -> AcrossEpsilons:
    """Accuracy against epsilon on synthetic crowds with d = 10."""
    return AcrossEpsilons(Synthetic(records), voters, settings.EPSILONS)


def all_synthetic() -> list[AcrossEpsilons]:
    """The curves of Figures 1 to 3."""
    return [synthetic(voters, records) for voters in settings.VOTERS for records in settings.RECORDS_GRID]


def dimension(features: int) -> AcrossEpsilons:
    """One point on the axis of Figure 5."""
    return AcrossEpsilons(Synthetic(features=features), settings.DIMENSION_VOTERS, settings.DIMENSION_EPSILONS)


def personal(source: Source, voters: int, panel: str) -> AcrossPersonalEpsilons:
    """One curve of a panel of Figures 6 and 9."""
    return AcrossPersonalEpsilons(source, voters, panel, PANELS[panel])


def norm_bounds(voters: int) -> AcrossNormBounds:
    """Figure 7."""
    return AcrossNormBounds(Synthetic(), voters, settings.BOUNDS_GRID, settings.BOUNDS_EPSILON)


def record_bounds() -> AcrossRecordBounds:
    """What another public bound on records would do to Algorithm 3."""
    return AcrossRecordBounds(Synthetic(), settings.DIMENSION_VOTERS, settings.RECORD_BOUNDS_GRID, 1.0)


def baselines(voters: int, records: int) -> Baselines:
    """What synthetic crowds reach without privacy."""
    return Baselines(Synthetic(records), voters)


def real_baselines(data: MoralMachine) -> Baselines:
    """What crowds of real voters reach without privacy."""
    return Baselines(data, settings.NO_PRIVACY_REAL_VOTERS)


def theorems() -> UtilityTheorems:
    """Theorems 2 and 4."""
    return UtilityTheorems(Synthetic(), settings.VOTERS[0], 1.0)


def recommended(beside: AcrossEpsilons) -> AcrossParadigms:
    """The recommended mechanisms on the very crowds of an experiment with the paper's."""
    return AcrossParadigms(beside.source, beside.voters, settings.RECOMMENDED_EPSILONS)


def headline(data: MoralMachine | None) -> list[AcrossEpsilons]:
    """Where the paper compares with no privacy (Figure 10): synthetic crowds, and real ones where there are some."""
    made_up = synthetic(settings.NO_PRIVACY_VOTERS, settings.NO_PRIVACY_RECORDS)
    return [made_up] if data is None else [made_up, real(data, settings.NO_PRIVACY_REAL_VOTERS)]


def real(data: MoralMachine, voters: int) -> AcrossEpsilons:
    """Accuracy against epsilon on crowds of real voters."""
    return AcrossEpsilons(data, voters, settings.EPSILONS)
