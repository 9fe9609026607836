"""From reports to a release, or to effects by group. Nothing is charged: every device has already added its noise.

Reports of choices after coin tosses (``randomised-response``) name their public dilemmas, so effects can be counted in
them. Reports of scores or of bits name no dilemma. They determine a preference, and with it what people would choose in
the dilemmas that the study draws. Group membership is reported by randomised response, which is corrected for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.effect_release import Effect, Effects, EffectsRelease, GroupDifference, GroupEffects
from crowdveil.errors import CrowdveilError, check_type
from crowdveil.estimation.effects import (
    DIFFERENCE,
    MOMENTS,
    NOISE,
    PAIR_SQUARES,
    PAIRS,
    PRODUCTS,
    SQUARES,
    added_by_group,
    contrasts,
    ratio_of,
)
from crowdveil.estimation.ratios import Ratio, told_apart
from crowdveil.privacy.epsilon import GREATEST, LEAST, Epsilon, Epsilons
from crowdveil.privacy.guarantee import Guarantee, Paradigm, paradigm
from crowdveil.privacy.guarantee import paradigm as find_paradigm
from crowdveil.privacy.mechanisms.effect_counts import GroupCounts
from crowdveil.privacy.mechanisms.effect_reports import GroupedChoiceReports, flipped_moments
from crowdveil.privacy.mechanisms.mechanism import Estimand
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED, distributed
from crowdveil.privacy.mechanisms.reports import LevelSums
from crowdveil.privacy.uncertainty import ERROR_BAR
from crowdveil.protocol.report import Terms, read_reports
from crowdveil.publish.effects import effects_of
from crowdveil.publish.implied_effects import implied_effects
from crowdveil.publish.request import FEWEST_VOTERS
from crowdveil.releases import Release
from crowdveil.study.study import Study
from crowdveil.version import VERSION

SAMPLER = "exact discrete noise, drawn on every voter's own device from its operating system's randomness"
REPORTS_MADE_ON = "each voter's own device: nobody else saw a record"


@dataclass
class _Tally:
    """The number of reports so far, and the range of their epsilons."""

    voters: int = 0
    smallest: Epsilon = GREATEST
    largest: Epsilon = LEAST

    def add(self, epsilons: Epsilons) -> None:
        self.smallest = min(self.smallest, epsilons.smallest)
        self.largest = max(self.largest, epsilons.largest)
        self.voters += len(epsilons)


def release_from_reports(
    batches: Iterable[Sequence[Mapping[str, Any]]], paradigm: str | Paradigm, terms: Terms
) -> Release:
    """Estimate the society from checked reports, which arrive in batches (none of them empty).

    Theorem. The release is as private as the reports: for voter i, epsilon_i-differentially private for the unit of the
    paradigm. Proof. It is computed from the reports and public settings alone (post-processing).

    So the same reports may be released again, as often as anybody likes.
    """
    check_type(terms, Terms, "terms", "give the Terms that the reports were asked for")
    paradigm = find_paradigm(paradigm)
    mechanism = distributed(terms.mechanism, terms.settings.study)
    if paradigm.name not in mechanism.paradigms:
        raise CrowdveilError(f"{terms.mechanism} serves {' and '.join(mechanism.paradigms)}, not {paradigm.name}")
    tally = _Tally()
    estimate = mechanism.aggregate(_read(_enough(batches), terms, tally), terms.settings)
    return Release(
        study=terms.settings.study,
        parameter=estimate.parameter,
        guarantee=Guarantee(
            paradigm,
            tally.largest,
            tally.smallest,
            terms.settings.norm_bound,
            tally.voters,
        ),
        mechanism=terms.mechanism,
        noise=estimate.noise,
        sampler=SAMPLER,
        exact=True,
        facts={**estimate.facts, "reports_made_on": REPORTS_MADE_ON},
        ledger=None,
        version=VERSION,
        unknown=estimate.unknown,
        indifference=estimate.indifference,
        reliability=estimate.reliability,
    )


def _read(batches: Iterable[Sequence[Mapping[str, Any]]], terms: Terms, tally: _Tally) -> Iterator[Any]:
    for batch in batches:
        tally.add(Epsilons.of_millionths(body["epsilon_micro"] for body in batch))
        yield read_reports(batch, terms)


def _enough(batches: Iterable[Sequence[Mapping[str, Any]]]) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Hold reports back until there are enough for a crowd."""
    first: list[Mapping[str, Any]] = []
    rest = iter(batches)
    for batch in rest:
        first.extend(batch)
        if len(first) >= FEWEST_VOTERS:
            break
    else:
        raise CrowdveilError(f"a release needs the reports of at least {FEWEST_VOTERS} voters, got {len(first)}")
    yield first
    yield from rest


@dataclass(frozen=True)
class ReportedGroups:
    """A question that voters answered by randomised response: its options, and the epsilon of each answer."""

    question: str
    options: tuple[str, ...]
    epsilon: Epsilon

    @property
    def correction(self) -> FloatArray:
        """The inverse of the probabilities with which an option (columns) is reported as another (rows)."""
        count = len(self.options)
        spread = np.exp(self.epsilon.value) + count - 1
        reported = np.full((count, count), 1 / spread) + np.eye(count) * (np.expm1(self.epsilon.value) / spread)
        return np.asarray(np.linalg.inv(reported), np.float64)


def effects_counted(mechanism: str, study: Study) -> bool:
    """Whether effects are counted in the reports of a mechanism, rather than computed from the estimate they make."""
    return mechanism in DISTRIBUTED and DISTRIBUTED[mechanism].counts_effects and study.indifference is None


def effects_from_reports(
    batches: Iterable[Sequence[tuple[Mapping[str, Any], Mapping[str, str]]]],
    terms: Terms,
    groups: ReportedGroups | None = None,
) -> EffectsRelease:
    """Compute effects from checked reports, each with its voter's answers about herself; batches are not empty.

    Theorem. The effects are as private as the reports: for voter i, epsilon_i-differentially private for each choice,
    and for her answer about herself with the epsilon of that question. Proof. They are computed from the reports and
    public settings alone (post-processing).

    A voter who reports option h holds option g with a known probability. So the sums over the voters who report each
    option are the true sums of the groups, mixed by a known matrix, whose inverse separates them. Every voter then
    counts in every group, with weights above 1 and below 0, which makes the intervals wide: with two options at epsilon
    1, a group is about as informative as one of a third of its size whose members are known.
    """
    study = terms.settings.study
    if not effects_counted(terms.mechanism, study):
        counting = [name for name, mechanism in DISTRIBUTED.items() if mechanism.counts_effects]
        raise CrowdveilError(
            f"effects are read from reports of {' or '.join(counting)}, in which people have to choose; of "
            f"{terms.mechanism}, make a release: its page shows the effects that it implies"
        )
    labels = ("",) if groups is None else groups.options
    added = np.zeros((len(labels), len(study.factors), MOMENTS))
    everybody: list[Epsilons] = []
    for batch in batches:
        everybody.append(Epsilons.of_millionths(body["epsilon_micro"] for body, _ in batch))
        if study.repeat:  # some reports are about the reliability of the crowd, and not about a preference
            batch = [({**body, **body["preference"]}, said) for body, said in batch if body["preference"] is not None]
        if not batch:
            continue
        reports = DISTRIBUTED[terms.mechanism].wire.read([body for body, _ in batch], study)
        said = [labels[0] if groups is None else about.get(groups.question) for _, about in batch]
        codes = np.array([labels.index(one) if one in labels else -1 for one in said], np.int64)
        added += added_by_group(flipped_moments(GroupedChoiceReports(reports, None, codes), study), codes, len(labels))
    epsilons = Epsilons.joined(everybody) if everybody else Epsilons([])
    if len(epsilons) < FEWEST_VOTERS:
        raise CrowdveilError(f"effects need the reports of at least {FEWEST_VOTERS} voters, got {len(epsilons)}")
    facts = {"weighing": "every pair counts once", "reports_made_on": REPORTS_MADE_ON}
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
            contrasts(study, typed=False),
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
    """Compute one group's effect from the moments of all reported ones: the scatter includes tosses and sampling."""
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
    """The correlation between the errors of two groups' effects: both use the same reports."""

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


READ_FROM = "the preference that the reports tell, in the dilemmas that the study draws"


def check_implied(terms: Terms, *, grouped: bool) -> None:
    """Refuse reports that determine no preference, or none of groups, and say why."""
    study = terms.settings.study
    if DISTRIBUTED[terms.mechanism].estimates is not Estimand.PREFERENCE:
        raise CrowdveilError(
            f"reports of {terms.mechanism} tell the paper's society, which states no probabilities: no effects follow "
            "from it"
        )
    if grouped and not DISTRIBUTED[terms.mechanism].by_group:
        able = [name for name, mechanism in DISTRIBUTED.items() if mechanism.by_group]
        raise CrowdveilError(
            f"reports of {terms.mechanism} are fitted one by one, and cannot be taken apart by groups that were "
            f"themselves reported with coin tosses: that is possible with {' and '.join(able)}"
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
    """Compute the effects that checked reports imply, each with its voter's answers about herself; no batch is empty.

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
    """Add up the reports of the voters who reported each option; voters without an answer are left out."""
    mechanism = DISTRIBUTED[terms.mechanism]
    study = terms.settings.study
    parts = [LevelSums() for _ in groups.options]
    everybody: list[Epsilons] = []
    for batch in batches:
        everybody.append(Epsilons.of_millionths(body["epsilon_micro"] for body, _ in batch))
        for place, option in enumerate(groups.options):
            bodies = [body for body, about in batch if about.get(groups.question) == option]
            if study.repeat:  # some reports are about the reliability of the crowd, and not about a preference
                bodies = [{**body, **body["preference"]} for body in bodies if body["preference"] is not None]
            if bodies:
                parts[place] += mechanism.condense(mechanism.wire.read(bodies, study), terms.settings)
    epsilons = Epsilons.joined(everybody) if everybody else Epsilons([])
    if len(epsilons) < FEWEST_VOTERS:
        raise CrowdveilError(f"effects need the reports of at least {FEWEST_VOTERS} voters, got {len(epsilons)}")
    return parts, epsilons


def _effects(sums: LevelSums, guarantee: Guarantee, terms: Terms) -> tuple[Effect, ...]:
    """Estimate the preference of one group and the effects that it implies; without any reports, none are known."""
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
    """Compare the groups. All of them use the same reports, with different signs, so their errors are correlated."""
    named: list[GroupDifference] = []
    p_values = []
    quantile = NormalDist().inv_cdf((1 + ERROR_BAR) / 2)
    together = (correction * reported) @ correction.T
    for k, effect in enumerate(found[0].effects):
        for (g, one), (h, other) in combinations(enumerate(found), 2):
            first = one.effects[k]
            second = other.effects[k]
            gap = first.estimate - second.estimate
            low = -2.0
            high = 2.0
            p_value = 1.0
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
