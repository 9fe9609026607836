"""The paper's Section 5 as data: its grids and defaults, its experiments, and its words on its figures."""

from __future__ import annotations

from crowdveil.evaluation.paper.experiments import (
    ALGORITHM_1,
    ALGORITHM_2,
    CUT,
    PRINTED,
    RAW_PRINTED,
    RAW_REPAIRED,
    REPAIRED,
    Baselines,
    BoundSweep,
    EpsilonSweep,
    ParadigmSweep,
    PersonalEpsilonSweep,
    UtilityTheorems,
)
from crowdveil.evaluation.toolkit.crowds import RECORDS, CrowdSource, Groups, MoralMachineSource, SyntheticSource
from crowdveil.evaluation.toolkit.sweep import Experiment

EPSILONS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.09, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0, 2.0, 3.0, 5.0, 10.0)
"""Section 5.1: the privacy parameters of every curve."""
VOTERS = (50, 100)
"""Figures 1 to 4."""
BOUNDS_EPSILON = 0.1
"""Figure 7: epsilon while B varies."""
REAL_COMPARISON_VOTERS = 100
"""Figure 8(d)."""
NO_PRIVACY_VOTERS = 50
"""Figure 10(a)."""
NO_PRIVACY_RECORDS = 100
"""Figure 10(a)."""
NO_PRIVACY_REAL_VOTERS = 200
"""Figure 10(b)."""

RECOMMENDED_EPSILONS = (0.03, 0.1, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Epsilons at which the recommended mechanisms are compared with the paper's: some of those above."""

# The paper leaves these open; they are chosen here.
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
"""A short name for every series."""
PRIVATE = (ALGORITHM_1, ALGORITHM_2, PRINTED.name, REPAIRED.name, CUT.name)
"""The series that protect somebody."""
THIRD = (PRINTED.name, REPAIRED.name, CUT.name, RAW_REPAIRED.name)
"""The readings of Algorithm 3 in the figures; the last protects nobody."""


def synthetic(voters: int, records: int = RECORDS) -> EpsilonSweep:
    """Accuracy against epsilon on synthetic crowds with d = 10."""
    return EpsilonSweep(SyntheticSource(records), voters, EPSILONS)


def all_synthetic() -> list[EpsilonSweep]:
    """The curves of Figures 1 to 3."""
    return [synthetic(voters, records) for voters in VOTERS for records in RECORDS_GRID]


def dimension(features: int) -> EpsilonSweep:
    """One point on the axis of Figure 5."""
    return EpsilonSweep(SyntheticSource(features=features), DIMENSION_VOTERS, DIMENSION_EPSILONS)


def personal(source: CrowdSource, voters: int, panel: str) -> PersonalEpsilonSweep:
    """One curve of a panel of Figures 6 and 9."""
    return PersonalEpsilonSweep(source, voters, panel, PANELS[panel])


def norm_bounds(voters: int) -> BoundSweep:
    """Figure 7."""
    return BoundSweep(SyntheticSource(), voters, "norm", BOUNDS_GRID, BOUNDS_EPSILON)


def record_bounds() -> BoundSweep:
    """Algorithm 3 with other public bounds on records."""
    return BoundSweep(SyntheticSource(), DIMENSION_VOTERS, "record", RECORD_BOUNDS_GRID, 1.0)


def baselines(voters: int, records: int) -> Baselines:
    """Synthetic crowds without privacy."""
    return Baselines(SyntheticSource(records), voters)


def real_baselines(data: MoralMachineSource) -> Baselines:
    """Crowds of real voters without privacy."""
    return Baselines(data, NO_PRIVACY_REAL_VOTERS)


def theorems() -> UtilityTheorems:
    """Theorems 2 and 4."""
    return UtilityTheorems(SyntheticSource(), VOTERS[0], 1.0)


def recommended(beside: EpsilonSweep) -> ParadigmSweep:
    """The recommended mechanisms on the same crowds as an experiment with the paper's."""
    return ParadigmSweep(beside.source, beside.voters, RECOMMENDED_EPSILONS)


def headline(data: MoralMachineSource | None) -> list[EpsilonSweep]:
    """Return the experiments that Figure 10 compares with no privacy: synthetic crowds, and real ones if given."""
    made_up = synthetic(NO_PRIVACY_VOTERS, NO_PRIVACY_RECORDS)
    return [made_up] if data is None else [made_up, real(data, NO_PRIVACY_REAL_VOTERS)]


def real(data: MoralMachineSource, voters: int) -> EpsilonSweep:
    """Accuracy against epsilon on crowds of real voters."""
    return EpsilonSweep(data, voters, EPSILONS)


def all_experiments(data: MoralMachineSource | None) -> list[Experiment]:
    """Return the experiments behind the figures, the claims and the open choices, longest first."""
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
        *(personal(SyntheticSource(), n, panel) for panel in PANELS for n in PERSONAL_VOTERS),
        *(norm_bounds(voters) for voters in VOTERS),
        record_bounds(),
        theorems(),
    ]


BESIDE_THE_PAPER = {
    "algorithm-1": (
        "The paper: accuracy rises with ε, N and n. Here it rises with ε and with N. More records per voter hardly "
        "help: the noise does not depend on n, and B = 2 cuts every voter's estimate to the same length. At ε ≤ 0.1 "
        "the curves are close to a coin."
    ),
    "algorithm-2": (
        "The paper: accuracy rises with ε, N and n, but utility is limited. Here too: a coin up to ε = 1, and most of "
        "the rise beyond ε = 2. The effect of n is not visible."
    ),
    "algorithm-3": (
        "The paper shows high accuracy that rises with ε, N and n. As printed (top), with records scaled to length 1 "
        "as the sensitivity needs, the curve is a coin everywhere. With the repair of Zhang et al. 2012 (second) it "
        "rises, late, and earlier where every record is cut to length 1 instead of all being scaled by a bound that "
        "few reach (third). Only when the records are not scaled (bottom), so that the noise is too small for them "
        "and protects nobody, does the picture look as the paper describes it."
    ),
    "compare-algorithms": (
        "The paper: Algorithm 1 is best, and both 1 and 3 are much better than 2. Here Algorithm 1 is best, Algorithm "
        "3 as printed is below 2, repaired it is a little above 2, and clearly above with records cut. The curve "
        "without scaling, which is not private, lies where the paper has Algorithm 3, and even above Algorithm 1."
    ),
    "dimension": (
        "The paper: Algorithms 1 and 3 fall with d. Algorithm 1 does (and so does 2, beside it), and so does "
        "Algorithm 3 where it has anything to lose: repaired, or without privacy. As printed it is a coin at every d."
    ),
    "personal-epsilons": (
        "The paper: accuracy falls with f_C, rises with ε_C, ε_M and N, and is higher in (b) than in (c). The curves "
        "without scaling (bottom), which protect nobody, show all of this. The private ones stay near a coin: most "
        "voters' ε is far below 1, and every voter counts the same."
    ),
    "norm-bound": (
        "The paper: accuracy is relatively higher around B = 2 or 3. Here it is nearly flat: noise and preference "
        "scale with B alike as long as the bound binds. Without privacy, a larger B is better up to about 2 and makes "
        "no difference beyond."
    ),
    "moral-machine": (
        "The paper: accuracy rises with N and ε for all three. Algorithm 1 does by both truths, Algorithm 2 beyond ε "
        "= 1. Algorithm 3 as printed is a coin, and repaired it only starts to rise at ε = 10. Without scaling it "
        "stays below Algorithm 2: unlike on synthetic data, that does not explain the paper's curve. People's own "
        "choices are predicted by at most two thirds, however large ε is: that is what this model of a society can "
        "do."
    ),
    "moral-machine-comparison": (
        "The paper: Algorithm 1 is best, Algorithm 2 lowest in all cases. Here Algorithm 1 is best; from ε = 3 on "
        "Algorithm 2 is above Algorithm 3 in every reading of it."
    ),
    "moral-machine-personal-epsilons": (
        "The paper: accuracy rises with ε_C and ε_M. Here neither is visible in any reading of Algorithm 3: about 11 "
        "records cannot be heard through the noise of 299 coefficients at these ε."
    ),
    "compare-no-privacy": (
        "The paper: Algorithms 1 and 3 keep more than 80 % of the accuracy beyond ε = 0.3 and 90 % beyond ε = 1 "
        "(stars), synthetic and real. Algorithm 1 gets there later on synthetic data (N = 50), and on real data (N = "
        "200) about where the paper says. Algorithm 3 does not: on synthetic data only the curve without scaling, "
        "which is not private, passes above both stars. Ratios are to the mean of bounded fits, except top right, "
        "where they are to the mean of those unbounded estimates that exist: a worse baseline, so that ratios exceed "
        "1."
    ),
    "algorithm-3-maximum": (
        "The printed algorithm takes the maximum of a noisy quadratic. With records scaled to length 1 (left) almost "
        "no voter's quadratic has one, at any ε of the paper. Without scaling (right) it exists from ε = 1 to 5 on: "
        "there the printed algorithm works, and protects nobody."
    ),
    "recommended": (
        "Not in the paper: for each promise the mechanism that `crowdveil release` recommends, and the paper's own. "
        "The paper has none for single choices; what protects a record protects its choice, so its mechanism for "
        "records is shown. Stars: where the paper says its curves are. Where a record or a choice is protected, the "
        "recommended mechanisms pass above both stars. Where a whole voter is, 50 voters are too few for any "
        "mechanism at small ε."
    ),
    "moral-machine-recommended": (
        "Not in the paper: the same on 200 voters of the Moral Machine, by two truths. The recommended mechanisms for "
        "records and choices fit one preference to all records, which predicts people better than the paper's society "
        "does without privacy (ratios above 1, bottom), and agrees less with that society (top)."
    ),
}
"""For each figure: what the paper says about it, and where ours differs."""
