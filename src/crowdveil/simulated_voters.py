"""A simulated crowd that votes through the real API, for demonstrations and for load tests of a server.

Each simulated voter draws a preference around the study's lean, asks the server for dilemmas, answers them by the
paper's model, and sends what a real voter's device would send, with real noise.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.client.client import Client
from crowdveil.errors import CrowdveilError, Refusal, check_whole
from crowdveil.protocol.polls import EntryRule, Poll, PollState
from crowdveil.protocol.questions import Answer, Question, QuestionKind
from crowdveil.protocol.submission import NEITHER
from crowdveil.sources.simulated import TAU
from crowdveil.study.study import Dilemma

_LINK = re.compile(r"[#&]ballot=([A-Za-z0-9_-]+)")
MOST_VOTERS = 10_000_000
MOST_CONNECTIONS = 1000
SPREAD = 0.3
"""Standard deviation, in each feature, of a simulated voter's preference around the study's lean."""


@dataclass(frozen=True)
class Turnout:
    """The numbers of a simulated crowd's votes that the server stored and refused."""

    poll: str
    stored: int
    levels: Mapping[str, int]
    """The number of stored votes at each level of privacy."""
    refused: Mapping[str, int]
    """The number of refused votes for each reason of the server's."""
    seconds: float

    @property
    def rate(self) -> float:
        """Stored votes per second."""
        return self.stored / self.seconds if self.seconds > 0 else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return the turnout as plain data."""
        return {
            "poll": self.poll,
            "stored": self.stored,
            "levels": dict(self.levels),
            "refused": dict(self.refused),
            "seconds": round(self.seconds, 3),
            "votes_per_second": round(self.rate, 1),
        }


@dataclass(frozen=True)
class SimulatedVoter:
    """A simulated person in a poll, whose preference and answers are drawn at random."""

    poll: Poll
    rng: np.random.Generator
    spread: float = SPREAD

    def chooser(self) -> Callable[[Dilemma], str]:
        """Draw a preference beta ~ N(lean, spread^2 I). It chooses left with probability Phi(beta . (left - right))."""
        study = self.poll.study
        preference = self.rng.normal([feature.lean for feature in study.features], self.spread)

        def choose(dilemma: Dilemma) -> str:
            left, right = dilemma.alternatives
            felt = float(study.difference(left, right) @ preference) + self.rng.standard_normal()
            if study.indifference is not None and abs(felt) <= TAU:
                return NEITHER
            return "left" if felt > 0 else "right"

        return choose

    def level(self) -> str:
        """Choose a level of privacy at random."""
        return self.poll.levels[int(self.rng.integers(len(self.poll.levels)))].name

    def about(self) -> dict[str, Answer]:
        """Answer the about-you questions at random."""
        return {question.id: self._answer(question) for question in self.poll.sent_questions}

    def _answer(self, question: Question) -> Answer:
        levels = question.levels
        match question.kind:
            case QuestionKind.TEXT:
                return "A simulated voter."
            case QuestionKind.SEVERAL:
                return [str(level) for level in levels if self.rng.random() < 0.5]
        return levels[int(self.rng.integers(len(levels)))]


def find_poll(client: Client, wanted: str | None) -> Poll:
    """Return the poll with this name, or the website's only open poll."""
    if wanted is not None:
        if not wanted or "/" in wanted:
            raise CrowdveilError(f"the poll is {wanted!r}, which is no name: give the one in its address, /p/NAME/")
        return client.poll(wanted)
    open_polls = [listed.id for listed in client.polls() if listed.state is PollState.OPEN]
    if len(open_polls) != 1:
        found = ", ".join(open_polls) or "none"
        raise CrowdveilError(f"say which poll the crowd should vote in with --poll; the open polls are: {found}")
    return client.poll(open_polls[0])


def send_crowd(
    client: Client,
    poll: Poll,
    voters: int,
    *,
    connections: int = 16,
    level: str | None = None,
    tokens: Sequence[str] = (),
    seed: int | None = None,
    tell: Callable[[int], None] = lambda done: None,
) -> Turnout:
    """Let simulated voters vote, ``connections`` at a time.

    ``level`` is everybody's level of privacy; if None, each voter chooses one at random. ``tokens`` are those of the
    voters' links if the poll has links. The same ``seed`` gives the same preferences and random choices; the dilemmas
    and the noise are always new.
    """
    check_whole(voters, "the number of voters", 1, MOST_VOTERS)
    check_whole(connections, "the number of connections", 1, MOST_CONNECTIONS)
    if seed is not None:
        check_whole(seed, "the seed", 0)
    if poll.entry is EntryRule.LINKS and len(tokens) < voters:
        raise CrowdveilError(
            f"poll {poll.name} takes votes by links only: {voters} voters need as many links, got {len(tokens)} "
            "(make them on the host's page, and give the file with --links)"
        )
    if level is not None:
        poll.level(level)

    def one(number: int, seed: np.random.SeedSequence) -> tuple[str, str]:
        voter = SimulatedVoter(poll, np.random.default_rng(seed))
        chosen = level or voter.level()
        token = tokens[number] if tokens else None
        try:
            client.vote(poll, voter.chooser(), chosen, about=voter.about(), token=token)
        except Refusal as refusal:
            return "refused", refusal.reason
        finally:
            tell(1)
        return "stored", chosen

    begun = time.monotonic()
    first, *others = np.random.SeedSequence(seed).spawn(voters)
    # One votes alone first, so that what is computed once per study is ready for the others.
    outcomes = Counter([one(0, first)])
    with ThreadPoolExecutor(connections) as pool:
        outcomes.update(pool.map(one, range(1, voters), others))
    return _turnout(poll, outcomes, time.monotonic() - begun)


def _turnout(poll: Poll, outcomes: Mapping[tuple[str, str], int], seconds: float) -> Turnout:
    def of(kind: str) -> dict[str, int]:
        return {name: number for (found, name), number in sorted(outcomes.items()) if found == kind}

    return Turnout(poll.name, sum(of("stored").values()), of("stored"), of("refused"), seconds)


def tokens_of_links(lines: Iterable[str]) -> list[str]:
    """Read the tokens from the host's file of links, which has one link or row per line."""
    found = [token[1] for line in lines if (token := _LINK.search(line))]
    if not found:
        raise CrowdveilError(
            "there is no voter's link in the file: give the one that the host's page or `crowdveil relay --links` "
            "wrote, in which each link ends in ballot=..."
        )
    return found
