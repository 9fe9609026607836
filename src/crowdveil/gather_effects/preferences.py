"""Effects that the preference of a crowd implies, or those of its groups, as reports tell them.

Reports of scores or of bits name no dilemma: what they tell is a preference, and with it what people would choose in
the dilemmas that the study draws. Who belongs to which group came through randomised response, and is corrected for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.effect_release import Effect, Effects, EffectsRelease, GroupDifference, GroupEffects
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.ratios import told_apart
from crowdveil.gather import REPORTS_MADE_ON, SAMPLER, release_from_reports
from crowdveil.gather_effects.reported_groups import ReportedGroups
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.guarantee import Guarantee, Paradigm
from crowdveil.privacy.mechanisms.aggregation import LevelSums
from crowdveil.privacy.mechanisms.mechanism import Estimand
from crowdveil.privacy.mechanisms.one_bit import OneBit
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.privacy.mechanisms.score import ScoreRelease
from crowdveil.privacy.unknown import ERROR_BAR
from crowdveil.protocol.report import Terms
from crowdveil.publish_effects.implied import implied_effects
from crowdveil.releases import Release
from crowdveil.request import FEWEST_VOTERS
from crowdveil.version import VERSION

READ_FROM = "the preference that the reports tell, in the dilemmas that the study draws"
_BY_GROUP = (OneBit.name, ScoreRelease.name)
"""Those whose estimate is made of sums, which can be taken apart by group."""


def check_implied(terms: Terms, *, grouped: bool) -> None:
    """Refuse reports that tell no preference, or none of groups; say why."""
    study = terms.settings.study
    if DISTRIBUTED[terms.mechanism].estimates is not Estimand.PREFERENCE:
        raise CrowdveilError(
            f"reports of {terms.mechanism} tell the paper's society, which states no probabilities: no effects follow "
            "from it"
        )
    if grouped and terms.mechanism not in _BY_GROUP:
        raise CrowdveilError(
            f"reports of {terms.mechanism} are fitted one by one, and cannot be taken apart by groups that were "
            f"themselves reported with coin tosses: that is possible with {' and '.join(_BY_GROUP)}"
        )
    if grouped and study.indifference is not None:
        raise CrowdveilError(
            f"study {study.name} allows a third answer, whose threshold the reports tell of the whole crowd only: "
            "there are no effects by group"
        )


def implied_from_reports(
    batches: Iterable[Sequence[tuple[Mapping[str, Any], Mapping[str, str]]]],
    paradigm: Paradigm,
    terms: Terms,
    groups: ReportedGroups | None = None,
) -> EffectsRelease:
    """Read the effects that checked reports imply, each with what its voter said of herself; batches are not empty.

    Theorem. The effects are as private as the reports and the answers to that question. Proof. They are computed from
    these and public settings alone (post-processing).
    """
    check_implied(terms, grouped=groups is not None)
    if groups is None:
        made = release_from_reports(([body for body, _ in batch] for batch in batches), paradigm, terms)
        return _release(implied_effects(made), made.guarantee, terms, {"read_from": READ_FROM})
    parts, epsilons = _sums_by_option(batches, terms, groups)
    guarantee = Guarantee(paradigm, epsilons.largest, epsilons.smallest, terms.settings.norm_bound, len(epsilons))
    reported = np.array([float(part.counts.sum()) if len(part.levels) else 0.0 for part in parts])
    found = []
    for label, row in zip(groups.options, groups.correction, strict=True):
        size = max(float(row @ reported), 0.0)
        found.append(GroupEffects(label, size, _effects(LevelSums.mixed(parts, row.tolist()), guarantee, terms)))
    differences = _differences(found, groups.correction, reported)
    effects = Effects(terms.settings.study, groups.question, tuple(found), differences)
    facts = {"read_from": READ_FROM, "groups_reported_at": f"epsilon {groups.epsilon}, and corrected for it"}
    return _release(effects, guarantee, terms, facts)


def _sums_by_option(
    batches: Iterable[Sequence[tuple[Mapping[str, Any], Mapping[str, str]]]], terms: Terms, groups: ReportedGroups
) -> tuple[list[LevelSums], Epsilons]:
    """Add up the reports of those who reported each option; who did not answer is in none of them."""
    mechanism = DISTRIBUTED[terms.mechanism]
    study = terms.settings.study
    parts = [LevelSums() for _ in groups.options]
    everybody: list[Epsilons] = []
    for batch in batches:
        everybody.append(Epsilons.of_millionths(body["epsilon_micro"] for body, _ in batch))
        for place, option in enumerate(groups.options):
            bodies = [body for body, about in batch if about.get(groups.question) == option]
            if study.repeat:  # some reports are about the reliability of the crowd, and tell nothing of a preference
                bodies = [{**body, **body["preference"]} for body in bodies if body["preference"] is not None]
            if bodies:
                parts[place] += mechanism.condense(mechanism.wire.read(bodies, study), terms.settings)
    epsilons = Epsilons.joined(everybody) if everybody else Epsilons.of([])
    if len(epsilons) < FEWEST_VOTERS:
        raise CrowdveilError(f"effects need the reports of at least {FEWEST_VOTERS} voters, got {len(epsilons)}")
    return parts, epsilons


def _effects(sums: LevelSums, guarantee: Guarantee, terms: Terms) -> tuple[Effect, ...]:
    """Find the preference of one group, and the effects that it implies; where there is nothing, none are known."""
    study = terms.settings.study
    if not len(sums.counts) or not float(sums.counts @ sums.mixture) > 0:
        return tuple(Effect(one.name, "drawn pairs", 0.0, None, -1.0, 1.0, 0.0, False) for one in study.factors)
    estimate = DISTRIBUTED[terms.mechanism].aggregate([sums], terms.settings)
    made = Release(
        study=study,
        parameter=estimate.parameter,
        guarantee=guarantee,
        mechanism=terms.mechanism,
        noise=estimate.noise,
        sampler=SAMPLER,
        exact=True,
        facts={},
        ledger=None,
        version=VERSION,
        unknown=estimate.unknown,
    )
    return implied_effects(made).groups[0].effects


def _differences(
    found: Sequence[GroupEffects], correction: FloatArray, reported: FloatArray
) -> tuple[GroupDifference, ...]:
    """Compare the groups. The same reports are in all of them, with other signs: so their errors go together."""
    named: list[GroupDifference] = []
    p_values = []
    quantile = NormalDist().inv_cdf((1 + ERROR_BAR) / 2)
    together = (correction * reported) @ correction.T
    for k, effect in enumerate(found[0].effects):
        for (g, one), (h, other) in combinations(enumerate(found), 2):
            first = one.effects[k]
            second = other.effects[k]
            gap = first.estimate - second.estimate
            low, high, p_value = -2.0, 2.0, 1.0
            if first.known and second.known and first.standard_error is not None and second.standard_error is not None:
                shared = float(together[g, h] / np.sqrt(together[g, g] * together[h, h]))
                square = first.standard_error**2 + second.standard_error**2
                deviation = float(np.sqrt(square - 2 * shared * first.standard_error * second.standard_error))
                low = max(gap - quantile * deviation, -2.0)
                high = min(gap + quantile * deviation, 2.0)
                p_value = 2 * (1 - NormalDist().cdf(abs(gap) / deviation)) if deviation > 0 else 1.0
            named.append(GroupDifference(effect.factor, one.label, other.label, gap, low, high, told_apart=False))
            p_values.append(p_value)
    return tuple(replace(one, told_apart=told) for one, told in zip(named, told_apart(p_values), strict=True))


def _release(effects: Effects, guarantee: Guarantee, terms: Terms, facts: Mapping[str, Any]) -> EffectsRelease:
    return EffectsRelease(
        effects=effects,
        guarantee=guarantee,
        mechanism=terms.mechanism,
        sampler=SAMPLER,
        exact=True,
        facts={**facts, "reports_made_on": REPORTS_MADE_ON},
        ledger=None,
        version=VERSION,
    )
