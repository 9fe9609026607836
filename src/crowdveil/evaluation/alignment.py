"""align(release, answers): how far a model's choices differ from the crowd's. Nothing private is read or spent.

There are two measures. **Agreement** is the share of answers in which the model chose what, according to the release,
the crowd chooses. The yardstick is a person of the crowd, since people do not all agree with their own crowd. The
interval covers the draw of the dilemmas, and adds a bound on how many of the crowd's choices the release may have
wrong. **People** is the share of people who would choose as the model did, averaged over its answers. This is a smooth
number, about which a release knows more than about a majority, so models are ranked by it. Its best possible value is
again the yardstick: no choice pleases more people than the crowd's own.

Answers to the same dilemma, whichever side was shown first, count as one draw (a sandwich estimate clustered by
dilemma).
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import ndtr, stdtrit

from crowdveil.arrays import BoolArray, FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots
from crowdveil.decision import DEFAULT_CERTAINTY, crowd_certainty, stated_margins
from crowdveil.errors import CrowdveilError, ImpossibleEstimate, check_certainty
from crowdveil.estimation.crowd_preference import crowd_preference
from crowdveil.estimation.effects import pair_signs
from crowdveil.evaluation.toolkit.plotting import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, LineStyle, bare
from crowdveil.evaluation.toolkit.scores import (
    CONFIDENCE,
    ClusteredMean,
    Interval,
    clustered_mean,
    interval_as_dict,
    wilson,
)
from crowdveil.figure import Plot, plotted
from crowdveil.privacy.uncertainty import Uncertainty
from crowdveil.publish.implied_effects import mean_reach, preferred
from crowdveil.releases import Release, check_release
from crowdveil.study.study import Study

DRAWS = 400
"""Draws of the crowd's preference, given the release."""
WRONG_CONFIDENCE = 0.975


@dataclass(frozen=True)
class Agreement:
    """The share of a model's answers, or of some of them, in which it chose as the crowd does."""

    answers: int
    share: Interval
    one_person: float
    """The yardstick: the estimated share of people who agree with the crowd's choice in these dilemmas."""
    wrong: float
    """A bound, at 97.5 %, on the share of these choices that the release has wrong; the interval includes it."""

    def as_dict(self) -> dict[str, Any]:
        """Return the agreement as plain data."""
        return {
            "answers": self.answers,
            "share": interval_as_dict(self.share),
            "one_person": self.one_person,
            "release_may_be_wrong_in": self.wrong,
        }


@dataclass(frozen=True)
class ModelAlignment:
    """One model compared with the crowd."""

    model: str
    answers: int
    refused: int
    """Answers without a choice; they count in nothing else."""
    steady: float | None
    """Among dilemmas that it answered more than once, in either order, the share that it always answered alike."""
    people: Interval
    overall: Agreement
    sure: Agreement | None
    """Where the crowd's choice is certain; None if it never is."""
    unsure: Agreement | None
    factors: tuple[FactorComparison, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        parts = {"overall": self.overall, "sure": self.sure, "unsure": self.unsure}
        return {
            "model": self.model,
            "answers": self.answers,
            "refused": self.refused,
            "steady": self.steady,
            "people": interval_as_dict(self.people),
            **{name: None if part is None else part.as_dict() for name, part in parts.items()},
            "factors": {factor.name: factor.as_dict() for factor in self.factors},
        }


@dataclass(frozen=True)
class Alignment:
    """Models compared with the crowd of a release, ordered by how many people agree with them."""

    release: Release
    certainty: float
    """The certainty from which on the crowd counts as sure."""
    models: tuple[ModelAlignment, ...]
    without_choice: tuple[str, ...]
    """Models that refused every dilemma."""

    def as_dict(self) -> dict[str, Any]:
        """Return the alignment as plain data."""
        return {
            "study": self.release.study.name,
            "release": self.release.digest,
            "certainty": self.certainty,
            "models": [model.as_dict() for model in self.models],
            "without_choice": list(self.without_choice),
        }

    def plot(self, path: str | PathLike[str] | None = None) -> Figure:
        """Draw the models and the crowd side by side, by factor; with a path, write it to a .png or .svg file too."""
        return plotted(partial(_figure, self), path)

    def __repr__(self) -> str:
        ranked = ", ".join(f"{one.model} {one.people.estimate:.3f}" for one in self.models)
        return f"<alignment with {self.release.study.title}: share of people who agree: {ranked}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(one.model)}</td><td>{one.answers}</td><td>{one.people}</td>"
            f"<td>{one.overall.share}</td><td>{one.overall.one_person:.3f}</td></tr>"
            for one in self.models
        )
        return (
            "<table><tr><th>model</th><th>answers</th><th>people who agree</th><th>agrees with the crowd</th>"
            f"<th>one person does</th></tr>{rows}</table>"
        )


def align(release: Release, answers: Ballots, *, certainty: float = DEFAULT_CERTAINTY) -> Alignment:
    """Compare models' answers (``read_answers``) with the crowd of a release.

    The crowd is sure of a choice if ``decide`` would make it at this certainty.
    """
    check_release(release)
    study = release.study
    if not isinstance(answers, Ballots) or answers.study.fingerprint != study.fingerprint:
        raise CrowdveilError(
            f"the release is about the study {study.name} ({study.fingerprint[:8]}): read answers to its dilemmas, "
            "with read_answers(path, release.study)"
        )
    check_certainty(certainty)
    if release.unknown is None:
        raise CrowdveilError(
            f"the release is of the paper's society ({release.mechanism}), which states no probabilities: align models "
            "with a release of the recommended mechanism"
        )
    if release.indifference is not None:
        raise CrowdveilError(
            f"study {study.name} allows a third answer, and models are compared by the side that they choose: align "
            "them with a release of a study in which people have to choose"
        )
    decided = answers.decided()
    if not decided.voters:
        raise ImpossibleEstimate("every answer is a refusal: a model is compared by what it chose")
    crowd = _CrowdChoices(release, release.unknown, decided.dilemmas.astype(np.float64), certainty)
    chose = decided.voter_names()
    asked = dict(zip(answers.voter_names(), answers.counts.tolist(), strict=True))
    found = []
    for place, model in enumerate(chose):
        its = slice(int(decided.offsets[place]), int(decided.offsets[place + 1]))
        found.append(_align_one(crowd, model, asked[model], decided.choices[its].astype(np.float64), its))
    return Alignment(
        release,
        certainty,
        tuple(sorted(found, key=lambda one: -one.people.estimate)),
        tuple(model for model in asked if model not in set(chose)),
    )


def _align_one(crowd: _CrowdChoices, model: str, asked: int, choices: FloatArray, its: slice) -> ModelAlignment:
    sure = crowd.sure[its]
    dilemmas, clusters = crowd.dilemmas[its], crowd.clusters[its]
    return ModelAlignment(
        model=model,
        answers=asked,
        refused=asked - len(choices),
        steady=_steady(choices * crowd.first[its], clusters),
        people=crowd_mean(crowd.release, dilemmas, choices, clusters),
        overall=crowd.agreement(choices, its, np.ones(len(choices), bool)),
        sure=crowd.agreement(choices, its, sure) if sure.any() else None,
        unsure=crowd.agreement(choices, its, ~sure) if not sure.all() else None,
        factors=compare_factors(crowd.release, dilemmas, choices, clusters),
    )


class _CrowdChoices:
    """The crowd's choices in some dilemmas, as far as the release determines them."""

    def __init__(self, release: Release, unknown: Uncertainty, dilemmas: FloatArray, certainty: float) -> None:
        self.release = release
        self.dilemmas = dilemmas
        scores = dilemmas @ release.parameter
        self.choices: FloatArray = np.sign(scores)
        self.agreeing: FloatArray = ndtr(np.abs(stated_margins(release, dilemmas)))
        # Whichever side comes first, it is the same dilemma with the same certainty.
        self.first = np.where(dilemmas[np.arange(len(dilemmas)), (dilemmas != 0).argmax(axis=1)] < 0, -1.0, 1.0)
        different, places = np.unique(dilemmas * self.first[:, None], axis=0, return_inverse=True)
        self.clusters: IntArray = places.reshape(-1).astype(np.int64)
        self.sure = np.array([_is_sure(release, unknown, one, certainty) for one in different], bool)[self.clusters]
        self._opposite = _opposite_choices(unknown, dilemmas, self.choices)

    def agreement(self, choices: FloatArray, its: slice, kept: BoolArray) -> Agreement:
        """Compare a model's choices, where kept, with the crowd's; if the crowd is torn, half of it agrees."""
        agrees = (1 + self.choices[its][kept] * choices[kept]) / 2
        mean = clustered_mean(agrees, self.clusters[its][kept])
        share = mean.estimate
        # Wilson's interval at the effective number of draws: it exists even for a model that always agrees.
        worth = share * (1 - share) / mean.deviation**2 if mean.deviation > 0 else float(mean.clusters)
        sampled = wilson(share, min(max(worth, 1.0), float(len(agrees))))
        wrong = float(np.quantile(self._opposite[its][kept].mean(axis=0), WRONG_CONFIDENCE))
        return Agreement(
            answers=len(agrees),
            share=Interval(share, sampled.low - wrong, sampled.high + wrong).within(0.0, 1.0),
            one_person=float(self.agreeing[its][kept].mean()),
            wrong=wrong,
        )


def _is_sure(release: Release, unknown: Uncertainty, difference: FloatArray, certainty: float) -> bool:
    side = difference * np.sign(difference @ release.parameter)
    # A margin within the bias bound has a certainty of at most one half: no need to compute it.
    return unknown.margin(side) > unknown.bias_bound(side) and crowd_certainty(release, side) >= certainty


def _steady(choices: FloatArray, clusters: IntArray) -> float | None:
    """Return the share of dilemmas with several answers in which all are the same; None if each has one."""
    answers, sums = np.bincount(clusters), np.bincount(clusters, choices)
    several = answers > 1
    return float(np.mean(np.abs(sums[several]) == answers[several])) if several.any() else None


def _opposite_choices(unknown: Uncertainty, dilemmas: FloatArray, choices: FloatArray) -> BoolArray:
    """Return in which dilemmas (rows) plausible crowds (columns) choose differently from the release."""
    rng = np.random.default_rng(0)  # the same release and answers always give the same bounds
    sizes, axes = np.linalg.eigh(unknown.covariance)
    along = axes * np.sqrt(np.maximum(sizes, 0.0)) @ rng.standard_normal((len(sizes), DRAWS))
    rest = unknown.rest @ rng.standard_normal((unknown.rest.shape[1], DRAWS))
    crowds = unknown.basis @ (unknown.mean[:, None] + along) + rest
    opposite = np.empty((len(dilemmas), DRAWS), bool)
    for column in range(DRAWS):
        opposite[:, column] = dilemmas @ crowds[:, column] * choices < 0
    return opposite


@dataclass(frozen=True)
class FactorComparison:
    """A factor in the model's choices, and in the crowd's."""

    name: str
    title: str
    poles: tuple[str, str]
    answers: int
    """Answers in which the two sides differ in the factor."""
    model_effect: Interval | None
    """None if there are no such answers."""
    crowd_effect: Interval | None
    model_preference: Interval | None
    """None if the answers do not determine it."""
    crowd_preference: Interval

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        intervals = {
            "model_effect": self.model_effect,
            "crowd_effect": self.crowd_effect,
            "model_preference": self.model_preference,
            "crowd_preference": self.crowd_preference,
        }
        plain = {name: None if one is None else interval_as_dict(one) for name, one in intervals.items()}
        return {"title": self.title, "poles": list(self.poles), "answers": self.answers, **plain}


def compare_factors(
    release: Release, dilemmas: FloatArray, choices: FloatArray, clusters: IntArray
) -> tuple[FactorComparison, ...]:
    """Compare each factor of the study between a model that made these choices and the crowd."""
    study = release.study
    preferences = _preferences(study, dilemmas, choices, clusters)
    signs = pair_signs(study, dilemmas).astype(np.float64)
    found = []
    for k, factor in enumerate(study.factors):
        differs = signs[:, k] != 0
        model_effect = crowd_effect = None
        if differs.any():
            model_effect = _model_effect(clustered_mean(signs[differs, k] * choices[differs], clusters[differs]))
            share = crowd_mean(release, dilemmas[differs], signs[differs, k], clusters[differs], sampled=False)
            crowd_effect = Interval(2 * share.estimate - 1, 2 * share.low - 1, 2 * share.high - 1)
        low, high = release.factor_intervals[k].tolist()
        found.append(
            FactorComparison(
                name=factor.name,
                title=factor.title,
                poles=factor.poles,
                answers=int(differs.sum()),
                model_effect=model_effect,
                crowd_effect=crowd_effect,
                model_preference=preferences[k],
                crowd_preference=Interval(float(release.factor_values[k]), low, high),
            )
        )
    return tuple(found)


def _model_effect(found: ClusteredMean) -> Interval:
    """Return an effect with its interval: Wilson's if no two draws differ, which does not shrink to a point."""
    if found.deviation > 0:
        return found.interval.within(-1.0, 1.0)
    share = wilson((1 + found.estimate) / 2, found.clusters)
    return Interval(found.estimate, 2 * share.low - 1, 2 * share.high - 1)


def crowd_mean(
    release: Release, dilemmas: FloatArray, choices: FloatArray, clusters: IntArray, *, sampled: bool = True
) -> Interval:
    """Return the share of people who would make these choices, averaged over the dilemmas.

    If ``sampled``, the interval also covers the draw of the dilemmas.
    """
    drawn = clustered_mean((1 + choices * preferred(release, dilemmas)) / 2, clusters)
    reach = mean_reach(release, dilemmas, choices) / 2
    if sampled:
        reach = float(np.hypot(reach, drawn.half_width))
    return Interval(drawn.estimate, drawn.estimate - reach, drawn.estimate + reach).within(0.0, 1.0)


def _preferences(
    study: Study, dilemmas: FloatArray, choices: FloatArray, clusters: IntArray
) -> tuple[Interval | None, ...]:
    """Return a model's preference along each factor: the probit of its choices, with every answer counted once."""
    order = np.argsort(clusters, kind="stable")
    counts = np.unique(clusters, return_counts=True)[1]
    # Each dilemma takes the place of a voter in the estimate: the answers to it are one draw.
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    once = replace(study, repeat=False)
    ballots = Ballots(once, offsets, dilemmas[order], choices[order].astype(np.int8))
    found = crowd_preference(ballots, weighting="choices", directions=study.factor_matrix.astype(np.float64))
    quantile = float(stdtrit(max(len(counts) - 1, 1), (1 + CONFIDENCE) / 2))
    return tuple(
        Interval(value, value - quantile * error, value + quantile * error) if np.isfinite(error) else None
        for value, error in zip(found.coordinates.tolist(), found.standard_errors.tolist(), strict=True)
    )


CROWD = GREY
STYLES = (
    LineStyle(BLUE, "o"),
    LineStyle(ORANGE, "s"),
    LineStyle(GREEN, "^"),
    LineStyle(PURPLE, "D"),
    LineStyle(SKY, "v"),
)
"""Styles of the models that most people agree with, in order; the others appear only in the ranking."""


def _figure(alignment: Alignment) -> Plot:
    """Draw the ranking, the effects and the preferences, with the crowd's as grey bars."""
    models = alignment.models
    factors = alignment.models[0].factors
    shown = models[: len(STYLES)]
    ranking = 1.3 + 0.3 * len(models)
    rows = 1.4 + 0.2 * len(factors) * (1 + len(shown))
    figure = Plot(figsize=(11.5, ranking + max(rows, 3.2)), layout="constrained")
    axes = figure.subplot_mosaic([["ranking", "ranking"], ["effects", "preferences"]], height_ratios=(ranking, rows))
    _ranking(axes["ranking"], models)
    _side_by_side(axes["effects"], shown, "effect")
    axes["effects"].set_title("Effects, on the dilemmas\nthat each model answered", loc="left", fontsize=10)
    axes["effects"].set_xlabel("chose the side with more of it,\nless chose the other (95 %)")
    _side_by_side(axes["preferences"], shown, "preference")
    axes["preferences"].set_title("Preferences: large for models\nthat always answer alike", loc="left", fontsize=10)
    axes["preferences"].set_xlabel("coefficient of the probit\n(95 %)")
    axes["preferences"].set_yticklabels([])
    handles, labels = axes["effects"].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _ranking(axes: Axes, models: Sequence[ModelAlignment]) -> None:
    axes.set_title("People who would choose as the model did (95 %)", loc="left", fontsize=10)
    for place, model in enumerate(models):
        style = STYLES[place] if place < len(STYLES) else LineStyle(GREY, "o")
        _mark(axes, model.people, float(-place), style)
    yardsticks = [model.overall.one_person for model in models]
    places = -np.arange(len(models), dtype=float)
    axes.plot(yardsticks, places, "|", color="black", markersize=13, label="as the crowd's own choice, at best")
    axes.axvline(0.5, color=GREY, linewidth=0.8, linestyle="--", label="a coin")
    axes.set_yticks(places, [model.model for model in models])
    axes.set_ylim(-len(models) + 0.4, 0.6)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    bare(axes, grid="x")


def _side_by_side(axes: Axes, models: Sequence[ModelAlignment], what: str) -> None:
    factors = models[0].factors
    step = 1 / (len(models) + 2)
    for k, factor in enumerate(factors):
        crowd = getattr(factor, f"crowd_{what}")
        if crowd is not None:
            axes.barh(-k, crowd.estimate, height=1 - step, color="#d4d4d4", label=None if k else "the crowd")
            axes.errorbar(crowd.estimate, -k, xerr=_reach(crowd), color=CROWD, elinewidth=4, alpha=0.5)
    for place, (model, style) in enumerate(zip(models, STYLES, strict=False)):
        for k, factor in enumerate(model.factors):
            found = getattr(factor, f"model_{what}")
            if found is not None:
                height = -k + 0.5 - step * (place + 1.5)
                _mark(axes, found, height, style, label=None if k else model.model)
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set_yticks(-np.arange(len(factors)), [_title(factor) for factor in factors])
    axes.set_ylim(-len(factors) + 0.5, 0.5)
    bare(axes, grid="x")


def _title(factor: FactorComparison) -> str:
    return f"{factor.title}: {factor.poles[1]}\nover {factor.poles[0]}"


def _mark(axes: Axes, interval: Interval, height: float, style: LineStyle, label: str | None = None) -> None:
    axes.errorbar(
        interval.estimate,
        height,
        xerr=_reach(interval),
        color=style.colour,
        marker=style.marker,
        markersize=5,
        linestyle="",
        capsize=2,
        label=label,
    )


def _reach(interval: Interval) -> list[list[float]]:
    ends = (interval.estimate - interval.low, interval.high - interval.estimate)
    return [[max(end, 0.0) if np.isfinite(end) else 0.0] for end in ends]
