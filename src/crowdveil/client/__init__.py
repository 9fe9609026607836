"""A study's website, from a program: ask the crowd, or take part as a voter who trusts nobody."""

from crowdveil.client.client import Client, RemoteDecision
from crowdveil.client.connection import Refused, Unreachable
from crowdveil.client.polls import Level, Listed, Poll
from crowdveil.client.votes import Receipt, Sealed

__all__ = ["Client", "Level", "Listed", "Poll", "Receipt", "Refused", "RemoteDecision", "Sealed", "Unreachable"]
