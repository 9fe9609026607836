"""The request for a release, its cost and its error bars: all of it public, before a record is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from os import PathLike
from typing import Any, Self, TypeAlias, get_args

import numpy as np
import polars as pl

from crowdveil.arrays import FloatArray
from crowdveil.ballots.ballots import (
    Ballots,
    BallotSource,
    CrowdCounts,
    census,
    check_one_record_each,
    check_source,
    is_source,
    names_of,
)
from crowdveil.ballots.columns import check_distinct, names_from_digests, unknown_question
from crowdveil.engines.batches import add_up
from crowdveil.errors import CrowdveilError, check_flag, check_text, is_number, path_of, shown
from crowdveil.estimation.dilemmas import public_dilemmas
from crowdveil.privacy.epsilon import Epsilon, EpsilonLike, Epsilons, PrivacyMeasure
from crowdveil.privacy.guarantee import Guarantee, Paradigm, Place, Unit
from crowdveil.privacy.guarantee import paradigm as find_paradigm
from crowdveil.privacy.ledger.entries import Charge, Crowd
from crowdveil.privacy.mechanisms.group_mechanism import Grouping
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings, Sensitivity
from crowdveil.privacy.mechanisms.registry import (
    CENTRAL,
    DISTRIBUTED,
    MECHANISMS,
    budget_parts,
    central,
    check_along_known,
    check_options,
    distributed,
    mechanism_name,
    recommended_along,
)
from crowdveil.privacy.noise.distribution import NoiseDistribution
from crowdveil.privacy.uncertainty import ERROR_BAR
from crowdveil.privacy.zcdp import ZcdpBudget
from crowdveil.study.study import Study, check_along

FEWEST_VOTERS = 2
FEWEST_IN_GROUP = 2
LABELS_PROTECTED = (
    "what voters said of themselves may be replaced with their records: who is in which group is protected, too"
)
LABELS_NOT_PROTECTED = "a record or a choice is protected, and what voters said of themselves is no part of it"

SomeEpsilon: TypeAlias = "EpsilonLike | Epsilons | Sequence[EpsilonLike] | FloatArray"
"""One epsilon for all voters, or a list of personal ones, in the order of the voters."""


@dataclass(frozen=True)
class Request:
    """A request for a release: everything public, chosen before a record is looked at."""

    paradigm: Paradigm
    epsilon: Epsilon | Epsilons | ZcdpBudget
    """One for all voters, or (distributed paradigms) one per voter, in the order of the voters, or a rho."""
    mechanism: str | None = None
    """None for the one recommended for this paradigm, "paper" for the paper's. With a rho it is gaussian-mean."""
    norm_bound: float | None = None
    """None for the study's."""
    repair: bool = True
    sensitivity: Sensitivity = "tight"
    equal_votes: bool = False
    robust: float = 0.0
    design: BallotSource | str | None = None
    """Ballots with public dilemmas, or "study" if its own generator drew the dilemmas. None if they are not known."""
    along: str | None = None
    """"factors", or "features" to measure every direction in which these differ. None if public numbers decide."""
    one_record_each: bool = False
    """Whether voters with one record each are confirmed as people (``check_one_record_each``)."""
    public_selection: str | None = None
    """How the voters were selected, declared public: who is among them is then not protected."""

    @classmethod
    def of(
        cls,
        paradigm: str | Paradigm,
        epsilon: SomeEpsilon | None,
        zcdp: ZcdpBudget | None = None,
        *,
        mechanism: str | None = None,
        norm_bound: float | None = None,
        sensitivity: Sensitivity = "tight",
        repair: bool = True,
        equal_votes: bool = False,
        robust: float = 0.0,
        design: BallotSource | str | None = None,
        along: str | None = None,
        one_record_each: bool = False,
        public_selection: str | None = None,
    ) -> Self:
        """Build a request from names and numbers as people write them."""
        level = _level(epsilon, zcdp)
        return cls(
            find_paradigm(paradigm),
            level,
            mechanism=mechanism,
            norm_bound=norm_bound,
            repair=repair,
            sensitivity=sensitivity,
            equal_votes=equal_votes,
            robust=robust,
            design=design,
            along=along,
            one_record_each=one_record_each,
            public_selection=public_selection,
        )

    def __post_init__(self) -> None:
        if not isinstance(self.paradigm, Paradigm):
            raise CrowdveilError(f"the paradigm is {self.paradigm!r}: find it by name with paradigm('vlcp')")
        if not isinstance(self.epsilon, Epsilon | Epsilons | ZcdpBudget):
            raise CrowdveilError(f"the epsilon is {self.epsilon!r}: use Epsilon(1), Epsilons([...]) or a ZcdpBudget")
        for text, name in ((self.mechanism, "the mechanism"), (self.public_selection, "public_selection")):
            if text is not None:
                check_text(text, name)
        for name in ("repair", "equal_votes", "one_record_each"):
            check_flag(getattr(self, name), name)
        if self.norm_bound is not None and not (is_number(self.norm_bound) and 0 < self.norm_bound < np.inf):
            raise CrowdveilError(
                f"the norm bound B must be a positive number (the paper uses 2), got {shown(self.norm_bound)}"
            )
        if not (isinstance(self.sensitivity, str) and self.sensitivity in get_args(Sensitivity)):
            raise CrowdveilError(
                f"the sensitivity is {shown(self.sensitivity)}: use {' or '.join(get_args(Sensitivity))}"
            )
        if not (is_number(self.robust) and 0 <= self.robust < 0.5):
            raise CrowdveilError(
                f"the share of reports to pull in at each end must be from 0 to below 0.5, got {shown(self.robust)}"
            )
        if not (self.design is None or isinstance(self.design, str) or is_source(self.design)):
            raise CrowdveilError(
                f"the design is {shown(self.design)}: give ballots whose dilemmas are public, or 'study' if its own "
                "generator drew them"
            )
        if is_source(self.design):
            check_source(self.design)
        check_along(self.along, "along")
        if isinstance(self.epsilon, Epsilons) and self.paradigm.place is Place.CENTRAL:
            raise CrowdveilError(
                f"{self.paradigm.name} adds one noise for all: personal epsilons need vldp, rldp or aldp"
            )


@dataclass(frozen=True)
class Preview:
    """A request checked against a crowd: its cost and its accuracy, before anything is spent."""

    settings: MechanismSettings
    mechanism: str
    guarantee: Guarantee
    epsilons: Epsilons
    dataset: CrowdCounts
    public_selection: str | None = None

    @property
    def expected_noise(self) -> NoiseDistribution | None:
        """The noise in the released parameter, if it is known beforehand."""
        if self.mechanism in CENTRAL:
            trusted = central(self.mechanism, self.settings.study)
            return trusted.expected_noise(self.settings, self.dataset.voters, self.loss)
        return distributed(self.mechanism, self.settings.study).expected_noise(self.settings, self.epsilons)

    @property
    def loss(self) -> Epsilon | Fraction:
        """The privacy loss that a central mechanism takes: an epsilon, or the rho of zCDP."""
        return self.guarantee.epsilon if self.guarantee.rho is None else self.guarantee.rho.fraction

    @property
    def expected_error_bar(self) -> float | None:
        """The most by which the noise would move any coordinate, with 95 % probability each; None if not known yet."""
        noise = self.expected_noise
        return None if noise is None else float(np.max(noise.half_widths(ERROR_BAR)))

    @property
    def split(self) -> dict[str, float]:
        """The parts of a central epsilon, or of the reports of devices, and what each part is for."""
        loss = self.loss if isinstance(self.loss, Epsilon) and self.mechanism in CENTRAL else None
        return budget_parts(self.mechanism, self.settings.study, loss)

    @property
    def charge(self) -> Charge:
        """The charge to a ledger."""
        guarantee = self.guarantee
        return Charge(
            dataset=self.dataset.fingerprint,
            crowd=Crowd.of(self.settings.study.feature_names, self.dataset.voters, self.dataset.digests),
            unit=guarantee.paradigm.unit,
            epsilon=guarantee.epsilon.amount,
            records_per_voter=self.dataset.most_answers,
            purpose=f"{guarantee.paradigm.name} {self.mechanism}",
            rho=guarantee.rho,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the preview as plain data."""
        noise = self.expected_noise
        return {
            "dry_run": True,
            "guarantee": self.guarantee.as_dict(),
            "mechanism": self.mechanism,
            **({"split": self.split} if len(self.split) > 1 else {}),
            "expected_noise": None if noise is None else noise.description,
            "expected_error_bar": self.expected_error_bar,
            "dataset": self.dataset.fingerprint,
            "records": self.dataset.records,
        }

    def __repr__(self) -> str:
        bar = self.expected_error_bar
        noise = "noise known only afterwards" if bar is None else f"noise ± {bar:.3g}"
        return (
            f"<preview: {self.charge.purpose}, epsilon {self.guarantee.epsilon}, {self.dataset.voters} voters, {noise}>"
        )


def preview_request(source: BallotSource, request: Request) -> Preview:
    """Check a request against the crowd. This spends nothing and draws no noise."""
    dataset = checked_dataset(source, request)
    study = source.study
    bound = float(study.norm_bound if request.norm_bound is None else request.norm_bound)
    epsilons = everybodys(request.epsilon, dataset.voters)
    measure = PrivacyMeasure.RHO if isinstance(request.epsilon, ZcdpBudget) else PrivacyMeasure.EPSILON
    name = mechanism_name(request.paradigm, request.mechanism, study, epsilons, measure)
    given = None if request.design is None else public_dilemmas(request.design, study, dataset.fingerprint)
    settings = MechanismSettings(
        study,
        bound,
        request.repair,
        request.sensitivity,
        request.equal_votes,
        request.robust,
        drawn=name in DISTRIBUTED and given is not None,
        design=given,
        voters=dataset.voters,
    )
    check_options(MECHANISMS[name], settings)
    if settings.drawn and settings.design is not None and settings.design.differences is not None:
        raise CrowdveilError(
            f"reports of {name} are made along the study's own axes, before anybody knows which dilemmas were asked: "
            "the design can only be 'study', if its own generator drew them"
        )
    settings = replace(settings, study=_along(request, settings, name, epsilons.smallest))
    guarantee = Guarantee(request.paradigm, epsilons.largest, epsilons.smallest, bound, dataset.voters)
    if isinstance(request.epsilon, ZcdpBudget):
        guarantee = replace(guarantee, delta=request.epsilon.delta, rho=request.epsilon.rho)
    return Preview(
        settings=settings,
        mechanism=name,
        guarantee=guarantee,
        epsilons=epsilons,
        dataset=dataset,
        public_selection=request.public_selection,
    )


def _along(request: Request, settings: MechanismSettings, name: str, epsilon: Epsilon) -> Study:
    """Return the study with what the release measures: what was asked for, or what promises the least error."""
    if request.along is not None:
        check_along_known(name)
    assert settings.voters is not None  # a file's voters were counted
    along = request.along or recommended_along(name, settings, settings.voters, epsilon)
    return replace(settings.study, along=along)


def checked_dataset(source: BallotSource, request: Request) -> CrowdCounts:
    """Count a crowd, and refuse one about which the request could promise nothing."""
    check_source(source)
    dataset = census(source)
    if dataset.voters < FEWEST_VOTERS:
        raise CrowdveilError(
            f"one voter is not a crowd: a release needs at least {FEWEST_VOTERS}, got {dataset.voters}"
        )
    if request.paradigm.unit is Unit.VOTER:
        check_one_record_each(source.study, dataset.voters, dataset.records, request.one_record_each)
    if dataset.digests is not None:
        check_distinct(names_from_digests(dataset.digests), "these ballots")
    return dataset


def preview_allowed(source: BallotSource, request: Request) -> Preview:
    """Check a request against the crowd, and whether a release of these voters is allowed (``check_selection``)."""
    asked = preview_request(source, request)
    check_selection(asked.dataset, asked.public_selection)
    return asked


def check_selection(dataset: CrowdCounts, public_selection: str | None) -> None:
    """Refuse a crowd whose membership may reveal what is to be protected, unless it is declared public."""
    selection = dataset.selection
    if selection is not None and selection != public_selection:
        raise CrowdveilError(
            f"these voters were selected by {selection!r}: if that depends on their records or on what they said of "
            "themselves, a release about them tells who is among them. If everybody may know who is, declare it with "
            f"public_selection={selection!r} (--public-selection); else release the whole crowd or a seeded split"
        )


def check_ledger(ledger: object) -> None:
    """Refuse anything that cannot be charged, such as the path of a ledger."""
    if not hasattr(ledger, "charge"):
        raise CrowdveilError(f"the ledger is {shown(ledger)}: open it first, with Ledger.open(path, budget=3)")


def check_seed(seed: object) -> None:
    """Refuse a seed that is not a whole number from 0 up."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise CrowdveilError(f"the seed is {shown(seed)}: use a whole number, 0 or more")


def check_smallest(smallest: object) -> None:
    """Refuse a threshold for merging groups that is not a whole number of voters."""
    if isinstance(smallest, bool) or not isinstance(smallest, int) or smallest < 0:
        raise CrowdveilError(f"the smallest group is {shown(smallest)}: use a whole number of voters, 0 or more")


def find_grouping(ballots: Ballots, by: str, voters: int) -> Grouping:
    """Find a question that voters answered about themselves, with its public levels."""
    if not isinstance(by, str) or by not in ballots.about:
        raise unknown_question(by, ballots.about, "these ballots")
    labels = ballots.about[by].labels
    if len(labels) < 2 or FEWEST_IN_GROUP * len(labels) > voters:
        raise CrowdveilError(
            f"the question {by!r} has {len(labels)} levels for {voters} voters: groups need two levels or more, and "
            f"{FEWEST_IN_GROUP} voters each; merge some levels in the mapping"
        )
    return Grouping(by, labels)


def group_sizes(source: BallotSource, grouping: Grouping) -> list[int]:
    """Count the voters in each group, which is public here, and refuse groups of one voter."""
    counted = add_up(source, lambda batch: np.bincount(grouping.codes(batch) + 1, minlength=len(grouping.labels) + 1))
    sizes: list[int] = counted[1:].tolist()
    for label, size in zip(grouping.labels, sizes, strict=True):
        if size < FEWEST_IN_GROUP:
            raise CrowdveilError(
                f"the group {label!r} of {grouping.question!r} has {size} voter{'' if size == 1 else 's'}, and "
                f"{FEWEST_IN_GROUP} are the least: join it with another level in the mapping"
            )
    return sizes


def _level(epsilon: SomeEpsilon | None, zcdp: ZcdpBudget | None) -> Epsilon | Epsilons | ZcdpBudget:
    """Read an epsilon as people write it: a number for all, or a list of personal ones; or a rho instead."""
    if (epsilon is None) == (zcdp is None):
        raise CrowdveilError(
            "give either an epsilon (epsilon=1, or a list of personal ones) or a rho (zcdp=ZcdpBudget(0.02, 1e-6))"
        )
    if zcdp is not None:
        if not isinstance(zcdp, ZcdpBudget):
            raise CrowdveilError(f"zcdp is {shown(zcdp)}: use ZcdpBudget(rho, delta), like ZcdpBudget(0.02, 1e-6)")
        return zcdp
    if isinstance(epsilon, Epsilons):
        return epsilon
    if isinstance(epsilon, Iterable) and not isinstance(epsilon, str):
        return Epsilons(epsilon)
    assert epsilon is not None  # one of the two was given
    return Epsilon(epsilon)


def everybodys(epsilon: Epsilon | Epsilons | ZcdpBudget, voters: int) -> Epsilons:
    """Return the epsilon of each of so many voters; of a rho, the one that goes with its delta."""
    if isinstance(epsilon, Epsilons):
        if len(epsilon) != voters:
            raise CrowdveilError(
                f"{len(epsilon)} personal epsilons were given for {voters} voters: give one for each, in their order"
            )
        return epsilon
    return Epsilons.same(epsilon.epsilon if isinstance(epsilon, ZcdpBudget) else epsilon, voters)


def read_personal_epsilons(path: str | PathLike[str], source: BallotSource) -> Epsilons:
    """Read the columns ``voter`` and ``epsilon`` (CSV) and return the epsilons in the order of the voters.

    Every voter needs exactly one row. Rows of people who did not vote are an error too, since a misspelt name would
    silently change somebody's protection.
    """
    path = path_of(path, "the file of epsilons")
    check_source(source)
    try:
        table = pl.read_csv(path, infer_schema=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        why = str(error).splitlines()[0]
        raise CrowdveilError(
            f"cannot read the epsilons in {path}: {why}; give a CSV with the columns voter and epsilon"
        ) from None
    if not {"voter", "epsilon"} <= set(table.columns):
        raise CrowdveilError(f"{path} needs the columns voter and epsilon, it has {', '.join(table.columns)}")
    chosen: dict[str, Epsilon] = {}
    for line, (voter, epsilon) in enumerate(table.select("voter", "epsilon").iter_rows(), start=2):
        if voter is None or voter in chosen:
            raise CrowdveilError(
                f"{path}, line {line}: voter {voter!r} is {'missing' if voter is None else 'there twice'}"
            )
        try:
            chosen[voter] = Epsilon(epsilon or "")
        except CrowdveilError as error:
            raise CrowdveilError(f"{path}, line {line}: {error}") from None
    voters = names_of(source)
    without = [name for name in voters if name not in chosen]
    if without:
        raise CrowdveilError(
            f"{path} has no epsilon for {len(without)} of {len(voters)} voters, the first is {without[0]!r}"
        )
    if strangers := chosen.keys() - set(voters):
        raise CrowdveilError(
            f"{path} names {len(strangers)} people who are not among the voters, one is {min(strangers)!r}"
        )
    return Epsilons(chosen[name] for name in voters)
