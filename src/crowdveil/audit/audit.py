"""The whole audit: all promises, all mistakes, the samplers and the floating-point trap; and its picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crowdveil.audit.laws import LawTest, all_kinds, laplace_only
from crowdveil.audit.neighbours import Effort
from crowdveil.audit.targets import Target, mistakes, promises
from crowdveil.audit.trial import FALSE_ALARM, JUDGED, SHOWN, Flaw, Trial, put_on_trial
from crowdveil.errors import CrowdveilError
from crowdveil.files import replacing
from crowdveil.pages.markup import INK, LESS, MORE, PAPER, RULE
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.mechanisms.registry import ALL
from crowdveil.privacy.noise.exact_noise import BulkNoise, OpenDPNoise

FEWEST_DRAWS = 20_000
"""With fewer, a mistake that reduces the noise by a factor of sqrt 2 might be missed."""
MOST_DRAWS = 1_000_000
MOST_SLOW_DRAWS = 50_000
MOST_FOR_MISTAKES = Epsilon("1")
"""Largest epsilon at which mistakes are tried: a few 10,000 outputs cannot prove an epsilon above about 7."""
AuditTask = Callable[[], Iterable[Trial | LawTest]]
FORMATS = ("svg", "png", "pdf")
_LEAST, _MOST = 0.1, 40.0
_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20)


@dataclass(frozen=True)
class AuditRequest:
    """The mechanisms to audit, and the effort."""

    epsilon: Epsilon
    draws: int
    """Outputs of each side; as many again are used to choose the event."""
    effort: Effort
    mechanism: str | None = None
    """None for all mechanisms and the noise itself."""

    def __post_init__(self) -> None:
        if not FEWEST_DRAWS <= self.draws <= MOST_DRAWS:
            raise CrowdveilError(f"an audit needs {FEWEST_DRAWS} to {MOST_DRAWS} draws, got {self.draws}")
        if self.mechanism is not None and self.mechanism not in ALL:
            raise CrowdveilError(f"there is no mechanism {self.mechanism!r}: choose one of {', '.join(ALL)}")

    @classmethod
    def thorough(cls, epsilon: Epsilon, draws: int | None = None, mechanism: str | None = None) -> AuditRequest:
        """Search thoroughly: a few minutes."""
        return cls(epsilon, 200_000 if draws is None else draws, Effort(restarts=12, rounds=600), mechanism)

    @classmethod
    def quick(cls, epsilon: Epsilon, draws: int | None = None, mechanism: str | None = None) -> AuditRequest:
        """Search for about half a minute."""
        return cls(epsilon, FEWEST_DRAWS if draws is None else draws, Effort(restarts=3, rounds=150), mechanism)

    @property
    def slow_draws(self) -> int:
        """Outputs of each side if OpenDP draws them one at a time.

        For 20,000 draws these are 10,000: enough for the attack to prove that Gaussian noise has half the deviation,
        unless luck is six standard deviations against it.
        """
        return min(self.draws // 2, MOST_SLOW_DRAWS)


@dataclass(frozen=True)
class Audit:
    """All trials and their results."""

    request: AuditRequest
    trials: tuple[Trial, ...]
    laws: tuple[LawTest, ...]

    @property
    def promises(self) -> tuple[Trial, ...]:
        """The trials of our promises."""
        return tuple(trial for trial in self.trials if trial.bug is None)

    @property
    def bugs(self) -> tuple[Trial, ...]:
        """The trials of deliberate mistakes."""
        return tuple(trial for trial in self.trials if trial.bug is not None)

    @property
    def clean(self) -> bool:
        """Whether every promise held, every mistake was caught and all noise follows its law."""
        return all(trial.as_it_should_be for trial in self.trials) and all(test.passed for test in self.laws)

    def as_dict(self) -> dict[str, Any]:
        """Return the audit as plain data."""
        return {
            "clean": self.clean,
            "epsilon": self.request.epsilon.value,
            "draws": self.request.draws,
            "confidence": 1 - SHOWN,
            "false_alarm": {"per_bound": JUDGED, "per_law_test": FALSE_ALARM},
            "promises": [trial.as_dict() for trial in self.promises],
            "bugs": [trial.as_dict() for trial in self.bugs],
            "noise": [test.as_dict() for test in self.laws],
        }


def tasks(request: AuditRequest) -> list[AuditTask]:
    """List the tasks, in the order in which their results are shown."""
    targets = promises(request.epsilon) + mistakes(min(request.epsilon, MOST_FOR_MISTAKES))
    todo = [_trial(target, request) for target in targets if request.mechanism in (None, target.mechanism)]
    if request.mechanism is None:
        todo.append(lambda: all_kinds(BulkNoise(), "bulk", request.draws))
        todo.append(lambda: laplace_only(OpenDPNoise(), "OpenDP", request.slow_draws))
    return todo


def audit(request: AuditRequest, tell: Callable[[int], None] = lambda done: None) -> Audit:
    """Run all tasks; ``tell`` is called after each."""
    results = list[Trial | LawTest]()
    for task in tasks(request):
        results.extend(task())
        tell(1)
    trials = tuple(result for result in results if isinstance(result, Trial))
    return Audit(request, trials, tuple(result for result in results if isinstance(result, LawTest)))


def _trial(target: Target, request: AuditRequest) -> AuditTask:
    draws = request.slow_draws if target.slow else request.draws
    return lambda: [put_on_trial(target.subject(request.effort), draws, target.bug)]


def check_format(path: Path) -> None:
    """Refuse a picture format that cannot be drawn."""
    if path.suffix.lower().lstrip(".") not in FORMATS:
        raise CrowdveilError(f"cannot draw {path}: its name must end in {', '.join('.' + f for f in FORMATS)}")


def save_picture(done: Audit, path: Path) -> None:
    """Draw an audit and write the picture, whole or not at all."""
    check_format(path)
    with replacing(path) as unfinished:
        draw(done).savefig(unfinished, format=path.suffix.lower().lstrip("."), facecolor=PAPER)


def draw(done: Audit) -> Figure:
    """Draw each mechanism with its mistakes below it: the proved lower bound as a multiple of the promise."""
    rows = list(_grouped(done.trials))
    width = 10.0
    height = 1.35 + 0.29 * len(rows)
    top = 0.75
    bottom = 0.6
    figure = Figure(figsize=(width, height), dpi=110)
    left, right = 0.36, 0.82
    axes = figure.add_axes((left, bottom / height, right - left, (height - top - bottom) / height))
    axes.set(xscale="log", xlim=(_LEAST, _MOST), ylim=(len(rows) - 0.4, -0.6))
    axes.axvspan(1, _MOST, color=LESS, alpha=0.07, linewidth=0)
    axes.axvline(1, color=INK, linewidth=1.2)
    for place, trial in enumerate(rows):
        _draw_row(axes, place, trial)
    axes.set_yticks(range(len(rows)), [_label(trial) for trial in rows], fontsize=9)
    for label, trial in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_color(INK if trial.bug is None else LESS)
    axes.set_xticks(_TICKS, [f"{tick:g}" for tick in _TICKS], fontsize=9)
    axes.minorticks_off()
    axes.tick_params(length=0)
    axes.grid(axis="x", color=RULE, linewidth=0.7)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_xlabel("epsilon proved by the attack (99.9 %), as a multiple of the epsilon promised", fontsize=9.5)
    axes.annotate("promised", (1, 1), (0, 4), xycoords=("data", "axes fraction"), textcoords="offset points",
                  ha="center", fontsize=9, color=INK)  # fmt: skip
    figure.text(0.015, 1 - 0.32 / height, _title(done), fontsize=12, weight="bold", color=INK)
    return figure


def _grouped(trials: Iterable[Trial]) -> Iterable[Trial]:
    """Order the trials by mechanism, promises before mistakes."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(trial.name, []).append(trial)
    return chain.from_iterable(sorted(group, key=lambda trial: trial.bug is not None) for group in groups.values())


def _label(trial: Trial) -> str:
    if trial.bug is not None:
        return f"wrong on purpose: {trial.bug}"
    return trial.name + (f" ({trial.remark})" if trial.remark else "")


def _draw_row(axes: Axes, place: int, trial: Trial) -> None:
    ratio = trial.evidence.shown / trial.claimed.epsilon
    at = min(max(ratio, _LEAST * 1.05), _MOST)
    colour = MORE if trial.bug is None else LESS
    by_attack = trial.bug is None or Flaw.BOUND in trial.flaws
    axes.plot([_LEAST, at], [place, place], color=colour, linewidth=1.4, alpha=0.45, solid_capstyle="butt")
    axes.plot(
        [at],
        [place],
        marker="o" if trial.bug is None else "D",
        markersize=6 if trial.bug is None else 5.5,
        color=colour,
        markerfacecolor=colour if by_attack else PAPER,
    )
    verdict = trial.verdict.value + ("" if by_attack else f": {trial.flaws[0].value}" if trial.flaws else "")
    axes.annotate(
        f"{trial.evidence.shown:.2f} of {trial.promised}: {verdict}" if by_attack else verdict,
        (1.02, place),
        xycoords=("axes fraction", "data"),
        va="center",
        fontsize=9,
        color=colour if trial.as_it_should_be else "#c00000",
        weight="normal" if trial.as_it_should_be else "bold",
        annotation_clip=False,
    )


def _title(done: Audit) -> str:
    held, caught = (sum(trial.as_it_should_be for trial in trials) for trials in (done.promises, done.bugs))
    promises = f"{held} of {len(done.promises)} promises held under attack"
    return f"{promises}, {caught} of {len(done.bugs)} deliberate mistakes were caught" if done.bugs else promises
