"""Who is protected, where the noise is added, and how much: the paper's four paradigms, and two more, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from crowdveil.errors import CrowdveilError, plural
from crowdveil.privacy.epsilon import Amount, Epsilon


class Unit(StrEnum):
    """The difference between two neighbouring data sets, strongest protection first."""

    VOTER = "voter"
    RECORD = "record"
    CHOICE = "choice"


class Place(StrEnum):
    """Where the noise is added."""

    CENTRAL = "central"
    DISTRIBUTED = "distributed"


_NEIGHBOURS = {
    Unit.VOTER: "one voter's records are all replaced by any others (bounded: the number of voters stays)",
    Unit.RECORD: "one record of one voter is replaced by any other (bounded: the numbers of voters and records stay)",
    Unit.CHOICE: "one choice of one voter is turned over (bounded); which dilemmas were shown to whom is public",
}
_TRUST = {
    Place.CENTRAL: "the aggregator is trusted with the exact records and adds the noise to their sum",
    Place.DISTRIBUTED: "nobody is trusted: each voter's device adds the noise before anything leaves it",
}


@dataclass(frozen=True)
class Paradigm:
    """One of the paper's granularities of protection (Section 4.1)."""

    name: str
    unit: Unit
    place: Place

    @property
    def neighbours(self) -> str:
        """The two data sets that nobody can distinguish by the output, up to a factor of e^epsilon."""
        return _NEIGHBOURS[self.unit]

    @property
    def trust(self) -> str:
        """Who has to be trusted."""
        return _TRUST[self.place]


PAPERS_PARADIGMS = ("vlcp", "rlcp", "vldp", "rldp")

PARADIGMS: Mapping[str, Paradigm] = {
    "vlcp": Paradigm("vlcp", Unit.VOTER, Place.CENTRAL),
    "rlcp": Paradigm("rlcp", Unit.RECORD, Place.CENTRAL),
    "vldp": Paradigm("vldp", Unit.VOTER, Place.DISTRIBUTED),
    "rldp": Paradigm("rldp", Unit.RECORD, Place.DISTRIBUTED),
    "alcp": Paradigm("alcp", Unit.CHOICE, Place.CENTRAL),
    "aldp": Paradigm("aldp", Unit.CHOICE, Place.DISTRIBUTED),
}


def paradigm(name: str | Paradigm) -> Paradigm:
    """Find a paradigm by name."""
    if isinstance(name, Paradigm):
        return name
    try:
        return PARADIGMS[name.lower()]
    except (KeyError, AttributeError):
        raise CrowdveilError(f"there is no paradigm {name!r}: choose one of {', '.join(PARADIGMS)}") from None


@dataclass(frozen=True)
class Guarantee:
    """The promise of a release: pure epsilon-differential privacy, for whom, against whom.

    With personal epsilons, ``epsilon`` is the largest and ``smallest_epsilon`` the smallest of them: voter i
    is protected with her own epsilon_i, and everybody at least with ``epsilon``.

    A release with Gaussian noise promises less: (epsilon, delta)-differential privacy, which follows from its rho.
    """

    paradigm: Paradigm
    epsilon: Epsilon
    smallest_epsilon: Epsilon
    norm_bound: float
    voters: int
    delta: float = 0.0
    """0 for a pure promise. Otherwise each probability may also change by this much, beyond the factor."""
    rho: Amount | None = None
    """The rho of a zCDP release, which a ledger is charged."""

    def __repr__(self) -> str:
        delta = f", delta {self.delta:g}" if self.delta else ""
        voters = f"{self.voters:,} {plural(self.voters, 'voter')}"
        return f"<guarantee: {self.paradigm.name} at epsilon {self.epsilons}{delta}, {voters}>"

    @property
    def personal(self) -> bool:
        """Whether voters chose their own epsilons."""
        return self.smallest_epsilon != self.epsilon

    @property
    def epsilons(self) -> str:
        """The epsilon, or the smallest and the largest of those that voters chose, in words."""
        return f"{self.smallest_epsilon} to {self.epsilon}" if self.personal else str(self.epsilon)

    def as_dict(self) -> dict[str, Any]:
        """Return the guarantee in plain words, as it stands in a release file."""
        return {
            "paradigm": self.paradigm.name,
            "unit": self.paradigm.unit.value,
            "place": self.paradigm.place.value,
            "epsilon": self.epsilon.value,
            **({"smallest_epsilon": self.smallest_epsilon.value} if self.personal else {}),
            **({} if self.rho is None else {"delta": self.delta, "rho": self.rho.value}),
            "neighbours": self.paradigm.neighbours,
            "trust": self.paradigm.trust,
            "norm_bound": self.norm_bound,
            "voters": self.voters,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Guarantee:
        """Read the guarantee of a release file."""
        largest = Epsilon(data["epsilon"])
        smallest = Epsilon(data.get("smallest_epsilon", data["epsilon"]))
        norm_bound = float(data["norm_bound"])
        voters = int(data["voters"])
        if "rho" not in data:
            return cls(paradigm(data["paradigm"]), largest, smallest, norm_bound, voters)
        delta = float(data["delta"])
        if not 0 < delta < 1:
            raise ValueError("the delta of a zCDP release must be between 0 and 1")
        rho = Amount.of(data["rho"], "the rho of a zCDP release")
        return cls(paradigm(data["paradigm"]), largest, smallest, norm_bound, voters, delta, rho)
