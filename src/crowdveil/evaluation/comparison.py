"""Compare mechanisms: accuracy by paradigm and epsilon, and what it takes to come close to no privacy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdveil.errors import CrowdveilError
from crowdveil.evaluation.comparison_runs import (
    ComparisonEntry,
    ComparisonTask,
    EntryResult,
    Population,
    RunProgress,
    carry_out,
    runs_of,
)
from crowdveil.evaluation.toolkit.crowds import Groups, generator
from crowdveil.evaluation.toolkit.scores import Interval, mean, ratio
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.guarantee import Paradigm, Place
from crowdveil.privacy.guarantee import paradigm as find_paradigm
from crowdveil.privacy.mechanisms.registry import PAPERS_MECHANISM, PURE, RELAYED, recommended
from crowdveil.privacy.planning.plan import largest_promise
from crowdveil.privacy.shuffling import DEFAULT_DELTA, DEFAULT_HONEST, RelayedPromise
from crowdveil.study.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVE = tuple(Epsilon(e) for e in ("0.003", "0.01", "0.03", "0.1", "0.3", "1", "3", "10", "30"))
"""Further epsilons at which whole curves are measured."""
SHARES = (0.8, 0.9, 0.95)
WANTED = 0.95
"""Share of the accuracy without privacy at which there are enough voters."""
_FIRST_SIZE = 25
_MOST_VALUES = 2**25
"""Largest simulated crowd, in voters times records times features."""
_FEWEST_CROWDS = 8


@dataclass(frozen=True)
class ComparedMechanism:
    """A mechanism with its settings, as it is compared within a paradigm."""

    paradigm: Paradigm
    entry: ComparisonEntry
    paper: bool
    recommended: bool
    relayed: RelayedPromise | None = None
    """The promise through a relay, with all voters in one batch; the entry then has the local epsilon."""


def compared_mechanisms(
    paradigms: Iterable[Paradigm], study: Study, levels: Sequence[Epsilons], everything: bool
) -> list[ComparedMechanism]:
    """List what is compared at each level: the paper's and the recommended one, or all that serve a paradigm.

    A level contains everybody's epsilon, the same for all.
    """
    return [
        ComparedMechanism(paradigm, ComparisonEntry(name, everybody.common), name == papers, name == best)
        for paradigm in paradigms
        for everybody in levels
        for name, papers, best in _serving(paradigm, study, everybody, everything)
    ]


def relayed_mechanisms(study: Study, voters: int, epsilons: Iterable[Epsilon]) -> list[ComparedMechanism]:
    """List what is compared through a relay, at the largest local epsilon that keeps each epsilon for one batch of all.

    An epsilon that is too small for so few voters has none.
    """
    promises = (largest_promise(study, voters, e.value, DEFAULT_DELTA, DEFAULT_HONEST) for e in epsilons)
    return [
        ComparedMechanism(find_paradigm("vldp"), ComparisonEntry(RELAYED, promise.local), False, False, promise)
        for promise in promises
        if promise is not None
    ]


def personal_mechanisms(
    paradigms: Iterable[Paradigm], study: Study, epsilons: Epsilons, everything: bool
) -> list[ComparedMechanism]:
    """List what is compared with personal epsilons, twice: with equal votes, and with votes weighted by their noise.

    ``epsilons`` is an example of everybody's epsilons, for which mechanisms are recommended.
    """
    return [
        ComparedMechanism(paradigm, ComparisonEntry(name, None, equal_votes), name == papers, name == best)
        for paradigm in paradigms
        for name, papers, best in _serving(paradigm, study, epsilons, everything)
        for equal_votes in (True, False)
    ]


def _serving(
    paradigm: Paradigm, study: Study, epsilons: Epsilons, everything: bool
) -> list[tuple[str, str | None, str]]:
    papers = PAPERS_MECHANISM.get(paradigm.name)
    best = recommended(paradigm, study, epsilons)
    return [
        (name, papers, best)
        for name, mechanism in PURE.items()
        if paradigm.name in mechanism.paradigms and (everything or name in (papers, best))
    ]


@dataclass(frozen=True)
class ComparisonRequest:
    """A request to compare mechanisms."""

    population: Population
    paradigms: tuple[Paradigm, ...]
    epsilons: tuple[Epsilon, ...]
    """Empty for personal epsilons, from the paper's default groups of voters."""
    number: int
    """Number of crowds, or of splits of a file."""
    seed: int
    everything: bool = False
    """Measure every mechanism that serves a paradigm, not only the paper's and the recommended one."""
    whole_curves: bool = False
    """Also measure at many other epsilons, to draw curves and to find the epsilon that is needed."""
    count_voters: bool = False
    """Also find the number of voters that is needed at each epsilon."""
    relay: bool = False
    """Also measure whole voters protected through a relay."""
    workers: int = 1

    @property
    def asked(self) -> frozenset[Epsilon | None]:
        """The requested epsilons; None stands for personal ones."""
        return frozenset(self.epsilons or [None])

    def __post_init__(self) -> None:
        if not self.number >= 2:
            raise CrowdveilError(
                f"an interval needs several crowds or splits, got {self.number}: compare on 2 or more (40 are usual)"
            )
        if not self.workers >= 1:
            raise CrowdveilError(f"--workers is {self.workers}: use 1 or more processes")
        central = [p.name for p in self.paradigms if p.place is Place.CENTRAL]
        if not self.epsilons and central:
            raise CrowdveilError(f"{central[0]} adds one noise for all: personal epsilons need vldp, rldp or aldp")
        options = {"--epsilon-needed": self.whole_curves, "--voters-needed": self.count_voters, "--relay": self.relay}
        for option, asked in options.items():
            if not self.epsilons and asked:
                raise CrowdveilError(f"{option} is for one epsilon for all: give --epsilon instead of --personal")


@dataclass(frozen=True)
class Comparison:
    """The results of a comparison."""

    request: ComparisonRequest
    mechanisms: tuple[ComparedMechanism, ...]
    measured: Mapping[ComparisonEntry, EntryResult]
    voters_needed: tuple[VotersNeeded, ...]

    @property
    def base(self) -> EntryResult:
        """The estimate without privacy to which ratios refer."""
        return self.measured[self.request.population.baselines[0]]

    def quality(self, entry: ComparisonEntry) -> Interval:
        """Return the accuracy (or the share of choices predicted) of an entry, over the crowds."""
        return mean(self.measured[entry].quality).within(0.0, 1.0)

    def ratio(self, entry: ComparisonEntry) -> Interval:
        """Return the quality as a share of that without privacy, on the same crowds."""
        most = 1 / float(self.base.quality.mean())
        return ratio(self.measured[entry].quality, self.base.quality).within(0.0, most)

    def calibration(self, entry: ComparisonEntry) -> dict[str, float | None]:
        """Return the mean scores of its probabilities and intervals over the crowds; None for a score that it lacks."""
        measured = self.measured[entry]
        found = {
            name: float(getattr(measured, name).mean()) for name in ("brier", "slope", "overstatement", "coverage")
        }
        return {name: None if np.isnan(value) else value for name, value in found.items()}

    @property
    def shown(self) -> list[ComparedMechanism]:
        """The compared mechanisms at the requested epsilons; the others are points of curves."""
        return [c for c in self.mechanisms if c.relayed is not None or c.entry.epsilon in self.request.asked]

    def curves(self, paradigm: Paradigm) -> dict[str, list[ComparisonEntry]]:
        """Return the entries of a paradigm by increasing epsilon: the paper's, the recommended and all others."""
        own = sorted(
            (c for c in self.mechanisms if c.paradigm is paradigm and c.entry.epsilon is not None and not c.relayed),
            key=lambda c: c.entry.value,
        )
        named = {name: [c.entry for c in own if c.entry.mechanism == name] for name in _names(own)}
        roles = {
            "paper": [c.entry for c in own if c.paper],
            "recommended": [c.entry for c in own if c.recommended],
            **(named if self.request.everything else {}),
        }
        return {role: entries for role, entries in roles.items() if entries}

    def epsilon_needed(self) -> list[dict[str, Any]]:
        """Return, for each curve, the smallest epsilon at which it reaches 80, 90 and 95 % of that without privacy."""
        found = []
        for paradigm in self.request.paradigms:
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
        population = self.request.population
        base, other = population.baselines
        return {
            **population.as_dict(),
            ("crowds" if population.quality == "accuracy" else "splits"): self.request.number,
            "seed": self.request.seed,
            "no_privacy": {
                "estimate": base.mechanism,
                **self._interval(base),
                other.mechanism: self._interval(other),
            },
            "rows": [self._row(compared) for compared in self.shown],
            **({"epsilon_needed": self.epsilon_needed()} if self.request.whole_curves else {}),
            **({"voters_needed": [v.as_dict() for v in self.voters_needed]} if self.request.count_voters else {}),
        }

    def plot(self, path: Path | None = None) -> Figure:
        """Draw accuracy against epsilon, one panel per paradigm; with a path, write it to a .png or .svg file too."""
        from crowdveil.evaluation.comparison_figure import comparison_figure  # here: whoever draws nothing waits less
        from crowdveil.figure import plotted

        return plotted(partial(comparison_figure, self), path)

    def _interval(self, entry: ComparisonEntry) -> dict[str, float | None]:
        found = self.quality(entry)
        return {
            self.request.population.quality: found.estimate,
            "low": found.low,
            "high": found.high,
            **self.calibration(entry),
        }

    def _row(self, compared: ComparedMechanism) -> dict[str, Any]:
        entry = compared.entry
        share = self.ratio(compared.entry)
        return {
            "paradigm": compared.paradigm.name,
            "mechanism": entry.mechanism,
            "recommended": compared.recommended,
            "paper": compared.paper,
            "epsilon": None if entry.epsilon is None else entry.epsilon.value,
            "relayed": None if compared.relayed is None else compared.relayed.as_dict(),
            **({"votes": "equal" if entry.equal_votes else "weighted"} if entry.epsilon is None else {}),
            self.request.population.quality: self.quality(entry).estimate,
            "ratio": share.estimate,
            "low": share.low,
            "high": share.high,
            "squared_error": float(self.measured[entry].squared_error.mean()),
            **self.calibration(entry),
        }


def compare(request: ComparisonRequest, watch: RunProgress) -> Comparison:
    """Measure every mechanism on the same crowds."""
    study = request.population.study
    voters = request.population.voters
    if request.epsilons:
        levels = dict.fromkeys((*request.epsilons, *(CURVE if request.whole_curves else ())))
        everybody = [Epsilons.same(epsilon, voters) for epsilon in levels]
        competing = compared_mechanisms(request.paradigms, study, everybody, request.everything)
        competing += relayed_mechanisms(study, voters, request.epsilons) if request.relay else []
    else:
        example = Groups().draw(voters, generator("compare, personal epsilons"))
        competing = personal_mechanisms(request.paradigms, study, example, request.everything)
    thorough = {c.entry for c in competing if c.relayed is not None or c.entry.epsilon in request.asked}
    tasks = [ComparisonTask(entry, entry in thorough) for entry in dict.fromkeys(c.entry for c in competing)]
    runs = runs_of(request.population, request.number, request.seed, tasks)
    with watch("comparing", len(runs)) as tell:
        measured = carry_out(runs, request.workers, tell)
    found: Sequence[VotersNeeded] = ()
    if request.count_voters:
        found = voters_needed(
            request.population,
            request.paradigms,
            request.epsilons,
            request.number,
            request.seed,
            request.workers,
            watch,
        )
    return Comparison(request, tuple(competing), measured, tuple(found))


def _names(competing: Sequence[ComparedMechanism]) -> list[str]:
    return list(dict.fromkeys(compared.entry.mechanism for compared in competing))


@dataclass(frozen=True)
class VotersNeeded:
    """The number of voters that a choice of mechanism needs at an epsilon."""

    paradigm: str
    choice: str
    """The paper's mechanism or the recommended one."""
    epsilon: Epsilon
    voters: int | None
    """None if more than were simulated."""
    simulated_up_to: int

    def as_dict(self) -> dict[str, Any]:
        """Return the number as plain data."""
        return {
            "paradigm": self.paradigm,
            "choice": self.choice,
            "epsilon": self.epsilon.value,
            "voters": self.voters,
            "simulated_up_to": self.simulated_up_to,
        }


def crossing(points: Sequence[float], ratios: Sequence[float], share: float) -> float | None:
    """Return where a curve first reaches ``share``, interpolated on the logarithm of the points; None if nowhere.

    For a curve that starts above, this is its first point, an upper bound.
    """
    for i, (point, height) in enumerate(zip(points, ratios, strict=True)):
        if height >= share:
            if i == 0:
                return point
            before, below = points[i - 1], ratios[i - 1]
            return math.exp(math.log(before) + math.log(point / before) * (share - below) / (height - below))
    return None


def voters_needed(
    population: Population,
    paradigms: Sequence[Paradigm],
    epsilons: Sequence[Epsilon],
    number: int,
    seed: int,
    workers: int,
    watch: RunProgress,
) -> list[VotersNeeded]:
    """Simulate crowds of 25, 50, 100, ... voters until every curve has reached 95 %, or crowds become too large."""
    sizes: list[int] = []
    ratios: dict[tuple[str, str, Epsilon], list[float]] = {
        (paradigm.name, choice, epsilon): []
        for paradigm, choice, epsilon in product(paradigms, ("paper", "recommended"), epsilons)
    }
    size = _FIRST_SIZE
    while size * population.records * population.study.dimension <= _MOST_VALUES or not sizes:
        levels = [Epsilons.same(epsilon, size) for epsilon in epsilons]
        competing = {
            (c.paradigm.name, choice, c.entry.epsilon): c.entry
            for c in compared_mechanisms(paradigms, population.study, levels, everything=False)
            for choice, is_it in (("paper", c.paper), ("recommended", c.recommended))
            if is_it
        }
        ratios = {key: values for key, values in ratios.items() if key in competing}
        open_still = {key: competing[key] for key, values in ratios.items() if max(values, default=0.0) < WANTED}
        if not open_still:
            break
        sizes.append(size)
        tasks = [ComparisonTask(entry, thorough=False) for entry in dict.fromkeys(open_still.values())]
        runs = runs_of(
            population, max(_FEWEST_CROWDS, min(number, number * population.voters // size)), seed, tasks, size
        )
        with watch(f"{size} voters", len(runs)) as tell:
            measured = carry_out(runs, workers, tell)
        base = float(measured[population.baselines[0]].quality.mean())
        for key, entry in open_still.items():
            ratios[key].append(float(measured[entry].quality.mean()) / base)
        size *= 2
    found = []
    for (paradigm_name, choice, epsilon), values in ratios.items():
        needed = crossing(sizes[: len(values)], values, WANTED)
        found.append(
            VotersNeeded(
                paradigm_name,
                choice,
                epsilon,
                None if needed is None else math.ceil(needed),
                sizes[-1],
            )
        )
    return found
