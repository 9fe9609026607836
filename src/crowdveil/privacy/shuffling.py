"""Shuffled reports: how private a crowd of distributed reports is when nobody knows which report is whose.

Theorem (Feldman, McMillan and Talwar, "Hiding among the clones", FOCS 2021, Theorem 3.2). Let N voters make their
reports by one mechanism that is eps0-differentially private for all that a voter says, and let a trusted shuffler pass
the reports on in random order, without names. For data sets that differ in one voter, what comes out is no easier to
tell apart than the pair

    P = (A + D, C - A + 1 - D)    and    Q = (A + 1 - D, C - A + D),

where C ~ Bin(N - 1, e^-eps0), A ~ Bin(C, 1/2) and D ~ Bernoulli(e^eps0 / (e^eps0 + 1)).

Why. The report of any other voter comes, with probability e^-eps0 / 2 each, from the law of the one voter's report
before or after the change, since eps0-privacy makes no law smaller than e^-eps0 times another. Such a clone hides the
voter: C counts the clones, A those of the first kind, and D says which kind the voter's own report looks like. The
shuffled reports are the counts of both kinds, post-processed.

What is not covered follows from the same words. A mechanism that protects one record or choice at a time (rldp, aldp)
makes no clones: the report of a voter with a quite different ballot may have a quite different law. Neither do voters
with epsilons of their own, whose reports say which epsilon they were made with.

Theorem (one-bit reports). Let a report be a label, drawn by a public law without a look at the ballot (an axis, a kind
of question), and one bit, which was +1 with some probability that the ballot and the label decide, and was then turned
over with probability 1 / (e^eps0 + 1). Then the same holds with C ~ Bin(N - 1, 2 / (e^eps0 + 1)): about twice as many
clones. It is what binary randomised response has, and no axis, tie or other voter's ballot makes it worse.

Proof. A bit that is turned over with probability g / 2, g = 2 / (e^eps0 + 1), is with probability g a fair coin that
has seen no ballot, and else unchanged. So the report of any other voter is, with probability g, a *clone*: a label by
the public law with a fair coin. Tell the attacker which voters are no clones and what they reported: that makes nothing
harder to tell apart, and leaves the shuffled reports of C clones and of the one voter, C ~ Bin(N - 1, g). Given C = c,
compare with c + 1 clones, whose law is U. If the voter says +1 on label l with probability p_l before the change and
p'_l after it, the laws of the multiset h of reports are, with n_l(h) reports on label l of which n_l / 2 + Z_l say +1,

    P(h) = 2 U(h) / (c + 1)  sum over l of (n_l / 2 + (2 p_l - 1) Z_l),    Q(h): the same with p'_l,

as each report of h is the voter's own with the same probability. So delta(eps) is the mean under U of the positive part
of a constant, (1 - e^eps)(c + 1) / 2, plus the sum over l of k_l Z_l, k_l = (2 p_l - 1) - e^eps (2 p'_l - 1), times
2 / (c + 1). Given the labels, the Z_l are independent and symmetric, so the mean of a convex function of the sum grows
with every |k_l|. All p_l and p'_l are between 1 / (e^eps0 + 1) and e^eps0 / (e^eps0 + 1) = q, so |k_l| is at most
(2 q - 1)(1 + e^eps), which p_l = q and p'_l = 1 - q reach for all labels at once. Then only the sum of the Z_l counts:
how many of the c + 1 reports say +1, which is A + D under P and A + 1 - D under Q. The mean over C ends the proof.

A report of several bits has no such proof here: it is covered by the theorem for any mechanism.

So the shuffled reports are (eps, delta)-differentially private with delta(eps) = sup over S of P(S) - e^eps Q(S),
which is computed here and not bounded by a formula. (Swapping the two counts swaps P and Q: one direction is enough.)

Theorem (reports through a relay, ``RelayedPromise``). Let every report be local-epsilon-differentially private for all
that its voter says (vldp), let the relay hand them over in batches of n_1 <= n_2 <= ... reports, each in a random order
and without anything else, and let at least a share h of the reports of each batch be honest: made by voters who tell
nobody which is theirs. Then whoever sees the batches, and everything computed from them, learns of one voter what
(epsilon, delta)-differential privacy allows, with the epsilon of the theorems above for floor(h n_1) voters.

Proof. A voter's report is in one batch, and the reports of the others depend on other ballots: so telling two ballots
of hers apart from all batches is as hard as from her own. There, tell the attacker which reports are not honest; the
honest ones are a shuffled crowd of floor(h n) or more, and more voters hide better. Which voters are in which batch,
and when a batch is full, depends on no ballot.

Where fewer are honest, or the host and the relay put together what they know, the local epsilon remains. The relay
alone sees ciphertexts of one length.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import MICROS_PER_UNIT, Epsilon

GREATEST_LOCAL_EPSILON = 50.0
GREATEST_VOTERS = 10**10
"""As many voters as there are people; the sums below still take a second."""

_BLOCKS = 4096
_TAIL = 1e-6
"""Share of delta that the number of clones may spend on being far from its mean."""
_SLACK = 1e-8
"""Relative error of SciPy's binomial probabilities that is allowed for; the tests find it below 1e-10."""
_ROUNDING = 1e-15
"""A few units in the last place: what the exponential function, a sum and a division may be off by."""
_PRECISION = 1e-6


def amplified_epsilon(local_epsilon: float, voters: int, delta: float, *, one_bit: bool = False) -> float:
    """Return an epsilon such that the shuffled reports are (epsilon, delta)-differentially private.

    ``local_epsilon`` is what each report promises by itself, for all that its voter says (vldp). The answer is never
    above it, never below the theorem's, and above the theorem's by a relative 1e-5 or so. ``one_bit`` takes the theorem
    for reports of one bit, which must be reports of one bit.
    """
    if not 0 < local_epsilon <= GREATEST_LOCAL_EPSILON:
        raise CrowdveilError(
            f"the epsilon of a report must be above 0 and at most {GREATEST_LOCAL_EPSILON:g}, got {local_epsilon}"
        )
    if not 1 <= operator.index(voters) <= GREATEST_VOTERS:
        raise CrowdveilError(f"the number of voters must be from 1 to {GREATEST_VOTERS:,}, got {voters}")
    if not 0 < delta < 1:
        raise CrowdveilError(f"delta must be between 0 and 1, and far below 1 / voters to mean anything, got {delta}")
    clones = Clones(local_epsilon, voters, delta * _TAIL, one_bit)
    if clones.delta(0.0) <= delta:
        return 0.0
    low = 0.0
    high = float(local_epsilon)
    # `high` always holds: each report promises local_epsilon already, whatever happens to the others.
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        if clones.delta(middle) <= delta:
            high = middle
        else:
            low = middle
    return high


@dataclass(frozen=True)
class Clones:
    """The theorem's pair of distributions. Numbers of clones far from the mean are merged conservatively."""

    local_epsilon: float
    voters: int
    tail: float
    """Probability allowed for the number of clones outside the middle range, which is treated exactly."""
    one_bit: bool = False
    """Whether each report is one bit."""

    @property
    def share(self) -> float:
        """The probability that another voter's report is a clone; rounded down, as fewer clones hide less."""
        exact = 2 / (math.exp(self.local_epsilon) + 1) if self.one_bit else math.exp(-self.local_epsilon)
        return exact * (1 - _ROUNDING)

    @cached_property
    def blocks(self) -> tuple[FloatArray, FloatArray]:
        """The possible numbers of clones, in blocks: the least number in each block, and the block's probability.

        More clones hide better: one more is a coin toss added to the counts, without a look at the data, which makes
        no two laws easier to tell apart. So to put a block's least number in place of the others errs on the safe
        side, and every number from 0 to N - 1 is in some block: nothing is cut off. In the middle a block is one
        number (several, when there are too many); all numbers below and above the middle make two blocks.
        """
        from scipy.stats import binom  # whoever reads a release needs no SciPy for its promise

        others = self.voters - 1
        share = self.share
        # Bernstein's inequality: the number of clones is farther from its mean with a probability below the tail.
        rarity = -math.log(self.tail)
        reach = math.sqrt(2 * others * share * (1 - share) * rarity) + 2 / 3 * rarity
        first = max(math.floor(others * share - reach), 0)
        last = min(math.ceil(others * share + reach), others)
        middle = np.arange(first, last + 1)
        starts = np.arange(0, len(middle), -(-len(middle) // _BLOCKS))
        weights = np.add.reduceat(binom.pmf(middle, others, share), starts)
        below = binom.cdf(first - 1, others, share)
        above = binom.sf(last, others, share)
        return np.array([0, *middle[starts], last + 1], dtype=float), np.array([below, *weights, above])

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on delta(epsilon), as sharp as double precision allows.

        Given c clones, let a = 0, ..., c + 1 be the first count. P gives it q b(a - 1) + (1 - q) b(a) and Q gives it
        (1 - q) b(a - 1) + q b(a), where b is the law Bin(c, 1/2) and q = P(D = 1). As
        b(a - 1) / b(a) = a / (c + 1 - a), the quotient P / Q grows with a, and is above e^epsilon from some k on. With
        F(k) = b(k) + b(k + 1) + ...,

            P(a >= k) - e^epsilon Q(a >= k) = (q - e^epsilon (1 - q)) b(k - 1) - (e^epsilon - 1) F(k),
            q - e^epsilon (1 - q) = (1 - q) e^epsilon (e^(eps0 - epsilon) - 1).

        Every term below carries the relative error that is allowed for on the side that makes the sum larger.
        """
        from scipy.stats import binom

        clones, weights = self.blocks
        other = 1 / (1 + math.exp(self.local_epsilon))
        factor = math.exp(epsilon)
        edge = factor * other * math.expm1(self.local_epsilon - epsilon)
        # P > e^epsilon Q while the second count stays below this share of c + 1; a count that rounding puts on the
        # wrong side has P = e^epsilon Q up to that rounding.
        share = edge / (math.tanh(self.local_epsilon / 2) * (1 + factor))
        k = clones + 2 - np.ceil((clones + 1) * share)
        gained = edge * binom.pmf(k - 1, clones, 0.5)
        lost = math.expm1(epsilon) * binom.sf(k - 1, clones, 0.5)
        each = np.maximum(gained * (1 + _SLACK) - lost * (1 - _SLACK), 0.0)
        return float(weights @ each) * (1 + _SLACK)


DEFAULT_DELTA = 1e-6
DEFAULT_HONEST = 0.9
SMALLEST_BATCH = 2


@dataclass(frozen=True)
class RelayedPromise:
    """The joint promise of reports of one local epsilon, in batches of the given sizes."""

    local: Epsilon
    bits: int
    """Bits of a report: one bit hides better than the general theorem says."""
    batches: tuple[int, ...]
    """Reports in each batch, smallest first."""
    delta: float = DEFAULT_DELTA
    honest: float = DEFAULT_HONEST

    def __post_init__(self) -> None:
        check_terms(self.delta, self.honest)
        if not self.batches or any(not batch >= 1 for batch in self.batches):
            raise CrowdveilError(f"a relayed promise is about batches of one report or more, got {self.batches}")
        object.__setattr__(self, "batches", tuple(sorted(self.batches)))

    @classmethod
    def of_smallest(cls, local: Epsilon, bits: int, batch: int, delta: float, honest: float) -> Self:
        """Return the promise of one batch of the least size, which holds whatever arrives."""
        return cls(local, bits, (batch,), delta, honest)

    @cached_property
    def epsilon(self) -> float:
        """The epsilon for whoever sees the batches, rounded up to millionths; never above the local one."""

        counted = max(math.floor(self.batches[0] * Fraction(str(self.honest))), 1)
        found = amplified_epsilon(self.local.value, counted, self.delta, one_bit=self.bits == 1)
        return min(math.ceil(found * MICROS_PER_UNIT) / MICROS_PER_UNIT, self.local.value)

    @property
    def theorem(self) -> str:
        """The theorem that the epsilon rests on."""
        if self.bits == 1:
            return "shuffled one-bit reports: binary randomised response with a blanket of 2 / (e^local + 1)"
        return "Feldman, McMillan and Talwar 2021, Theorem 3.2: shuffled reports of any kind"

    @property
    def lines(self) -> tuple[str, str, str]:
        """The promise in three lines: to whoever sees the result, to host and relay together, to the relay alone."""
        return (
            f"Whoever sees the release or the reports: epsilon {_rounded_up(self.epsilon):g} with delta {self.delta:g} "
            f"for all that a voter answered, if {self.honest:.0%} of the reports of each batch are honest "
            f"({self.theorem}; smallest batch {self.batches[0]:,} reports).",
            f"A host and a relay that put together what they know, or a crowd with fewer honest reports: epsilon "
            f"{self.local} for all that a voter answered, by the coin that the voter's device tossed.",
            "The relay alone: that somebody took part, and nothing about the answers, as reports are encrypted to the "
            "host (HPKE, RFC 9180) and all of one length.",
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the promise as it stands in a release file."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "local_epsilon": self.local.value,
            "honest": self.honest,
            "batches": list(self.batches),
            "bits": self.bits,
            "theorem": self.theorem,
            "promise": list(self.lines),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the promise of a release file, and compute its epsilon again from the batches."""
        batches: Sequence[int] = data["batches"]
        promise = cls(
            Epsilon(data["local_epsilon"]), int(data["bits"]), tuple(batches), float(data["delta"]), data["honest"]
        )
        if not data["epsilon"] >= promise.epsilon * (1 - 1e-9):
            raise CrowdveilError(
                f"the release says epsilon {data['epsilon']:g} of its batches, and their sizes give "
                f"{promise.epsilon:g}: do not rely on it"
            )
        return promise


def check_terms(delta: float, honest: float) -> None:
    """Refuse a delta or a share of honest reports that means nothing."""
    if not 0 < delta < 1:
        raise CrowdveilError(f"delta must be between 0 and 1, and far below 1 / voters to mean anything, got {delta}")
    if not 0 < honest <= 1:
        raise CrowdveilError(f"honest is the share of honest reports, above 0 and at most 1, got {honest}")


def _rounded_up(epsilon: float) -> float:
    """Round up to four decimals, so that no promise is stated stronger than it is."""
    return math.ceil(epsilon * 10_000) / 10_000
