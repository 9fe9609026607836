"""What one-bit reports would tell with other clips and shares, over bundled studies: nothing here comes from voters.

python tests/statistics/one_bit_constants.py            two tables
python tests/statistics/one_bit_constants.py errors     a third
python tests/statistics/one_bit_constants.py sizes      a fourth
python tests/statistics/one_bit_constants.py axes       a fifth
python tests/statistics/one_bit_constants.py margins    a sixth
python tests/statistics/one_bit_constants.py design     a seventh
python tests/statistics/one_bit_constants.py records    an eighth
python tests/statistics/one_bit_constants.py information    a ninth

The first: the variance of the preference for a given variance of the clipped means, in terms of the best clip, for
ballots of several lengths. The clip is given in deviations of a whole ballot's mean score; one-bit takes a quarter. The
second: how far the size of a preference is off, and its direction, for shares of reports about lengths; crowds of 1,500
voters at epsilon 1. The third: by how much more than is told of voters who differ the size of a preference is off, and
how long any other error is, of populations without noise whose margins are faint to large; a draw of many voters is
left in it, of which the deviation is told. The fourth: by how much the mean probability that is stated differs from the
share right at worst, where at least .55 is predicted, and slopes of stated probabilities, for ranges of the sizes of
margins, of which one begins where the noise does, and in two of which a crowd may as well have no preference: normal
estimates along nine axes of crowds from faint to loud, with little and much noise. The fifth: the variance of a
preference along rotated and mixed axes, in terms of that along the axes of factors with a clip of half a deviation; of
simulated voters. The sixth: slopes of stated probabilities where the model holds exactly and lengths and disagreement
are known, for margins of one size, two ranges of the prior (from 0.25, and from what shows) and ballots of several
lengths. The seventh: how long the error of the clipped means is, relative to them, if dilemmas are not the generator's
but tilted at random, as files' may be; the median over tilts. The eighth: how far stated probabilities diverge from the
shares of crowds, in thousandths, if so many records of each voter are scored. The ninth: the Fisher information of a
report about mean scores, and the most that any report has.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from itertools import product
from unittest import mock

import numpy as np
from populations import Population, probit_of
from scipy.optimize import brentq, minimize_scalar
from scipy.special import ndtr, ndtri, rel_entr
from scipy.stats import norm

from crowdveil.estimation import likely_crowds
from crowdveil.estimation.ballot_fit import BALLOT_TAUS, fit_ballots
from crowdveil.estimation.clipped_ballots import ClippedBallots, CorrectedBallots, told_length
from crowdveil.estimation.clipped_means import voter_clip
from crowdveil.estimation.design import GRID, mixing, public_design, rotation
from crowdveil.estimation.disagreement import DISAGREEMENT, pooled_probit, reach
from crowdveil.estimation.prior import FAINTEST, margin_sizes, prior_deviation
from crowdveil.estimation.probit import slopes_and_weights
from crowdveil.estimation.tilted_design import TILT, moments
from crowdveil.privacy.mechanisms.integer_scores import voter_scores
from crowdveil.privacy.mechanisms.one_bit import CLIPS as ONE_BIT_CLIPS
from crowdveil.privacy.mechanisms.one_bit import LENGTH_ONE_IN, public_clip, whole_ballots
from crowdveil.study.bundled import load_study, synthetic_study
from crowdveil.study.drawing import draw_dilemmas
from crowdveil.study.study import Study

STUDIES = ("moral-machine", "kidney", "synthetic-10")
CLIPS = (0.25, 0.5, 1.0, 1.5, 2.0)
SHARES = (10, 20, 40)
_VOTERS, _EPSILON = 1500, 1.0
_RECORDS, _LEAST_VOTERS = 40_000, 8000


def variances(study: Study, records: int, crowds: int = 3) -> np.ndarray:
    """Return, for each clip, the mean variance of a preference along an axis over that of a clipped mean."""
    above, below = told_length(np.array(records))
    found = []
    for clip in CLIPS:
        ballots = ClippedBallots(study, clip * voter_clip(study.drawing.dilemmas))
        rng = np.random.default_rng(1)
        k = ballots.directions
        slopes = [
            ballots.shown(rng.normal(0.0, prior_deviation(k) / 2, k), float(above / below), DISAGREEMENT)[1]
            for _ in range(crowds)
        ]
        found.append(np.mean([np.square(np.linalg.inv(slope)).sum() / k for slope in slopes]))
    return np.array(found)


def length_errors(study: Study, records: int, one_in: int) -> tuple[float, float]:
    """Return the relative error of what shows, by what length bits tell of it, and of directions, by their own bits."""
    ballots = ClippedBallots(study, 0.5 * voter_clip(study.drawing.dilemmas))
    k, left = ballots.directions, math.tanh(_EPSILON / 2)
    above, below = told_length(np.array(records))
    told, step = float(above / below), 0.02
    near = (max(told - step, 0.0), min(told + step, 1.0))
    shows = [np.trace(ballots.shown(np.zeros(k), at, DISAGREEMENT)[1]) for at in (*near, told)]
    slope = (shows[1] - shows[0]) / (near[1] - near[0]) / shows[2]
    deviation = 0.5 / (left * math.sqrt(_VOTERS / one_in))
    heard = _VOTERS * (1 - 1 / one_in) / k
    return slope * deviation, k / (shows[2] * left * math.sqrt(heard))


def errors(study: Study, records: int, margin: float, spread: float, seed: int) -> tuple[float, float, float, float]:
    """Return the length of a center, and relative to it: its error of size beyond what is told, any other, and the
    deviation of both over the draw of voters.
    """
    ballots, clip = whole_ballots(study), public_clip(study)
    k, rng = ballots.directions, np.random.default_rng([seed, records])
    direction = rng.normal(size=k)
    # Voters who differ show less of what they have in common: the pooled margins have about the stated size.
    gamma = direction * margin * math.sqrt(1 + k * spread**2) / np.linalg.norm(direction)
    population = Population(study, gamma, spread)
    scores = voter_scores(population.crowd(max(_RECORDS // records, _LEAST_VOTERS), records, rng), study)
    clipped = np.clip(scores / (records * clip), -1.0, 1.0)
    above, below = told_length(np.array(records))
    noise = np.diag(clipped.var(axis=0) / len(clipped))
    fit = fit_ballots(ballots, clipped.mean(axis=0), noise, float(above / below), 1e-9).unshrunk
    length = float(np.linalg.norm(fit.center))
    miss = rotation(k).T @ population.value - fit.center
    part = float(miss @ fit.center) / length**2
    other = float(np.linalg.norm(miss - part * fit.center))
    drawn = math.sqrt(float(np.trace(fit.gain @ noise @ fit.gain.T)))
    return length, max(abs(part) - fit.size, 0.0), other / length, drawn / length


def print_errors() -> None:
    """Print the third table."""
    print("| study | answers | voters differ by | length | size off by | otherwise off by | of which drawn |")
    for name, records in product(("moral-machine", "kidney"), (1, 4, 13)):
        for margin, spread in product((0.4, 0.9, 1.8), (0.1, 0.5)):
            found = errors(load_study(name), records, margin, spread, 1)
            print(f"| {name} | {records} | {spread} | {' | '.join(f'{v:.3f}' for v in found)} |", flush=True)


def stated_by_sizes(
    sizes: Sequence[float], margin: float, variance: float, draws: int = 6000
) -> tuple[float, float, float]:
    """Return the share predicted, by how much the mean stated exceeds it, and the slope, if sizes are as probable."""
    rng, k = np.random.default_rng(0), 9
    truth = rng.normal(size=(draws, k))
    truth *= margin / np.linalg.norm(truth, axis=1, keepdims=True)
    seen = truth + rng.normal(0.0, math.sqrt(variance), (draws, k))
    x = rng.normal(size=(draws, k))
    priors = np.square(sizes) / k
    logs = -0.5 * (k * np.log(variance + priors) + np.square(seen).sum(axis=1)[:, None] / (variance + priors))
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    kept = priors / (priors + variance)
    spread = np.sqrt(1 + np.square(x).sum(axis=1)[:, None] * kept * variance)
    stated = (weights * ndtr((x * seen).sum(axis=1)[:, None] * kept / spread)).sum(axis=1)
    share = ndtr((x * truth).sum(axis=1))
    right = np.where(stated > 0.5, share, 1 - share).mean()
    return float(right), float(np.maximum(stated, 1 - stated).mean() - right), _slope(ndtri(stated), share)


def _slope(stated: np.ndarray, share: np.ndarray) -> float:
    """Return the slope of a probit regression, without intercept, of choices that are made by these shares."""

    def pull(slope: float) -> float:
        above, below = slopes_and_weights(slope * stated)[0], slopes_and_weights(-slope * stated)[0]
        return float(stated @ (above * share - below * (1 - share)))

    return float(brentq(pull, 0.0, 10.0))


def sign_variances(study: Study, records: int, margin: float, seed: int, voters: int = 40_000) -> list[float]:
    """Return the variance of a preference for that of a clipped mean: along axes, rotated and mixed ones.

    By Stein's lemma, the slope of the clipped means in a preference that everybody has is their covariance with
    voters' own preferences, which are normal around it, over the variance of these.
    """
    rng, design, tau = np.random.default_rng([seed, records]), public_design(study), DISAGREEMENT
    k, session = design.directions, study.drawing.dilemmas
    common = rng.standard_normal(k)
    common *= margin * math.sqrt(1 + k * tau**2) / np.linalg.norm(common)
    left, right = draw_dilemmas(study, voters, rng)
    x = ((left - right) / study.units @ design.basis).reshape(voters, session, k)
    x = np.take_along_axis(x, rng.permuted(np.tile(np.arange(session), (voters, 1)), axis=1)[:, :records, None], axis=1)
    apart = tau * rng.standard_normal((voters, k))
    choices = np.sign(np.einsum("vnk,vk->vn", x, common + apart) + rng.standard_normal((voters, records)))
    means = np.einsum("vnk,vn->vk", x, choices) / records / voter_clip(session)
    found = []
    for axes, clip in ((np.eye(k), 0.5), (rotation(k), 1 / ONE_BIT_CLIPS), (mixing(k), 1 / ONE_BIT_CLIPS)):
        slope = np.clip(means @ axes / clip, -1.0, 1.0).T @ apart / (voters * tau**2)
        found.append(float(np.square(np.linalg.inv(slope)).sum()) / k)
    return found


def slope_of_stated(margin: float, faintest: float | None, draws: int, records: int) -> float:
    """Return the slope of what is stated of 1,500 voters with so many records each whose margins have one size.

    The prior begins at ``faintest``, or at what shows.
    """
    ballots, tau, rng = whole_ballots(load_study("moral-machine")), DISAGREEMENT, np.random.default_rng(0)
    above, below = told_length(np.array(records))
    k, told = ballots.directions, float(above / below)
    model = CorrectedBallots(ballots, {tau: np.zeros(k)})
    variances = np.full(k, k / (_VOTERS * (1 - 1 / LENGTH_ONE_IN) * math.tanh(_EPSILON / 2) ** 2))
    stated, shares = [], []
    least = likely_crowds.faintest_margins(variances) if faintest is None else faintest
    with mock.patch.object(likely_crowds, "faintest_margins", return_value=least):
        for _ in range(draws):
            common = rng.standard_normal(k)
            common *= margin / np.linalg.norm(common)
            seen = rng.normal(ballots.shown(common, told, tau)[0], np.sqrt(variances))
            found = likely_crowds.likely_crowds(model, [(told, 1.0)], [tau], seen, variances)
            x = ballots.dilemmas[rng.choice(len(ballots.dilemmas), 400, replace=False)]
            spread = 1 + ((x @ found.covariance) * x).sum(axis=1)
            stated.append(x @ found.mean / np.sqrt(spread))
            shares.append(ndtr(x @ pooled_probit(ballots.dilemmas, common, tau)[0]))
    return float(probit_of(np.concatenate(stated)[:, None], np.concatenate(shares))[0])


def tilted_error(study: Study, records: int, margin: float, rng: np.random.Generator, voters: int = 20_000) -> float:
    """Return how far the clipped means of voters who are asked tilted dilemmas are off, relative to their length."""
    design, tau, clip = public_design(study).rotated, DISAGREEMENT, public_clip(study) / GRID
    x, k = design.along, design.directions
    common = rng.standard_normal(k)
    common *= margin * math.sqrt(1 + k * tau**2) / np.linalg.norm(common)
    raised = moments(public_design(study).along)
    raised = raised @ (TILT * rng.standard_t(3, raised.shape[1]))
    passed = np.cumsum(np.exp(raised - raised.max()))
    own = common + tau * rng.standard_normal((voters, k))
    luck = rng.standard_normal((voters, records))
    drawn = rng.random((voters, records))

    def shown(rows: np.ndarray) -> np.ndarray:
        asked = x[rows]
        choices = np.sign(np.einsum("vnk,vk->vn", asked, own) + luck)
        return np.clip(np.einsum("vnk,vn->vk", asked, choices) / (records * clip), -1.0, 1.0).mean(axis=0)

    usual = shown((drawn * len(x)).astype(np.int64))
    other = shown(np.minimum(np.searchsorted(passed, drawn * passed[-1]), len(x) - 1))
    return float(np.linalg.norm(other - usual) / np.linalg.norm(usual))


def stated_loss(axes: int, records: int, voters: int, seen: int = 400, likely: int = 8000) -> float:
    """Return how far stated probabilities diverge from the shares of crowds, if so many records a voter are scored.

    On average over the study's dilemmas and crowds of the prior, of any size and disagreement, in thousandths.
    """
    study = synthetic_study(axes, 40)
    ballots = ClippedBallots(study, voter_clip(records) / ONE_BIT_CLIPS, records)
    deviations = margin_sizes(FAINTEST) / math.sqrt(axes)
    dilemmas = ballots.dilemmas[:300]

    def crowds(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return what such crowds show, and the shares of them that prefer each dilemma."""
        shown, shares = [], []
        for tau in BALLOT_TAUS:
            rows = count // len(BALLOT_TAUS)
            common = rng.choice(deviations, (rows, 1)) * rng.standard_normal((rows, axes))
            shown.append(ballots.shown_by(common, ballots.whole_told, tau))
            shares.append(ndtr(common @ (dilemmas * reach(dilemmas, tau)[:, None]).T))
        return np.concatenate(shown), np.concatenate(shares)

    rng, left = np.random.default_rng(axes), math.tanh(_EPSILON / 2)
    variance = axes / (voters * (1 - 1 / LENGTH_ONE_IN) * left**2)
    supposed, supposed_shares = crowds(likely, rng)
    variances = variance * (1 - left**2 * np.square(supposed))
    losses = []
    for shows, shares in zip(*crowds(seen, rng), strict=True):
        observed = shows + math.sqrt(variance) * rng.standard_normal(axes)
        logs = -0.5 * ((observed - supposed) ** 2 / variances + np.log(variances)).sum(axis=1)
        weights = np.exp(logs - logs.max())
        stated = weights @ supposed_shares / weights.sum()
        losses.append(np.mean(rel_entr(shares, stated) + rel_entr(1 - shares, 1 - stated)))
    return 1000 * float(np.mean(losses))


def information(epsilon: float, axes: int) -> float:
    """Return the Fisher information of a one-bit report about a crowd's mean scores, summed over the axes.

    Scores are normal with variance 1, and have the mean 0. (A bit that is the score's sign, m bits.)
    """
    return max(2 / math.pi * m * math.tanh(epsilon / (2 * m)) ** 2 for m in range(1, axes + 1))


def most_information(epsilon: float) -> float:
    """Return the most that any report could have under the same promise (docs/best-accuracy.md proves it)."""
    raised = math.expm1(epsilon)
    told = minimize_scalar(
        lambda t: -raised * norm.pdf(t) / (1 + raised * norm.sf(t)), bounds=(0, 10), method="bounded"
    )
    return float(told.fun) ** 2


def print_information() -> None:
    """Print the ninth table."""
    print("| ε | a one-bit report, nine axes | at most | times |")
    for epsilon in (0.1, 0.3, 1, 2, 3, 5):
        one, most = information(epsilon, 9), most_information(epsilon)
        print(f"| {epsilon} | {one:.4f} | {most:.4f} | {most / one:.2f} |")


def print_records() -> None:
    """Print the eighth table."""
    scored = (1, 2, 4, 6, 9, 13, 40)
    print(f"| axes | voters | {' | '.join(map(str, scored))} |")
    for axes, voters in product((1, 2, 3, 5), (100, 300, 1000)):
        losses = [stated_loss(axes, records, voters) for records in scored]
        print(f"| {axes} | {voters} | {' | '.join(f'{loss:.0f}' for loss in losses)} |", flush=True)


def print_design(tilts: int = 60) -> None:
    """Print the seventh table."""
    print("| study | answers | the clipped means are off by |")
    for name, records in product(("moral-machine", "fairness", "kidney"), (1, 4, 13)):
        study, rng = load_study(name), np.random.default_rng(records)
        if records <= study.drawing.dilemmas:
            off = np.median([tilted_error(study, records, 0.75, rng) for _ in range(tilts)])
            print(f"| {name} | {records} | {off:.2f} |", flush=True)


def print_margins(draws: int = 60) -> None:
    """Print the sixth table."""
    print("| answers | sizes of margins from | 0.4 | 0.73 | 1.1 | 1.6 | 2.5 |")
    for records, faintest in product((13, 4), (FAINTEST, None)):
        slopes = [slope_of_stated(margin, faintest, draws, records) for margin in (0.4, 0.73, 1.1, 1.6, 2.5)]
        shown = " | ".join(f"{slope:.2f}" for slope in slopes)
        print(f"| {records} | {'what shows' if faintest is None else faintest} | {shown} |", flush=True)


def print_axes() -> None:
    """Print the fifth table."""
    print("| study | answers | margins | rotated axes | mixed axes |")
    for name, records, margin in product(("moral-machine", "fairness", "kidney"), (1, 2, 4, 13), (0.4, 0.9)):
        study = load_study(name)
        if records <= study.drawing.dilemmas:
            plain, rotated, mixed = np.mean([sign_variances(study, records, margin, seed) for seed in range(3)], axis=0)
            print(f"| {name} | {records} | {margin} | {rotated / plain:.2f} | {mixed / plain:.2f} |", flush=True)


def print_sizes() -> None:
    """Print the fourth table."""
    print("| sizes of margins | stated - right, least | largest | slope, least | largest |")
    octaves = {
        f"{2.0**least:g} to {2.0**most:g}": [2.0**power for power in range(least, most + 1)]
        for least, most in ((-1, 1), (-2, 1), (-2, 2), (-3, 2), (-4, 2), (-2, 3))
    }
    usual = octaves["0.25 to 4"]
    none = {
        "none in one of six, or 0.25 to 4": [0.0, *usual],
        "none in half, or 0.25 to 4": [0.0] * len(usual) + usual,
    }
    for name, sizes in (*octaves.items(), ("what shows to 4", None), *none.items()):
        cells = product((0.25, 0.44, 0.8, 1.5, 2.5), (0.02, 0.05, 0.1, 0.3, 1.0))
        found = [
            stated_by_sizes(sizes or margin_sizes(min(FAINTEST, math.sqrt(9 * variance))).tolist(), margin, variance)
            for margin, variance in cells
        ]
        gaps, slopes = zip(*((gap, slope) for right, gap, slope in found if right >= 0.55), strict=True)
        worst = f"{min(gaps):+.3f} | {max(gaps):+.3f} | {min(slopes):.2f} | {max(slopes):.2f}"
        print(f"| {name} | {worst} |", flush=True)


def main() -> None:
    """Print the first two tables."""
    print(f"| study | answers | {' | '.join(f'clip {clip:g}' for clip in CLIPS)} |")
    for name in STUDIES:
        study = load_study(name)
        for records in (1, 4, 13):
            found = variances(study, records)
            print(f"| {name} | {records} | {' | '.join(f'{v:.2f}' for v in found / found.min())} |", flush=True)
    print("| study | answers | one report in | size off by | direction off by, along an axis |")
    for name in STUDIES:
        for records in (1, 4, 13):
            for one_in in SHARES:
                size, direction = length_errors(load_study(name), records, one_in)
                print(f"| {name} | {records} | {one_in} | {size:.0%} | {direction:.2f} |", flush=True)


if __name__ == "__main__":
    {
        "errors": print_errors,
        "sizes": print_sizes,
        "axes": print_axes,
        "margins": print_margins,
        "design": print_design,
        "records": print_records,
        "information": print_information,
    }.get(" ".join(sys.argv[1:]), main)()
