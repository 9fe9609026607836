"""The interface of mechanisms: exact records go in, and only differentially private output comes out.

A central mechanism first measures (exact integers, never published), then adds noise once. A distributed mechanism
turns each voter's records into a report on that voter's device, and whoever collects the reports sees nothing else.
Both return an ``Estimate``, of which every field may be published.

A mechanism's class describes it completely: to add one, write a file and add a line to the registry.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np

from crowdveil.arrays import BoolArray, FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots, BallotSource
from crowdveil.engines.batches import Tally, add_up
from crowdveil.estimation.design import Design, PublicDilemmas
from crowdveil.estimation.disagreement import DISAGREEMENT, common_size_of
from crowdveil.estimation.prior import rest_deviation
from crowdveil.privacy.epsilon import Epsilon, Epsilons, PrivacyMeasure
from crowdveil.privacy.mechanisms.expected_errors import ExpectedErrors
from crowdveil.privacy.mechanisms.integer_scores import ScoringParameters
from crowdveil.privacy.mechanisms.reports import LevelSums, R, WireFormat
from crowdveil.privacy.noise.distribution import NoiseDistribution
from crowdveil.privacy.noise.source import Noise
from crowdveil.privacy.side_answers import Indifference, Reliability
from crowdveil.privacy.uncertainty import REACH, Uncertainty
from crowdveil.study.study import Study

L = TypeVar("L", contravariant=True)
N = TypeVar("N", contravariant=True)

Sensitivity = Literal["tight", "paper"]


class Estimand(StrEnum):
    """The quantity that a mechanism estimates."""

    SOCIETY = "society"
    """The mean of the voters' bounded fits: the paper's society."""
    PREFERENCE = "preference"
    """The one preference that best fits the crowd's choices."""
    EFFECTS = "effects"
    """For each factor, the share that preferred the side with more of it minus the share that preferred the other."""


@dataclass(frozen=True)
class MechanismSettings:
    """The public settings of a mechanism, all chosen before any record is read."""

    study: Study
    norm_bound: float
    repair: bool = True
    """Whether to regularise and trim a noisy quadratic, which otherwise has no maximum."""
    sensitivity: Sensitivity = "tight"
    """The tighter of the two proved sensitivities of an objective function, or the paper's."""
    equal_votes: bool = False
    """Whether every voter counts the same, as in the paper, however noisy the report."""
    robust: float = 0.0
    """Share of reports with unbounded noise to Winsorise, at each end of each coordinate (``reports``)."""
    drawn: bool = False
    """Whether the study's own generator drew the dilemmas, as in a poll, so that their distribution is known."""
    design: PublicDilemmas | None = None
    """Public dilemmas, to use in place of a guess about the dilemmas of secret records."""
    voters: int | None = None
    """Number of voters in a file, which is public: it decides what is worth a report."""

    def dilemma_facts(self, otherwise: str) -> dict[str, str]:
        """Return the fact about the dilemmas: what is known of them, or else what the mechanism did about them."""
        if self.design is not None:
            return {"dilemmas": self.design.words}
        return {"dilemmas": _POLL_DREW if self.drawn else otherwise}


_POLL_DREW = "The dilemmas are the study's own, as the poll drew them."
DILEMMAS_PUBLIC = "The dilemmas are known: only the choices are secret."


def dilemmas_in_doubt(
    share: float, of_what: str = "what they show along each axis", shown: tuple[float, float] | None = None
) -> str:
    """Return the fact about dilemmas that were not looked at, for which error bars allow by this share.

    ``shown`` bounds how much of the preference they show, if error bars allow for that, too.
    """
    more = "" if shown is None else f", and for their showing {shown[0]:.0%} to {shown[1]:.0%} of the preference"
    return f"The dilemmas are taken to be the study's own; error bars allow for {share:.0%} of {of_what}{more}."


def dilemmas_measured(by: str, *, together: bool) -> str:
    """Return the fact about dilemmas that were looked at, whoever drew them."""
    more = ", and how the axes go together" if together else ""
    return f"The dilemmas need not be the study's own: {by} measured how much they differ along each axis{more}."


def neutral_options(study: Study) -> Mapping[str, Any]:
    """Return the settings that only some mechanisms support, with their neutral values."""
    return {
        "norm_bound": study.norm_bound,
        "repair": True,
        "sensitivity": "tight",
        "equal_votes": False,
        "robust": 0.0,
        "design": None,
    }


@dataclass(frozen=True)
class Estimate:
    """The parameter as a mechanism releases it, with the distribution of its noise (over the features)."""

    parameter: FloatArray
    noise: NoiseDistribution
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further public facts, computed from private output or public settings only."""
    unknown: Uncertainty | None = None
    """All other uncertainty about a crowd's preference; None for the paper's society."""
    indifference: Indifference | None = None
    """The crowd's threshold, in a study that allows a third answer."""
    reliability: Reliability | None = None
    """The share of people who answer consistently, in a study that asks one dilemma twice."""


def uncertainty_along(
    design: Design,
    *,
    mean: FloatArray,
    covariance: FloatArray,
    center: FloatArray,
    sampling: FloatArray,
    doubt: FloatArray,
    freedom: int | None = None,
    records: float | None = None,
    turn: float = 0.0,
    size: float = 0.0,
    shift: float = 0.0,
    unasked: FloatArray | None = None,
    divided: FloatArray | None = None,
    shown: tuple[float, float] = (1.0, 1.0),
) -> Uncertainty:
    """Return the uncertainty along the axes of a design; the directions that it leaves out keep their prior.

    That is the prior for a population. A crowd of this many records (or at least this many) has a preference in these
    directions even if the population has none: from n records without a preference, its variance along an axis is pi /
    2 over n minus the number of directions, and about twice that with margins of the usual size. In the crowd's
    dilemmas these directions also correlate slightly with the factors, which shifts a fit to the factors alone. In
    simulated crowds of 200 to 6,500 records (tests/statistics/crowd_rest.py) the two standard deviations are 1.2 to 1.8
    over the root of that difference, and up to 11 over the difference itself.

    ``shift`` bounds, per unit of length, how far an estimate without noise is from the crowd's own preference for any
    other reason. ``divided`` is the sampling covariance of a population that is divided along a single direction, where
    ``sampling`` supposes that it is not. ``shown`` bounds how much of the preference the dilemmas show, relative to
    those that the estimate supposes.

    ``unasked`` projects onto directions that no dilemma was about (``never_asked``). There the estimate is zero, and
    the truth may be anything: an error of length 2 REACH in these directions is at most that times the root of the
    projection's diagonal along each axis.
    """
    if unasked is not None:
        asked = np.eye(len(unasked)) - unasked
        mean, center, sampling = asked @ mean, asked @ center, asked @ sampling @ asked
        divided = None if divided is None else asked @ divided @ asked
        doubt = doubt + 2 * REACH * np.sqrt(np.diag(unasked))
    left_out = design.rest_basis.shape[1]
    prior = rest_deviation(left_out)
    stretch = 1.0
    if records is not None and left_out:
        telling = max(records - design.directions - left_out - 1, 1)
        stretch = math.sqrt(1 + _DRAWN_VARIANCE / telling / prior**2)
        shift += _DRAWN_SHIFT / telling
    basis = design.basis
    rest = design.rest_basis * prior
    return Uncertainty(
        basis,
        rest,
        mean,
        covariance,
        center,
        sampling,
        doubt,
        freedom,
        drawn_rest=stretch,
        drawn_shift=shift,
        left_out=design.left_out,
        turn=turn,
        size=size,
        disagreement=DISAGREEMENT,
        common=common_size_of(design.norms, design.directions - design.left_out),
        divided=divided,
        shown=shown,
    )


def never_asked(*batches: FloatArray) -> FloatArray:
    """Return the projection onto the directions in which none of these dilemmas (rows, along the axes) differ."""
    dilemmas = sum(len(batch) for batch in batches)
    values, vectors = np.linalg.eigh(sum(batch.T @ batch for batch in batches) / dilemmas)
    still = vectors[:, values < _STILL]
    return np.asarray(still @ still.T, np.float64)


_STILL = 1e-12
"""Mean square along an axis of unit size below which dilemmas differ by rounding errors only."""
_DRAWN_VARIANCE = math.pi
"""Sampling variance of a crowd's preference along an axis, times the number of records."""
_DRAWN_SHIFT = 45.0
"""Four standard deviations of the shift, times the number of records. It covers nine axes in 99 of 100 crowds."""


@dataclass(frozen=True)
class Measurement:
    """Exact integers about the crowd. Private: nothing here may leave without noise."""

    total: IntArray
    voters: int
    records: int
    source: BallotSource | None = None
    """The crowd itself, if later steps read it again."""
    design: Design | None = None
    """The dilemmas and axes used to measure it."""
    squared_lengths: int = 0
    """Sum of the squares of voters' numbers of records."""


def measured(source: BallotSource, tally: Tally) -> Measurement:
    """Sum a tally over the crowd, with the numbers of voters and records. The result is the same on every engine."""
    voters, records, *total = add_up(source, partial(_with_counts, tally)).tolist()
    return Measurement(np.array(total, np.int64), voters, records)


def _with_counts(tally: Tally, ballots: Ballots) -> IntArray:
    return np.concatenate([[ballots.voters, ballots.records], tally(ballots)])


class Mechanism(Protocol):
    """The description of any mechanism."""

    @property
    def name(self) -> str:
        """Its name in releases and on the command line."""

    @property
    def title(self) -> str:
        """A technical description."""

    @property
    def words(self) -> str:
        """A description for laypeople: "noise, added once, to ..."."""

    @property
    def paradigms(self) -> tuple[str, ...]:
        """The paradigms that it serves."""

    @property
    def papers(self) -> tuple[str, ...]:
        """The paradigms for which it is the paper's mechanism."""

    @property
    def options(self) -> tuple[str, ...]:
        """Those of the ``neutral_options`` that it supports."""


class CrowdMechanism(Mechanism, Protocol):
    """A mechanism that releases one estimate for the whole crowd."""

    @property
    def estimates(self) -> Estimand:
        """The quantity that it estimates."""

    @property
    def third_answer(self) -> bool:
        """Whether it supports a study that allows a third answer."""

    @property
    def fits_once(self) -> bool:
        """Whether one fit of the voters serves any number of draws of its noise, so that these are cheap."""

    def expected_errors(
        self, settings: MechanismSettings, voters: int, records: int, epsilon: Epsilon
    ) -> ExpectedErrors | None:
        """Return the errors to expect of voters with this many records each; None if they were never measured."""


class CentralMechanism(CrowdMechanism, Protocol[L, N]):
    """A mechanism whose noise a trusted aggregator adds. L is the type of its privacy loss, N its noise source."""

    @property
    def takes(self) -> PrivacyMeasure:
        """The measure of its privacy loss: an ``Epsilon``, or the rho of zCDP as a ``Fraction``."""

    def measure(self, source: BallotSource, settings: MechanismSettings, loss: L) -> Measurement:
        """Compute the exact integers that noise will be added to."""

    def release(self, measurement: Measurement, settings: MechanismSettings, loss: L, noise: N) -> Estimate:
        """Add noise and estimate. The only place where noise enters."""

    def expected_noise(self, settings: MechanismSettings, voters: int, loss: L) -> NoiseDistribution:
        """Return the noise that the estimate would carry, before anything is spent."""


class DistributedMechanism(CrowdMechanism, Protocol[R]):
    """A mechanism whose noise each voter's device adds. R is the type of a batch of reports."""

    @property
    def wire(self) -> WireFormat[R]:
        """The wire format of its reports."""

    def scoring(self, study: Study) -> ScoringParameters | None:
        """Return the parameters that a device needs to score records; None if the mechanism scores nothing."""

    @property
    def tosses_coins(self) -> bool:
        """Whether a device flips choices, rather than adding noise or drawing signs."""

    @property
    def relayable(self) -> bool:
        """Whether a relay may carry its reports: ``report_size`` bits that protect all of a voter (``shuffling``)."""

    @property
    def by_group(self) -> bool:
        """Whether a preference is computed from sums of its reports, which can be separated by group."""

    @property
    def counts_effects(self) -> bool:
        """Whether effects can be counted in its reports (``ChoiceReports``), which name all dilemmas and choices."""

    def report_size(self, study: Study, epsilon: Epsilon) -> int | None:
        """Return the number of coordinates, signs or choices in a report; None if the mechanism does not choose it."""

    def report(self, ballots: Ballots, settings: MechanismSettings, epsilons: Epsilons, noise: Noise) -> R:
        """Make the reports of these voters, with the epsilon of each. The only place where noise enters."""

    def acceptable(self, reports: R, settings: MechanismSettings) -> BoolArray:
        """Return for each voter whether an honest device could have made the report; others must be refused."""

    def condense(self, reports: R, settings: MechanismSettings) -> R | LevelSums:
        """Return what ``aggregate`` needs of these reports: their sums, if these suffice."""

    def aggregate(self, reports: Iterable[R | LevelSums], settings: MechanismSettings) -> Estimate:
        """Compute the estimate from reports alone, condensed or not."""

    def expected_noise(self, settings: MechanismSettings, epsilons: Epsilons) -> NoiseDistribution | None:
        """Return the noise that the estimate would carry, before any report; None if it has no simple form."""


@runtime_checkable
class FitMechanism(DistributedMechanism[R], Protocol):
    """A distributed mechanism whose reports are made from the voters' fits alone."""

    def perturb_fits(self, fits: FloatArray, settings: MechanismSettings, epsilons: Epsilons, noise: Noise) -> R:
        """Make the reports of voters who are fitted already, one row each. The only place where noise enters."""


class DistributedSociety:
    """The description that distributed mechanisms of the paper's society share: they do none of what others do."""

    estimates = Estimand.SOCIETY
    third_answer = False  # a mean of fits to chosen sides cannot express "neither"
    fits_once = False
    tosses_coins = False
    relayable = False
    by_group = False
    counts_effects = False

    def scoring(self, study: Study) -> ScoringParameters | None:
        """Return None: nothing is scored."""
        return None

    def report_size(self, study: Study, epsilon: Epsilon) -> int | None:
        """Return None: the study alone determines the length of a report."""
        return None

    def expected_errors(
        self, settings: MechanismSettings, voters: int, records: int, epsilon: Epsilon
    ) -> ExpectedErrors | None:
        """Return None: no release of a society is forecast."""
        return None


class MechanismDescription:
    """The description of a mechanism, for one that runs it and releases something else beside it."""

    def __init__(self, inner: CrowdMechanism) -> None:
        self.name = inner.name
        self.title = inner.title
        self.words = inner.words
        self.paradigms = inner.paradigms
        self.papers = inner.papers
        self.options = inner.options
        self.estimates = inner.estimates
        self.third_answer = inner.third_answer
