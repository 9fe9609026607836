"""From ballots to a release: charge the ledger, draw the noise, write the file, in this order and no other.

A process that dies on the way leaves a charge without a release, never a release without its charge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from veil.ballots import BallotSource, Census, census
from veil.durable import check_writable
from veil.errors import VeilError
from veil.privacy.bulk_noise import BulkNoise
from veil.privacy.epsilon import Epsilon
from veil.privacy.float_noise import FloatNoiseForExperiments
from veil.privacy.guarantee import Guarantee, Paradigm, Place
from veil.privacy.ledger import Ledger
from veil.privacy.mechanisms import CENTRAL, DISTRIBUTED, mechanism_name
from veil.privacy.mechanisms.mechanism import DistributedMechanism, Estimate, Settings
from veil.privacy.noise import Noise
from veil.privacy.noise_distribution import NoiseDistribution
from veil.privacy.opendp_noise import OpenDPNoise
from veil.release import ERROR_BAR, Release, save_release
from veil.version import VERSION

IntArray = npt.NDArray[np.int64]

FEWEST_VOTERS = 2
WITH_UNBOUNDED_REPORTS = ("algorithm-2", "score")
REPORTS_MADE_BY = "the holder of the ballots, as each voter's device would: the holder saw the answers"


@dataclass(frozen=True)
class Request:
    """What is asked for: everything public, chosen before an answer is looked at."""

    paradigm: Paradigm
    epsilon: Epsilon | IntArray
    """One for all, or (distributed paradigms) each voter's own in millionths, in the voters' order."""
    mechanism: str | None = None
    """None: the recommended one for this paradigm; "paper": the paper's."""
    norm_bound: float | None = None
    """None: the study's."""
    repair: bool = True
    tight: bool = True
    equal_votes: bool = False
    robust: float = 0.0


@dataclass(frozen=True)
class Prepared:
    """A request checked against a crowd: what it would cost and give, before anything is spent."""

    settings: Settings
    mechanism: str
    guarantee: Guarantee
    epsilons: IntArray
    dataset: Census

    @property
    def expected_noise(self) -> NoiseDistribution | None:
        """The noise that the society would carry, where it is known beforehand."""
        return (CENTRAL | DISTRIBUTED)[self.mechanism].expected_noise(self.settings, self.epsilons)

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
        raise VeilError(f"one voter is not a crowd: a release needs at least {FEWEST_VOTERS}, got {dataset.voters}")
    bound = study.norm_bound if request.norm_bound is None else request.norm_bound
    if not 0 < bound < np.inf:
        raise VeilError(f"the norm bound B must be a positive number (the paper uses 2), got {bound}")
    if isinstance(request.epsilon, Epsilon):
        epsilons = np.full(dataset.voters, request.epsilon.micro)
    elif request.paradigm.place is Place.CENTRAL:
        raise VeilError(f"{request.paradigm.name} adds one noise for all: personal epsilons need vldp or rldp")
    elif len(request.epsilon) != dataset.voters:
        raise VeilError(f"{len(request.epsilon)} personal epsilons were given for {dataset.voters} voters")
    else:
        epsilons = request.epsilon
    if not 0 <= request.robust < 0.5:
        raise VeilError(
            f"the share of reports to pull in at each end must be from 0 to below 0.5, got {request.robust}"
        )
    name = mechanism_name(request.paradigm, request.mechanism, study, epsilons)
    if request.robust and name not in WITH_UNBOUNDED_REPORTS:
        raise VeilError(f"{name} has no unbounded reports to pull in: it needs no robust mean")
    least, most = Epsilon(int(epsilons.min())), Epsilon(int(epsilons.max()))
    return Prepared(
        settings=Settings(study, float(bound), request.repair, request.tight, request.equal_votes, request.robust),
        mechanism=name,
        guarantee=Guarantee(request.paradigm, most, least, float(bound), dataset.voters),
        epsilons=epsilons,
        dataset=dataset,
    )


def publish(source: BallotSource, request: Request, ledger: Ledger, path: Path) -> Release:
    """Make a release with exact noise from the operating system, charge the ledger for it, write it to ``path``.

    Whatever can fail without noise (the request, the fit, the place to write to) comes before the charge.
    """
    check_writable(path)
    prepared = prepare(source, request)
    draw = _measure(source, prepared)
    entry = ledger.charge(
        prepared.dataset.fingerprint,
        prepared.guarantee.epsilon.micro,
        prepared.guarantee.paradigm.unit,
        prepared.dataset.most_records,
        f"{prepared.guarantee.paradigm.name} {prepared.mechanism}",
    )
    # OpenDP is the reference; the bulk sampler draws from the same law a thousand times faster.
    noise = OpenDPNoise() if prepared.mechanism in CENTRAL else BulkNoise()
    release = _release(prepared, draw(noise), noise, {"id": entry.ledger, "entry": entry.id})
    save_release(release, path)
    ledger.deliver(entry.id, release.digest)
    return release


def experiment(source: BallotSource, request: Request, seed: int) -> Release:
    """Make a repeatable release with seeded floating-point noise. It protects nobody, and says so."""
    prepared, noise = prepare(source, request), FloatNoiseForExperiments(seed)
    return _release(prepared, _measure(source, prepared)(noise), noise, None)


def _measure(source: BallotSource, prepared: Prepared) -> Callable[[Noise], Estimate]:
    """Do what needs no noise; return the rest, which does."""
    settings, epsilons = prepared.settings, prepared.epsilons
    if prepared.mechanism in CENTRAL:
        central = CENTRAL[prepared.mechanism]
        measurement = central.measure(source, settings, prepared.guarantee.epsilon)
        return lambda noise: central.release(measurement, settings, prepared.guarantee.epsilon, noise)
    distributed = DISTRIBUTED[prepared.mechanism]
    return lambda noise: distributed.aggregate(_reports(source, distributed, settings, epsilons, noise), settings)


def _reports(
    source: BallotSource, mechanism: DistributedMechanism[Any], settings: Settings, epsilons: IntArray, noise: Noise
) -> Iterator[Any]:
    start = 0
    for chunk in source.chunks():
        yield mechanism.report(chunk, settings, epsilons[start : start + chunk.voters], noise)
        start += chunk.voters


def _release(prepared: Prepared, estimate: Estimate, noise: Noise, ledger: Mapping[str, Any] | None) -> Release:
    made_by = {"reports_made_by": REPORTS_MADE_BY} if prepared.mechanism in DISTRIBUTED else {}
    return Release(
        study=prepared.settings.study,
        parameter=estimate.parameter,
        guarantee=prepared.guarantee,
        mechanism=prepared.mechanism,
        noise=estimate.noise,
        sampler=noise.name,
        exact=noise.exact,
        facts={**estimate.facts, **made_by},
        ledger=ledger,
        version=VERSION,
    )
