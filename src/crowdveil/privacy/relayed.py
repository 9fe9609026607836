"""The promise of reports that reach the host through a relay: shuffled, in batches, without their senders.

Theorem. Let every report be local-epsilon-differentially private for all that its voter says (vldp), let the relay hand
them over in batches of n_1 <= n_2 <= ... reports, each in a random order and without anything else, and let at least a
share h of the reports of each batch be honest: made by voters who tell nobody which is theirs. Then whoever sees the
batches, and everything computed from them, learns of one voter what (epsilon, delta)-differential privacy allows, with
the epsilon that ``shuffling`` computes for floor(h n_1) voters.

Proof. A voter's report is in one batch, and the reports of the others depend on other ballots: so telling two ballots
of hers apart from all batches is as hard as from her own. There, tell the attacker which reports are not honest; the
honest ones are a shuffled crowd of floor(h n) or more, and more voters hide better. Which voters are in which batch,
and when a batch is full, depends on no ballot.

Where fewer are honest, or the host and the relay put together what they know, the local epsilon remains. The relay
alone sees ciphertexts of one length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.amount import MICROS_PER_UNIT
from crowdveil.privacy.epsilon import Epsilon

MECHANISM = "one-bit"
"""The mechanism whose reports a relay carries."""
DEFAULT_DELTA = 1e-6
DEFAULT_HONEST = 0.9
SMALLEST_BATCH = 2


@dataclass(frozen=True)
class RelayedPromise:
    """What reports of one local epsilon promise together, for batches of the given numbers of reports."""

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
        """Return what holds whatever arrives: the promise of one batch of the least size."""
        return cls(local, bits, (batch,), delta, honest)

    @cached_property
    def epsilon(self) -> float:
        """The epsilon for whoever sees the batches, rounded up to millionths; never above the local one."""
        from crowdveil.privacy.shuffling import amplified_epsilon  # whoever reads a release needs no SciPy for it

        counted = max(math.floor(self.batches[0] * Fraction(str(self.honest))), 1)
        found = amplified_epsilon(self.local.value, counted, self.delta, one_bit=self.bits == 1)
        return min(math.ceil(found * MICROS_PER_UNIT) / MICROS_PER_UNIT, self.local.value)

    @property
    def theorem(self) -> str:
        """Which theorem the epsilon rests on."""
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
            f"{self.local} for all that a voter answered, by the coin that her device tossed.",
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
    """Round to what people read, so that no promise is told larger than it is."""
    return math.ceil(epsilon * 10_000) / 10_000
