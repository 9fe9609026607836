"""A study's website, from a program: ask the crowd, or take part as a voter who trusts nobody."""

from crowdveil.client.client import Client, RemoteDecision
from crowdveil.client.connection import Unreachable
from crowdveil.client.polls import Level, Listed, Poll
from crowdveil.client.votes import Receipt, Sealed
from crowdveil.errors import Refusal

__all__ = ["Client", "Level", "Listed", "Poll", "Receipt", "Refusal", "RemoteDecision", "Sealed", "Unreachable"]
