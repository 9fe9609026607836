"""Stand-ins for noise: one that gives none and notes what was asked, one that plays every outcome of every draw."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations, product

import numpy as np


@dataclass
class RecordingNoise:
    """No additive noise, no turned coin, and a note of every request."""

    name: str = "none"
    exact: bool = False
    asked: list = field(default_factory=list)

    def laplace(self, sensitivity, epsilons, columns):
        self.asked.append(("laplace", sensitivity, epsilons.micro.tolist(), columns))
        return np.zeros((len(epsilons), columns), np.int64)

    def cube(self, sensitivity, epsilons, columns):
        self.asked.append(("cube", sensitivity, epsilons.micro.tolist(), columns))
        return np.zeros((len(epsilons), columns), np.int64)

    def tosses(self, odds, epsilons, columns):
        self.asked.append(("tosses", odds, epsilons.micro.tolist(), columns))
        return np.zeros((len(epsilons), columns), bool)

    def uniform(self, below, rows, columns):
        return np.tile(np.arange(columns), (rows, 1)) % below


@dataclass
class EveryOutcome:
    """Plays all outcomes of a script of draws at once, a row each, with exact probabilities.

    The script says what each draw can give, in the order in which draws are made: ``"toss"``; a number n for one
    uniform integer below n; ``("orders", d)`` for keys of which every order is equally likely; ``("signs", d)`` for d
    uniform bits; ``("tosses", d)`` and ``("below", n, d)`` for d tosses, or integers below n, at once. exp(-epsilon) is
    the rational number q, so that all probabilities are fractions; of all of them the denominator is the same.
    """

    script: list
    q: Fraction
    odds_instead: dict = field(default_factory=dict)
    """Mutants: odds that are tossed in place of others."""
    name: str = "every outcome"
    exact: bool = False

    def __post_init__(self):
        self.outcomes = list(product(*(_possible(step) for step in self.script)))
        self._numerators, self._denominator = [1] * len(self.outcomes), 1
        self._at = 0

    @property
    def rows(self):
        return len(self.outcomes)

    @property
    def probabilities(self):
        return [Fraction(above, self._denominator) for above in self._numerators]

    def tosses(self, odds, epsilons, columns):
        assert len(epsilons) == self.rows
        odds = self.odds_instead.get(odds, odds)
        up = (odds.a + odds.b * self.q) / (odds.c + odds.d * self.q)
        drawn = np.array(self._next("toss" if columns == 1 else ("tosses", columns))).reshape(self.rows, columns)
        heads, tails = up.numerator, up.denominator - up.numerator
        chances = [heads**count * tails ** (columns - count) for count in range(columns + 1)]
        counts = drawn.sum(axis=1).tolist()
        self._numerators = [above * chances[count] for above, count in zip(self._numerators, counts, strict=True)]
        self._denominator *= up.denominator**columns
        return drawn

    def uniform(self, below, rows, columns):
        assert rows == self.rows
        several = [("below", below, columns), ("orders" if below > 2 else "signs", columns)]
        drawn = np.array(self._next(below if columns == 1 else several[self.script[self._at] != several[0]]))
        self._denominator *= len(_possible(self.script[self._at - 1]))
        return drawn.reshape(rows, columns)

    def law(self, results):
        """Add up the probabilities of equal results (rows)."""
        assert self._at == len(self.script), "not everything was drawn"
        law: dict[tuple[int, ...], int] = {}
        for result, above in zip(map(tuple, np.asarray(results).tolist()), self._numerators, strict=True):
            law[result] = law.get(result, 0) + above
        return {result: Fraction(above, self._denominator) for result, above in law.items() if above}

    def _next(self, wanted):
        assert self.script[self._at] == wanted, (self.script[self._at], wanted)
        self._at += 1
        return [outcome[self._at - 1] for outcome in self.outcomes]


def _possible(step):
    match step:
        case "toss":
            return [True, False]
        case ("orders", d):
            return list(permutations(range(d)))
        case ("signs", d):
            return list(product((0, 1), repeat=d))
        case ("tosses", d):
            return list(product((True, False), repeat=d))
        case ("below", n, d):
            return list(product(range(n), repeat=d))
        case below:
            return list(range(below))
