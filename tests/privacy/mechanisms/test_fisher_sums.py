"""Sums of bounded scores: how far one voter or one record can move them, and what they are, computed another way."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation.design import public_design
from crowdveil.estimation.scoring_step import ScoringStep
from crowdveil.privacy.mechanisms.fisher_sums import (
    SCORE_STEPS,
    SENSITIVITY,
    SQUARE_REACH,
    first_sums,
    square_directions,
    square_sums,
    step_sums,
)
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study, synthetic_study

STUDY, MACHINE = synthetic_study(3, 8), load_study("moral-machine")
SAMPLE = public_design(STUDY).sample.head(2000)
AXES = np.eye(3)
FAR = 1e6
START = np.array([0.0, 0.4, -1.5])
NOWHERE = np.zeros(3)
"""Where every choice is as surprising as the other."""
SCATTER = 0.2
LENGTHS = (1, 2, 13)


def ballots(*voters):
    offsets = np.cumsum([0, *map(len, voters)])
    return Ballots.from_differences(STUDY, offsets, np.array([r for records in voters for r in records], np.float64))


def step(by_voter, start=START):
    return ScoringStep.at(start, SAMPLE, SCATTER if by_voter else None, 2.0)


def all_sums(by_voter, crowd, start=NOWHERE):
    """All that any step looks at: all coordinates of a first step, and of a later one."""
    first = first_sums(AXES, 0.5, by_voter, by_voter, crowd)
    second = step_sums(AXES, step(by_voter, start), by_voter, True, crowd)
    return np.concatenate([first, square_sums(square_directions(3, True), by_voter, crowd), second])


finite = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3)
usual = st.lists(st.floats(-5, 5), min_size=3, max_size=3)
records = st.lists(finite | usual, min_size=1, max_size=6)
starts = st.lists(st.floats(-3, 3), min_size=3, max_size=3).map(np.array)


@given(records, records, starts)
def test_no_voter_whatever_moves_a_coordinate_further_than_the_sensitivity(ours, theirs, start):
    left, right = (all_sums(True, ballots(one, [[1.0, 2.0, 3.0]]), start) for one in (ours, theirs))
    assert np.abs(left - right).max() <= SENSITIVITY


@given(st.sampled_from(LENGTHS), finite | usual, finite | usual, starts, st.data())
def test_nor_does_a_record_whatever_else_its_voter_says(length, ours, theirs, start, data):
    """Also in the coordinates of the scatter, to which all records of a voter add together."""
    shared = data.draw(st.lists(finite | usual, min_size=length - 1, max_size=length - 1))
    left, right = (all_sums(False, ballots([one, *shared]), start) for one in (ours, theirs))
    assert np.abs(left - right).max() <= SENSITIVITY


def surprising(sign):
    """A record whose clipped scores are the sign, where every choice surprises: far along all axes."""
    return [sign * FAR] * 3


CORNERS = {1: surprising(1), -1: surprising(-1), 0: [0.0, 0.0, 0.0]}


@pytest.mark.parametrize("length", LENGTHS)
def test_all_corners_of_a_record_and_the_most_that_it_moves_the_scatter(length):
    """Enumerated in fractions: the sum S of n scores in -1, 0, 1 becomes S', and S^2 / (2 n) moves."""
    moved = most = largest = 0
    for ours, theirs, others in product((1, 0, -1), (1, 0, -1), range(-(length - 1), length, 2)):
        shared = [CORNERS[1]] * ((length - 1 + others) // 2) + [CORNERS[-1]] * ((length - 1 - others) // 2)
        sums = [
            step_sums(AXES, step(False, NOWHERE), False, True, ballots([CORNERS[one], *shared]))[[0, 3]]
            for one in (ours, theirs)
        ]
        exact = [Fraction((one + others) ** 2, 2 * length) for one in (ours, theirs)]
        assert [s.tolist() for s in sums] == [
            [(one + others) * SCORE_STEPS, int(square * SCORE_STEPS)]
            for one, square in zip((ours, theirs), exact, strict=True)
        ]
        difference = np.abs(sums[0] - sums[1])
        moved, most = max(moved, int(difference[0])), max(most, int(difference[1]))
        largest = max(largest, abs(exact[0] - exact[1]))
    assert moved == SENSITIVITY  # the bound is reached
    assert largest == (Fraction(2 * (length - 1), length) if length > 1 else Fraction(1, 2)) < 2
    assert abs(most - largest * SCORE_STEPS) < 1
    assert most <= SENSITIVITY


@pytest.mark.parametrize("length", LENGTHS)
def test_the_sensitivity_is_reached_by_a_voter(length):
    left, right = (all_sums(True, ballots([CORNERS[sign]] * length)) for sign in (1, -1))
    apart = np.abs(left - right)
    assert apart[0] == SENSITIVITY  # her mean, in the first step
    assert apart[10] == SENSITIVITY  # her mean score, in a later one
    zero, far = (all_sums(True, ballots([record] * length)) for record in (CORNERS[0], [FAR, FAR, FAR]))
    assert (np.abs(zero - far)[4:10] == SENSITIVITY).all()  # mean squares: none, or beyond reach
    assert np.abs(zero - left)[13] == SENSITIVITY  # the mean of the squares of her scores
    # One over the length of her ballot is between 0 and 1: the further apart, the longer the other ballot.
    lengths = [all_sums(True, ballots([CORNERS[0]] * n))[3] for n in (1, 4 * length)]
    assert lengths == [SCORE_STEPS, int((Fraction(2, 4 * length) - 1) * SCORE_STEPS)]


def crowd(lengths, seed=5):
    rng = np.random.default_rng(seed)
    return [rng.normal(0, 1.3, (n, 3)) for n in lengths]


def clipped(values):
    return np.clip(values, -1, 1)


def record_scores(at, x):
    """Score each record by the formulas of the probit, from scipy, in units of the clips."""
    margins = x @ at.mixed_start
    ours, theirs = norm.pdf(margins) / norm.cdf(margins), norm.pdf(margins) / norm.sf(margins)
    larger = np.maximum(ours, theirs)[:, None]
    return np.clip(x * larger, -at.instrument_clips, at.instrument_clips) * ours[:, None] / larger / at.clips


VARIED = crowd([1, 2, 13, 4, 1, 7] * 5)
UNITS = {True: len(VARIED), False: sum(map(len, VARIED))}


@pytest.mark.parametrize("by_voter", [True, False])
def test_first_sums_against_numpy(by_voter):
    clip = 0.5
    if by_voter:
        means = np.array([x.mean(axis=0) for x in VARIED])
        lengths = [2 / len(x) - 1 for x in VARIED]
        squares = [2 * np.minimum(x**2 / SQUARE_REACH, 1).mean(axis=0) - 1 for x in VARIED]
        expected = np.concatenate([clipped(means / clip).sum(axis=0), [np.sum(lengths)], np.sum(squares, axis=0)])
    else:
        x = np.concatenate(VARIED)
        squares = 2 * np.minimum(x**2 / SQUARE_REACH, 1) - 1
        expected = np.concatenate([clipped(x / clip).sum(axis=0), squares.sum(axis=0)])
    crowd = ballots(*VARIED)
    sums = np.concatenate([first_sums(AXES, clip, by_voter, by_voter, crowd), square_sums(AXES, by_voter, crowd)])
    # Every unit is rounded by less than a step.
    assert np.abs(sums - expected * SCORE_STEPS).max() < UNITS[by_voter]
    means = first_sums(AXES, clip, by_voter, False, crowd)
    assert np.array_equal(means, sums[:3])


@pytest.mark.parametrize("by_voter", [True, False])
def test_step_sums_against_numpy(by_voter):
    at = step(by_voter)
    scores = [record_scores(at, x) for x in VARIED]
    if by_voter:
        means = clipped(np.array([s.mean(axis=0) for s in scores]))
        expected, scatter = means.sum(axis=0), (2 * (means**2).mean(axis=1) - 1).sum()
    else:
        expected = clipped(np.concatenate(scores)).sum(axis=0)
        scatter = np.sum([(clipped(s).sum(axis=0) ** 2).mean() / (2 * len(s)) for s in scores])
    sums = step_sums(AXES, at, by_voter, True, ballots(*VARIED))
    # Units are rounded by less than a step; squares, whose derivative is at most 4 (or 1 for each record), once more.
    assert np.abs(sums[:3] - expected * SCORE_STEPS).max() < UNITS[by_voter]
    assert abs(sums[3] - scatter * SCORE_STEPS) < 5 * UNITS[by_voter]
    assert np.array_equal(step_sums(AXES, at, by_voter, False, ballots(*VARIED)), sums[:3])


@pytest.mark.parametrize("by_voter", [True, False])
def test_batches_in_any_order_give_the_same_bits(by_voter):
    whole = next(simulated_batches(MACHINE, 40, np.random.default_rng(3)))
    design = public_design(MACHINE)
    at = ScoringStep.at(np.full(9, 0.2), design.sample.head(2000), SCATTER if by_voter else None, 3.0)

    def sums(some):
        first = first_sums(design.mixed_basis, 0.3, by_voter, by_voter, some)
        second = step_sums(design.mixed_basis, at, by_voter, True, some)
        return np.concatenate([first, square_sums(design.basis, by_voter, some), second])

    shuffled = whole.take(np.random.default_rng(4).permutation(40))
    parts = [shuffled[s] for s in (slice(33, 40), slice(0, 7), slice(7, 33))]
    assert np.array_equal(sum(map(sums, parts)), sums(whole))


@given(st.lists(st.integers(-9, 9), min_size=4, max_size=4).map(np.array))
def test_the_square_between_two_axes_is_half_the_sum_of_their_squares_plus_their_product(x):
    along = x @ square_directions(4, True)
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    assert along[:4].tolist() == x.tolist()
    assert np.square(along[4:]) == pytest.approx([(x[i] ** 2 + x[j] ** 2) / 2 + x[i] * x[j] for i, j in pairs])
    assert np.square(square_directions(4, True)).sum(axis=0) == pytest.approx(np.ones(10))
