"""Every mechanism by name, the paper's for each paradigm, and the recommended one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from crowdveil.errors import CrowdveilError
from crowdveil.estimation.design import public_design
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.guarantee import Paradigm
from crowdveil.privacy.mechanisms.algorithm1 import Algorithm1
from crowdveil.privacy.mechanisms.algorithm2 import Algorithm2
from crowdveil.privacy.mechanisms.algorithm3 import Algorithm3
from crowdveil.privacy.mechanisms.algorithm3_choices import Algorithm3Choices
from crowdveil.privacy.mechanisms.gaussian_mean import GaussianMean
from crowdveil.privacy.mechanisms.mechanism import CentralMechanism, DistributedMechanism
from crowdveil.privacy.mechanisms.pooled_choices import PooledChoices
from crowdveil.privacy.mechanisms.pooled_score import PooledScore, VoterScore
from crowdveil.privacy.mechanisms.randomised_response import OneChoice, RandomisedResponse
from crowdveil.privacy.mechanisms.score import ScoreRelease, tells_more_than_choices
from crowdveil.privacy.mechanisms.subset_selection import SubsetSelection, mean_squared_error
from crowdveil.study.study import Study

CENTRAL: dict[str, CentralMechanism] = {m.name: m for m in (Algorithm1(), VoterScore(), PooledScore(), PooledChoices())}
DISTRIBUTED: dict[str, DistributedMechanism[Any]] = {
    "algorithm-2": Algorithm2(),
    "algorithm-3": Algorithm3(),
    "subset-selection": SubsetSelection(),
    "score": ScoreRelease(),
    "algorithm-3-choices": Algorithm3Choices(),
    "randomised-response": RandomisedResponse(),
    "one-choice": OneChoice(),
}

GAUSSIAN_MEAN = GaussianMean()
"""The one mechanism that is not purely private: it takes a rho in place of an epsilon."""

PAPERS_MECHANISM: Mapping[str, str] = {
    "vlcp": "algorithm-1",
    "rlcp": "algorithm-1",
    "vldp": "algorithm-2",
    "rldp": "algorithm-3",
}


def recommended(paradigm: Paradigm, study: Study, epsilons: Epsilons) -> str:
    """Return the mechanism that serves a paradigm best, by what is public: the study, and everybody's epsilon."""
    voters, epsilon = len(epsilons), float(np.median(epsilons.values))
    match paradigm.name:
        case "vlcp":
            # Long ballots and little noise let the fits of single voters tell more than their clipped scores.
            # Short ballots and much noise do, too: noise on the cube grows with the number of features, Laplace noise
            # on a coordinate does not. Where to change over was measured (docs/best-accuracy.md).
            long_ballots, heard = study.drawing.dilemmas >= 2 * study.dimension, voters * epsilon / study.dimension
            return "algorithm-1" if (heard > 10 if long_ballots else heard < 5) else "voter-score"
        case "rlcp":
            return "pooled-score"
        case "vldp":
            laplace = 8 * study.dimension / epsilon**2  # d variances 2 (2B / epsilon)^2, over B^2
            return "subset-selection" if mean_squared_error(study.dimension, epsilon) < laplace else "algorithm-2"
        case "rldp":
            return "score"
        case "alcp":
            return "pooled-choices"
        case _:
            better = tells_more_than_choices(public_design(study), study.drawing.dilemmas, epsilons)
            return "score" if better else "randomised-response"


def mechanism_name(paradigm: Paradigm, wanted: str | None, study: Study, epsilons: Epsilons) -> str:
    """Check that a mechanism serves a paradigm; None takes the recommended one, "paper" the paper's."""
    serving = [name for name, m in (CENTRAL | DISTRIBUTED).items() if paradigm.name in m.paradigms]
    if wanted is None:
        return recommended(paradigm, study, epsilons)
    name = PAPERS_MECHANISM.get(paradigm.name, wanted) if wanted == "paper" else wanted
    if name not in serving:
        raise CrowdveilError(f"mechanism {name!r} does not serve {paradigm.name}: choose {' or '.join(serving)}")
    return name
