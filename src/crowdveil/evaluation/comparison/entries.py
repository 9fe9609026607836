"""The competitors: the mechanisms that serve a paradigm, each at an epsilon."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.guarantee import Paradigm
from crowdveil.privacy.mechanisms.registry import PAPERS_MECHANISM, PURE, recommended
from crowdveil.study.study import Study


@dataclass(frozen=True)
class Entry:
    """A mechanism at an epsilon. It is measured once, whatever paradigms it serves there."""

    mechanism: str
    epsilon: Epsilon | None
    """None where every voter has an epsilon of her own."""
    equal_votes: bool = False

    @property
    def value(self) -> float:
        """Where the entry stands on an axis of epsilons."""
        return 0.0 if self.epsilon is None else self.epsilon.value


@dataclass(frozen=True)
class Contender:
    """An entry in the race of a paradigm."""

    paradigm: Paradigm
    entry: Entry
    paper: bool
    recommended: bool


def contenders(
    paradigms: Iterable[Paradigm], study: Study, levels: Sequence[Epsilons], everything: bool
) -> list[Contender]:
    """List who competes at each level: the paper's mechanism and the recommended one, or all that serve the paradigm.

    A level holds everybody's epsilon, the same for all.
    """
    return [
        Contender(paradigm, Entry(name, everybody.common), name == papers, name == best)
        for paradigm in paradigms
        for everybody in levels
        for name, papers, best in _serving(paradigm, study, everybody, everything)
    ]


def personal_contenders(
    paradigms: Iterable[Paradigm], study: Study, epsilons: Epsilons, everything: bool
) -> list[Contender]:
    """List who competes with personal epsilons: each twice, all votes equal, and weighted by what their noise leaves.

    ``epsilons`` is an example of everybody's, by which mechanisms are recommended.
    """
    return [
        Contender(paradigm, Entry(name, None, equal_votes), name == papers, name == best)
        for paradigm in paradigms
        for name, papers, best in _serving(paradigm, study, epsilons, everything)
        for equal_votes in (True, False)
    ]


def _serving(
    paradigm: Paradigm, study: Study, epsilons: Epsilons, everything: bool
) -> list[tuple[str, str | None, str]]:
    papers, best = PAPERS_MECHANISM.get(paradigm.name), recommended(paradigm, study, epsilons)
    return [
        (name, papers, best)
        for name, mechanism in PURE.items()
        if paradigm.name in mechanism.paradigms and (everything or name in (papers, best))
    ]
