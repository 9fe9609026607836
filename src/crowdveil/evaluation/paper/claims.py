"""All claims of the paper that this reproduction checks."""

from __future__ import annotations

from crowdveil.evaluation.paper import plan, settings
from crowdveil.evaluation.paper.claim import Claim
from crowdveil.evaluation.paper.claims_no_privacy import no_privacy_claims
from crowdveil.evaluation.paper.claims_real import real_claims
from crowdveil.evaluation.paper.claims_synthetic import synthetic_claims
from crowdveil.evaluation.paper.claims_theory import theory_claims
from crowdveil.evaluation.paper.crowds import MoralMachine, Synthetic
from crowdveil.evaluation.paper.experiment import Experiment
from crowdveil.evaluation.paper.results import Results


def all_claims(results: Results, data: MoralMachine | None) -> list[Claim]:
    """Check every claim; those about real data only where there is some."""
    return [
        *theory_claims(results),
        *synthetic_claims(results),
        *([] if data is None else real_claims(results, data)),
        *no_privacy_claims(results, data),
    ]


def all_experiments(data: MoralMachine | None) -> list[Experiment]:
    """Everything that the figures, the claims and the open choices are made of, the longest first."""
    real: list[Experiment] = []
    if data is not None:
        real += [plan.recommended(plan.headline(data)[-1])]
        real += [plan.real(data, voters) for voters in reversed(settings.REAL_VOTERS)]
        real += [plan.real_baselines(data)]
        real += [plan.personal(data, settings.NO_PRIVACY_REAL_VOTERS, panel) for panel in ("eps_C", "eps_M")]
    return [
        *real,
        plan.recommended(plan.headline(None)[0]),
        *plan.all_synthetic(),
        *(plan.baselines(settings.NO_PRIVACY_VOTERS, records) for records in settings.RECORDS_GRID),
        *(plan.dimension(features) for features in settings.FEATURES_GRID),
        *(plan.personal(Synthetic(), n, panel) for panel in plan.PANELS for n in settings.PERSONAL_VOTERS),
        *(plan.norm_bounds(voters) for voters in settings.VOTERS),
        plan.record_bounds(),
        plan.theorems(),
    ]
