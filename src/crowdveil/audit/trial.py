"""One promise put on trial: three ways to break it, and a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from crowdveil.arrays import FloatArray
from crowdveil.audit.attack import Evidence, Rows, attack
from crowdveil.audit.neighbours import Neighbours
from crowdveil.audit.noise_laws import FALSE_ALARM, fit_of
from crowdveil.audit.noiseless import Asked, Kind
from crowdveil.audit.subjects import Subject, likelihood
from crowdveil.privacy.noise.source import Noise

TIGHT = 0.85
"""A bound of at least this share of the promise leaves hardly any noise that could be saved."""
_ROWS_FOR_THE_LAW = 20_000


class Verdict(StrEnum):
    """How a trial ended."""

    TIGHT = "tight"
    HOLDS = "holds"
    VIOLATED = "VIOLATED"
    CAUGHT = "caught"
    MISSED = "MISSED"


class Flaw(StrEnum):
    """What can be wrong with a promise."""

    BOUND = "attack"
    NEIGHBOURS = "neighbours too far apart"
    NOISE = "law of the noise"
    RELEASE = "release tells more than the noisy sum"


@dataclass(frozen=True)
class Trial:
    """What was promised, what was found."""

    name: str
    remark: str
    paradigm: str
    claimed: float
    evidence: Evidence
    neighbours: str
    reach: float | None
    """How far apart the neighbours are, as a share of what the noise covers."""
    noise_p_value: float | None
    flaws: tuple[Flaw, ...]
    bug: str | None = None
    """The mistake that was made on purpose, if any: then a flaw must be found."""
    delta: float = 0.0
    """0 for a pure promise."""

    @property
    def verdict(self) -> Verdict:
        """The outcome in a word."""
        if self.bug is not None:
            return Verdict.CAUGHT if self.flaws else Verdict.MISSED
        if self.flaws:
            return Verdict.VIOLATED
        return Verdict.TIGHT if self.evidence.shown >= TIGHT * self.claimed else Verdict.HOLDS

    @property
    def promised(self) -> str:
        """The promise in short: an epsilon, with its delta if it has one."""
        return f"{self.claimed:.3g}, delta {self.delta:g}" if self.delta else f"{self.claimed:g}"

    @property
    def as_it_should_be(self) -> bool:
        """Whether a promise held, or a mistake was caught."""
        return self.verdict not in (Verdict.VIOLATED, Verdict.MISSED)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "mechanism": self.name,
            "remark": self.remark,
            "paradigm": self.paradigm,
            **({"bug": self.bug} if self.bug is not None else {}),
            "claimed": self.claimed,
            **({"delta": self.delta} if self.delta else {}),
            "lower_bound": self.evidence.shown,
            "verdict": self.verdict.value,
            "flaws": [flaw.value for flaw in self.flaws],
            "neighbours": self.neighbours,
            "reach": self.reach,
            "noise_p_value": self.noise_p_value,
        }


def put_on_trial(subject: Subject, pair: Neighbours, noise: Noise, draws: int, bug: str | None = None) -> Trial:
    """Attack a mechanism with this noise source on these neighbours."""
    left, right = pair.left, pair.right
    asked = subject.asked(left)
    train, fresh = (
        (subject.sample(left, draws, noise), subject.sample(right, draws, noise)) for _ in ("train", "fresh")
    )
    # Noise of the other kind than was asked for is one of the mistakes that an attack should see through.
    scores = [] if asked is None else [likelihood(subject, kind, left, right) for kind in Kind]
    evidence = attack(train, fresh, scores)
    p_value = None if asked is None else _noise_p_value(subject, asked, left, fresh[0][:_ROWS_FOR_THE_LAW])
    claimed = subject.epsilon.value
    found = {
        Flaw.BOUND: evidence.judged > claimed,
        Flaw.NEIGHBOURS: pair.too_far,
        Flaw.NOISE: p_value is not None and p_value < FALSE_ALARM,
        Flaw.RELEASE: not subject.same_release(left, right),
    }
    flaws = tuple(flaw for flaw, is_there in found.items() if is_there)
    return Trial(
        name=subject.name,
        remark=subject.remark,
        paradigm=subject.paradigm.name,
        claimed=claimed,
        evidence=evidence,
        neighbours=pair.how,
        reach=pair.reach,
        noise_p_value=p_value,
        flaws=flaws,
        bug=bug,
    )


def _noise_p_value(subject: Subject, asked: Asked, records: FloatArray, rows: Rows) -> float:
    """Compare the noise that left with what was asked for: in as many columns, and of that law."""
    said, mask = subject.noisy(rows)
    drawn = (said - subject.exact(records))[mask.astype(bool)].reshape(len(said), -1)
    drawn = drawn[:, drawn.any(axis=0)]
    return fit_of(asked, drawn) if drawn.shape[1] == asked.columns else 0.0
