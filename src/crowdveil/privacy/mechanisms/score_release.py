"""Score release (RLDP, ALDP): each voter reports a few coordinates of a score, with noise on the cube."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from crowdveil.arrays import BoolArray, FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots
from crowdveil.errors import Reason, Refusal
from crowdveil.estimation.design import measured_design
from crowdveil.estimation.dilemma_moments import shown_size
from crowdveil.estimation.disagreement import at_least
from crowdveil.estimation.likely_preferences import likely_preferences
from crowdveil.estimation.mean_scores import UnshrunkFit, fit_mean_scores
from crowdveil.estimation.record_axes import RecordAxes, record_axes
from crowdveil.estimation.tilted_design import (
    TiltedDesign,
    moment_count,
    moment_variance,
    prior_variance,
    tilted,
)
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.expected_errors import ExpectedErrors, noise_of_reports
from crowdveil.privacy.mechanisms.integer_scores import (
    DISAGREEMENT,
    RECORD_CLIP,
    RECORD_SENSITIVITY,
    ScoringParameters,
    cube_variance,
    expected_square,
    record_moments,
    record_scores,
    truncated,
    truncated_variance,
)
from crowdveil.privacy.mechanisms.mechanism import (
    Estimand,
    Estimate,
    MechanismSettings,
    dilemmas_measured,
    uncertainty_along,
)
from crowdveil.privacy.mechanisms.reports import (
    LARGEST,
    LevelSums,
    all_sums,
    check_integers,
    epsilons_of,
    influence,
    random_orders,
    unsummed,
    winsorised,
    within_reach,
)
from crowdveil.privacy.noise.distribution import EmpiricalNormal
from crowdveil.privacy.noise.source import Noise
from crowdveil.privacy.uncertainty import ellipsoid_radius
from crowdveil.study.study import Study

SQUARES_IN_TWENTY, PRODUCTS_IN_TWENTY = 2, 1
"""Reports in twenty about a file that cover the squares and the products of its dilemmas' contrasts."""
_USUAL_DOUBT = 0.03
"""Approximate doubt along an axis, relative to the preference there, in simulated polls of 500 to 5,000 voters at
epsilon 1 and 10. It is for forecasts of polls, whose dilemmas the study's generator draws."""
_FILE_DOUBT = 0.6
"""The same in simulated files, of whose dilemmas only reports tell: 0.4 to 0.9 at epsilon 1."""
_CROWDS = 0.99
"""Share of crowds in which the preference that noiseless scores tell is within the bound around the crowd's own."""
_UNHEARD = 1e6
"""Variance assigned to a mean score, which is at most 1, along an axis that nobody reported."""


@dataclass(frozen=True)
class ScoreReports:
    """Reports of devices: randomly chosen coordinates, the noisy sums there, and public counts.

    There is one column per axis and, if the study's generator did not draw the dilemmas, one per moment of these.
    """

    epsilons: Epsilons
    counts: IntArray
    """Number of each voter's records. It is the same in record-neighbours, so it is not secret here."""
    reported: BoolArray
    values: IntArray

    def rows(self) -> IntArray:
        """Return all that leaves the devices, one row per voter: public columns, a mask of the values, the values."""
        return np.column_stack([self.epsilons.micro, self.counts, self.reported.astype(np.int64), self.values])


class ScoreFormat:
    """The wire format of ``ScoreReports``: the coordinates, and the noisy scores there."""

    fields = frozenset({"records", "coordinates", "values"})

    def write(self, reports: ScoreReports) -> Iterable[dict[str, Any]]:
        """Return the fields of each voter's report."""
        for count, reported, values in zip(reports.counts.tolist(), reports.reported, reports.values, strict=True):
            coordinates = np.flatnonzero(reported)
            yield {"records": count, "coordinates": coordinates.tolist(), "values": values[coordinates].tolist()}

    def check(self, body: Mapping[str, Any], study: Study) -> None:
        """Refuse coordinates that the study's design does not have, and a wrong number of values or records."""
        check_integers("coordinates", body["coordinates"], None, measured_design(study).directions - 1, least=0)
        if any(a >= b for a, b in pairwise(body["coordinates"])):
            raise Refusal(Reason.MALFORMED, "coordinates must increase")
        check_integers("values", body["values"], len(body["coordinates"]), LARGEST)
        if type(body["records"]) is not int or body["records"] != study.drawing.dilemmas:
            raise Refusal(Reason.WRONG_SIZE, f"a ballot of this study has {study.drawing.dilemmas} records")

    def read(self, bodies: Sequence[Mapping[str, Any]], study: Study) -> ScoreReports:
        """Gather the scores into arrays, with zeros for coordinates that are not reported."""
        reported = np.zeros((len(bodies), measured_design(study).directions), bool)
        values = np.zeros(reported.shape, np.int64)
        for row, body in enumerate(bodies):
            reported[row, body["coordinates"]] = True
            values[row, body["coordinates"]] = body["values"]
        counts = np.array([body["records"] for body in bodies], np.int64)
        return ScoreReports(epsilons_of(bodies), counts, reported, values)


class ScoreRelease:
    """Cube noise on some coordinates of each voter's summed score.

    Theorem. Let a voter choose m coordinates independently of her answers and report her integer scores there with
    noise of density proportional to exp(-epsilon |x|_max / (2 RECORD_CLIP)) on Z^m. The report is
    epsilon-differentially private for RLDP, and so for ALDP.

    Proof. For any choice of coordinates, replacing one record moves each of them by at most 2 RECORD_CLIP; the rest is
    Theorem 1 of ``cube_noise``. The choice of coordinates is independent of the answers. Changing a voter's choice in a
    dilemma replaces its record by the opposite one.

    Reporting m of k coordinates, scaled by k / m, is unbiased. The noise then grows with m instead of k, but fewer
    coordinates are observed; the best m has a closed form (``coordinates_to_report``).

    If the study's generator did not draw the dilemmas (a file), up to three reports in twenty are about the dilemmas: m
    of their squares along the axes, or of their products (``tilted_design``). Each record's moment is an integer within
    the same clip. Which reports these are is drawn independently of the records, with probabilities that depend on
    public numbers only (voters, the voter's number of records, epsilon), so the theorem covers these coordinates, too.

    A value that is reported alone has discrete Laplace noise. Its sum is known to be within n clips, so ``truncated``
    gives an estimate of less variance: with one record at epsilon 1, 0.7 times that of the value itself.
    """

    name = "score"
    title = "Score release: cube noise on some coordinates of each voter's score"
    words = "noise, added to a few numbers in which each voter's records are summed up"
    paradigms = ("rldp", "aldp")
    papers = ()
    options = ("equal_votes", "robust", "design")
    estimates = Estimand.PREFERENCE
    wire = ScoreFormat()
    tosses_coins = False
    third_answer = True
    fits_once = False
    relayable = False
    by_group = True
    counts_effects = False

    def scoring(self, study: Study) -> ScoringParameters:
        """Return the axes of records, and the clip of a record."""
        axes = record_axes(study)
        return ScoringParameters(axes.axes, axes.design.units, RECORD_CLIP)

    def report_size(self, study: Study, epsilon: Epsilon) -> int:
        """Return the number m of coordinates."""
        counts = np.array([study.drawing.dilemmas])
        return int(coordinates_to_report(record_axes(study), counts, Epsilons.same(epsilon, 1))[0])

    def report(self, ballots: Ballots, settings: MechanismSettings, epsilons: Epsilons, noise: Noise) -> ScoreReports:
        """Score each voter, choose the coordinates and add the noise."""
        axes = record_axes(settings.study)
        blocks = _blocks(axes, settings)
        about = np.zeros(ballots.voters, np.int64)
        if not settings.drawn:
            about = _SUBJECTS[noise.uniform(len(_SUBJECTS), ballots.voters, 1)[:, 0]]
            for subject in (_SQUARES, _PRODUCTS):
                rows = np.flatnonzero(about == subject)
                told = _tells_enough(subject, blocks[subject], axes, settings, ballots.counts[rows], epsilons[rows])
                about[rows[~told]] = _CHOICES
        reported = np.zeros((ballots.voters, blocks[-1][-1] + 1), bool)
        values = np.zeros(reported.shape, np.int64)
        for subject, block in enumerate(blocks):
            speaking = np.flatnonzero(about == subject)
            of_choices = subject == _CHOICES
            first = 0 if of_choices else axes.design.directions
            score = record_scores if of_choices else record_moments
            sizes = coordinates_to_report(axes, ballots.counts[speaking], epsilons[speaking], len(block))
            order = random_orders(len(speaking), len(block), noise)
            for size in np.unique(sizes).tolist():
                of_size = np.flatnonzero(sizes == size)
                rows = speaking[of_size]
                chosen = block[order[of_size, :size]]
                drawn = noise.cube(RECORD_SENSITIVITY, epsilons[rows], size)
                reported[rows[:, None], chosen] = True
                values[rows[:, None], chosen] = score(ballots, settings.study, rows, chosen - first) + drawn
        return ScoreReports(epsilons, ballots.counts, reported, values)

    def acceptable(self, reports: ScoreReports, settings: MechanismSettings) -> BoolArray:
        """Refuse a wrong number of coordinates, and scores beyond the reach of the noise."""
        axes = record_axes(settings.study)
        largest = reports.counts * RECORD_CLIP
        known = np.zeros(len(reports.counts), bool)
        for block in _blocks(axes, settings):
            expected = coordinates_to_report(axes, reports.counts, reports.epsilons, len(block))
            alone = reports.reported.sum(axis=1) == reports.reported[:, block].sum(axis=1)
            known |= alone & (reports.reported[:, block].sum(axis=1) == expected)
        terms = reports.reported.shape[1] + 1
        near = within_reach(reports.values, largest, RECORD_SENSITIVITY, reports.epsilons, terms)
        return np.asarray(known & near & (reports.reported | (reports.values == 0)).all(axis=1))

    def condense(self, reports: ScoreReports, settings: MechanismSettings) -> ScoreReports | LevelSums:
        """Sum the reports, unless they are to be Winsorised."""
        return reports if settings.robust else _sums(_truncated(reports), record_axes(settings.study))

    def aggregate(self, reports: Iterable[ScoreReports | LevelSums], settings: MechanismSettings) -> Estimate:
        """Compute the mean score of a record along each axis, and fit the preference to these means."""
        axes = record_axes(settings.study)
        batches = list(reports)
        design = axes.design
        if settings.robust:
            pulled, pulled_felt = _pulled_in(unsummed(batches), settings, axes)
            every, felt = _sums(pulled, axes), _sums(pulled_felt, axes)
        else:
            every = felt = all_sums(batches, lambda batch: _sums(_truncated(batch), axes))
        sums, asked = every.only(_CHOICES), every.only(_DILEMMAS)
        means = _record_means(sums, felt.only(_CHOICES), settings, axes)
        dilemmas = None if settings.drawn else _dilemmas(asked, felt.only(_DILEMMAS), settings, axes)
        answered = axes if dilemmas is None else axes.over(dilemmas.differences)
        told = (answered, means.scores, means.noise + means.sampling, dilemmas)
        fit, likely = fit_mean_scores(*told), likely_preferences(*told)
        noise = design.basis @ (fit.gain @ means.noise @ fit.gain.T + fit.tilt) @ design.basis.T
        records = int(sums.counts @ sums.levels[:, 2])
        facts: dict[str, Any] = {
            "coordinates_per_report": np.unique(sums.levels[:, 1]).tolist(),
            "axes": design.directions,
            "weighing": "every record counts once",
            **settings.dilemma_facts(
                _dilemmas_said(int(asked.counts.sum()), int(every.counts.sum()), design.directions)
            ),
        }
        if not settings.drawn:
            facts["reports_about_dilemmas"] = int(asked.counts.sum())
        if settings.robust:
            facts["robust"] = settings.robust
        return Estimate(
            design.basis @ likely.mean,
            EmpiricalNormal(tuple(map(tuple, noise.tolist()))),
            facts,
            uncertainty_along(
                design,
                mean=likely.mean,
                covariance=likely.covariance,
                center=fit.center,
                sampling=fit.gain @ means.sampling @ fit.gain.T,
                doubt=fit.doubt,
                freedom=means.freedom,
                records=records,
                shift=_shift(fit, records),
                shown=fit.shown,
            ),
        )

    def expected_noise(self, settings: MechanismSettings, epsilons: Epsilons) -> EmpiricalNormal:
        """Return the noise of the estimate for an indifferent crowd that answers every dilemma of a ballot."""
        axes = record_axes(settings.study)
        design = axes.design
        counts = np.full(len(epsilons), settings.study.drawing.dilemmas)
        variances = _variance(axes, coordinates_to_report(axes, counts, epsilons), counts, epsilons.micro)
        variance = float(influence(variances, settings.equal_votes) ** 2 @ variances)
        variance /= 1.0 if settings.drawn else float(np.mean(_SUBJECTS == 0))
        gain = design.basis @ _indifferent(settings.study).gain
        carried = variance * gain @ gain.T
        return EmpiricalNormal(tuple(map(tuple, carried.tolist())))

    def expected_errors(
        self, settings: MechanismSettings, voters: int, records: int, epsilon: Epsilon
    ) -> ExpectedErrors:
        """Return the errors for voters with this many records each, whose mean scores have another variance."""
        study = settings.study
        axes = record_axes(study)

        def variance(records: int) -> float:
            size = int(coordinates_to_report(axes, np.array([records]), Epsilons.same(epsilon, 1))[0])
            return float(_variance(axes, np.array([size]), np.array([records]), np.array([epsilon.micro]))[0])

        noise = noise_of_reports(partial(self.expected_noise, settings), measured_design(study), voters, epsilon)
        noise *= variance(records) / variance(study.drawing.dilemmas)
        answered = voters * records
        return ExpectedErrors(
            noise,
            np.zeros_like(noise),
            _USUAL_DOUBT if settings.drawn else _FILE_DOUBT,
            size=0.0 if settings.drawn else shown_size(measured_design(study).directions),
            rest_known=study.along == "features",
            records=answered,
            shift=_shift(_indifferent(study), answered),
        )


@lru_cache(maxsize=32)
def _indifferent(study: Study) -> UnshrunkFit:
    """Return the fit for a crowd without a preference. There it is linear, whatever the errors of the scores."""
    axes = record_axes(study)
    return fit_mean_scores(axes, np.zeros(axes.design.directions), np.eye(axes.design.directions))


def _shift(fit: UnshrunkFit, records: int) -> float:
    """Bound how far a crowd of so many records has a preference from what its noiseless scores tell, in any direction.

    The distance is about normal over crowds, so all but 1 - _CROWDS of them lie in an ellipsoid, whatever the dilemma.
    Where all dilemmas are alike there is none, and rounding may leave its variance below zero.
    """
    widest = math.sqrt(max(float(np.linalg.eigvalsh(fit.apart)[-1]), 0.0) / records)
    return ellipsoid_radius(len(fit.center), _CROWDS) * widest


_CHOICES, _DILEMMAS = 0, 1
_SQUARES, _PRODUCTS = 1, 2
_IN_TWENTY = (20 - SQUARES_IN_TWENTY - PRODUCTS_IN_TWENTY, SQUARES_IN_TWENTY, PRODUCTS_IN_TWENTY)
_SUBJECTS = np.repeat([_CHOICES, _SQUARES, _PRODUCTS], _IN_TWENTY)
"""Subject of each of twenty reports: choices, the squares of dilemmas, or their products."""


def _blocks(axes: RecordAxes, settings: MechanismSettings) -> list[IntArray]:
    """Return the columns that a report chooses its coordinates from, for each subject."""
    k = axes.design.directions
    choices = np.arange(k)
    if settings.drawn:
        return [choices]
    squares, products = np.split(np.arange(k, k + moment_count(k)), [k])
    # A study of one axis, or of very many, has no products: those reports are about the squares, too.
    return [choices, squares, products if len(products) else squares]


def _tells_enough(
    subject: int,
    block: IntArray,
    axes: RecordAxes,
    settings: MechanismSettings,
    counts: IntArray,
    epsilons: Epsilons,
) -> BoolArray:
    """Whether reports about a subject would tell more of it than the prior, if all voters were like this one.

    Otherwise they are worth more about choices. Without a public number of voters, they are made in any case.
    """
    if settings.voters is None:
        return np.ones(len(counts), bool)
    columns = block - axes.design.directions
    sizes = coordinates_to_report(axes, counts, epsilons, len(block))
    records = counts.astype(np.float64)
    scatter = _noise_variance(sizes, counts, epsilons.micro) + records * moment_variance(settings.study)
    reports = settings.voters * _IN_TWENTY[subject] / len(_SUBJECTS) * sizes / len(block)
    return np.asarray(scatter / (records**2 * reports) <= prior_variance(settings.study)[columns].mean())


def _sums(reports: ScoreReports, axes: RecordAxes) -> LevelSums:
    """Sum the values and their bounds by subject, number of coordinates, number of records and epsilon."""
    k = axes.design.directions
    of_dilemmas = reports.reported[:, k:].any(axis=1)
    total = LevelSums()
    for subject, columns in ((_CHOICES, slice(None, k)), (_DILEMMAS, slice(k, None))):
        rows = np.flatnonzero(of_dilemmas == (subject == _DILEMMAS))
        if len(rows) == 0:
            continue
        reported = reports.reported[rows, columns]
        counts = reports.counts[rows]
        sizes = reported.sum(axis=1)
        levels = np.stack([np.full(len(rows), subject), sizes, counts, reports.epsilons.micro[rows]], axis=1)
        spoken_for = reported * (RECORD_CLIP * counts)[:, None]
        total += LevelSums.of(levels, np.hstack([reports.values[rows, columns], spoken_for]).astype(np.float64))
    return total


def _truncated(reports: ScoreReports) -> ScoreReports:
    """Truncate the values of reports with a single coordinate, whose noise is discrete Laplace."""
    alone = np.flatnonzero(reports.reported.sum(axis=1) == 1)
    largest = (RECORD_CLIP * reports.counts[alone])[:, None]
    scale = (1e6 * RECORD_SENSITIVITY / reports.epsilons.micro[alone])[:, None]
    values = reports.values.copy()
    values[alone] = truncated(values[alone], largest, scale)
    return replace(reports, values=values)


def _dilemmas_said(asked: int, reports: int, directions: int) -> str:
    """Return in words how dilemmas of which nothing was given were treated."""
    if not asked:
        return _DILEMMAS_UNHEARD
    return dilemmas_measured(f"{asked:,} of {reports:,} reports", together=moment_count(directions) > directions)


_DILEMMAS_UNHEARD = (
    "The dilemmas need not be the study's own: ballots are too short to tell how much they differ along each axis, and "
    "error bars allow for what is usual."
)


def _dilemmas(sums: LevelSums, felt: LevelSums, settings: MechanismSettings, axes: RecordAxes) -> TiltedDesign:
    """Tilt the study's design toward the reports about dilemmas; without any, the prior remains."""
    columns = moment_count(axes.design.directions)
    if not len(sums.counts):
        return tilted(axes.design, np.zeros(columns), np.eye(columns) * _UNHEARD)
    means = _record_means(sums, felt, settings, axes, moment_variance(settings.study))
    return tilted(axes.design, means.scores, means.noise + means.sampling)


@dataclass(frozen=True)
class _RecordMeans:
    """The mean score of a record along each axis, in units of the clip, and the covariance of its error."""

    scores: FloatArray
    noise: FloatArray
    """Covariance due to the noise and to the random choice of axes, for these voters."""
    sampling: FloatArray
    """Covariance due to the sampling of voters."""
    freedom: int


def _record_means(
    sums: LevelSums,
    felt: LevelSums,
    settings: MechanismSettings,
    axes: RecordAxes,
    variance: float | None = None,
) -> _RecordMeans:
    """Divide the reported sum in each of k columns by the number of records that it covers.

    Every record weighs the same: a voter who reports m columns reports any one with probability proportional to m, and
    her values get the weight 1 / m. Epsilons are weighted by the precision that they give a ballot.

    The spread of the reports (of ``felt``, their influence on the mean) has three causes: the noise, whose variance is
    known; differences between voters; and the sampling of voters along an axis, which for a share f of them adds the
    fraction 1 - f of the variance between voters. If the reports are too few or too noisy to estimate how voters
    differ, a model gives a lower bound: ``expected_square`` for choices, and for dilemmas independent records of this
    ``variance``.
    """
    _, sizes, counts, micro = sums.levels.T
    usual = np.full(len(counts), round(float(sums.counts @ counts / sums.counts.sum())))
    worth = _variance(axes, coordinates_to_report(axes, usual, Epsilons.of_millionths(micro)), usual, micro)
    weights = sums.weights(worth, settings.equal_votes) / sizes
    total, spoken_for = np.split(sums.mean(weights), 2)
    k = len(total)
    times = np.rint(sums.mean(1 / (RECORD_CLIP * counts))[k:])
    heard = (times > 0) & (spoken_for > 0)
    about = np.where(heard, spoken_for, 1.0)
    scores = np.where(heard, total / about, 0.0)
    residual = np.hstack([np.eye(k), -np.diag(scores)])
    # The mean is estimated from the same reports, which costs one degree of freedom.
    scale = np.sqrt(times / np.maximum(times - 1, 1)) / about
    spread = residual @ felt.squares(weights) @ residual.T * np.outer(scale, scale)

    def of_each_report(variance: FloatArray) -> FloatArray:
        """Propagate a variance of each level's reports, in units of the clip, to the means."""
        carried = sums.mean(weights**2 * variance * RECORD_CLIP / counts)[k:] / about**2
        return np.diag(np.where(heard, carried, _UNHEARD))

    noise = of_each_report(_noise_variance(sizes, counts, micro))
    records = counts.astype(np.float64)
    modelled = of_each_report(expected_square(axes, records) if variance is None else records * variance)
    differing = at_least(spread - noise, modelled)
    share = float(sums.counts @ sizes / sums.counts.sum()) / k
    return _RecordMeans(scores, noise + (1 - share) * differing, share * differing, max(int(times.min()) - 1, 1))


def _pulled_in(
    batches: list[ScoreReports], settings: MechanismSettings, axes: RecordAxes
) -> tuple[ScoreReports, ScoreReports]:
    """Return all reports with Winsorised mean scores along each axis, and the same with pseudo-values."""
    epsilons = Epsilons.joined(batch.epsilons for batch in batches)
    counts, reported, values = (
        np.concatenate([getattr(_truncated(batch), name) for batch in batches])
        for name in ("counts", "reported", "values")
    )
    weights = influence(_variance(axes, reported.sum(axis=1), counts, epsilons.micro), settings.equal_votes)
    pulled = winsorised(values / counts[:, None], weights, reported, settings.robust)

    def reports(means: FloatArray) -> ScoreReports:
        return ScoreReports(epsilons, counts, reported, np.rint(means * counts[:, None]).astype(np.int64))

    return reports(pulled.values), reports(pulled.pseudo_values)


def coordinates_to_report(axes: RecordAxes, counts: IntArray, epsilons: Epsilons, most: int | None = None) -> IntArray:
    """Return the best number m of coordinates, up to ``most`` (default: all axes), for voters with n records.

    The variance of a mean score from one report is (k / m)(K (m + 1)(m + 2) + S) / n^2, where K = (2 / epsilon)^2 / 3
    and S is the mean square of a voter's score. Over real m it is least at sqrt(2 + S / K); the better of the two
    neighbouring integers is returned, or 1 if that is better still (``truncated``).
    """
    spread = expected_square(axes, counts.astype(np.float64)) * 3 * (epsilons.micro / 2e6) ** 2
    most = axes.design.directions if most is None else most
    below = np.clip(np.floor(np.sqrt(2 + spread)), 1, most).astype(np.int64)
    sizes = np.stack([np.ones_like(below), below, np.minimum(below + 1, most)])
    variances = [_variance(axes, each, counts, epsilons.micro) for each in sizes]
    return np.asarray(np.take_along_axis(sizes, np.argmin(variances, axis=0)[None], axis=0)[0], np.int64)


def tells_more_than_choices(axes: RecordAxes, records: int, epsilons: Epsilons) -> bool:
    """Whether scores are more informative than randomised response on all n choices of each voter.

    n choices are as precise as a mean score of variance 1 / (n tanh(epsilon / 2)^2), on the scale on which a record's
    unclipped score has variance 1. The variance between voters is the same in both cases. With personal epsilons, the
    information of a crowd is the sum over its voters.
    """
    levels, voters = np.unique(epsilons.micro, return_counts=True)
    counts = np.full(len(levels), records)
    score = _variance(axes, coordinates_to_report(axes, counts, Epsilons.of_millionths(levels)), counts, levels)
    choices = axes.signal**2 / (records * np.tanh(levels / 2e6) ** 2) + DISAGREEMENT**2
    return bool(voters @ (1 / score) > voters @ (1 / choices))


def _noise_variance(sizes: IntArray, counts: IntArray, micro: IntArray) -> FloatArray:
    """Return the variance of the noise on a voter's score, in units of the clip, after ``_truncated``."""
    scale = 2e6 / micro
    alone = truncated_variance(counts.astype(np.float64), scale)
    return np.where(sizes == 1, alone, cube_variance(scale, 1.0, sizes.astype(np.float64)))


def _variance(axes: RecordAxes, sizes: IntArray, counts: IntArray, micro: IntArray) -> FloatArray:
    noise = _noise_variance(sizes, counts, micro)
    records = counts.astype(np.float64)
    return axes.design.directions / sizes * (noise + expected_square(axes, records)) / records**2
