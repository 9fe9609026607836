"""From ballots to a release: charge the ledger, draw the noise, write the file, always in this order.

A process that dies on the way leaves a charge without a release, never a release without its charge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from crowdveil.ballots.ballots import BallotSource
from crowdveil.errors import CrowdveilError
from crowdveil.files import check_writable
from crowdveil.privacy.epsilon import PrivacyMeasure
from crowdveil.privacy.guarantee import Paradigm, Place
from crowdveil.privacy.ledger.entries import Charge, ChargeableLedger
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.privacy.mechanisms.devices import device_sums
from crowdveil.privacy.mechanisms.mechanism import Estimate, Sensitivity
from crowdveil.privacy.mechanisms.registry import CENTRAL, DISTRIBUTED, central, distributed
from crowdveil.privacy.mechanisms.side_bits import NoPreferenceYet
from crowdveil.privacy.noise.exact_noise import BulkNoise, OpenDPGaussian, OpenDPNoise
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments
from crowdveil.privacy.noise.source import Noise
from crowdveil.privacy.zcdp import ZcdpBudget
from crowdveil.publish.request import (
    Preview,
    Request,
    SomeEpsilon,
    check_ledger,
    check_seed,
    preview_allowed,
    preview_request,
)
from crowdveil.releases import Release
from crowdveil.version import VERSION

T = TypeVar("T")

REPORTS_MADE_BY = "the holder of the ballots, as each voter's device would: the holder saw the records"


def release(
    ballots: BallotSource,
    paradigm: str | Paradigm,
    *,
    epsilon: SomeEpsilon | None = None,
    zcdp: ZcdpBudget | None = None,
    ledger: Ledger,
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
) -> Release:
    """Release the crowd's preference under differential privacy, with exact noise, charged to a ledger.

    The charge is on disk before the noise is drawn; nothing else is written until ``release.save(path)``.

    ``epsilon`` is one number for all voters or, in distributed paradigms, a list of personal ones in the order of the
    voters; ``zcdp`` requests Gaussian noise instead. ``mechanism`` is the recommended one unless another is named, or
    "paper".

    ``design`` names public dilemmas, so that nothing is spent on how often each was asked: ballots, whose choices are
    not read, or "study" if its own generator drew them (reports of devices know only the latter).

    ``along`` is "factors" or "features": whether only the study's factors are measured, for which less noise suffices,
    or every direction in which features differ, so that dilemmas that differ in the others can be decided, too. By
    default, public numbers choose: the study, the number of voters and epsilon.

    ``one_record_each`` confirms that voters are people if nearly all of them have one record.

    ``public_selection`` is needed for voters who were selected from a larger crowd (``Ballots.filter``): it says how,
    and declares that everybody may know who is among them.
    """
    request = Request.of(
        paradigm,
        epsilon,
        zcdp,
        mechanism=mechanism,
        norm_bound=norm_bound,
        sensitivity=sensitivity,
        repair=repair,
        equal_votes=equal_votes,
        robust=robust,
        design=design,
        along=along,
        one_record_each=one_record_each,
        public_selection=public_selection,
    )
    return charged_release(ballots, request, ledger)


def preview(
    ballots: BallotSource,
    paradigm: str | Paradigm,
    *,
    epsilon: SomeEpsilon | None = None,
    zcdp: ZcdpBudget | None = None,
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
) -> Preview:
    """Compute the cost of a release and the width of its error bars. This spends nothing and draws no noise."""
    request = Request.of(
        paradigm,
        epsilon,
        zcdp,
        mechanism=mechanism,
        norm_bound=norm_bound,
        sensitivity=sensitivity,
        repair=repair,
        equal_votes=equal_votes,
        robust=robust,
        design=design,
        along=along,
        one_record_each=one_record_each,
        public_selection=public_selection,
    )
    return preview_allowed(ballots, request)


def release_for_experiments(
    ballots: BallotSource,
    paradigm: str | Paradigm,
    *,
    seed: int,
    epsilon: SomeEpsilon | None = None,
    zcdp: ZcdpBudget | None = None,
    mechanism: str | None = None,
    norm_bound: float | None = None,
    sensitivity: Sensitivity = "tight",
    repair: bool = True,
    equal_votes: bool = False,
    robust: float = 0.0,
    design: BallotSource | str | None = None,
    along: str | None = None,
) -> Release:
    """Make a repeatable release with seeded floating-point noise. It protects nobody, and charges no ledger."""
    request = Request.of(
        paradigm,
        epsilon,
        zcdp,
        mechanism=mechanism,
        norm_bound=norm_bound,
        sensitivity=sensitivity,
        repair=repair,
        equal_votes=equal_votes,
        robust=robust,
        design=design,
        along=along,
    )
    return experiment(ballots, request, seed)


def publish(source: BallotSource, request: Request, ledger: Ledger, path: str | Path) -> Release:
    """Make a release with exact noise from the operating system, charge the ledger for it, and write it to ``path``.

    Everything that can fail without noise (the request, the fit, the place to write to) comes before the charge.
    """
    check_writable(Path(path))
    made = charged_release(source, request, ledger)
    made.save(path)
    return made


def charged_release(source: BallotSource, request: Request, ledger: ChargeableLedger) -> Release:
    """Make a release with exact noise, charged before it is drawn; a ledger file is notified when it is saved."""
    check_ledger(ledger)
    asked = preview_allowed(source, request)
    if asked.guarantee.delta and ledger.delta not in (None, asked.guarantee.delta):
        raise CrowdveilError(
            f"the ledger's delta is {ledger.delta}, the release's {asked.guarantee.delta}: use the ledger's"
        )
    drawn = charge_and_draw(ledger, asked.charge, _measure(source, asked, seed=None))
    return replace(_release(asked, drawn.found, drawn.reference), on_save=drawn.deliver)


@dataclass(frozen=True)
class ChargedDraw(Generic[T]):
    """Noisy numbers that were paid for."""

    found: T
    reference: Mapping[str, Any]
    """The charge that paid for them, for the file in which they are published."""
    deliver: Callable[[str], None] | None
    """Called with the checksum of that file when it is saved; None for a poll's budget, which is not told."""


def charge_and_draw(ledger: ChargeableLedger, charge: Charge, draw: Callable[[], T]) -> ChargedDraw[T]:
    """Charge a ledger, then draw the noise: if anything fails between the two, the charge stays."""
    entry = ledger.charge(charge)
    deliver = partial(ledger.deliver, entry.id) if isinstance(ledger, Ledger) else None
    return ChargedDraw(draw(), {"id": entry.ledger, "entry": entry.id}, deliver)


def exact_noise(place: Place) -> Noise:
    """Return a source of exact noise: for one draw on everybody's sum, or for one on every voter's report."""
    return OpenDPNoise() if place is Place.CENTRAL else BulkNoise()


def experiment(source: BallotSource, request: Request, seed: int) -> Release:
    """Make a repeatable release with seeded floating-point noise. It protects nobody, and says so."""
    check_seed(seed)
    asked = preview_request(source, replace(request, one_record_each=True))
    return _release(asked, _measure(source, asked, seed)(), None)


@dataclass(frozen=True)
class _NoisyEstimate:
    """An estimate that contains noise, and the source of the noise."""

    estimate: Estimate
    sampler: str
    exact: bool


def _measure(source: BallotSource, preview: Preview, seed: int | None) -> Callable[[], _NoisyEstimate]:
    """Do everything that needs no noise, and return a function for the rest. Without a seed, the noise is exact."""
    settings = preview.settings
    loss = preview.loss
    seeded = None if seed is None else FloatNoiseForExperiments(seed)
    if preview.mechanism in CENTRAL:
        # OpenDP is the reference; the bulk sampler draws from the same law a thousand times faster.
        trusted = central(preview.mechanism, settings.study)
        once = seeded or (OpenDPGaussian() if trusted.takes is PrivacyMeasure.RHO else OpenDPNoise())
        measured = trusted.measure(source, settings, loss)
        return lambda: _NoisyEstimate(trusted.release(measured, settings, loss, once), once.name, once.exact)
    noise: Noise = seeded or BulkNoise()
    devices = distributed(preview.mechanism, settings.study)

    def draw() -> _NoisyEstimate:
        while True:
            reports = device_sums(source, devices.report, devices.condense, settings, preview.epsilons, noise)
            with suppress(NoPreferenceYet):  # of a handful of voters; those of a poll may wait for more
                return _NoisyEstimate(devices.aggregate(reports, settings), noise.name, noise.exact)

    return draw


def _release(preview: Preview, noisy: _NoisyEstimate, ledger: Mapping[str, Any] | None) -> Release:
    made_by = {"reports_made_by": REPORTS_MADE_BY} if preview.mechanism in DISTRIBUTED else {}
    selected = {} if preview.public_selection is None else {"selected_by": preview.public_selection}
    return Release(
        study=preview.settings.study,
        parameter=noisy.estimate.parameter,
        guarantee=preview.guarantee,
        mechanism=preview.mechanism,
        noise=noisy.estimate.noise,
        sampler=noisy.sampler,
        exact=noisy.exact,
        facts={**noisy.estimate.facts, **made_by, **selected},
        ledger=ledger,
        version=VERSION,
        unknown=noisy.estimate.unknown,
        indifference=noisy.estimate.indifference,
        reliability=noisy.estimate.reliability,
    )
