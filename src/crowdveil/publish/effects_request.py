"""The request for effects, checked against a crowd: its cost and the width of its intervals, all of it public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.ballots.ballots import BallotSource, names_of
from crowdveil.errors import CrowdveilError, check_fields, check_type
from crowdveil.estimation.effects import contrasts, designated, public_shares
from crowdveil.privacy.epsilon import Epsilon, EpsilonLike
from crowdveil.privacy.guarantee import Guarantee, Paradigm, Place, Unit
from crowdveil.privacy.guarantee import paradigm as find_paradigm
from crowdveil.privacy.ledger.entries import Charge, Crowd
from crowdveil.privacy.mechanisms.effect_counts import WEIGHT_STEPS, EffectCounts, EffectMechanism, PublicCrowd
from crowdveil.privacy.mechanisms.effect_reports import FactorAnswer, FactorCounts, FlippedChoiceEffects
from crowdveil.privacy.mechanisms.group_mechanism import Grouping
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.publish.request import Request, check_selection, checked_dataset, find_grouping, group_sizes
from crowdveil.study.study import Study

_NORMAL = 1.96


@dataclass(frozen=True)
class Weights:
    """Public survey weights of voters, and the largest weight that the survey allows."""

    of_voters: Mapping[str, float]
    """Voter's name -> weight."""
    bound: float
    """Stated beforehand. The noise covers a voter of this weight, whatever the actual weights are."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 < self.bound < float("inf"):
            raise CrowdveilError(f"the bound of weights must be a positive number, got {self.bound}")
        for voter, weight in self.of_voters.items():
            if not 0 <= weight <= self.bound:
                raise CrowdveilError(
                    f"the weight of voter {voter!r} is {weight}: weights run from 0 to the stated bound "
                    f"{float(self.bound):g}"
                )
        object.__setattr__(self, "bound", float(self.bound))  # a fraction is a number, too

    def __repr__(self) -> str:
        return f"<weights of {len(self.of_voters):,} voters, {self.bound:g} at most>"

    def steps(self, source: BallotSource) -> IntArray:
        """Return the weights in the order of the voters, in steps of the bound."""
        names = names_of(source)
        missing = [name for name in names if name not in self.of_voters]
        if missing:
            raise CrowdveilError(f"{len(missing)} of {len(names)} voters have no weight, the first is {missing[0]!r}")
        weights = np.array([self.of_voters[name] for name in names], np.float64)
        return np.floor(weights / self.bound * WEIGHT_STEPS).astype(np.int64)


def read_weights(path: str | Path, bound: float) -> Weights:
    """Read a table (CSV) with the columns voter and weight."""
    import polars as pl

    try:
        table = pl.read_csv(path, infer_schema=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise CrowdveilError(f"cannot read the weights in {path}: {str(error).splitlines()[0]}") from None
    if not {"voter", "weight"} <= set(table.columns):
        raise CrowdveilError(f"{path} needs the columns voter and weight, it has {', '.join(table.columns)}")
    numbers = table["weight"].cast(pl.Float64, strict=False)
    if numbers.has_nulls() or table["voter"].has_nulls() or table["voter"].is_duplicated().any():
        raise CrowdveilError(f"{path}: every row needs a voter who is named once, and a weight that is a number")
    return Weights(dict(zip(table["voter"].to_list(), numbers.to_list(), strict=True)), bound)


@dataclass(frozen=True)
class EffectsPreview:
    """A request for effects, checked against a crowd: its cost and its accuracy, before anything is spent."""

    settings: MechanismSettings
    guarantee: Guarantee
    mechanism: EffectMechanism
    contrasts: tuple[str, ...]
    """The pairs from which each factor's effect is computed, in words."""
    crowd: PublicCrowd
    charge: Charge
    records: int
    public_selection: str | None
    weight_bound: float = 1.0

    def __repr__(self) -> str:
        widest = f"{float(np.max(self.expected_half_widths)):.2g}"
        return (
            f"<preview: {self.charge.purpose}, epsilon {self.guarantee.epsilon}, {self.guarantee.voters} voters, "
            f"effects ± {widest} at most>"
        )

    @property
    def grouping(self) -> Grouping | None:
        """The question by which voters are grouped."""
        return self.mechanism.grouping

    @property
    def groups(self) -> int:
        """The number of groups."""
        return 1 if self.grouping is None else len(self.grouping.labels)

    @property
    def expected_half_widths(self) -> FloatArray:
        """The largest error of each effect at 95 %, for groups of equal size in which nobody prefers either side.

        The number of pairs for each factor comes from the public distribution of the study's dilemmas.
        """
        variances = self.mechanism.expected_variances(self.crowd, self.guarantee.voters, self.guarantee.epsilon)
        return np.asarray(np.minimum(_NORMAL * np.sqrt(variances), 1.0), np.float64)

    def as_dict(self) -> dict[str, Any]:
        """Return the preview as plain data."""
        names = [factor.name for factor in self.settings.study.factors]
        return {
            "dry_run": True,
            "guarantee": self.guarantee.as_dict(),
            "mechanism": self.mechanism.name,
            "by": None if self.grouping is None else self.grouping.question,
            "groups": [] if self.grouping is None else list(self.grouping.labels),
            "contrasts": dict(zip(names, self.contrasts, strict=True)),
            "expected_half_widths": dict(zip(names, self.expected_half_widths.round(4).tolist(), strict=True)),
            "dataset": self.charge.dataset,
            "records": self.records,
        }


def preview_effects(
    ballots: BallotSource,
    paradigm: str | Paradigm,
    *,
    epsilon: EpsilonLike,
    by: str | None = None,
    weights: Weights | None = None,
    one_record_each: bool = False,
    public_selection: str | None = None,
) -> EffectsPreview:
    """Compute the cost of effects and the width of their intervals. This spends nothing and draws no noise."""
    protected = find_paradigm(paradigm)
    level = Epsilon(epsilon)
    request = Request(protected, level, one_record_each=one_record_each, public_selection=public_selection)
    dataset = checked_dataset(ballots, request)
    study = ballots.study
    first = next(iter(ballots.batches()))
    grouping = None if by is None else find_grouping(first, by, dataset.voters)
    if grouping is not None and protected.unit is not Unit.VOTER:
        group_sizes(ballots, grouping)
    typed = first.scenarios is not None
    # How many records a voter has is secret, if voters are protected: they are taken to answer whole ballots.
    records = dataset.voters * study.drawing.dilemmas if protected.unit is Unit.VOTER else dataset.records
    crowd = _public_crowd(study, dataset.voters, records, typed=typed)
    if weights is not None:
        check_type(weights, Weights, "weights", "give Weights(of_voters, bound)")
        if protected.place is not Place.CENTRAL:
            raise CrowdveilError(f"weights need a trusted aggregator (vlcp, rlcp or alcp), got {protected.name}")
    steps = None if weights is None else weights.steps(ballots)
    mechanism = _mechanism(protected, level, grouping, crowd, steps)
    check_selection(dataset, public_selection)
    return EffectsPreview(
        settings=MechanismSettings(study, study.norm_bound),
        guarantee=Guarantee(protected, level, level, study.norm_bound, dataset.voters),
        mechanism=mechanism,
        contrasts=contrasts(study, typed=typed),
        crowd=crowd,
        charge=Charge(
            dataset=dataset.fingerprint,
            crowd=Crowd.of(study.feature_names, dataset.voters, dataset.digests),
            unit=protected.unit,
            epsilon=level.amount,
            records_per_voter=dataset.most_answers,
            purpose=f"{protected.name} effects" + ("" if by is None else f" by {by}"),
        ),
        records=dataset.records,
        public_selection=public_selection,
        weight_bound=1.0 if weights is None else weights.bound,
    )


def _public_crowd(study: Study, voters: int, records: int, *, typed: bool) -> PublicCrowd:
    share = np.maximum(public_shares(study, typed=typed), 1 / records)
    each = records / voters
    types = designated(study, typed=typed)
    apart = tuple(scenario is not None and types.count(scenario) == 1 for scenario in types)
    return PublicCrowd(apart, records * share, voters * (1 - (1 - share) ** each), 1 + (each - 1) * share)


def _mechanism(
    paradigm: Paradigm, epsilon: Epsilon, grouping: Grouping | None, crowd: PublicCrowd, weights: IntArray | None
) -> EffectMechanism:
    if paradigm.place is Place.CENTRAL:
        return replace(EffectCounts.planned(paradigm.unit, epsilon, crowd, grouping), weights=weights)
    match paradigm.unit:
        case Unit.VOTER:
            return FactorAnswer(grouping)
        case Unit.RECORD:
            return FactorCounts(grouping)
        case Unit.CHOICE:
            return FlippedChoiceEffects(grouping)
