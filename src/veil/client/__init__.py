"""A study's website, from a program: ask the crowd, or take part as a voter who trusts nobody."""

from veil.client.client import Client, RemoteDecision
from veil.client.connection import Refused, Unreachable
from veil.client.polls import Level, Listed, Poll
from veil.client.votes import Receipt, Sealed

__all__ = ["Client", "Level", "Listed", "Poll", "Receipt", "Refused", "RemoteDecision", "Sealed", "Unreachable"]
