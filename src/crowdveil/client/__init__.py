"""A Python client for a study's website: ask the crowd, or take part as a voter who trusts nobody."""

from crowdveil.client.client import Client, Unreachable, VoterReceipt
from crowdveil.errors import Refusal
from crowdveil.protocol.decisions import RemoteDecision
from crowdveil.protocol.polls import Level, Poll, PollSummary
from crowdveil.protocol.submission import Submission

__all__ = [
    "Client",
    "Level",
    "Poll",
    "PollSummary",
    "Refusal",
    "RemoteDecision",
    "Submission",
    "Unreachable",
    "VoterReceipt",
]
