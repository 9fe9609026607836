"""Fisher scoring under noise: a public plan, noise of the whole epsilon and no more, and the pooled probit without."""

import math
import re
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.ballots.ballots import Ballots, resampled
from crowdveil.estimation.crowd_preference import crowd_preference
from crowdveil.estimation.design import public_design
from crowdveil.estimation.dilemma_moments import DESIGN_BOUND
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.mechanisms import fisher_scoring
from crowdveil.privacy.mechanisms.fisher_plan import FisherPlan
from crowdveil.privacy.mechanisms.fisher_scoring import PooledChoices, PooledScore, VoterScore
from crowdveil.privacy.mechanisms.fisher_sums import SENSITIVITY
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.sources.simulated import simulated_batches, synthetic_crowd
from crowdveil.study.bundled import load_study, synthetic_study
from scripted_noise import RecordingNoise

SYNTHETIC, MACHINE, KIDNEY = synthetic_study(3, 8), load_study("moral-machine"), load_study("kidney")
ALL = [VoterScore(), PooledScore(), PooledChoices()]
PAGE = (Path(__file__).parents[3] / "docs/mechanisms.md").read_text(encoding="utf-8")
every_mechanism = pytest.mark.parametrize("mechanism", ALL, ids=lambda m: m.name)


def released(mechanism, ballots, epsilon):
    settings, noise = MechanismSettings(ballots.study, 2.0), RecordingNoise()
    estimate = mechanism.release(mechanism.measure(ballots, settings, epsilon), settings, epsilon, noise)
    return estimate, noise.asked


def crowd(voters, seed=1):
    return synthetic_crowd(voters, 8, 3, np.random.default_rng(seed)).ballots


@given(
    st.integers(100, 50_000_000),
    st.integers(1, 10**8),
    st.sampled_from([SYNTHETIC, MACHINE, KIDNEY]),
    st.booleans(),
    st.booleans(),
)
def test_the_steps_share_the_whole_epsilon_exactly(micro, units, study, by_voter, design_known):
    epsilon = Epsilon.of_millionths(micro)
    plan = FisherPlan.of(public_design(study), units, epsilon, by_voter=by_voter, design_known=design_known)
    shares = [share.micro for share in plan.epsilons]
    assert sum(shares) == micro
    assert min(shares) > 0
    assert 1 <= plan.steps <= 2
    assert 0 < plan.first_clip(study) <= 3
    assert not (plan.steps == 1 and (plan.rest or plan.spread))
    # What is bought follows from the mechanism: lengths where they are secret, and no design that is known.
    assert by_voter or not plan.lengths
    assert not (plan.squares and design_known)


@pytest.mark.usefixtures("few_crowds_here")
@every_mechanism
@pytest.mark.parametrize("voters", [2, 12, 40, 120, 400])
@pytest.mark.parametrize("epsilon", ["0.3", "1", "7.000001"])
def test_noise_is_asked_for_once_a_sum_with_the_sensitivity_and_parts_of_the_whole_epsilon(mechanism, voters, epsilon):
    ballots, epsilon = crowd(voters), Epsilon(epsilon)
    _, asked = released(mechanism, ballots, epsilon)
    assert {(kind, sensitivity) for kind, sensitivity, _, _ in asked} == {("cube", SENSITIVITY)}
    assert all(len(epsilons) == 1 for _, _, epsilons, _ in asked)
    assert sum(micro for _, _, (micro,), _ in asked) == epsilon.micro


def test_there_are_crowds_for_every_number_of_steps():
    counts = {released(VoterScore(), crowd(voters), Epsilon(1))[0].facts["steps"] for voters in (2, 120, 1000)}
    assert counts == {1, 2}


@pytest.mark.parametrize(
    ("study", "loudness", "design_known", "steps"),
    [
        # Of known dilemmas, and with no direction left out by factors, a second step has a clip to correct and no more.
        (SYNTHETIC, 150, True, 1),
        (SYNTHETIC, 301, True, 2),
        (KIDNEY, 150, False, 2),
        # Before the remaining directions are looked along (1,150 records times epsilon), and after.
        (MACHINE, 125, True, 1),
        (MACHINE, 150, True, 2),
    ],
)
def test_records_are_looked_at_twice_where_there_is_enough_to_correct(study, loudness, design_known, steps):
    design = public_design(study)
    plan = FisherPlan.of(design, loudness * design.directions, Epsilon(1), by_voter=False, design_known=design_known)
    assert plan.steps == steps
    assert (plan.rest is not None) == (steps == 2 and study is MACHINE)


def test_products_are_measured_from_where_the_docs_say():
    """For three, five and nine factors: where the noise of m squares, times the root of k, is three tenths of them.

    Cube noise on m means of N voters at epsilon e has the variance (2 / (N e))^2 (m + 1) (m + 2) / 3; a square is read
    as twice its share of 4, and gets 0.3 x 0.4 of epsilon.
    """
    (told,) = re.findall(r"from (\d+) on \(three factors\), (\d+) \(five\), (\d+) \(nine\)", PAGE)
    for study, stated in zip((SYNTHETIC, KIDNEY, MACHINE), map(int, told), strict=True):
        design = public_design(study)
        k = design.directions
        m = k * (k + 1) // 2
        least = 2 * 2 / 0.12 * np.sqrt((m + 1) * (m + 2) / 3) * np.sqrt(k) / 0.3
        assert least / k == pytest.approx(stated, abs=1)
        before, after = (
            FisherPlan.of(design, int(units), Epsilon(1), by_voter=True, design_known=False)
            for units in (0.995 * least, 1.005 * least)
        )
        assert (before.products, after.products) == (False, True)


@every_mechanism
def test_the_least_epsilon_is_not_split(mechanism):
    """A crowd that is loud enough for several steps, at an epsilon of which no step may have a part."""
    ballots = resampled(crowd(40), np.arange(400_000 if mechanism.by_voter else 40_000) % 40)
    estimate, asked = released(mechanism, ballots, Epsilon("0.0001"))
    assert [epsilons for _, _, epsilons, _ in asked] == [[100]]
    assert np.isfinite(estimate.parameter).all()


def replaced(ballots, records):
    """The same crowd with other records of its first voter."""
    rest = ballots.differences[ballots.offsets[1] :]
    offsets = np.concatenate([[0], ballots.offsets[1:] - ballots.offsets[1] + len(records)])
    return Ballots.from_differences(ballots.study, offsets, np.concatenate([records, rest]))


@pytest.mark.usefixtures("few_crowds_here")
@pytest.mark.parametrize("voters", [2, 40, 120, 1000])
@pytest.mark.parametrize("records", [1, 8, 200])
def test_a_neighbour_has_the_same_plan(voters, records):
    """Whatever a voter says and however much of it: the noise asked for, and what is said of the steps."""
    ballots = crowd(voters)
    other = replaced(ballots, np.full((records, 3), 50.0))
    (one, asked), (two, asked_too) = (released(VoterScore(), b, Epsilon(1)) for b in (ballots, other))
    assert asked == asked_too
    assert one.facts == two.facts
    # The law of the noise that is told is scaled by what was released; its public parts are the same.
    assert [part.scale for part in one.noise.parts] == [part.scale for part in two.noise.parts]


@pytest.mark.usefixtures("few_crowds_here")
@pytest.mark.parametrize("mechanism", ALL[1:], ids=lambda m: m.name)
@pytest.mark.parametrize("voters", [2, 10, 120])
def test_a_neighbour_by_record_has_the_same_plan(mechanism, voters):
    ballots = crowd(voters)
    turned = ballots.differences[:8].copy()
    turned[0] *= -1
    (one, asked), (two, asked_too) = (released(mechanism, b, Epsilon(1)) for b in (ballots, replaced(ballots, turned)))
    assert asked == asked_too
    assert one.facts == two.facts


def test_dilemmas_that_are_public_are_looked_at_without_their_choices():
    ballots = crowd(20)
    settings, flipped = MechanismSettings(ballots.study, 2.0), replaced(ballots, -ballots.differences[:8])
    designs = [PooledChoices().measure(b, settings, Epsilon(1)).design for b in (ballots, flipped)]
    assert designs[0].differences.tobytes() == designs[1].differences.tobytes()
    assert len(designs[0].differences) == ballots.records


@every_mechanism
@pytest.mark.parametrize("voters", [2, 12, 400])
def test_the_same_bits_whatever_the_batches(mechanism, voters):
    whole = crowd(voters)

    class Cut:
        study, voters = whole.study, whole.voters

        def batches(self):
            yield whole[0:1]
            yield whole[1 : whole.voters]

    settings = MechanismSettings(whole.study, 2.0)
    estimates = [
        mechanism.release(mechanism.measure(source, settings, Epsilon(3)), settings, Epsilon(3), RecordingNoise())
        for source in (whole, Cut())
    ]
    assert estimates[0].parameter.tobytes() == estimates[1].parameter.tobytes()
    assert estimates[0].unknown.as_dict() == estimates[1].unknown.as_dict()


@lru_cache
def thinned(study, voters, answers):
    """Voters who answered only some of their dilemmas, drawn at random, and their pooled probit.

    All answered as many: so voters count equally, and so do records.
    """
    whole = next(simulated_batches(study, voters, np.random.default_rng(1)))
    order = np.random.default_rng(2).random((voters, study.drawing.dilemmas)).argsort(axis=1)[:, :answers]
    places = (whole.offsets[:-1, None] + order).ravel()
    ballots = Ballots.from_differences(study, np.arange(voters + 1) * order.shape[1], whole.differences[places])
    return ballots, crowd_preference(ballots).preference


VOTERS = 4000
WITHIN = {"voter-score": {1: 0.1, 4: 0.05, 13: 0.04}, "pooled": {1: 0.08, 4: 0.04, 13: 0.03}}
"""How far margins may be from the pooled probit's, in parts of their size (both root mean squares over dilemmas).

What remains without noise is the prior's pull, against the sampling error it allows for (4,000 answers tell 23 features
to about 0.19 of the size of margins), the sample of dilemmas, and what is corrected for a clip that does not bind.
"""


@every_mechanism
@pytest.mark.parametrize("answers", [1, 4, 13])
@pytest.mark.parametrize("study", [MACHINE, KIDNEY], ids=lambda s: s.name)
def test_without_noise_it_is_the_pooled_probit(mechanism, answers, study):
    ballots, exact = thinned(study, VOTERS, answers)
    estimate, _ = released(mechanism, ballots, Epsilon(50))
    assert estimate.facts["steps"] == 2
    dilemmas = public_design(study).differences[:5000]
    size, off = (np.sqrt(np.mean((dilemmas @ b) ** 2)) for b in (exact, estimate.parameter - exact))
    assert off < WITHIN["voter-score" if mechanism.by_voter else "pooled"][answers] * size


def test_expected_noise_is_of_the_size_that_is_told_of_an_indifferent_crowd():
    """Of coin tosses the preference is zero, where the expected noise is computed: steps start near it."""
    rng = np.random.default_rng(8)
    whole = next(simulated_batches(KIDNEY, 2000, rng))
    coins = rng.choice([-1.0, 1.0], whole.records)
    ballots = Ballots.from_differences(KIDNEY, whole.offsets, whole.differences * coins[:, None])
    for mechanism in ALL:
        estimate, _ = released(mechanism, ballots, Epsilon(1))
        expected = mechanism.expected_noise(MechanismSettings(KIDNEY, 2.0), 2000, Epsilon(1))
        ratio = np.asarray(estimate.noise.half_widths(0.95)) / np.asarray(expected.half_widths(0.95))
        assert ratio == pytest.approx(np.ones(KIDNEY.dimension), abs=0.35)


@pytest.mark.parametrize(("mechanism", "voters"), [(PooledScore(), 500), (VoterScore(), 3000)])
def test_a_factor_that_hardly_any_dilemma_is_about_is_not_known(mechanism, voters):
    """Divided by the least mean square that is read, its preference would be shrunk toward zero, with a narrow bar."""
    ballots = next(simulated_batches(KIDNEY, voters, np.random.default_rng(5)))
    for asked, known in ((0.02, False), (1.0, True)):
        rows = ballots.differences.copy()
        rows[np.random.default_rng(6).random(len(rows)) > asked, 0] = 0
        file = Ballots.from_differences(KIDNEY, ballots.offsets, rows)
        estimate, _ = released(mechanism, file, Epsilon(3))
        x = KIDNEY.factor_map[0]
        low, high = estimate.unknown.interval(x, estimate.noise.half_width(x, 0.95), 0.95, left_out=False)
        assert ((high - low) / 2 < estimate.unknown.whole_range(x)) == known


def test_what_is_usual_of_files_says_nothing_of_a_mean_square_that_is_not_usual():
    """Of dilemmas with a public mean square of 1 / 4, told to a tenth of it: usual ones are shrunk, as a normal prior
    of deviation 0.3 says. One that is eight tenths too low, eight deviations, is not, and bars allow for two."""
    along, noise = np.ones((10, 3)), 0.1 / 4
    ratios, unsure = fisher_scoring._ratios(along, np.array([0.7, 1.2, 0.2]) / 4, noise**2)
    kept = 0.3**2 / (0.3**2 + 0.1**2)
    assert ratios == pytest.approx([1 - 0.3 * kept, 1 + 0.2 * kept, 0.2])
    posterior = 1 / math.sqrt(1 / 0.3**2 + 1 / 0.1**2)
    assert unsure[:2] * ratios[:2] == pytest.approx(posterior)
    assert unsure[2] * ratios[2] == pytest.approx(0.1)
    sample = public_design(SYNTHETIC).sample
    public = np.minimum(np.square(sample.along) / 4, 1).mean(axis=0)
    told = fisher_scoring._moments(sample, public * [0.7, 1.2, 0.2], float((0.1 * public).min() ** 2), False)
    assert told.bound.tolist() == [DESIGN_BOUND, DESIGN_BOUND, 2]


def test_by_records_a_longer_ballot_weighs_more_and_by_voters_it_does_not():
    """Half of the voters answered once, half eight times, and they want opposite things."""
    one = next(simulated_batches(SYNTHETIC, 600, np.random.default_rng(4), spread=0.0))
    x = one.differences * np.where(one.differences[:, :1] < 0, -1, 1)  # all want more of the first feature
    short, long = x[:300], -x[300 : 300 + 8 * 300]
    offsets = np.concatenate([np.arange(300), 300 + 8 * np.arange(301)])
    ballots = Ballots.from_differences(SYNTHETIC, offsets, np.concatenate([short, long]))
    by_voter, by_record = (released(m, ballots, Epsilon(50))[0].parameter[0] for m in ALL[:2])
    assert by_record < -0.3
    assert abs(by_voter) < 0.15
