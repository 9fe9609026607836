"""The audit at a glance: what is promised, what an attack proves, and how mistakes stand out."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crowdveil.audit.audit import Audit
from crowdveil.audit.trial import Flaw, Trial
from crowdveil.errors import CrowdveilError
from crowdveil.files import replacing

FORMATS = ("svg", "png", "pdf")

# After Okabe and Ito: told apart by colour-blind readers. Shapes differ too.
_INK, _MUTED, _RULE, _PAPER = "#1d1d1b", "#66655f", "#dedad1", "#fffefb"
_PROMISE, _BUG = "#0067a3", "#b84a00"
_LEAST, _MOST = 0.1, 40.0
_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20)


def check_format(path: Path) -> None:
    """Refuse a picture that nothing here can draw."""
    if path.suffix.lower().lstrip(".") not in FORMATS:
        raise CrowdveilError(f"cannot draw {path}: its name must end in {', '.join('.' + f for f in FORMATS)}")


def save_picture(done: Audit, path: Path) -> None:
    """Draw an audit and write it, whole or not at all."""
    check_format(path)
    with replacing(path) as unfinished:
        draw(done).savefig(unfinished, format=path.suffix.lower().lstrip("."), facecolor=_PAPER)


def draw(done: Audit) -> Figure:
    """Draw each mechanism with its mistakes below it: the proved lower bound as a multiple of what is promised."""
    rows = list(_grouped(done.trials))
    width = 10.0
    height = 1.35 + 0.29 * len(rows)
    top = 0.75
    bottom = 0.6
    figure = Figure(figsize=(width, height), dpi=110)
    left, right = 0.36, 0.82
    axes = figure.add_axes((left, bottom / height, right - left, (height - top - bottom) / height))
    axes.set(xscale="log", xlim=(_LEAST, _MOST), ylim=(len(rows) - 0.4, -0.6))
    axes.axvspan(1, _MOST, color=_BUG, alpha=0.07, linewidth=0)
    axes.axvline(1, color=_INK, linewidth=1.2)
    for place, trial in enumerate(rows):
        _draw_row(axes, place, trial)
    axes.set_yticks(range(len(rows)), [_label(trial) for trial in rows], fontsize=9)
    for label, trial in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_color(_INK if trial.bug is None else _BUG)
    axes.set_xticks(_TICKS, [f"{tick:g}" for tick in _TICKS], fontsize=9)
    axes.minorticks_off()
    axes.tick_params(length=0)
    axes.grid(axis="x", color=_RULE, linewidth=0.7)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_xlabel("epsilon proved by the attack (99.9 %), as a multiple of the epsilon promised", fontsize=9.5)
    axes.annotate("promised", (1, 1), (0, 4), xycoords=("data", "axes fraction"), textcoords="offset points",
                  ha="center", fontsize=9, color=_INK)  # fmt: skip
    figure.text(0.015, 1 - 0.32 / height, _title(done), fontsize=12, weight="bold", color=_INK)
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
    colour = _PROMISE if trial.bug is None else _BUG
    by_attack = trial.bug is None or Flaw.BOUND in trial.flaws
    axes.plot([_LEAST, at], [place, place], color=colour, linewidth=1.4, alpha=0.45, solid_capstyle="butt")
    axes.plot(
        [at],
        [place],
        marker="o" if trial.bug is None else "D",
        markersize=6 if trial.bug is None else 5.5,
        color=colour,
        markerfacecolor=colour if by_attack else _PAPER,
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
