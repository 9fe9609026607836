"""Effects: the share that preferred the side with more of a factor, minus the share that preferred the other.

An effect is a difference of shares, (plus - minus) / (plus + minus), over the pairs that are the factor's contrast: the
pairs of the type of scenario that the study designates for it, where types are known, and elsewhere all pairs that
differ in the factor (the average marginal component effect of Awad et al. 2018, Figure 2). Which types occur is secret,
like the records that they are part of: only the study, and whether records have types, decide what a contrast is. This
module defines which pairs count, and computes effects from exact answers or from the noisy reports of devices. Other
modules release their counts under noise.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from scipy.special import stdtrit

from crowdveil.arrays import FloatArray, IntArray, SmallIntArray, ValueArray
from crowdveil.ballots.ballots import Ballots
from crowdveil.ballots.columns import CODE, Categories
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.ratios import CONFIDENCE, Ratio, quantile
from crowdveil.study.drawing import draw_typed
from crowdveil.study.study import Study

DIFFER = "pairs that differ in it"
DRAWN = "drawn "
"""The beginning of the words for effects that are read from the study's own dilemmas in place of records."""
OF_SCENARIO = "pairs of the scenario "
"""The beginning of the words for a factor that is read from one type of scenario; its label follows."""
_PUBLIC_PAIRS = 50_000
_SEED = 20_180_724


def contrasts(study: Study, *, typed: bool) -> tuple[str, ...]:
    """Return for each factor, in words, the pairs that its effect is read from; ``typed`` if records have types."""
    return tuple(DIFFER if label is None else OF_SCENARIO + label for label in designated(study, typed=typed))


def pair_signs(study: Study, dilemmas: ValueArray, scenarios: Categories | None = None) -> SmallIntArray:
    """Return for each dilemma (rows) and factor +1 if the first side has more of it, -1 if the second; 0: left out."""
    signs = np.sign(study.contrasts(dilemmas)).astype(np.int8)
    if scenarios is not None:
        for k, label in enumerate(designated(study, typed=True)):
            if label is not None:
                signs[~scenarios.are(label), k] = 0
    return signs


def chosen_signs(ballots: Ballots) -> SmallIntArray:
    """Return for each record and factor +1 if the side with more of it was chosen, -1 if the other; 0: left out."""
    return pair_signs(ballots.study, ballots.dilemmas, ballots.scenarios) * ballots.choices[:, None]


def counts_of_voters(ballots: Ballots) -> tuple[IntArray, IntArray]:
    """Return how often each voter (rows) chose the side with more of each factor, and how often the other."""
    if not ballots.choices.all():
        raise CrowdveilError(
            "in some records neither side was chosen, which the study does not allow: leave them out on import, or "
            "with ballots.decided()"
        )
    signs = chosen_signs(ballots)
    starts = ballots.offsets[:-1]
    plus = np.add.reduceat(signs > 0, starts, axis=0, dtype=np.int64)
    return plus, np.add.reduceat(signs < 0, starts, axis=0, dtype=np.int64)


def designated(study: Study, *, typed: bool) -> list[str | None]:
    """Return the type of scenario of each factor's contrast, or None for all pairs that differ in the factor."""
    return [factor.scenario if typed else None for factor in study.factors]


@lru_cache(maxsize=16)
def public_pairs(study: Study, typed: bool) -> tuple[FloatArray, SmallIntArray]:
    """Return dilemmas as the study draws them, always the same, and which are a contrast of each factor.

    Types of scenario count where they are known (``typed``).
    """
    voters = -(-_PUBLIC_PAIRS // study.drawing.dilemmas)
    left, right, types = draw_typed(study, voters, np.random.default_rng(_SEED))
    scenarios = None if types is None or not typed else Categories(types[0], types[1].astype(CODE))
    differences = np.subtract(left, right, dtype=np.float64) / study.units
    return differences, pair_signs(study, differences, scenarios)


def public_shares(study: Study, *, typed: bool) -> FloatArray:
    """Return the share of the study's dilemmas that are a contrast of each factor."""
    return np.asarray(np.abs(public_pairs(study, typed)[1]).mean(axis=0), np.float64)


DIFFERENCE, PAIRS, NOISE, REPORTS, SQUARES, PRODUCTS, PAIR_SQUARES = range(7)
"""S, n, the variance of the noise in S, 1 for each voter who has anything to say, and S^2, S n and n^2."""
MOMENTS = 7


def moments(difference: FloatArray, pairs: FloatArray, noise: FloatArray) -> FloatArray:
    """Return S, n, the variance of the noise in S, 1, S^2, S n and n^2 of each voter, along a new last axis."""
    heard = (pairs != 0).astype(np.float64)
    return np.stack([difference, pairs, noise, heard, difference**2, difference * pairs, pairs**2], axis=-1)


def exact_moments(ballots: Ballots) -> FloatArray:
    """Return the moments of each voter along each factor, without any noise."""
    plus, minus = (counts.astype(np.float64) for counts in counts_of_voters(ballots))
    return moments(plus - minus, plus + minus, np.zeros_like(plus))


def added_by_group(found: FloatArray, codes: IntArray, groups: int) -> FloatArray:
    """Sum the moments of voters (rows) by the code of their group; the code is -1 if it is not known."""
    return np.stack([found[codes == g].sum(axis=0) for g in range(groups)])


def ratio_of(added: FloatArray, difference_noise: float = 0.0, pairs_noise: float = 0.0) -> Ratio:
    """Compute an effect from moments summed over voters.

    The scatter of voters beyond the noise estimates the correlation of one person's choices, which is taken to be
    non-negative. Let voter i have n_i of the n pairs, S_i - e n_i the variance v_i, and V = sum v_i. The residuals
    r_i = S_i - (S / n) n_i have E sum r_i^2 = V - 2 sum v_i n_i / n + V sum n_i^2 / n^2. For v_i in proportion to n_i
    this is V (1 - 1 / m) with m = n^2 / sum n_i^2: m voters with equally many pairs would scatter so, and m is at most
    their number. By Satterthwaite (1946) the sum varies like a chi-squared variable with (sum v_i)^2 / sum v_i^2 = m
    degrees of freedom, less 1 for e. So the scatter is multiplied by m / (m - 1), and by the square of Student's
    quantile over the normal one, at f = m - 1 degrees of freedom, for normal quantiles to be right for it. Below f = 1
    no such quantile can be trusted, and 1 is the least. One voter alone counts as one pair.
    """
    total, pairs, _, reports, squares, products, pair_squares = added.tolist()
    found = Ratio(total, pairs, difference_noise, pairs_noise, 0.0, 1.0)
    if not found.known:
        return found
    if reports <= 1:
        return replace(found, clustering=max(pairs, 1.0))
    e = found.estimate
    effective = pairs**2 / max(pair_squares - pairs_noise, pairs**2 / reports)
    freedom = max(effective - 1, 1.0)
    scatter = (squares - 2 * e * products + e * e * pair_squares) * (freedom + 1) / freedom
    scatter -= difference_noise + e * e * pairs_noise
    widened = (float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) / quantile(CONFIDENCE)) ** 2
    clustering = max(widened * scatter / (pairs * (1 - e * e)), 1.0) if e * e < 1 else 1.0
    return replace(found, clustering=clustering)
