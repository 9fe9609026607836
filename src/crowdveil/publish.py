"""From ballots to a release: charge the ledger, draw the noise, write the file, in this order and no other.

A process that dies on the way leaves a charge without a release, never a release without its charge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from crowdveil.ballots import Ballots, BallotSource, Census, census
from crowdveil.engines.batches import map_batches
from crowdveil.errors import CrowdveilError
from crowdveil.files import check_writable
from crowdveil.privacy.concentrated import ZcdpBudget
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.guarantee import Guarantee, Paradigm, Place, Unit
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.privacy.mechanisms.mechanism import DistributedMechanism, Estimate, Loss, Sensitivity, Settings
from crowdveil.privacy.mechanisms.registry import CENTRAL, DISTRIBUTED, MECHANISMS, check_options, mechanism_name
from crowdveil.privacy.noise.bulk_noise import BulkNoise
from crowdveil.privacy.noise.distribution import NoiseDistribution
from crowdveil.privacy.noise.float_noise import FloatNoiseForExperiments
from crowdveil.privacy.noise.opendp_noise import OpenDPNoise
from crowdveil.privacy.noise.source import Noise
from crowdveil.privacy.zcdp import OpenDPGaussian
from crowdveil.releases import ERROR_BAR, Release, save_release
from crowdveil.version import VERSION

FEWEST_VOTERS = 2
REPORTS_MADE_BY = "the holder of the ballots, as each voter's device would: the holder saw the answers"


@dataclass(frozen=True)
class Request:
    """What is asked for: everything public, chosen before an answer is looked at."""

    paradigm: Paradigm
    epsilon: Epsilon | Epsilons | ZcdpBudget
    """One for all, or (distributed paradigms) each voter's own, in the voters' order, or a rho."""
    mechanism: str | None = None
    """None: the recommended one for this paradigm; "paper": the paper's. With a rho there is only gaussian-mean."""
    norm_bound: float | None = None
    """None: the study's."""
    repair: bool = True
    sensitivity: Sensitivity = "tight"
    equal_votes: bool = False
    robust: float = 0.0


@dataclass(frozen=True)
class Prepared:
    """A request checked against a crowd: what it would cost and give, before anything is spent."""

    settings: Settings
    mechanism: str
    guarantee: Guarantee
    epsilons: Epsilons
    dataset: Census

    @property
    def expected_noise(self) -> NoiseDistribution | None:
        """The noise that the society would carry, where it is known beforehand."""
        if self.mechanism in CENTRAL:
            return CENTRAL[self.mechanism].expected_noise(self.settings, self.dataset.voters, self.loss)
        return DISTRIBUTED[self.mechanism].expected_noise(self.settings, self.epsilons)

    @property
    def loss(self) -> Epsilon | Fraction:
        """The privacy loss that a central mechanism takes: an epsilon, or the rho of zCDP."""
        return self.guarantee.epsilon if self.guarantee.rho is None else self.guarantee.rho

    def as_dict(self) -> dict[str, Any]:
        """Return it in plain words."""
        noise = self.expected_noise
        return {
            "dry_run": True,
            "guarantee": self.guarantee.as_dict(),
            "mechanism": self.mechanism,
            "expected_noise": None if noise is None else noise.description,
            "expected_error_bar": None if noise is None else float(np.max(noise.half_widths(ERROR_BAR))),
            "dataset": self.dataset.fingerprint,
            "records": self.dataset.records,
        }


def prepare(source: BallotSource, request: Request) -> Prepared:
    """Check a request against the crowd. Spends nothing and draws no noise."""
    study, dataset = source.study, census(source)
    if dataset.voters < FEWEST_VOTERS:
        raise CrowdveilError(
            f"one voter is not a crowd: a release needs at least {FEWEST_VOTERS}, got {dataset.voters}"
        )
    bound = study.norm_bound if request.norm_bound is None else request.norm_bound
    if not 0 < bound < np.inf:
        raise CrowdveilError(f"the norm bound B must be a positive number (the paper uses 2), got {bound}")
    if isinstance(request.epsilon, ZcdpBudget):
        epsilons = Epsilons.same(request.epsilon.epsilon, dataset.voters)
    elif isinstance(request.epsilon, Epsilon):
        epsilons = Epsilons.same(request.epsilon, dataset.voters)
    elif request.paradigm.place is Place.CENTRAL:
        raise CrowdveilError(f"{request.paradigm.name} adds one noise for all: personal epsilons need vldp or rldp")
    elif len(request.epsilon) != dataset.voters:
        raise CrowdveilError(f"{len(request.epsilon)} personal epsilons were given for {dataset.voters} voters")
    else:
        epsilons = request.epsilon
    if not 0 <= request.robust < 0.5:
        raise CrowdveilError(
            f"the share of reports to pull in at each end must be from 0 to below 0.5, got {request.robust}"
        )
    loss = Loss.RHO if isinstance(request.epsilon, ZcdpBudget) else Loss.EPSILON
    name = mechanism_name(request.paradigm, request.mechanism, study, epsilons, loss)
    settings = Settings(study, float(bound), request.repair, request.sensitivity, request.equal_votes, request.robust)
    check_options(MECHANISMS[name], settings)
    guarantee = Guarantee(request.paradigm, epsilons.largest, epsilons.smallest, float(bound), dataset.voters)
    if isinstance(request.epsilon, ZcdpBudget):
        guarantee = replace(guarantee, delta=request.epsilon.delta, rho_micro=request.epsilon.rho_micro)
    return Prepared(
        settings=settings,
        mechanism=name,
        guarantee=guarantee,
        epsilons=epsilons,
        dataset=dataset,
    )


class Charge(Protocol):
    """An entry in a book."""

    @property
    def ledger(self) -> str:
        """Which book it is in."""

    @property
    def id(self) -> int:
        """Its number there."""


class Book(Protocol):
    """Where the cost of a release is written down before its noise is drawn: a ledger file, or a poll's account."""

    @property
    def delta(self) -> float | None:
        """Of a zCDP book; None for a pure one."""

    def charge(
        self,
        dataset: str,
        epsilon_micro: int,
        unit: Unit,
        records_per_voter: int,
        purpose: str,
        rho_micro: int | None = None,
    ) -> Charge:
        """Spend, durably, or raise ``BudgetExceeded`` and spend nothing."""


def publish(source: BallotSource, request: Request, ledger: Ledger, path: str | Path) -> Release:
    """Make a release with exact noise from the operating system, charge the ledger for it, write it to ``path``.

    Whatever can fail without noise (the request, the fit, the place to write to) comes before the charge.
    """
    path = Path(path)
    check_writable(path)
    release, entry = charged_release(source, request, ledger)
    save_release(release, path)
    ledger.deliver(entry.id, release.digest)
    return release


def charged_release(source: BallotSource, request: Request, book: Book) -> tuple[Release, Charge]:
    """Make a release with exact noise, charged before it is drawn. Whoever calls puts it in place, durably."""
    prepared = prepare(source, request)
    if prepared.guarantee.delta and book.delta not in (None, prepared.guarantee.delta):
        raise CrowdveilError(
            f"the ledger's delta is {book.delta}, the release's {prepared.guarantee.delta}: use the ledger's"
        )
    draw = _measure(source, prepared, seed=None)
    entry = book.charge(
        prepared.dataset.fingerprint,
        prepared.guarantee.epsilon.micro,
        prepared.guarantee.paradigm.unit,
        prepared.dataset.most_records,
        f"{prepared.guarantee.paradigm.name} {prepared.mechanism}",
        prepared.guarantee.rho_micro,
    )
    return _release(prepared, draw(), {"id": entry.ledger, "entry": entry.id}), entry


def experiment(source: BallotSource, request: Request, seed: int) -> Release:
    """Make a repeatable release with seeded floating-point noise. It protects nobody, and says so."""
    prepared = prepare(source, request)
    return _release(prepared, _measure(source, prepared, seed)(), None)


@dataclass(frozen=True)
class _Noisy:
    """An estimate with noise in it, and where the noise came from."""

    estimate: Estimate
    sampler: str
    exact: bool


def _measure(source: BallotSource, prepared: Prepared, seed: int | None) -> Callable[[], _Noisy]:
    """Do what needs no noise; return the rest, which does. Without a seed, the noise is exact."""
    settings, loss = prepared.settings, prepared.loss
    seeded = None if seed is None else FloatNoiseForExperiments(seed)
    if prepared.mechanism in CENTRAL:
        # OpenDP is the reference; the bulk sampler draws from the same law a thousand times faster.
        central = CENTRAL[prepared.mechanism]
        once = seeded or (OpenDPGaussian() if central.takes is Loss.RHO else OpenDPNoise())
        measured = central.measure(source, settings, loss)
        return lambda: _Noisy(central.release(measured, settings, loss, once), once.name, once.exact)
    noise: Noise = seeded or BulkNoise()
    distributed = DISTRIBUTED[prepared.mechanism]
    return lambda: _Noisy(
        distributed.aggregate(_reports(source, distributed, settings, prepared.epsilons, noise), settings),
        noise.name,
        noise.exact,
    )


def _reports(
    source: BallotSource, mechanism: DistributedMechanism[Any], settings: Settings, epsilons: Epsilons, noise: Noise
) -> Iterator[Any]:
    devices = _Devices(mechanism, settings, epsilons, noise)
    return map_batches(source, devices) if noise.exact else _one_by_one(source, devices)


def _one_by_one(source: BallotSource, devices: _Devices) -> Iterator[Any]:
    """Make the reports in one order, as a seeded generator must be asked to draw the same again."""
    before = 0
    for chunk in source.batches():
        yield devices(chunk, before)
        before += chunk.voters


@dataclass(frozen=True)
class _Devices:
    """The devices of the voters of a piece: wherever it runs, it draws from that machine's own operating system."""

    mechanism: DistributedMechanism[Any]
    settings: Settings
    epsilons: Epsilons
    noise: Noise

    def __call__(self, ballots: Ballots, before: int) -> Any:
        epsilons = self.epsilons[before : before + ballots.voters]
        reports = self.mechanism.report(ballots, self.settings, epsilons, self.noise)
        return self.mechanism.condense(reports, self.settings)


def _release(prepared: Prepared, noisy: _Noisy, ledger: Mapping[str, Any] | None) -> Release:
    made_by = {"reports_made_by": REPORTS_MADE_BY} if prepared.mechanism in DISTRIBUTED else {}
    return Release(
        study=prepared.settings.study,
        parameter=noisy.estimate.parameter,
        guarantee=prepared.guarantee,
        mechanism=prepared.mechanism,
        noise=noisy.estimate.noise,
        sampler=noisy.sampler,
        exact=noisy.exact,
        facts={**noisy.estimate.facts, **made_by},
        ledger=ledger,
        version=VERSION,
    )
