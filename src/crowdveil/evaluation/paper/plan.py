"""The paper's Section 5 as data: its grids and defaults, what it leaves open, and the experiments it is made of."""

from __future__ import annotations

from crowdveil.evaluation.paper.algorithms import CUT, PRINTED, RAW_PRINTED, RAW_REPAIRED, REPAIRED
from crowdveil.evaluation.paper.experiments import (
    ALGORITHM_1,
    ALGORITHM_2,
    AcrossEpsilons,
    AcrossNormBounds,
    AcrossParadigms,
    AcrossPersonalEpsilons,
    AcrossRecordBounds,
    Baselines,
    UtilityTheorems,
)
from crowdveil.evaluation.toolkit.crowds import RECORDS, Groups, MoralMachine, Source, Synthetic
from crowdveil.evaluation.toolkit.results import Experiment

EPSILONS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.09, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0, 2.0, 3.0, 5.0, 10.0)
"""Section 5.1: the privacy parameters of every curve."""
VOTERS = (50, 100)
"""Figures 1 to 4."""
BOUNDS_EPSILON = 0.1
"""Figure 7: epsilon while B varies."""
REAL_COMPARISON_VOTERS = 100
"""Figure 8(d)."""
NO_PRIVACY_VOTERS, NO_PRIVACY_RECORDS = 50, 100
"""Figure 10(a)."""
NO_PRIVACY_REAL_VOTERS = 200
"""Figure 10(b)."""

RECOMMENDED_EPSILONS = (0.03, 0.1, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Where the recommended mechanisms are measured beside the paper's: some of the epsilons above."""

# Left open by the paper, and chosen here.
RECORDS_GRID = (20, 50, 100)
FEATURES_GRID = (5, 10, 15, 20, 25, 30)
DIMENSION_VOTERS = 100
DIMENSION_EPSILONS = (0.1, 1.0, 10.0)
BOUNDS_GRID = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)
PERSONAL_VOTERS = (50, 100, 200)
REAL_VOTERS = (50, 100, 150, 200)
RECORD_BOUNDS_GRID = (1.0, 2.0, 4.0, 8.0)

QUICK_CROWDS, FULL_CROWDS = 10, 200

CONSERVATIVE_FRACTIONS = tuple((f, Groups(conservative=f)) for f in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6))
"""Figure 6(a): f_M stays 0.36, and the rest is liberal."""
CONSERVATIVE_EPSILONS = tuple((e, Groups(epsilon_c=e, epsilon_m=0.5)) for e in (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5))
"""Figures 6(b) and 9(a): with eps_M = 0.5 instead of its default."""
MODERATE_EPSILONS = tuple((e, Groups(epsilon_m=e)) for e in (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5))
"""Figures 6(c) and 9(b)."""


PANELS: dict[str, tuple[tuple[float, Groups], ...]] = {
    "f_C": CONSERVATIVE_FRACTIONS,
    "eps_C": CONSERVATIVE_EPSILONS,
    "eps_M": MODERATE_EPSILONS,
}
"""The panels of Figure 6; Figure 9 has the last two."""

SHORT = {
    ALGORITHM_1: "Algorithm 1",
    ALGORITHM_2: "Algorithm 2",
    PRINTED.name: "Algorithm 3, as printed",
    REPAIRED.name: "Algorithm 3, repaired",
    CUT.name: "Algorithm 3, repaired, records cut",
    RAW_PRINTED.name: "NOT PRIVATE: 3 as printed, unscaled",
    RAW_REPAIRED.name: "NOT PRIVATE: 3 repaired, unscaled",
}
"""Every series in a few words."""
PRIVATE = (ALGORITHM_1, ALGORITHM_2, PRINTED.name, REPAIRED.name, CUT.name)
"""The series that protect somebody."""
THIRD = (PRINTED.name, REPAIRED.name, CUT.name, RAW_REPAIRED.name)
"""The readings of Algorithm 3 that a figure shows; the last protects nobody."""


def synthetic(voters: int, records: int = RECORDS) -> AcrossEpsilons:
    """Accuracy against epsilon on synthetic crowds with d = 10."""
    return AcrossEpsilons(Synthetic(records), voters, EPSILONS)


def all_synthetic() -> list[AcrossEpsilons]:
    """The curves of Figures 1 to 3."""
    return [synthetic(voters, records) for voters in VOTERS for records in RECORDS_GRID]


def dimension(features: int) -> AcrossEpsilons:
    """One point on the axis of Figure 5."""
    return AcrossEpsilons(Synthetic(features=features), DIMENSION_VOTERS, DIMENSION_EPSILONS)


def personal(source: Source, voters: int, panel: str) -> AcrossPersonalEpsilons:
    """One curve of a panel of Figures 6 and 9."""
    return AcrossPersonalEpsilons(source, voters, panel, PANELS[panel])


def norm_bounds(voters: int) -> AcrossNormBounds:
    """Figure 7."""
    return AcrossNormBounds(Synthetic(), voters, BOUNDS_GRID, BOUNDS_EPSILON)


def record_bounds() -> AcrossRecordBounds:
    """Algorithm 3 with other public bounds on records."""
    return AcrossRecordBounds(Synthetic(), DIMENSION_VOTERS, RECORD_BOUNDS_GRID, 1.0)


def baselines(voters: int, records: int) -> Baselines:
    """Synthetic crowds without privacy."""
    return Baselines(Synthetic(records), voters)


def real_baselines(data: MoralMachine) -> Baselines:
    """Crowds of real voters without privacy."""
    return Baselines(data, NO_PRIVACY_REAL_VOTERS)


def theorems() -> UtilityTheorems:
    """Theorems 2 and 4."""
    return UtilityTheorems(Synthetic(), VOTERS[0], 1.0)


def recommended(beside: AcrossEpsilons) -> AcrossParadigms:
    """The recommended mechanisms on the very crowds of an experiment with the paper's."""
    return AcrossParadigms(beside.source, beside.voters, RECOMMENDED_EPSILONS)


def headline(data: MoralMachine | None) -> list[AcrossEpsilons]:
    """Where the paper compares with no privacy (Figure 10): synthetic crowds, and real ones where there are some."""
    made_up = synthetic(NO_PRIVACY_VOTERS, NO_PRIVACY_RECORDS)
    return [made_up] if data is None else [made_up, real(data, NO_PRIVACY_REAL_VOTERS)]


def real(data: MoralMachine, voters: int) -> AcrossEpsilons:
    """Accuracy against epsilon on crowds of real voters."""
    return AcrossEpsilons(data, voters, EPSILONS)


def all_experiments(data: MoralMachine | None) -> list[Experiment]:
    """Return what the figures, the claims and the open choices are made of, the longest first."""
    on_real: list[Experiment] = []
    if data is not None:
        on_real += [recommended(headline(data)[-1])]
        on_real += [real(data, voters) for voters in reversed(REAL_VOTERS)]
        on_real += [real_baselines(data)]
        on_real += [personal(data, NO_PRIVACY_REAL_VOTERS, panel) for panel in ("eps_C", "eps_M")]
    return [
        *on_real,
        recommended(headline(None)[0]),
        *all_synthetic(),
        *(baselines(NO_PRIVACY_VOTERS, records) for records in RECORDS_GRID),
        *(dimension(features) for features in FEATURES_GRID),
        *(personal(Synthetic(), n, panel) for panel in PANELS for n in PERSONAL_VOTERS),
        *(norm_bounds(voters) for voters in VOTERS),
        record_bounds(),
        theorems(),
    ]
