"""From the mean of voters' clipped mean scores to the crowd's preference, where ballots may have any length.

A voter's score along an axis of the public design is the mean over her n records, divided by a public clip c and kept
within [-1, 1]. What is seen of the crowd, through noise, is the mean of these numbers along each axis, and the mean of
``told_length``, which says how loud ballots of such lengths are.

Ballots are taken from the public design: along an axis most dilemmas may not differ at all, so that mean scores of
short ballots are nothing like normal over voters. Voters' own preferences are b + N(0, tau^2) along each axis, so that
a random voter prefers x with probability Phi(r b . x) (``disagreement``), and two answers of a voter go together: their
covariance is about s_i s_j tau^2 x_i . x_j, with s_i = 2 phi(r_i b . x_i) / sqrt(1 + tau^2 |x_i|^2). Of ballots of up
to FEW dilemmas, all 2^n ways of answering them are gone through. Of longer ones, the mean score given the dilemmas is
taken as normal:

    centre      mean of x_i l_i,   l_i = 2 Phi(r_i b . x_i) - 1,
    variance    mean of x_i^2 (1 - l_i^2) / n  +  sum of x_i x_j s_i s_j tau^2 x_i . x_j / n^2 over all pairs i != j.

For each length that ballots may have, the most probable b
under its prior is found by Gauss-Newton, and from it the pooled probit. Lengths are mixed by how probable they are: a
priori, half that ballots are whole, and half that they are of any told length; times the likelihood of what was told.

How much voters differ hardly matters for ballots of a dozen records, and more than all else for ballots of hundreds: on
which side a voter is who answered everything depends on b / tau only. So tau is half, once, twice or four times
DISAGREEMENT, each as probable as the next, and how far their estimates are apart is told as doubt.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
from scipy.special import ndtr

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.estimation.clipped_means import ClippedNormal
from crowdveil.estimation.design import public_design
from crowdveil.estimation.disagreement import DISAGREEMENT, reach
from crowdveil.estimation.pooled_probit import pooled_probit
from crowdveil.estimation.prior import prior_deviation
from crowdveil.study.study import Study

LONGEST = 16
"""Ballots of more records are told as ballots of so many."""
FEW = 4
_RECORDS = 13_000
"""In the ballots of a length that are averaged over: enough for two per cent of what is expected."""
_BALLOTS = 200
"""Ballots of a length, at least."""
_DILEMMAS = 5000
"""Dilemmas over which a pooled probit is taken."""
_WHOLE = 0.5
"""Prior probability that all ballots are whole."""
_PARTS = 4
"""Lengths that stand for those which are probable otherwise, each as probable as the next."""
_OTHER_PARTS = (0.5, 2.0, 4.0)
_STEPS = 400
_KNOWN = 1e-9
"""Variance of what is known."""
_ROUNDS = 30
_SETTLED = 1e-3
_NEGLIGIBLE = 0.01
"""Lengths of less probability are left out."""
_LEAST_VARIANCE = 1e-12
_LEAST_CHANCE = 1e-12
_SEED = 20_190_608


def told_length(records: IntArray) -> tuple[IntArray, IntArray]:
    """Return the fraction that stands for a length n, from 0 for one record to 1 for LONGEST: 22 (n-1) / (15 (n+6)).

    How much of a small preference shows in a clipped ballot is about linear in it (within 8 %, for n from 1 to 16, in
    every bundled study). So the mean over voters tells how much shows in the crowd, whatever mixture of lengths it has.
    """
    n = np.minimum(records, LONGEST)
    return 22 * (n - 1), 15 * (n + 6)


@dataclass(frozen=True)
class BallotFit:
    """The preference along the axes that explains clipped means, and what is not known of it."""

    mean: FloatArray
    """Posterior mean of the pooled probit, over all lengths."""
    covariance: FloatArray
    """Posterior covariance, over all lengths and disagreements."""
    center: FloatArray
    """The estimate without a prior, linear in what was seen: its error is the gain times theirs."""
    gain: FloatArray
    """The derivative of the center in the clipped means."""
    stretch: FloatArray
    """Covariance of the center over what is not known of lengths."""
    doubt: FloatArray
    """How far the center may be off along each axis because voters differ more or less than assumed."""


class ClippedBallots:
    """Ballots of a study's public design, and what crowds would show of them."""

    def __init__(self, study: Study, clip: float) -> None:
        design = public_design(study)
        session = study.drawing.dilemmas
        sessions = len(design.along) // session
        # Dilemmas of a session come in any order: a short ballot holds any of them.
        order = np.random.default_rng(_SEED).permuted(np.tile(np.arange(session), (sessions, 1)), axis=1)
        self._sessions = design.along[order + session * np.arange(sessions)[:, None]]
        self._whole = session
        self._clip = clip
        self._samples: dict[int, FloatArray] = {}
        self._answered: dict[int, tuple[FloatArray, FloatArray, FloatArray]] = {}
        self._dilemmas = design.along[:_DILEMMAS]

    @property
    def directions(self) -> int:
        """The number of axes."""
        return int(self._dilemmas.shape[1])

    @cached_property
    def _lengths(self) -> tuple[FloatArray, IntArray]:
        """The told fractions, increasing, of lengths that stand for all: the longest told ones are whole ballots."""
        lengths = np.arange(1, LONGEST + 1)
        above, below = told_length(lengths)
        if self._whole > LONGEST:
            lengths[-1] = self._whole
        return above / below, lengths

    def fit(self, observed: FloatArray, covariance: FloatArray, told: float, told_variance: float) -> BallotFit:
        """Fit to clipped means with errors of this covariance, and to the mean told length with its variance."""
        nodes, weights = self._probable(told, told_variance)
        precision = np.asarray(np.linalg.inv(covariance), np.float64)
        found: list[_Fit] = []
        start = np.zeros(len(observed))
        for node in nodes.tolist():
            found.append(self._fit(node, DISAGREEMENT, observed, precision, start))
            start = found[-1].common
        usual = self._fit(float(weights @ nodes), DISAGREEMENT, observed, precision, start)
        others = [
            self._fit(float(weights @ nodes), part * DISAGREEMENT, observed, precision, usual.common)
            for part in _OTHER_PARTS
        ]
        crowds = [usual, *others]
        center = np.mean([crowd.center for crowd in crowds], axis=0)
        by_length = weights @ np.array([fit.mean for fit in found])
        among_lengths = np.array([fit.mean - by_length for fit in found])
        by_crowd = np.mean([crowd.mean for crowd in crowds], axis=0)
        among_crowds = np.array([crowd.mean - by_crowd for crowd in crowds])
        apart = np.array([fit.center - usual.center for fit in found])
        within = np.einsum("i,ijk->jk", weights, np.array([fit.covariance for fit in found]))
        covariance = within + (among_lengths.T * weights) @ among_lengths + among_crowds.T @ among_crowds / len(crowds)
        return BallotFit(
            mean=np.asarray(by_length + by_crowd - usual.mean, np.float64),
            covariance=np.asarray(covariance, np.float64),
            center=np.asarray(center, np.float64),
            gain=np.asarray(np.mean([crowd.gain for crowd in crowds], axis=0), np.float64),
            stretch=np.asarray((apart.T * weights) @ apart, np.float64),
            doubt=np.asarray(np.max([np.abs(crowd.center - center) for crowd in crowds], axis=0), np.float64),
        )

    def fit_whole(self, observed: FloatArray, covariance: FloatArray) -> BallotFit:
        """Fit to clipped means of voters of whom it is known that their ballots are whole."""
        return self.fit(observed, covariance, self._whole_told, _KNOWN)

    @property
    def _whole_told(self) -> float:
        fractions, lengths = self._lengths
        return float(fractions[np.searchsorted(lengths, self._whole)])

    def shown(self, common: FloatArray, told: float, tau: float) -> tuple[FloatArray, FloatArray]:
        """Return the mean of the clipped along each axis, of crowds with such ballots, and its derivative in b."""
        fractions, lengths = self._lengths
        above = int(np.clip(np.searchsorted(fractions, told), 1, len(fractions) - 1))
        part = (told - fractions[above - 1]) / (fractions[above] - fractions[above - 1])
        mean, slope = np.zeros(len(common)), np.zeros((len(common), len(common)))
        for place, weight in ((above - 1, 1 - part), (above, part)):
            if weight > 0:
                one_mean, one_slope = self._of_length(int(lengths[place]), common, tau)
                mean, slope = mean + weight * one_mean, slope + weight * one_slope
        return mean, slope

    def _probable(self, told: float, variance: float) -> tuple[FloatArray, FloatArray]:
        """Return told lengths that stand for all probable ones, and their weights."""
        whole = self._whole_told
        any_length = (np.arange(_STEPS) + 0.5) / _STEPS
        surprise = (any_length - told) ** 2 / (2 * variance)
        likelihood = np.exp(surprise.min() - surprise)
        # How much more likely whole ballots are than the most likely length, in logarithms lest either vanish.
        log_odds = float(surprise.min()) - (whole - told) ** 2 / (2 * variance) - math.log(likelihood.mean())
        chance = 1 / (1 + (1 - _WHOLE) / _WHOLE * math.exp(min(-log_odds, 700.0)))
        passed = (np.cumsum(likelihood) - likelihood / 2) / likelihood.sum()
        parts = np.interp((np.arange(_PARTS) + 0.5) / _PARTS, passed, any_length)
        nodes, weights = np.array([whole, *parts]), np.array([chance, *[(1 - chance) / _PARTS] * _PARTS])
        kept = weights >= _NEGLIGIBLE
        return nodes[kept], weights[kept] / weights[kept].sum()

    def _sample(self, n: int) -> FloatArray:
        """Return ballots of n dilemmas."""
        if n not in self._samples:
            wanted = max(_BALLOTS, _RECORDS // n)
            if n <= self._whole:
                # A session holds so many ballots that have no dilemma in common.
                each = self._whole // n
                whole = self._sessions[: -(-wanted // each), : each * n]
                self._samples[n] = whole.reshape(-1, n, self.directions)[:wanted]
            else:
                rows = self._sessions.reshape(-1, self.directions)
                ballots = min(len(rows) // n, wanted)
                self._samples[n] = rows[: ballots * n].reshape(ballots, n, -1)
        return self._samples[n]

    def _of_length(self, n: int, common: FloatArray, tau: float) -> tuple[FloatArray, FloatArray]:
        x = self._sample(n)
        norms = np.square(x).sum(axis=2)
        reaches = reach(x.reshape(-1, x.shape[2]), tau).reshape(norms.shape)
        margins = (x @ common) * reaches
        slopes = np.exp(-0.5 * margins**2) * math.sqrt(2 / math.pi)
        if n <= FEW:
            mean, parts = self._of_few(n, ndtr(margins), tau * slopes / np.sqrt(1 + tau**2 * norms))
        else:
            mean, parts = self._of_many(x, 2 * ndtr(margins) - 1, slopes, norms, tau)
        weighted = parts * (slopes * reaches)[:, :, None]
        records = len(x) * n
        return mean, weighted.reshape(records, -1).T @ x.reshape(records, -1) / records

    def _of_few(self, n: int, chances: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean over ballots and over all ways to answer them, and n times its slope in each leaning.

        Two answers with the covariance s_i s_j tau^2 x_i . x_j make a way to answer more or less probable than the
        product of its answers' chances p, by the part a_i a_j s_i s_j tau^2 x_i . x_j / (4 p_i p_j) of it.
        """
        ways, clipped, products = self._ways(n)
        chances = np.clip(chances, _LEAST_CHANCE, 1 - _LEAST_CHANCE)
        each = np.where(ways[:, None, :] > 0, chances, 1 - chances)
        whole = each.prod(axis=2)
        signed = ways[:, None, :] * shares / (2 * each)
        pairs = signed * np.einsum("bij,wbj->wbi", products, signed)
        more = 1 + pairs.sum(axis=2) / 2
        mean = np.einsum("wb,wbk->k", whole * more, clipped) / len(chances)
        others = (whole[:, :, None] / each) * ways[:, None, :] * (more[:, :, None] - pairs)
        return mean, np.einsum("wbn,wbk->bnk", others, clipped, optimize=True) * (n / 2)

    def _ways(self, n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return all ways to answer n dilemmas (rows of signs), the clipped mean scores of every ballot then, and the
        products x_i . x_j of its dilemmas i != j.
        """
        if n not in self._answered:
            ways = np.array(list(product((1.0, -1.0), repeat=n)))
            x = self._sample(n)
            means = np.einsum("wn,bnk->wbk", ways, x) / n
            products = np.matmul(x, x.transpose(0, 2, 1)) * (1 - np.eye(n))
            self._answered[n] = (ways, np.clip(means / self._clip, -1.0, 1.0), products)
        return self._answered[n]

    def _of_many(
        self, x: FloatArray, leaning: FloatArray, slopes: FloatArray, norms: FloatArray, tau: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mean over ballots, and n times its slope in each leaning, where mean scores are normal."""
        n = x.shape[1]
        squares = x * x
        variance = np.einsum("bnk,bn->bk", squares, 1 - leaning**2) / n**2
        if tau > 0:
            shares = slopes / np.sqrt(1 + tau**2 * norms)
            together = np.square(np.matmul((x * shares[:, :, None]).transpose(0, 2, 1), x)).sum(axis=2)
            alone = np.einsum("bnk,bn->bk", squares, shares**2 * norms)
            variance += tau**2 * np.maximum(together - alone, 0.0) / n**2
        law = ClippedNormal(np.einsum("bnk,bn->bk", x, leaning) / n, variance + _LEAST_VARIANCE, self._clip)
        # By the chain rule, for each record's part in the centre and in the variance.
        parts = law.slope[:, None, :] * x - law.bend[:, None, :] * squares * (leaning * (2 / n))[:, :, None]
        return law.mean.mean(axis=0), parts

    def _fit(self, told: float, tau: float, observed: FloatArray, precision: FloatArray, start: FloatArray) -> _Fit:
        deviation = prior_deviation(len(observed))
        prior = np.eye(len(observed)) / deviation**2
        common = start
        for _ in range(_ROUNDS):
            expected, slope = self.shown(common, told, tau)
            downhill = slope.T @ precision @ (observed - expected) - prior @ common
            step = np.linalg.solve(slope.T @ precision @ slope + prior, downhill)
            # The prior keeps the top within a few units: a longer step follows a slope that does not last.
            step = step / max(1.0, float(np.abs(step).max()) / deviation)
            common = common + step
            if np.abs(step).max() <= _SETTLED:
                break
        _, slope = self.shown(common, told, tau)
        spread = np.linalg.inv(slope.T @ precision @ slope + prior)
        pooled, carried = pooled_probit(self._dilemmas, common, tau)
        # The unshrunk estimate is a line through a point that is nearer to zero the more is noise: were it the most
        # probable preference itself, noise would bend the line.
        point = common - spread @ prior @ common
        expected, slope = self.shown(point, told, tau)
        passed, turned = pooled_probit(self._dilemmas, point, tau)
        gain = np.asarray(np.linalg.solve(slope.T, turned.T).T, np.float64)
        center = passed + gain @ (observed - expected)
        return _Fit(common, pooled, np.asarray(carried @ spread @ carried.T, np.float64), center, gain)


@dataclass(frozen=True)
class _Fit:
    """The most probable preference at one told length and one disagreement."""

    common: FloatArray
    """b, of which the mean is the pooled probit."""
    mean: FloatArray
    covariance: FloatArray
    center: FloatArray
    gain: FloatArray


@lru_cache(maxsize=8)
def clipped_ballots(study: Study, clip: float) -> ClippedBallots:
    """Return a study's ballots, drawn once."""
    return ClippedBallots(study, clip)
