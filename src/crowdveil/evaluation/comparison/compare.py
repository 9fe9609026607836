"""Compare mechanisms: accuracy by paradigm and epsilon, and what it takes to come near that without privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crowdveil.errors import CrowdveilError
from crowdveil.evaluation.comparison.entries import Contender, Entry, contenders, personal_contenders
from crowdveil.evaluation.comparison.needed import VotersNeeded, crossing, voters_needed
from crowdveil.evaluation.comparison.runs import EntryResult, Source, Task, Watch, carry_out
from crowdveil.evaluation.toolkit.accuracy import Interval, mean, ratio
from crowdveil.evaluation.toolkit.crowds import Groups
from crowdveil.evaluation.toolkit.seeds import generator
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.guarantee import Paradigm, Place

CURVE = tuple(Epsilon(e) for e in ("0.003", "0.01", "0.03", "0.1", "0.3", "1", "3", "10", "30"))
"""Where else than at the epsilons asked for whole curves are measured."""
SHARES = (0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Order:
    """A request to compare mechanisms."""

    source: Source
    paradigms: tuple[Paradigm, ...]
    epsilons: tuple[Epsilon, ...]
    """Empty: personal ones, from the paper's default groups of voters."""
    number: int
    """Of crowds, or of splits of a file."""
    seed: int
    everything: bool = False
    """Every mechanism that serves a paradigm, not only the paper's and the recommended one."""
    whole_curves: bool = False
    """Also measure at many other epsilons, to draw curves and to find the epsilon that is needed."""
    count_voters: bool = False
    """Also find the number of voters that is needed at each epsilon."""
    workers: int = 1

    @property
    def asked(self) -> frozenset[Epsilon | None]:
        """The epsilons; None stands for personal ones."""
        return frozenset(self.epsilons or [None])

    def __post_init__(self) -> None:
        if not self.number >= 2:
            raise CrowdveilError(
                f"{self.number} crowds or splits have no interval: compare on 2 or more (40 are usual)"
            )
        if not self.workers >= 1:
            raise CrowdveilError(f"--workers is {self.workers}: use 1 or more processes")
        central = [p.name for p in self.paradigms if p.place is Place.CENTRAL]
        if not self.epsilons and central:
            raise CrowdveilError(f"{central[0]} adds one noise for all: personal epsilons need vldp, rldp or aldp")
        for option, asked in (("--epsilon-needed", self.whole_curves), ("--voters-needed", self.count_voters)):
            if not self.epsilons and asked:
                raise CrowdveilError(f"{option} is for one epsilon for all: give --epsilon instead of --personal")


@dataclass(frozen=True)
class Comparison:
    """The results of a comparison."""

    order: Order
    contenders: tuple[Contender, ...]
    measured: Mapping[Entry, EntryResult]
    voters_needed: tuple[VotersNeeded, ...]

    @property
    def base(self) -> EntryResult:
        """The estimate without privacy that ratios refer to."""
        return self.measured[self.order.source.baselines[0]]

    def quality(self, entry: Entry) -> Interval:
        """Return the accuracy (or the share of choices predicted) of an entry, over the crowds."""
        return mean(self.measured[entry].quality)

    def ratio(self, entry: Entry) -> Interval:
        """Return the same as a share of that without privacy, on the same crowds."""
        return ratio(self.measured[entry].quality, self.base.quality)

    @property
    def shown(self) -> list[Contender]:
        """Who competes at the epsilons that were asked for; the others are points of curves."""
        return [contender for contender in self.contenders if contender.entry.epsilon in self.order.asked]

    def curves(self, paradigm: Paradigm) -> dict[str, list[Entry]]:
        """Return the entries of a paradigm by increasing epsilon: the paper's, the recommended and all others."""
        own = sorted(
            (c for c in self.contenders if c.paradigm is paradigm and c.entry.epsilon is not None),
            key=lambda c: c.entry.value,
        )
        named = {name: [c.entry for c in own if c.entry.mechanism == name] for name in _names(own)}
        roles = {
            "paper": [c.entry for c in own if c.paper],
            "recommended": [c.entry for c in own if c.recommended],
            **(named if self.order.everything else {}),
        }
        return {role: entries for role, entries in roles.items() if entries}

    def epsilon_needed(self) -> list[dict[str, Any]]:
        """Return, for each curve, the smallest epsilon at which it reaches 80, 90 and 95 % of that without privacy."""
        found = []
        for paradigm in self.order.paradigms:
            for choice, entries in self.curves(paradigm).items():
                points = [entry.value for entry in entries]
                ratios = [self.ratio(entry).estimate for entry in entries]
                needed = {f"{share:.0%}": crossing(points, ratios, share) for share in SHARES}
                found.append(
                    {
                        "paradigm": paradigm.name,
                        "choice": choice,
                        "mechanisms": list(dict.fromkeys(entry.mechanism for entry in entries)),
                        **needed,
                    }
                )
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        source = self.order.source
        base, other = source.baselines
        return {
            **source.as_dict(),
            ("crowds" if source.quality == "accuracy" else "splits"): self.order.number,
            "seed": self.order.seed,
            "no_privacy": {
                "estimate": base.mechanism,
                **self._interval(base),
                other.mechanism: self._interval(other),
            },
            "rows": [self._row(contender) for contender in self.shown],
            **({"epsilon_needed": self.epsilon_needed()} if self.order.whole_curves else {}),
            **({"voters_needed": [v.as_dict() for v in self.voters_needed]} if self.order.count_voters else {}),
        }

    def _interval(self, entry: Entry) -> dict[str, float]:
        found = self.quality(entry)
        return {self.order.source.quality: found.estimate, "low": found.low, "high": found.high}

    def _row(self, contender: Contender) -> dict[str, Any]:
        entry, share = contender.entry, self.ratio(contender.entry)
        return {
            "paradigm": contender.paradigm.name,
            "mechanism": entry.mechanism,
            "recommended": contender.recommended,
            "paper": contender.paper,
            "epsilon": None if entry.epsilon is None else entry.epsilon.value,
            **({"votes": "equal" if entry.equal_votes else "weighted"} if entry.epsilon is None else {}),
            self.order.source.quality: self.quality(entry).estimate,
            "ratio": share.estimate,
            "low": share.low,
            "high": share.high,
            "squared_error": float(self.measured[entry].squared_error.mean()),
        }


def compare(order: Order, watch: Watch) -> Comparison:
    """Measure every contender on the same crowds."""
    study, voters = order.source.study, order.source.voters
    if order.epsilons:
        levels = dict.fromkeys((*order.epsilons, *(CURVE if order.whole_curves else ())))
        everybody = [Epsilons.same(epsilon, voters) for epsilon in levels]
        competing = contenders(order.paradigms, study, everybody, order.everything)
    else:
        example = Groups().draw(voters, generator("compare, personal epsilons"))
        competing = personal_contenders(order.paradigms, study, example, order.everything)
    tasks = [Task(entry, entry.epsilon in order.asked) for entry in dict.fromkeys(c.entry for c in competing)]
    runs = order.source.runs(order.number, order.seed, tasks)
    with watch("comparing", len(runs)) as tell:
        measured = carry_out(runs, order.workers, tell)
    found: Sequence[VotersNeeded] = ()
    if order.count_voters:
        found = voters_needed(
            order.source, order.paradigms, order.epsilons, order.number, order.seed, order.workers, watch
        )
    return Comparison(order, tuple(competing), measured, tuple(found))


def _names(competing: Sequence[Contender]) -> list[str]:
    return list(dict.fromkeys(contender.entry.mechanism for contender in competing))
