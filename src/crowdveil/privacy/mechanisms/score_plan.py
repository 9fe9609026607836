"""How Fisher scoring spends a budget: how many steps, how they share epsilon, where scores are clipped, what is bought.

All of it depends on public numbers only: the study, the number of units (voters or records), and epsilon. What counts
is how loud a crowd is against the noise: units times epsilon, for each direction that is looked along.

The thresholds were chosen on crowds that are simulated from the public Moral Machine study (preferences from the prior,
voters who disagree little and much, ballots of several lengths, dilemmas of the generator and others), so that stated
probabilities lose least: tests/statistics/constants.py. The public Moral Machine file was looked at between rounds of
that, and decided where the simulation hardly did (docs/best-accuracy.md): it is no independent test of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from crowdveil.estimation.clipped_means import SCORE_DISAGREEMENT, voter_clip
from crowdveil.estimation.design import Design, public_design
from crowdveil.estimation.prior import prior_deviation
from crowdveil.estimation.scoring_step import clip_in_deviations
from crowdveil.privacy.epsilon import LEAST_MICRO, Epsilon
from crowdveil.privacy.mechanisms.scores import cube_variance
from crowdveil.study.study import Study

_LENGTHS = 10
"""From so loud on, the mean of one over the length of ballots is worth its noise."""
_VOTERS_LOUD, _RECORDS_LOUD = 40, 120
"""From so loud on, a second step is worth a part of epsilon. The mean of a ballot scatters like a third of a record."""
_KNOWN_LOUD = 300
"""The same for records, where it would correct what the first clip does and nothing else: dilemmas are known, and no
direction is looked along that factors leave out.

Two looks with 0.3 and 0.7 of epsilon, each believed as far as its noise allows, have 1 / (0.3^2 + 0.7^2) = 1.7 times
the variance of one look. That falls with the square of loudness, and what a clip does stays; simulated crowds of three
studies (docs/best-accuracy.md) have one step and two alike between 250 and 330."""
_FIRST_SHARE = 0.3
"""What the first of two steps has of epsilon."""
_SQUARES = 100
"""From so loud on, the mean squares along the axes are worth a part of the first step's epsilon."""
_SQUARES_SHARE = 0.4
"""That part."""
_REST = 50
"""From so many units times epsilon for each of all directions on, a second step looks along those left out by factors.

That costs a little of what probabilities tell, and lets dilemmas be decided in which these directions differ."""
_REST_SHARE = 0.3
"""What it has of the second step's epsilon."""
_VOTERS_NOISE, _RECORDS_NOISE = 0.22, 0.03
"""Means are clipped as far out as keeps their noise at this part of what a preference is, a priori: those of voters,
times the part of their variance that is disagreement. How large that is, is a guess; so the longer ballots are, the
less of their means should be clipped. For ballots of 13 records it comes to a twentieth."""
_NEAREST_CLIP, _FURTHEST_CLIP = 0.35, 3.0
"""But not nearer, in deviations of a unit over a whole ballot, nor further, in those of a record."""
_LAST_CLIP = 1.0
"""Nor further, in deviations of a voter over a whole ballot, if no second step follows: the mean of voters who scatter
like a normal law, clipped at one deviation, tells (2 Phi(1) - 1)^2 / E min(z^2, 1) = 0.90 of what it tells unclipped,
so further out there is little but noise. A second step is better begun where no model of voters matters."""


@dataclass(frozen=True)
class Plan:
    """How a budget is spent. Public."""

    first: Epsilon
    """Buys the means along the axes; all of these add up to the whole."""
    squares: Epsilon | None
    """Buys the mean squares along the axes, to correct the public design."""
    second: Epsilon | None
    """Buys the scores of a second step, along the axes of factors."""
    rest: Epsilon | None
    """Buys the scores of the second step in the directions that factors leave out."""
    by_voter: bool
    """Whether voters are the units, or records."""
    lengths: bool
    """Whether the first step looks at one over a ballot's length, too, which tells how loud voters are."""
    spread: bool
    """Whether the second step looks at the scatter of scores, too, to tell the sampling error."""
    first_noise: float
    """Standard deviation of the noise on the means, in units of their clip."""

    @property
    def epsilons(self) -> tuple[Epsilon, ...]:
        """Whatever is bought, in the order in which noise is drawn."""
        return tuple(part for part in (self.first, self.squares, self.second, self.rest) if part is not None)

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return 1 if self.second is None else 2

    def first_clip(self, study: Study) -> float:
        """Return where the first step clips means along the mixed axes, in units of an axis.

        Unclipped, the means need no model of how much voters scatter. Clipped at a third of their deviation, they tell
        nearly as much as signs would.
        """
        unit, share, furthest = 1.0, _RECORDS_NOISE, _FURTHEST_CLIP
        if self.by_voter:
            unit = voter_clip(study.drawing.dilemmas)
            share = _VOTERS_NOISE * (SCORE_DISAGREEMENT / unit) ** 2
            furthest = _LAST_CLIP * unit if self.second is None else _FURTHEST_CLIP
        allowed = share * prior_deviation(public_design(study).directions) * math.sqrt(2 / math.pi)
        return max(_NEAREST_CLIP * unit, min(allowed / self.first_noise, furthest))

    @classmethod
    def of(cls, design: Design, units: int, epsilon: Epsilon, *, by_voter: bool, design_known: bool) -> Plan:
        """Choose by how loud the crowd is."""
        directions = design.directions
        left_out = design.rest.shape[1]
        loudness = units * epsilon.value / directions
        widened = left_out > 0 and units * epsilon.value >= _REST * (directions + left_out)
        records_loud = _KNOWN_LOUD if design_known and not widened else _RECORDS_LOUD
        enough = _VOTERS_LOUD if by_voter else records_loud
        first, second = _split(epsilon, 1 - _FIRST_SHARE) if loudness >= enough else (epsilon, None)
        bought = loudness >= _SQUARES and not design_known
        first, squares = _split(first, _SQUARES_SHARE) if bought else (first, None)
        rest = None
        if second is not None and widened:
            second, rest = _split(second, _REST_SHARE)
        lengths = by_voter and loudness >= _LENGTHS
        return cls(
            first,
            squares,
            second,
            rest,
            by_voter=by_voter,
            lengths=lengths,
            first_noise=math.sqrt(cube_variance(2 / (units * first.value), 1.0, directions + lengths)),
            spread=second is not None and _worth_the_spread(directions, units, second.value),
        )


def _split(epsilon: Epsilon, share: float) -> tuple[Epsilon, Epsilon | None]:
    """Return what is left of an epsilon and the share taken off, if neither is less than any may be."""
    taken = int(epsilon.micro * share)
    if min(taken, epsilon.micro - taken) < LEAST_MICRO:
        return epsilon, None
    return Epsilon.of_millionths(epsilon.micro - taken), Epsilon.of_millionths(taken)


def _worth_the_spread(directions: int, units: int, epsilon: float) -> bool:
    """Whether bars get narrower by one more noisy number, against a public bound on the sampling variance.

    That is taken as twice what the variance is, and a unit's score as clipped where its noise is balanced.
    """
    noise = [cube_variance(2 / (units * epsilon), 1.0, dimension) for dimension in (directions, directions + 1)]
    prior = prior_deviation(directions)
    clips = [clip_in_deviations(math.sqrt(variance), None, prior) for variance in noise]
    bounded, bought = (noise[i] * clips[i] ** 2 + sampling for i, sampling in enumerate((2 / units, 1 / units)))
    return bought < bounded
