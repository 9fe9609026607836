"""Counts of preferred sides: how far a voter, a record or a choice can move them, and the effects read from them."""

import itertools

import numpy as np
import pytest

from crowdveil.ballots.ballots import Ballots
from crowdveil.ballots.columns import Categories
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.mechanisms.effect_counts import (
    STEPS,
    WEIGHT_STEPS,
    EffectCounts,
    PublicCrowd,
    _heard,
    length_bins,
    squared_share,
    squared_sum,
)
from crowdveil.privacy.mechanisms.group_mechanism import Grouping
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.noise.experimental_noise import SilentNoise
from crowdveil.study.bundled import load_study

STUDY = load_study("moral-machine")
SETTINGS = MechanismSettings(STUDY, 2.0)
FACTORS = len(STUDY.factors)
APART = tuple(factor.scenario is not None for factor in STUDY.factors)
LABELS = ("Utilitarian", "Gender", "Fitness", "Age", "Social Status", "Species", "Random")
GROUPING = Grouping("gender", ("women", "men", "others"))
EPSILON = Epsilon(1)


def mechanism(unit, grouping=None, *, squares=True, voters=2000):
    pairs = np.full(FACTORS, voters * 13 / 5.0)
    crowd = PublicCrowd(APART, pairs, np.full(FACTORS, voters * 0.9), np.full(FACTORS, 3.0))
    made = EffectCounts._with(unit, EPSILON, crowd, grouping, squares=squares)
    assert made._spent == EPSILON.micro
    return made


def voter(rng, records):
    """Return what a voter may have been asked and chosen, far from what the generator draws."""
    dilemmas = rng.integers(-1, 2, (records, STUDY.dimension)).astype(np.int8) * rng.integers(0, 2, (records, 1))
    return dilemmas, rng.choice([-1, 1], records), rng.integers(0, len(LABELS), records), int(rng.integers(-1, 3))


def crowd(*voters):
    counts = [len(choices) for _, choices, _, _ in voters]
    dilemmas, choices, scenarios = (np.concatenate([one[part] for one in voters]) for part in range(3))
    return Ballots(
        STUDY,
        np.concatenate([[0], np.cumsum(counts)]),
        dilemmas.astype(np.int8),
        choices.astype(np.int8),
        scenarios=Categories(LABELS, scenarios.astype(np.int16)),
        about={"gender": Categories(GROUPING.labels, np.array([one[3] for one in voters], np.int16))},
    )


def moves(made, one, other):
    """Return the largest moves of the blocks' sums in all groups: of blocks of scenarios together, and of the rest."""
    totals = [made.measure(ballots, SETTINGS, EPSILON) for ballots in (one, other)]
    assert np.array_equal(totals[0].public, totals[1].public), "what is public must not move"
    gap = np.abs(totals[0].total - totals[1].total).reshape(made.groups, -1)
    start, found = 0, {True: 0, False: 0}
    for block in made.blocks:
        found[block.scenario] += int(gap[:, start : start + block.columns].max(axis=1).sum())
        start += block.columns
    return found


@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("grouping", [None, GROUPING])
@pytest.mark.parametrize("unit", Unit)
def test_no_neighbour_moves_the_sums_further_than_the_noise_covers(unit, grouping, squares):
    """The worst of random neighbours, among them extreme ones, comes near the bound and never exceeds it."""
    rng, made = np.random.default_rng(8), mechanism(unit, grouping, squares=squares)
    allowed = {block.scenario: block.sensitivity for block in made.blocks}
    worst = dict.fromkeys(allowed, 0)
    for trial in range(60):
        others = [voter(rng, 3), voter(rng, 2)]
        mine = voter(rng, int(rng.integers(1, 8)))
        if trial % 3 == 0:  # always for the side with more: shares of 1, squares as large as they can be
            mine = (mine[0], np.ones_like(mine[1]), mine[2], mine[3])
        if unit is Unit.VOTER:
            changed = voter(rng, int(rng.integers(1, 8))) if trial % 2 else (-mine[0], *mine[1:3], (mine[3] + 1) % 3)
        else:
            row = int(rng.integers(len(mine[1])))
            changed = tuple(part.copy() if isinstance(part, np.ndarray) else part for part in mine)
            changed[1][row] *= -1
            if unit is Unit.RECORD and trial % 2:
                changed[0][row], changed[2][row] = voter(rng, 1)[0][0], rng.integers(len(LABELS))
        found = moves(made, crowd(mine, *others), crowd(changed, *others))
        for scenario in allowed:
            assert found[scenario] <= allowed[scenario]
            worst[scenario] = max(worst[scenario], found[scenario])
    assert all(worst[scenario] >= 0.9 * allowed[scenario] for scenario in allowed)


def test_a_replaced_record_moves_a_square_by_less_than_four():
    """All sums of up to twelve signs, and every way to turn over, add or take away one of them."""

    def square(n, s):
        return s * s / n if n else 0.0

    for n in range(13):
        for s in range(-n, n + 1, 2):
            for sign, other in itertools.product((-1, 0, 1), (-1, 0, 1)):
                if sign and (n == 0 or abs(s - sign) > n - 1):
                    continue  # there is no such record to take away
                size, total = n - abs(sign) + abs(other), s - sign + other
                assert abs(square(size, total) - square(n, s)) < 4


@pytest.mark.parametrize("unit", [Unit.RECORD, Unit.CHOICE])
def test_without_noise_the_effects_are_the_shares(unit):
    rng, made = np.random.default_rng(4), mechanism(unit)
    ballots = crowd(*(voter(rng, 9) for _ in range(50)))
    signs = np.sign(STUDY.contrasts(ballots.dilemmas)) * ballots.choices[:, None]
    measured = made.measure(ballots, SETTINGS, EPSILON)
    (found,) = made.ratios(made.release(measured, SETTINGS, EPSILON, SilentNoise()), measured, SETTINGS, EPSILON)
    for k, factor in enumerate(STUDY.factors):
        kept = signs[:, k] != 0
        if factor.scenario is not None:
            kept &= np.array(ballots.scenarios.to_list(), object) == factor.scenario
        assert found.ratios[k].pairs == pytest.approx(kept.sum())
        assert found.ratios[k].difference == pytest.approx(signs[kept, k].sum())


@pytest.mark.parametrize("chance", [0.0, 1e-3, 0.2, 1.0])
def test_voters_are_heard_by_their_own_numbers_of_records(chance):
    """Of lengths 1 and 15 exactly; of long ones, which share bins, nearly. The mean length would overstate it."""
    made = mechanism(Unit.RECORD)
    codes, rng = np.zeros(100, np.int64), np.random.default_rng(2)
    weights = rng.integers(0, WEIGHT_STEPS + 1, 100)
    for lengths, near in ((np.array([1] * 80 + [15] * 20), 1e-12), (rng.integers(1, 3000, 100), 1e-3)):
        (binned,) = made._binned(lengths, weights, codes)
        heard = (weights / WEIGHT_STEPS * (1 - (1 - chance) ** lengths)).sum()
        assert _heard(binned.reshape(2, -1), chance) == pytest.approx(heard, rel=near)


def test_bins_of_lengths_are_in_order_and_narrow():
    lengths = np.arange(1, 2**15)
    bins = length_bins(lengths)
    assert np.array_equal(bins[:31], lengths[:31])
    assert set(np.diff(bins).tolist()) == {0, 1}
    first = np.flatnonzero(np.diff(bins, prepend=0))
    assert (np.diff(lengths[first])[31:] <= lengths[first][31:-1] / 16).all()
    assert length_bins(np.array([2**40])) == length_bins(np.array([2**60])) == 255


def test_where_few_have_many_records_how_alike_their_choices_are_is_measured():
    """Four of five voters have one record, the others fifteen, a fifth of them pairs; choices correlate by 0.5."""
    rng, made = np.random.default_rng(9), mechanism(Unit.RECORD)
    voters = []
    for i in range(1500):
        records = 15 if i % 5 == 0 else 1
        dilemmas = np.ones((records, STUDY.dimension), np.int8) * (rng.random((records, 1)) < 0.2)
        choices = np.where(rng.random(records) < 0.5 + rng.choice([-1, 1]) * 0.5**1.5, 1, -1)
        voters.append((dilemmas, choices, np.full(records, 6), 0))
    ballots = crowd(*voters)
    measured = made.measure(ballots, SETTINGS, EPSILON)
    batches = [made.measure(part, SETTINGS, EPSILON) for part in (ballots[:150], ballots[150:])]
    assert np.array_equal(made.public_part(measured), sum(made.public_part(one) for one in batches))
    (found,) = made.ratios(made.release(measured, SETTINGS, EPSILON, SilentNoise()), measured, SETTINGS, EPSILON)
    law = [factor.name for factor in STUDY.factors].index("law")
    lengths = ballots.counts
    size = 1 + 0.2 * ((lengths**2).sum() / lengths.sum() - 1)
    assert found.ratios[law].clustering == pytest.approx(1 + 0.5 * (size - 1), rel=0.1)


def test_where_voters_are_protected_each_counts_once_and_groups_are_counted():
    rng, made = np.random.default_rng(6), mechanism(Unit.VOTER, GROUPING)
    ballots = crowd(*(voter(rng, int(rng.integers(1, 9))) for _ in range(40)))
    measured = made.measure(ballots, SETTINGS, EPSILON)
    found = made.ratios(made.release(measured, SETTINGS, EPSILON, SilentNoise()), measured, SETTINGS, EPSILON)
    codes = ballots.about["gender"].codes
    signs = np.sign(STUDY.contrasts(ballots.dilemmas)) * ballots.choices[:, None]
    law = [factor.name for factor in STUDY.factors].index("law")
    for g, one in enumerate(found):
        means = []
        for i in np.flatnonzero(codes == g):
            hers = signs[ballots.offsets[i] : ballots.offsets[i + 1], law]
            means += [hers[hers != 0].mean()] if (hers != 0).any() else []
        assert one.voters == pytest.approx((codes == g).sum())
        assert one.ratios[law].pairs == pytest.approx(len(means), abs=1e-4)
        assert one.ratios[law].difference == pytest.approx(np.sum(means), abs=1e-4)


@pytest.mark.parametrize("pairs", [1, 7, 3_200_000, 4_200_000, 2_000_000_000])
def test_squares_fit_however_many_pairs_a_voter_has(pairs):
    """Beside integers of any size: S^2 in steps once passed 2^63 from three million pairs on."""
    for difference in (0, 1, -pairs, pairs, pairs // 3):
        share, added = (int(f(np.array([difference]), np.array([pairs]))[0]) for f in (squared_share, squared_sum))
        assert added == difference**2 * STEPS // (4 * pairs)
        assert 0 <= share <= STEPS
        assert share == pytest.approx(STEPS * (difference / pairs) ** 2, abs=3)


def test_weights_multiply_what_a_voter_adds():
    rng = np.random.default_rng(7)
    ballots = crowd(voter(rng, 6), voter(rng, 6))
    once = EffectCounts(Unit.RECORD, mechanism(Unit.RECORD).blocks, squares=True, weights=np.array([2**16, 0]))
    alone = mechanism(Unit.RECORD).measure(ballots[:1], SETTINGS, EPSILON).total
    assert np.array_equal(once.measure(ballots, SETTINGS, EPSILON).total, alone)
    half = EffectCounts(Unit.RECORD, once.blocks, squares=True, weights=np.array([2**15, 0]))
    assert np.abs(2 * half.measure(ballots, SETTINGS, EPSILON).total - alone).max() <= 1


def test_the_whole_epsilon_is_spent_and_no_more():
    silent = SilentNoise()
    made = mechanism(Unit.RECORD)
    measured = made.measure(crowd(*(voter(np.random.default_rng(1), 5) for _ in range(4))), SETTINGS, EPSILON)
    made.release(measured, SETTINGS, EPSILON, silent)
    apart = {request.epsilon.micro for request in silent.requests if request.sensitivity == 2 * STEPS}
    rest = [request.epsilon.micro for request in silent.requests if request.sensitivity == STEPS]
    assert len(apart) == len(rest) == 1
    assert sum(apart) + sum(rest) == EPSILON.micro
    with pytest.raises(ValueError, match="this is a bug"):
        made.release(measured, SETTINGS, Epsilon(2), silent)


def test_what_is_bought_depends_on_public_numbers():
    """Many voters: how alike their choices are is worth its noise. Few: it is not."""

    def planned(voters):
        pairs = np.full(FACTORS, voters * 3.0)
        public = PublicCrowd(APART, pairs, np.full(FACTORS, voters * 0.9), np.full(FACTORS, 3.0))
        return EffectCounts.planned(Unit.VOTER, EPSILON, public)

    assert planned(5000).squares
    assert not planned(200).squares
