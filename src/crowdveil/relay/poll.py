"""A poll as its relay knows it: the host's key, the size of a batch, and who may take part until when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from crowdveil.errors import CrowdveilError
from crowdveil.protocol.description import relayed_promise
from crowdveil.protocol.polls import Entry, Opening, Poll
from crowdveil.protocol.relay import KeyConfiguration, address_fragment, configuration_of


@dataclass(frozen=True)
class RelayedPoll:
    """The public terms of a poll, kept as they were when the relay first heard of it."""

    configuration: KeyConfiguration
    entry: Entry
    opening: Opening
    epsilon: float
    """What is promised to whoever sees the batches, computed by the relay itself."""

    @property
    def name(self) -> str:
        """The poll's name."""
        return self.configuration.poll

    @classmethod
    def of(cls, poll: Poll, described: Mapping[str, Any]) -> RelayedPoll:
        """Return what a relay needs of a poll and its host's description."""
        opens_on, quota = described["relay"]["opens_on"], described["relay"]["quota"]
        opening = Opening(None if opens_on is None else date.fromisoformat(opens_on), poll.closes_on, quota)
        return cls(configuration_of(poll), poll.entry, opening, relayed_promise(poll).epsilon)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        opens_on, closes_on = self.opening.opens_on, self.opening.closes_on
        return {
            "configuration": self.configuration.as_dict(),
            "entry": self.entry.value,
            "opens_on": None if opens_on is None else opens_on.isoformat(),
            "closes_on": None if closes_on is None else closes_on.isoformat(),
            "quota": self.opening.quota,
            "epsilon": self.epsilon,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RelayedPoll:
        """Read what ``as_dict`` wrote."""
        opens_on, closes_on = (
            None if data[key] is None else date.fromisoformat(data[key]) for key in ("opens_on", "closes_on")
        )
        opening = Opening(opens_on, closes_on, data["quota"])
        return cls(KeyConfiguration.from_dict(data["configuration"]), Entry(data["entry"]), opening, data["epsilon"])

    def voters_address(self, host: str, token: str | None = None) -> str:
        """Return the address of the voter's page: behind the # stand the fingerprint and, in a link, the token."""
        return f"{host}/p/{self.name}/#{address_fragment(self.configuration.fingerprint, token)}"


def check_unchanged(known: RelayedPoll, told: RelayedPoll) -> None:
    """Refuse a host that tells something else about a poll than before."""
    if known != told:
        raise CrowdveilError(
            f"the host tells another key or other terms of poll {known.name!r} than when the poll began, and a poll "
            "never changes: nothing is handed over to it"
        )
