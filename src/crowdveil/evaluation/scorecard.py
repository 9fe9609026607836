"""evaluate(release, ballots): is what the release says about people true of these people?

There are three questions. How often does it predict their choices, and how good are the probabilities it states? Do its
error bars cover the exact preference of this crowd? And in which factor does it fail? Each answer comes with its limit:
the score of the exact preference of these same ballots. Everything is exact, and nothing here protects anybody.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import ndtr

from crowdveil.arrays import BoolArray, FloatArray, ValueArray
from crowdveil.ballots.ballots import BallotSource, check_source
from crowdveil.decision import stated_margins
from crowdveil.errors import CrowdveilError, check_text, plural
from crowdveil.estimation.crowd_preference import CrowdPreference, Weighting, crowd_preference
from crowdveil.estimation.threshold import ExactThreshold, exact_threshold, three_shares
from crowdveil.evaluation.toolkit.plotting import BLUE, GREY, ORANGE, bare
from crowdveil.evaluation.toolkit.scores import Bin, Forecasts, Interval, Scores, forecasts
from crowdveil.figure import Plot, plotted
from crowdveil.releases import Release, check_release

NOT_PROTECTED = "Exact: these numbers protect nobody. They are for the holder of the ballots only."
COIN = {"share_predicted": 0.5, "brier": 0.25, "log_loss": math.log(2)}
"""The scores of a coin, which states one half for everything."""
WORDS = {
    "share_predicted": "choices predicted",
    "brier": "Brier score",
    "log_loss": "log loss",
    "slope": "calibration slope",
    "overstatement": "stated less right",
}


@dataclass(frozen=True)
class Coverage:
    """A number of the release with its error bar, and its exact value in the crowd that judges it."""

    name: str
    title: str
    released: float
    bar: float
    exact: float | None
    """None if the choices do not determine it."""
    sampling_error: float | None
    """The standard error of the exact value, if the voters are a sample of others like them; None if not known."""

    @property
    def inside(self) -> bool | None:
        """Whether the exact value lies inside the error bar."""
        return None if self.exact is None else abs(self.released - self.exact) <= self.bar

    def as_dict(self) -> dict[str, Any]:
        """Return the coverage as plain data."""
        return {
            "released": self.released,
            "error_bar": self.bar,
            "exact": self.exact,
            "sampling_error": self.sampling_error,
            "inside": self.inside,
        }


@dataclass(frozen=True)
class FactorScores:
    """The scores on the pairs that differ in a factor, and the factor itself: released and exact."""

    coverage: Coverage
    released: Scores | None
    """None if no pair differs."""
    limit: Scores | None
    curve: tuple[Bin, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the scores as plain data."""
        scores = {"release": self.released, "limit": self.limit}
        plain = {name: None if found is None else found.as_dict() for name, found in scores.items()}
        curve = [point.as_dict() for point in self.curve]
        return {"title": self.coverage.title, **plain, "curve": curve, "value": self.coverage.as_dict()}


@dataclass(frozen=True)
class ThirdAnswer:
    """The three shares that a release states, judged by people's answers: mean log losses, and thresholds."""

    log_loss: float
    limit: float
    """Loss of the exact preference and threshold of these same ballots."""
    constant: float
    """Loss of the exact preference of decided choices, with the same share of neither in every dilemma."""
    share: float
    """Share of choices that were neither."""
    tau: float
    """The released threshold."""
    exact_tau: float
    """The threshold that fits these ballots best."""


@dataclass(frozen=True)
class Evaluation:
    """A release judged by ballots. It protects nobody."""

    release: Release
    weighting: Weighting
    released: Scores
    limit: Scores
    """The scores of the exact preference of these same ballots. It is fitted to them, so it is a little too good."""
    curve: tuple[Bin, ...]
    factors: tuple[FactorScores, ...]
    features: tuple[Coverage, ...]
    third: ThirdAnswer | None = None
    """Scores of the three shares, in a study that allows a third answer."""

    @property
    def factor_coverage(self) -> tuple[int, int]:
        """The number of factors with their exact value inside the error bar, and of those whose value is known."""
        return _count([factor.coverage for factor in self.factors])

    @property
    def feature_coverage(self) -> tuple[int, int]:
        """The number of features with their exact value inside the error bar, and of those whose value is known."""
        return _count(self.features)

    def as_dict(self) -> dict[str, Any]:
        """Return the evaluation as plain data."""
        coverage = {"factors": self.factor_coverage, "features": self.feature_coverage}
        return {
            "study": self.release.study.name,
            "release": self.release.digest,
            "mechanism": self.release.mechanism,
            "protected": False,
            "weighting": self.weighting,
            "voters": self.released.voters,
            "choices": self.released.choices,
            "scores": {"release": self.released.as_dict(), "limit": self.limit.as_dict(), "coin": COIN},
            "curve": [point.as_dict() for point in self.curve],
            "coverage": {name: {"inside": inside, "of": of} for name, (inside, of) in coverage.items()},
            "factors": {factor.coverage.name: factor.as_dict() for factor in self.factors},
            "features": {feature.name: feature.as_dict() for feature in self.features},
            **({} if self.third is None else {"third_answer": asdict(self.third)}),
        }

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return one row per score: its name, the release's, the limit's and a coin's."""
        rows = [
            (words, _shown(getattr(self.released, name)), _shown(getattr(self.limit, name)), _coin(name))
            for name, words in WORDS.items()
        ]
        if self.third is not None:
            third = self.third
            scores = (f"{third.log_loss:.3f}", f"{third.limit:.3f}", f"{math.log(3):.3f}")
            rows.append(("three-way log loss", *scores))
            rows.append(("threshold tau", f"{third.tau:.3f}", f"{third.exact_tau:.3f}", ""))
        return rows

    def plot(self, path: str | PathLike[str] | None = None) -> Figure:
        """Draw the calibration curve, and the error bars against the exact values.

        With a path, write it to a .png or .svg file too.
        """
        return plotted(partial(_figure, self), path)

    def __repr__(self) -> str:
        found = self.released
        slope = "no slope" if found.slope is None else f"slope {found.slope.estimate:.2f}"
        inside, of = self.factor_coverage
        return (
            f"<evaluation by {found.choices:,} {plural(found.choices, 'choice')} of {found.voters:,} "
            f"{plural(found.voters, 'voter')}: "
            f"{found.share_predicted.estimate:.3f} predicted (limit {self.limit.share_predicted.estimate:.3f}), "
            f"Brier {found.brier.estimate:.3f}, {slope}, bars cover {inside} of {of} factors; not protected>"
        )

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{'</td><td>'.join(row)}</td></tr>" for row in self.rows())
        bars = "".join(
            f"<tr><td>{html.escape(one.title)}</td><td>{one.released:+.3f} ± {one.bar:.3f}</td>"
            f"<td>{'not known' if one.exact is None else f'{one.exact:+.3f}'}</td></tr>"
            for one in (factor.coverage for factor in self.factors)
        )
        return (
            f"<table><caption>{html.escape(repr(self)[1:-1])}</caption>"
            f"<tr><th></th><th>release</th><th>limit</th><th>coin</th></tr>{rows}</table>"
            f"<table><tr><th>factor</th><th>released</th><th>exact</th></tr>{bars}</table><p>{NOT_PROTECTED}</p>"
        )


def evaluate(release: Release, ballots: BallotSource, *, weighting: Weighting = "voters") -> Evaluation:
    """Judge a release by what people chose: predictions, stated probabilities and error bars; all of it by factor too.

    The result is exact, so it is for the holder of the ballots and not for publishing. If you can, judge by people who
    are not in the release: people who are in it are easier to predict. Every voter counts once, or with
    ``weighting="choices"`` every choice. Records in which neither side was chosen are left out. In a study that allows
    this answer, the three shares are also judged, and the exact preference is that of the threshold model.
    """
    check_release(release)
    check_source(ballots)
    check_text(weighting, "the weighting")
    study = release.study
    if ballots.study.fingerprint != study.fingerprint:
        raise CrowdveilError(
            f"the release is about the study {study.name} ({study.fingerprint[:8]}), the ballots about "
            f"{ballots.study.name} ({ballots.study.fingerprint[:8]}): evaluate it by ballots of its own study"
        )
    exact = crowd_preference(ballots, weighting=weighting)
    threshold = exact_threshold(ballots, weighting=weighting) if study.indifference is not None else None
    third = None if threshold is None else _third_answer(release, exact, threshold, ballots)
    along_factors = exact
    if not study.factors_are_features:
        directions = study.factor_matrix.astype(np.float64)
        along_factors = crowd_preference(ballots, weighting=weighting, directions=directions)
    if threshold is not None:
        # Decided choices alone give too steep a preference: the bars are about the preference of the threshold model.
        along_factors = replace(along_factors, coordinates=study.factor_map @ threshold.preference)
        exact = replace(exact, preference=threshold.preference, coordinates=threshold.preference)
    stated, limit, differs = _forecasts(release, exact, ballots, None if threshold is None else threshold.tau)
    factors = _coverage(
        [(factor.name, factor.title) for factor in study.factors],
        release.factor_values,
        release.factor_bars,
        along_factors,
    )
    return Evaluation(
        release=release,
        weighting=weighting,
        released=stated.scores,
        limit=limit.scores,
        curve=stated.curve(),
        factors=tuple(_factor_scores(one, stated, limit, pairs) for one, pairs in zip(factors, differs.T, strict=True)),
        features=_coverage(
            [(feature.name, feature.label) for feature in study.features], release.parameter, release.error_bars, exact
        ),
        third=third,
    )


def _third_answer(
    release: Release, exact: CrowdPreference, threshold: ExactThreshold, ballots: BallotSource
) -> ThirdAnswer:
    """Judge the three shares by all choices."""
    dilemmas = []
    choices = []
    weights = []
    for batch in ballots.batches():
        dilemmas.append(batch.dilemmas.astype(np.float64))
        choices.append(np.asarray(batch.choices))
        by_voter = exact.weighting == "voters"
        weights.append(np.repeat(1 / batch.counts, batch.counts) if by_voter else np.ones(batch.records))
    rows = np.concatenate(dilemmas)
    chosen = np.concatenate(choices)
    weight = np.concatenate(weights) / sum(float(each.sum()) for each in weights)
    share = float(weight @ (chosen == 0))
    forced = ndtr(rows @ exact.preference)
    constant = np.stack([(1 - share) * forced, (1 - share) * (1 - forced), np.full(len(forced), share)], axis=1)

    def loss(shares: FloatArray) -> float:
        told = np.choose(1 - chosen.astype(np.int64), [shares[:, 0], shares[:, 2], shares[:, 1]])
        return float(-weight @ np.log(np.maximum(told, 1e-300)))

    third = release.indifference
    if third is None or release.unknown is None:
        raise CrowdveilError("the release tells no threshold, though its study allows a third answer: make a new one")
    return ThirdAnswer(
        loss(_stated_shares(release, rows)),
        loss(three_shares(rows @ threshold.preference, threshold.tau)),
        loss(constant),
        share,
        third.tau,
        threshold.tau,
    )


def _stated_shares(release: Release, dilemmas: ValueArray) -> FloatArray:
    """Return the three shares that decisions state."""
    assert release.indifference is not None
    assert release.unknown is not None
    means, variances = release.unknown.predictive(dilemmas)
    return three_shares(means, release.indifference.tau, variances + release.indifference.deviation**2)


def _stated(release: Release, dilemmas: ValueArray) -> FloatArray:
    """Return the share who choose the first side, among those who choose a side."""
    if release.indifference is None:
        return np.asarray(ndtr(stated_margins(release, dilemmas)), np.float64)
    return _of_decided(_stated_shares(release, dilemmas))


def _of_decided(shares: FloatArray) -> FloatArray:
    return np.asarray(shares[:, 0] / np.maximum(shares[:, 0] + shares[:, 1], 1e-300), np.float64)


def _forecasts(
    release: Release, exact: CrowdPreference, ballots: BallotSource, tau: float | None
) -> tuple[Forecasts, Forecasts, BoolArray]:
    """Return the forecasts of the release and of the exact preference for decided choices, and which factors differ."""
    stated = []
    limit = []
    choices = []
    voters = []
    differs = []
    before = 0
    for batch in ballots.batches():
        decided = batch.decided()
        stated.append(_stated(release, decided.dilemmas))
        margins = decided.dilemmas @ exact.preference
        limit.append(ndtr(margins) if tau is None else _of_decided(three_shares(margins, tau)))
        choices.append(decided.choices)
        voters.append(before + np.repeat(np.arange(decided.voters), decided.counts))
        differs.append(release.study.contrasts(decided.dilemmas) != 0)
        before += decided.voters
    chosen, whose = np.concatenate(choices), np.concatenate(voters)
    return (
        forecasts(np.concatenate(stated), chosen, whose, exact.weighting),
        forecasts(np.concatenate(limit), chosen, whose, exact.weighting),
        np.concatenate(differs),
    )


def _factor_scores(coverage: Coverage, stated: Forecasts, limit: Forecasts, pairs: BoolArray) -> FactorScores:
    if not pairs.any():
        return FactorScores(coverage, None, None, ())
    here = stated.where(pairs)
    return FactorScores(coverage, here.scores, limit.where(pairs).scores, here.curve())


def _coverage(
    names: Sequence[tuple[str, str]], released: FloatArray, bars: FloatArray, exact: CrowdPreference
) -> tuple[Coverage, ...]:
    return tuple(
        Coverage(
            name,
            title,
            float(released[k]),
            float(bars[k]),
            float(exact.coordinates[k]) if exact.known[k] else None,
            float(exact.standard_errors[k]) if np.isfinite(exact.standard_errors[k]) else None,
        )
        for k, (name, title) in enumerate(names)
    )


def _count(coverage: Sequence[Coverage]) -> tuple[int, int]:
    known = [one.inside for one in coverage if one.inside is not None]
    return sum(known), len(known)


def _shown(interval: Interval | None) -> str:
    return "none" if interval is None else str(interval)


def _coin(name: str) -> str:
    return f"{COIN[name]:.3f}" if name in COIN else ""


def _figure(evaluation: Evaluation) -> Plot:
    """Draw the calibration curve beside the factors' error bars and exact values."""
    height = max(3.8, 1.2 + 0.28 * len(evaluation.factors))
    figure = Plot(figsize=(9.6, height), layout="constrained")
    left, right = figure.subplots(1, 2)
    _calibration(left, evaluation)
    _bars(right, evaluation)
    return figure


def _calibration(axes: Axes, evaluation: Evaluation) -> None:
    slope = evaluation.released.slope
    shown = "" if slope is None else f", slope {slope.estimate:.2f} [{slope.low:.2f}, {slope.high:.2f}]"
    axes.set_title(f"Calibration{shown}", loc="left", fontsize=10)
    axes.plot([0.5, 1], [0.5, 1], color=GREY, linewidth=1, linestyle="--", label="honest")
    stated = np.array([point.stated for point in evaluation.curve])
    right = [point.right for point in evaluation.curve]
    estimates = np.array([share.estimate for share in right])
    reach = np.abs(np.array([(share.low, share.high) for share in right]).T - estimates)
    axes.errorbar(stated, estimates, yerr=reach, color=BLUE, marker="o", capsize=3, linewidth=1.4, label="release")
    axes.set(xlabel="stated probability", ylabel="share that chose so (95 % interval)", xlim=(0.48, 1.02))
    axes.set_ylim(min(0.48, float(estimates.min() - reach[0].max()) - 0.02), 1.02)
    axes.legend(frameon=False, loc="upper left")
    bare(axes)


def _bars(axes: Axes, evaluation: Evaluation) -> None:
    inside, of = evaluation.factor_coverage
    axes.set_title(f"Error bars cover {inside} of {of} exact values", loc="left", fontsize=10)
    rows = [factor.coverage for factor in evaluation.factors]
    places = np.arange(len(rows))[::-1]
    axes.errorbar(
        [row.released for row in rows],
        places,
        xerr=[row.bar for row in rows],
        color=BLUE,
        fmt="o",
        capsize=3,
        label="release, 95 % bar",
    )
    known = [(row.exact, place) for row, place in zip(rows, places, strict=True) if row.exact is not None]
    if known:
        axes.plot(*zip(*known, strict=True), "D", color=ORANGE, markersize=5, label="exact", zorder=3)
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set_yticks(places, [row.title for row in rows])
    axes.set_xlabel("preference")
    axes.legend(frameon=False, fontsize=8)
    bare(axes)
