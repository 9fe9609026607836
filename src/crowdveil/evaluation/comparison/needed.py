"""The epsilon, or the number of voters, that it takes to reach a share of the accuracy without privacy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from crowdveil.evaluation.comparison.entries import contenders
from crowdveil.evaluation.comparison.runs import Source, Task, Watch, carry_out
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.guarantee import Paradigm

WANTED = 0.95
"""Share of the accuracy without privacy that counts as enough voters."""
_FIRST_SIZE = 25
_MOST_VALUES = 2**25
"""Largest crowd that is simulated, in voters times records times features."""
_FEWEST_CROWDS = 8


@dataclass(frozen=True)
class VotersNeeded:
    """The number of voters that a choice of mechanism needs at an epsilon."""

    paradigm: str
    choice: str
    """The paper's mechanism or the recommended one."""
    epsilon: Epsilon
    voters: int | None
    """None: more than were simulated."""
    simulated_up_to: int

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "paradigm": self.paradigm,
            "choice": self.choice,
            "epsilon": self.epsilon.value,
            "voters": self.voters,
            "simulated_up_to": self.simulated_up_to,
        }


def crossing(points: Sequence[float], ratios: Sequence[float], share: float) -> float | None:
    """Return where a curve first reaches ``share``, interpolated on the logarithm of the points; None if nowhere.

    A curve that begins above gives its first point: what is needed is at most that.
    """
    for i, (point, ratio) in enumerate(zip(points, ratios, strict=True)):
        if ratio >= share:
            if i == 0:
                return point
            before, below = points[i - 1], ratios[i - 1]
            return math.exp(math.log(before) + math.log(point / before) * (share - below) / (ratio - below))
    return None


def voters_needed(
    source: Source,
    paradigms: Sequence[Paradigm],
    epsilons: Sequence[Epsilon],
    number: int,
    seed: int,
    workers: int,
    watch: Watch,
) -> list[VotersNeeded]:
    """Simulate crowds of 25, 50, 100, ... voters until every curve has reached 95 %, or crowds become too large."""
    sizes: list[int] = []
    ratios: dict[tuple[str, str, Epsilon], list[float]] = {
        (paradigm.name, choice, epsilon): []
        for paradigm, choice, epsilon in product(paradigms, ("paper", "recommended"), epsilons)
    }
    size = _FIRST_SIZE
    while size * source.records * source.study.dimension <= _MOST_VALUES or not sizes:
        levels = [Epsilons.same(epsilon, size) for epsilon in epsilons]
        competing = {
            (c.paradigm.name, choice, c.entry.epsilon): c.entry
            for c in contenders(paradigms, source.study, levels, everything=False)
            for choice, is_it in (("paper", c.paper), ("recommended", c.recommended))
            if is_it
        }
        ratios = {key: values for key, values in ratios.items() if key in competing}
        open_still = {key: competing[key] for key, values in ratios.items() if max(values, default=0.0) < WANTED}
        if not open_still:
            break
        sizes.append(size)
        tasks = [Task(entry, thorough=False) for entry in dict.fromkeys(open_still.values())]
        runs = source.runs(max(_FEWEST_CROWDS, min(number, number * source.voters // size)), seed, tasks, size)
        with watch(f"{size} voters", len(runs)) as tell:
            measured = carry_out(runs, workers, tell)
        base = float(measured[source.baselines[0]].quality.mean())
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
