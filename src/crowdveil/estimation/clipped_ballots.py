"""Model the clipped mean scores of a crowd whose ballots may have any length.

A voter's score along a rotated axis of the public design is the mean over her n records, divided by a public clip c and
clipped to [-1, 1]. The noisy observations are the mean of these scores along each axis and the mean of ``told_length``,
which determines how much of a preference ballots of such lengths show.

Ballots are sampled from the public design. Most dilemmas may not differ at all along an axis, so the mean scores of
short ballots are far from normal over voters. A voter's own preference is b + N(0, tau^2) along each axis, so a random
voter prefers x with probability Phi(r b . x) (``disagreement``). Two answers of one voter are correlated: their
covariance is about s_i s_j tau^2 x_i . x_j, with s_i = 2 phi(r_i b . x_i) / sqrt(1 + tau^2 |x_i|^2). For ballots of up
to FEW dilemmas, we enumerate all 2^n ways of answering them. For longer ballots, we take the mean score given the
dilemmas as normal:

    centre      mean of x_i l_i,   l_i = 2 Phi(r_i b . x_i) - 1,
    variance    mean of x_i^2 (1 - l_i^2) / n  +  sum of x_i x_j s_i s_j tau^2 x_i . x_j / n^2 over all pairs i != j.

``shown_by`` evaluates many crowds at once. It averages over fewer ballots, and scales the variance due to disagreement
by one common factor from that of an indifferent crowd, which is accurate enough for importance weights
(``likely_crowds``). A linear map of preferences compensates for the smaller sample: it makes small preferences show
what they show in the full sample.

Mean scores are not exactly normal. So once a preference is roughly known, we simulate voters who differ around it, and
add the difference between the simulation and the model (``near``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.estimation.clipped_means import ClippedNormal
from crowdveil.estimation.design import measured_design
from crowdveil.estimation.disagreement import reach_of
from crowdveil.estimation.probit import leanings
from crowdveil.study.study import Study

LONGEST = 16
"""Longer ballots are encoded as ballots of this many records."""
FEW = 4
_RECORDS, _RECORDS_OF_FEW = 13_000, 20_000
"""Records in the sample of ballots of one length: enough for an error of 2 % of the expected mean. Short ballots need
more, because most dilemmas do not differ along a given axis."""
_BALLOTS = 200
"""Minimum number of ballots in the sample of one length."""
DILEMMAS = 5000
"""Dilemmas over which a pooled probit is fitted."""
_SHORT_WAYS, _LONG_BALLOTS = 6400, 150
"""Sample sizes for many crowds at once: short ballots times the ways of answering them, and long ballots."""
_VOTERS = 20_000
"""Simulated voters: their mean is known to less than a hundredth of the clip."""
_RARE = 0.05
"""Directions whose slope in the small sample is below this share of the largest are not inverted."""
_SMALL = 1e-3
"""Preference along one axis, for finite-difference slopes."""
_LEAST_VARIANCE = 1e-12
_LEAST_CHANCE = 1e-12
_SEED = 20_190_608


def told_length(records: IntArray) -> tuple[IntArray, IntArray]:
    """Return the fraction that encodes a length n, from 0 for one record to 1 for LONGEST: 22 (n-1) / (15 (n+6)).

    The share of a small preference that a clipped ballot shows is about linear in this fraction (within 8 %, for n from
    1 to 16, in every bundled study). So its mean over voters determines what the crowd shows, for any mixture of
    lengths.
    """
    n = np.minimum(records, LONGEST)
    return 22 * (n - 1), 15 * (n + 6)


@dataclass(frozen=True)
class _Sample:
    """Ballots of one length."""

    dilemmas: FloatArray
    """Indexed by (ballot, dilemma, axis)."""
    norms: FloatArray
    """The squared length of each dilemma."""

    def head(self, ballots: int) -> _Sample:
        """Return the first ballots."""
        return _Sample(self.dilemmas[:ballots], self.norms[:ballots])

    def reaches(self, tau: float) -> FloatArray:
        """Return r of each dilemma (``disagreement``)."""
        return reach_of(self.norms, self.dilemmas.shape[2], tau)

    def leanings(self, crowds: FloatArray, tau: float) -> tuple[FloatArray, FloatArray]:
        """Return l_i, indexed by (ballot, dilemma, crowd), and its slope in the margin."""
        rows = (self.dilemmas * self.reaches(tau)[:, :, None]).reshape(-1, crowds.shape[1])
        return leanings((rows @ crowds.T).reshape(*self.norms.shape, len(crowds)))


class ClippedBallots:
    """Ballots sampled from a study's public design, and the clipped means that crowds would have on them."""

    def __init__(self, study: Study, clip: float, most: int | None = None) -> None:
        """Sample ballots of which at most so many records are scored, by default all."""
        design = measured_design(study).rotated
        self.left_out = design.left_out
        """Number of axes, at the end, for directions that no factor covers."""
        session = study.drawing.dilemmas
        sessions = len(design.along) // session
        # Shuffle the dilemmas of each session, so that a short ballot may hold any of them.
        order = np.random.default_rng(_SEED).permuted(np.tile(np.arange(session), (sessions, 1)), axis=1)
        self._sessions = design.along[order + session * np.arange(sessions)[:, None]]
        self._session = session
        self._whole = min(session, most or session)
        self.most = most
        """The largest number of records that are scored; None: all."""
        self._clip = clip
        self._samples: dict[int, _Sample] = {}
        self._answered: dict[int, tuple[FloatArray, FloatArray, FloatArray]] = {}
        self._corrections: dict[tuple[int, float], FloatArray] = {}
        self.dilemmas = design.along[:DILEMMAS]
        """Dilemmas along the axes, over which a pooled probit is fitted."""

    @property
    def directions(self) -> int:
        """The number of axes."""
        return int(self.dilemmas.shape[1])

    @cached_property
    def _lengths(self) -> tuple[FloatArray, IntArray]:
        """The encoded fractions, increasing, and the lengths they represent. The last may be a longer whole ballot."""
        lengths = np.arange(1, LONGEST + 1)
        above, below = told_length(lengths)
        if self._whole > LONGEST:
            lengths[-1] = self._whole
        return above / below, lengths

    @property
    def longest_told(self) -> float:
        """The encoded length of the longest ballot that is scored."""
        return float(self._lengths[0][min(LONGEST, self.most or LONGEST) - 1])

    @property
    def whole_told(self) -> float:
        """The encoded length of a whole ballot."""
        fractions, lengths = self._lengths
        return float(fractions[np.searchsorted(lengths, self._whole)])

    def told(self, records: int) -> float:
        """Return the encoded length of a ballot of so many records."""
        above, below = told_length(np.array([records]))
        return min(float(above[0] / below[0]), self.whole_told)

    def shown(self, common: FloatArray, told: float, tau: float) -> tuple[FloatArray, FloatArray]:
        """Return the clipped mean along each axis at an encoded length, and its derivative with respect to b."""
        mean, slope = np.zeros(len(common)), np.zeros((len(common), len(common)))
        for length, weight in self._mixture(told):
            one_mean, one_slope = self._of_length(length, common, tau)
            mean, slope = mean + weight * one_mean, slope + weight * one_slope
        return mean, slope

    def shown_by(self, crowds: FloatArray, told: float, tau: float) -> FloatArray:
        """Return approximate clipped means of many crowds (rows of b)."""
        mean = np.zeros(crowds.shape)
        for length, weight in self._mixture(told):
            mean += weight * self._by(length, crowds @ self._correction(length, tau), tau)
        return mean

    def _by(self, n: int, crowds: FloatArray, tau: float) -> FloatArray:
        return (self._few_by if n <= FEW else self._many_by)(n, crowds, tau)

    def _correction(self, n: int, tau: float) -> FloatArray:
        """Return the map of preferences that makes the small sample agree with the full one on small preferences.

        An axis along which hardly any ballot of the small sample differs is expressed by the others.
        """
        if (n, tau) not in self._corrections:
            of_few = self._by(n, _SMALL * np.eye(self.directions), tau) / _SMALL
            of_all = self._of_length(n, np.zeros(self.directions), tau)[1].T
            self._corrections[n, tau] = np.asarray(of_all @ np.linalg.pinv(of_few, _RARE), np.float64)
        return self._corrections[n, tau]

    def near(self, common: FloatArray, told: float, taus: Sequence[float]) -> CorrectedBallots:
        """Return these ballots with the model corrected by simulation at this preference and encoded length."""
        return CorrectedBallots(self, {tau: self._missed(common, told, tau) for tau in taus})

    def _missed(self, common: FloatArray, told: float, tau: float) -> FloatArray:
        """Return the simulated mean minus the modelled one. Ballots of up to FEW records need no correction."""
        missed = np.zeros(self.directions)
        for length, weight in self._mixture(told):
            if length > FEW:
                missed += weight * (self._simulated(length, common, tau) - self._of_length(length, common, tau)[0])
        return missed

    def _simulated(self, n: int, common: FloatArray, tau: float) -> FloatArray:
        """Return the clipped mean along each axis of simulated voters who each answer n dilemmas of a session.

        With b = 0 the same voters would have mean zero but for sampling error. Subtracting their mean reduces variance.
        """
        x = self._sessions[:, :n] if n <= self._session else self._sample(n).dilemmas
        each = -(-_VOTERS // len(x))
        rng = np.random.default_rng([_SEED, n])
        own = tau * rng.standard_normal((len(x), self.directions, each))
        margins = np.matmul(x, own) + rng.standard_normal((len(x), n, each))
        more = math.sqrt(1 + self.directions * tau**2) * (x @ common)[:, :, None]
        scores = x.transpose(0, 2, 1) / (n * self._clip)
        drawn, indifferent = (np.clip(np.matmul(scores, np.sign(at)), -1.0, 1.0) for at in (margins + more, margins))
        return np.asarray((drawn - indifferent).mean(axis=(0, 2)), np.float64)

    def _mixture(self, told: float) -> list[tuple[int, float]]:
        """Return the two lengths next to an encoded one, with the weights that interpolate between them."""
        fractions, lengths = self._lengths
        above = int(np.clip(np.searchsorted(fractions, told), 1, len(fractions) - 1))
        part = float((told - fractions[above - 1]) / (fractions[above] - fractions[above - 1]))
        both = ((int(lengths[above - 1]), 1 - part), (int(lengths[above]), part))
        return [(length, weight) for length, weight in both if weight > 0]

    def _sample(self, n: int) -> _Sample:
        """Return a sample of ballots of n dilemmas."""
        if n not in self._samples:
            wanted = max(_BALLOTS, (_RECORDS_OF_FEW if n <= FEW else _RECORDS) // n)
            if n <= self._session:
                # Disjoint ballots in a session.
                each = self._session // n
                whole = self._sessions[: -(-wanted // each), : each * n]
                ballots = whole.reshape(-1, n, self.directions)[:wanted]
            else:
                rows = self._sessions.reshape(-1, self.directions)
                count = min(len(rows) // n, wanted)
                ballots = rows[: count * n].reshape(count, n, -1)
            self._samples[n] = _Sample(ballots, np.square(ballots).sum(axis=2))
        return self._samples[n]

    def _of_length(self, n: int, common: FloatArray, tau: float) -> tuple[FloatArray, FloatArray]:
        sample = self._sample(n)
        x, norms = sample.dilemmas, sample.norms
        reaches = sample.reaches(tau)
        leaning, slopes = leanings((x @ common) * reaches)
        if n <= FEW:
            mean, parts = self._of_few(n, (1 + leaning) / 2, tau * slopes / np.sqrt(1 + tau**2 * norms))
        else:
            mean, parts = self._of_many(x, leaning, slopes, norms, tau)
        weighted = parts * (slopes * reaches)[:, :, None]
        records = len(x) * n
        return mean, weighted.reshape(records, -1).T @ x.reshape(records, -1) / records

    def _of_few(self, n: int, chances: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean over ballots and all ways of answering them, and n times its slope in each l_i.

        The covariance s_i s_j tau^2 x_i . x_j of two answers a_i and a_j (1 or -1) changes the probability of a way of
        answering, relative to the product of the answers' probabilities p, by a_i a_j s_i s_j tau^2 x_i . x_j /
        (4 p_i p_j).
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
        """Return all ways of answering n dilemmas (rows of signs), each ballot's clipped mean score for each, and the
        products x_i . x_j of its dilemmas i != j.
        """
        if n not in self._answered:
            ways = np.array(list(product((1.0, -1.0), repeat=n)))
            x = self._sample(n).dilemmas
            means = np.einsum("wn,bnk->wbk", ways, x) / n
            products = np.matmul(x, x.transpose(0, 2, 1)) * (1 - np.eye(n))
            self._answered[n] = (ways, np.clip(means / self._clip, -1.0, 1.0), products)
        return self._answered[n]

    def _of_many(
        self, x: FloatArray, leaning: FloatArray, slopes: FloatArray, norms: FloatArray, tau: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mean over ballots, and n times its slope in each l_i, taking mean scores as normal."""
        n = x.shape[1]
        squares = x * x
        variance = np.einsum("bnk,bn->bk", squares, 1 - leaning**2) / n**2
        if tau > 0:
            shares = slopes / np.sqrt(1 + tau**2 * norms)
            together = np.square(np.matmul((x * shares[:, :, None]).transpose(0, 2, 1), x)).sum(axis=2)
            alone = np.einsum("bnk,bn->bk", squares, shares**2 * norms)
            variance += tau**2 * np.maximum(together - alone, 0.0) / n**2
        law = ClippedNormal(np.einsum("bnk,bn->bk", x, leaning) / n, variance + _LEAST_VARIANCE, self._clip)
        # Chain rule, through each record's contribution to the centre and to the variance.
        parts = law.slope[:, None, :] * x - law.bend[:, None, :] * squares * (leaning * (2 / n))[:, :, None]
        return law.mean.mean(axis=0), parts

    def _few_by(self, n: int, crowds: FloatArray, tau: float) -> FloatArray:
        ways, clipped, products = self._ways(n)
        sample = self._sample(n).head(_SHORT_WAYS // len(ways))
        x = sample.dilemmas
        leaning, slopes = sample.leanings(crowds, tau)
        shares = tau * slopes / np.sqrt(1 + tau**2 * sample.norms)[:, :, None]
        mean = np.zeros(crowds.shape)
        for way, scores in zip(ways, clipped, strict=True):
            each = np.maximum((1 + way[:, None] * leaning) / 2, _LEAST_CHANCE)
            signed = way[:, None] * shares / (2 * each)
            together = (signed * np.matmul(products[: len(x)], signed)).sum(axis=1) / 2
            mean += (each.prod(axis=1) * (1 + together)).T @ scores[: len(x)]
        return mean / len(x)

    def _many_by(self, n: int, crowds: FloatArray, tau: float) -> FloatArray:
        sample = self._sample(n).head(_LONG_BALLOTS)
        x, norms = sample.dilemmas, sample.norms
        leaning, slopes = sample.leanings(crowds, tau)
        squares = x * x
        turned = x.transpose(0, 2, 1)
        indifferent = 2 / math.pi / (1 + tau**2 * norms)
        together = np.square(np.matmul(turned * np.sqrt(indifferent)[:, None, :], x)).sum(axis=2)
        alone = np.einsum("bnk,bn->bk", squares, indifferent * norms)
        differing = tau**2 * np.maximum(together - alone, 0.0) / n**2
        fainter = slopes.mean(axis=(0, 1)) ** 2 * (math.pi / 2)
        variance = np.matmul(squares.transpose(0, 2, 1), 1 - leaning**2) / n**2 + differing[:, :, None] * fainter
        law = ClippedNormal(np.matmul(turned, leaning) / n, variance + _LEAST_VARIANCE, self._clip)
        return np.asarray(law.mean.mean(axis=0).T, np.float64)


@dataclass(frozen=True)
class CorrectedBallots:
    """Ballots of a public design, with the model corrected near one preference."""

    ballots: ClippedBallots
    missed: Mapping[float, FloatArray]
    """Simulated minus modelled mean along each axis, by tau."""

    @property
    def dilemmas(self) -> FloatArray:
        """Dilemmas along the axes, over which a pooled probit is fitted."""
        return self.ballots.dilemmas

    @property
    def left_out(self) -> int:
        """Number of axes, at the end, for directions that no factor covers."""
        return self.ballots.left_out

    @property
    def most(self) -> int | None:
        """The largest number of records that are scored; None: all."""
        return self.ballots.most

    def shown(self, common: FloatArray, told: float, tau: float) -> tuple[FloatArray, FloatArray]:
        """Return the clipped mean along each axis, and its derivative with respect to b."""
        mean, slope = self.ballots.shown(common, told, tau)
        return mean + self.missed[tau], slope

    def shown_by(self, crowds: FloatArray, told: float, tau: float) -> FloatArray:
        """Return approximate clipped means of many crowds (rows of b)."""
        return self.ballots.shown_by(crowds, told, tau) + self.missed[tau]


@lru_cache(maxsize=8)
def clipped_ballots(study: Study, clip: float, most: int | None) -> ClippedBallots:
    """Return a study's ballots (cached)."""
    return ClippedBallots(study, clip, most)
