"""From the reports of a poll to effects, by group if voters were asked about themselves. There is nothing to charge.

Reports of choices after coin tosses (``randomised-response``) name their public dilemmas, so effects can be read from
them. Reports of other mechanisms hold scores or bits along axes, which tell a preference (``preferences``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.effect_release import EffectsRelease
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.effect_moments import (
    DIFFERENCE,
    MOMENTS,
    NOISE,
    PAIR_SQUARES,
    PAIRS,
    PRODUCTS,
    SQUARES,
    added_by_group,
    ratio_of,
)
from crowdveil.estimation.effects import contrasts
from crowdveil.estimation.ratios import Ratio
from crowdveil.gather import REPORTS_MADE_ON, SAMPLER
from crowdveil.gather_effects.reported_groups import ReportedGroups
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.guarantee import Guarantee, paradigm
from crowdveil.privacy.mechanisms.effect_counts import GroupCounts
from crowdveil.privacy.mechanisms.effect_reports import FlippedReports, flipped_moments
from crowdveil.privacy.mechanisms.randomised_response import RandomisedResponse
from crowdveil.protocol.report import Terms
from crowdveil.publish_effects.results import effects_of
from crowdveil.request import FEWEST_VOTERS
from crowdveil.version import VERSION


def effects_from_reports(
    batches: Iterable[Sequence[tuple[Mapping[str, Any], Mapping[str, str]]]],
    terms: Terms,
    groups: ReportedGroups | None = None,
) -> EffectsRelease:
    """Read effects from checked reports, each with what its voter said of herself; batches are not empty.

    Theorem. The effects are as private as the reports: for voter i, epsilon_i-differentially private for each choice,
    and for her answer about herself with the epsilon of that question. Proof. They are computed from the reports and
    public settings alone (post-processing).

    Who reports option h holds option g with known odds, so the sums of those who report each option are the true sums
    of the groups, mixed by a known matrix; its inverse takes them apart. That makes every voter count in every group,
    with weights above 1 and below 0, and the intervals wide: with two options at epsilon 1, a group tells about as much
    as one of a third of its size whose members are known.
    """
    study = terms.settings.study
    if terms.mechanism != RandomisedResponse.name or study.indifference is not None:
        raise CrowdveilError(
            f"effects are read from reports of {RandomisedResponse.name}, in which people have to choose; of "
            f"{terms.mechanism}, make a release: its page shows the effects that it implies"
        )
    labels = ("",) if groups is None else groups.options
    added = np.zeros((len(labels), len(study.factors), MOMENTS))
    everybody: list[Epsilons] = []
    for batch in batches:
        everybody.append(Epsilons.of_millionths(body["epsilon_micro"] for body, _ in batch))
        if study.repeat:  # some reports are about the reliability of the crowd, and tell nothing of a preference
            batch = [({**body, **body["preference"]}, said) for body, said in batch if body["preference"] is not None]
        if not batch:
            continue
        reports = RandomisedResponse.wire.read([body for body, _ in batch], study)
        said = [labels[0] if groups is None else about.get(groups.question) for _, about in batch]
        codes = np.array([labels.index(one) if one in labels else -1 for one in said], np.int64)
        added += added_by_group(flipped_moments(FlippedReports(reports, None, codes), study), codes, len(labels))
    epsilons = Epsilons.joined(everybody) if everybody else Epsilons.of([])
    if len(epsilons) < FEWEST_VOTERS:
        raise CrowdveilError(f"effects need the reports of at least {FEWEST_VOTERS} voters, got {len(epsilons)}")
    facts = {"counts": "pairs equally", "reports_made_on": REPORTS_MADE_ON}
    if groups is None:
        counted = [GroupCounts(tuple(ratio_of(one, float(one[NOISE])) for one in added[0]), None)]
    else:
        facts["groups_reported_at"] = f"epsilon {groups.epsilon}, and corrected for it"
        counted = [
            GroupCounts(tuple(_corrected(row, moments) for moments in added.swapaxes(0, 1)), None)
            for row in groups.correction
        ]
    return EffectsRelease(
        effects=effects_of(
            study,
            None if groups is None else groups.question,
            labels,
            contrasts(study, None),
            counted,
            voters=len(epsilons),
            correlation=None if groups is None else _Correlation(groups.correction, added, counted),
        ),
        guarantee=Guarantee(
            paradigm("aldp"), epsilons.largest, epsilons.smallest, terms.settings.norm_bound, len(epsilons)
        ),
        mechanism=terms.mechanism,
        sampler=SAMPLER,
        exact=True,
        facts=facts,
        ledger=None,
        version=VERSION,
    )


def _corrected(row: FloatArray, moments: FloatArray) -> Ratio:
    """Read one group's effect from the moments of all reported ones: tosses and sampling are both in the scatter."""
    once, squared = row @ moments, row**2 @ moments
    return Ratio(
        float(once[DIFFERENCE]),
        float(once[PAIRS]),
        float(squared[SQUARES]),
        float(squared[PAIR_SQUARES]),
        float(squared[PRODUCTS]),
        0.0,
    )


@dataclass(frozen=True)
class _Correlation:
    """How the errors of two groups' effects go together: the same reports are in both."""

    correction: FloatArray
    added: FloatArray
    counted: Sequence[GroupCounts]

    def __call__(self, factor: int, one: int, other: int) -> float:
        e, f = (self.counted[g].ratios[factor].estimate for g in (one, other))
        moments = self.added[:, factor]

        def product(weights: FloatArray, e: float, f: float) -> float:
            carried = weights @ moments
            return float(carried[SQUARES] - (e + f) * carried[PRODUCTS] + e * f * carried[PAIR_SQUARES])

        rows = self.correction[one], self.correction[other]
        both = product(rows[0] * rows[1], e, f)
        size = product(rows[0] ** 2, e, e) * product(rows[1] ** 2, f, f)
        return float(np.clip(both / np.sqrt(size), -1.0, 1.0)) if size > 0 else 0.0
