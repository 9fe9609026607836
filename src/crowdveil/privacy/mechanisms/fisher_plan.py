"""The budget plan of Fisher scoring: the number of steps, their shares of epsilon, the clips, and what is released.

The plan depends on public numbers only: the study, the number of units (voters or records), and epsilon. It is driven
by the signal-to-noise ratio, called loudness here: units times epsilon, per direction measured.

The thresholds minimise the loss of stated probabilities on crowds simulated from the public Moral Machine study
(preferences from the prior, voters who disagree little and much, ballots of several lengths, dilemmas of the generator
and others): tests/statistics/constants.py. Between rounds of tuning we looked at the public Moral Machine file, which
decided where the simulation was nearly indifferent (docs/best-accuracy.md). So that file is not an independent test of
them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from crowdveil.estimation.clipped_means import SCORE_DISAGREEMENT, voter_clip
from crowdveil.estimation.design import Design, public_design
from crowdveil.estimation.prior import prior_deviation
from crowdveil.estimation.scoring_step import clip_in_deviations
from crowdveil.privacy.epsilon import LEAST_MICRO, Epsilon
from crowdveil.privacy.mechanisms.fisher_sums import SQUARE_REACH
from crowdveil.privacy.mechanisms.integer_scores import cube_variance
from crowdveil.study.study import Study

_LENGTHS = 12
"""Loudness from which the mean of one over the length of ballots is worth its noise. On simulated crowds of two studies
it costs more than it brings at 10, and brings as much or more at 14 (docs/best-accuracy.md)."""
_VOTERS_LOUD, _RECORDS_LOUD = 40, 120
"""Loudness from which a second step is worth a share of epsilon. A ballot's mean has a third of a record's scatter."""
_KNOWN_LOUD = 300
"""The same for records if a second step would only correct the bias of the first clip: the dilemmas are known, and the
directions that factors leave out are not measured.

Two measurements with 0.3 and 0.7 of epsilon, weighted by their precision, have 1 / (0.3^2 + 0.7^2) = 1.7 times the
variance of one. The variance falls with the square of loudness, and the bias of a clip does not fall. On simulated
crowds of three studies (docs/best-accuracy.md) one step and two break even between 250 and 330."""
_FIRST_SHARE = 0.3
"""Share of epsilon for the first of two steps."""
_SQUARES = 100
"""Loudness from which the mean squares along the axes are worth a share of the first step's epsilon."""
_SQUARES_SHARE = 0.4
"""Share of the first step's epsilon for the mean squares."""
_PRODUCTS_NOISE = 0.3
"""Noise of mean squares, relative to them and times the root of their number of axes, at which the mean products of two
axes are measured, too: the length of what noise in all products adds to a step, relative to the step. They take the
same epsilon as the squares alone, whose noise they raise."""
_REST = 50
"""Units times epsilon, per direction that varies, from which a second step also measures those that factors leave out.

That makes probabilities slightly less accurate, and allows decisions on dilemmas that differ in these directions."""
_REST_SHARE = 0.3
"""Share of the second step's epsilon for these directions."""
_VOTERS_NOISE, _RECORDS_NOISE = 0.22, 0.03
"""Target noise of the means relative to the prior size of a preference; it sets the clip. For voters it is multiplied
by the share of their variance that is disagreement. That share is a guess, so the means of longer ballots should be
clipped less. For ballots of 13 records the product is a twentieth."""
_NEAREST_CLIP, _FURTHEST_CLIP = 0.35, 3.0
"""Minimum clip, in standard deviations of a unit over a whole ballot, and maximum clip, in those of a record."""
_LAST_CLIP = 1.0
"""Maximum clip, in standard deviations of a voter over a whole ballot, if no second step follows. The mean of normally
distributed voters, clipped at one standard deviation, has (2 Phi(1) - 1)^2 / E min(z^2, 1) = 0.90 of the information of
the unclipped mean, so a wider clip adds little but noise. A second step had better start where no model of voters
matters."""


@dataclass(frozen=True)
class FisherPlan:
    """The allocation of a budget. Public. The epsilons add up to the whole."""

    first: Epsilon
    """Spent on the means along the axes."""
    squares: Epsilon | None
    """Spent on the mean squares along the axes, which correct the public design."""
    products: bool
    """Whether mean squares are measured between any two axes, too, which show how contrasts go together."""
    second: Epsilon | None
    """Spent on the scores of a second step, along the axes of factors."""
    rest: Epsilon | None
    """Spent on the scores of the second step in the directions that factors leave out."""
    by_voter: bool
    """Whether the units are voters rather than records."""
    lengths: bool
    """Whether the first step also measures one over a ballot's length, which determines the scatter of voters."""
    spread: bool
    """Whether the second step also measures the scatter of scores, to estimate the sampling error."""
    ahead: bool
    """Whether the second step also measures the mean square of dilemmas in the direction of the first estimate, which
    tells how long the step has to be."""
    first_noise: float
    """Standard deviation of the noise on the means, in units of their clip."""

    @property
    def epsilons(self) -> tuple[Epsilon, ...]:
        """The epsilons spent, in the order in which noise is drawn."""
        return tuple(part for part in (self.first, self.squares, self.second, self.rest) if part is not None)

    @property
    def steps(self) -> int:
        """The number of steps."""
        return 1 if self.second is None else 2

    def first_clip(self, study: Study) -> float:
        """Return the clip of the first step's means along the mixed axes, in units of an axis.

        Unclipped, the means need no model of how voters scatter. Clipped at a third of their standard deviation, they
        carry nearly the same information as their signs.
        """
        unit, share, furthest = 1.0, _RECORDS_NOISE, _FURTHEST_CLIP
        if self.by_voter:
            unit = voter_clip(study.drawing.dilemmas)
            share = _VOTERS_NOISE * (SCORE_DISAGREEMENT / unit) ** 2
            furthest = _LAST_CLIP * unit if self.second is None else _FURTHEST_CLIP
        allowed = share * prior_deviation(public_design(study).directions) * math.sqrt(2 / math.pi)
        return max(_NEAREST_CLIP * unit, min(allowed / self.first_noise, furthest))

    @classmethod
    def of(
        cls,
        design: Design,
        units: int,
        epsilon: Epsilon,
        *,
        by_voter: bool,
        design_known: bool,
        along: str | None = None,
    ) -> FisherPlan:
        """Choose a plan by loudness.

        ``along`` says whether the directions that factors leave out are measured (one of ``study.ALONG``); if they are,
        a second step is taken however faint the crowd. By default, loudness decides this, too.
        """
        directions = design.directions
        left_out = design.rest.shape[1]
        loudness = units * epsilon.value / directions
        loud_enough = units * epsilon.value >= _REST * (directions + left_out)
        widened = left_out > 0 and (along == "features" or (along is None and loud_enough))
        records_loud = _KNOWN_LOUD if design_known and not widened else _RECORDS_LOUD
        enough = _VOTERS_LOUD if by_voter else records_loud
        again = loudness >= enough or (widened and along == "features")
        first, second = _split(epsilon, 1 - _FIRST_SHARE) if again else (epsilon, None)
        bought = loudness >= _SQUARES and not design_known
        first, squares = _split(first, _SQUARES_SHARE) if bought else (first, None)
        pairs = directions * (directions + 1) // 2
        products = (
            squares is not None
            and directions > 1
            and _square_noise(units, squares, pairs) * math.sqrt(directions) <= _PRODUCTS_NOISE
        )
        rest = None
        if second is not None and widened:
            second, rest = _split(second, _REST_SHARE)
        lengths = by_voter and loudness >= _LENGTHS
        return cls(
            first,
            squares,
            products,
            second,
            rest,
            by_voter=by_voter,
            lengths=lengths,
            first_noise=math.sqrt(cube_variance(2 / (units * first.value), 1.0, directions + lengths)),
            spread=second is not None and _worth_the_spread(directions, units, second.value),
            ahead=second is not None and not design_known,
        )


def _square_noise(units: int, epsilon: Epsilon, measured: int) -> float:
    """Return the standard deviation of the noise on each of so many mean squares, relative to a mean square of 1."""
    return SQUARE_REACH / 2 * math.sqrt(cube_variance(2 / (units * epsilon.value), 1.0, measured))


def _split(epsilon: Epsilon, share: float) -> tuple[Epsilon, Epsilon | None]:
    """Split a share off an epsilon; return (epsilon, None) if either part would be below the smallest epsilon."""
    taken = int(epsilon.micro * share)
    if min(taken, epsilon.micro - taken) < LEAST_MICRO:
        return epsilon, None
    return Epsilon.of_millionths(epsilon.micro - taken), Epsilon.of_millionths(taken)


def _worth_the_spread(directions: int, units: int, epsilon: float) -> bool:
    """Whether releasing the scatter makes error bars narrower than a public bound on the sampling variance does.

    The bound is taken as twice the variance, and the clip of a unit's score as the one that balances noise and bias.
    """
    noise = [cube_variance(2 / (units * epsilon), 1.0, dimension) for dimension in (directions, directions + 1)]
    prior = prior_deviation(directions)
    clips = [clip_in_deviations(math.sqrt(variance), None, prior) for variance in noise]
    bounded, bought = (noise[i] * clips[i] ** 2 + sampling for i, sampling in enumerate((2 / units, 1 / units)))
    return bought < bounded
