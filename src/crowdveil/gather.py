"""From reports to a release. There is nothing to charge: every voter's device has added its noise already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crowdveil.arguments import check_type
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import GREATEST, LEAST, Epsilon, Epsilons
from crowdveil.privacy.guarantee import Guarantee, Paradigm
from crowdveil.privacy.guarantee import paradigm as find_paradigm
from crowdveil.privacy.mechanisms.registry import distributed
from crowdveil.protocol.report import Terms, read_reports
from crowdveil.releases import Release
from crowdveil.request import FEWEST_VOTERS
from crowdveil.version import VERSION

SAMPLER = "exact discrete noise, drawn on every voter's own device from its operating system's randomness"
REPORTS_MADE_ON = "each voter's own device: nobody else saw a record"


@dataclass
class _Tally:
    """How many reports went by, and the ends of their epsilons."""

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
    """Estimate the society from checked reports, as they come in batches (none of them empty).

    Theorem. The release is as private as the reports: for voter i, epsilon_i-differentially private for the unit of the
    paradigm. Proof. It is computed from the reports and public settings alone (post-processing).

    So the same reports may be released again, and as often as anybody likes.
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
