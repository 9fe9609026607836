"""A dilemma asked twice: exact laws of what leaves, a share that is right, a second answer that is no record."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from crowdveil.ballots.ballots import Ballots, resampled
from crowdveil.errors import CrowdveilError, Refusal
from crowdveil.privacy.epsilon import Epsilon, Epsilons, PrivacyMeasure
from crowdveil.privacy.guarantee import paradigm
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.registry import CENTRAL, DISTRIBUTED, PURE, central, distributed, mechanism_name
from crowdveil.privacy.mechanisms.reliability import (
    ONE_IN,
    alike_bits,
    answered_alike,
    counted_reliability,
    reported_reliability,
)
from crowdveil.privacy.mechanisms.shares import STEPS, BitSums, NoisyShare
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.protocol.report import Terms, check_report, read_reports, write_reports
from crowdveil.publish.release import preview, release_for_experiments
from crowdveil.releases import release_from_dict
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study, synthetic_study
from scripted_noise import EveryOutcome, RecordingNoise

pytestmark = pytest.mark.usefixtures("few_crowds")

Q = Fraction(1, 3)
"""exp(-epsilon): epsilon = ln 3."""
SMALL = replace(synthetic_study(2, 2), repeat=True)
KIDNEY = replace(load_study("kidney"), repeat=True)


def ballot(alike, copies=1):
    """One voter's answers, so often."""
    shown = np.array([[1.0, -0.5], [-2.0, 1.0]])
    one = Ballots(SMALL, np.array([0, 2]), shown, np.array([1, -1], np.int8), alike=np.array([alike], np.int8))
    return resampled(one, np.zeros(copies, np.int64))


def crowd_of(voters, alike=0.9, seed=3):
    (drawn,) = simulated_batches(KIDNEY, voters, np.random.default_rng(seed), alike=alike)
    return drawn


@pytest.fixture(scope="module")
def crowd():
    return crowd_of(1500)


def law_of_the_bit(alike):
    """P(bit = 1) of one voter's report about reliability."""
    noise = EveryOutcome(["toss"], Q, {})
    bits = alike_bits(ballot(alike, noise.rows), Epsilons.same(1, noise.rows), noise)
    return sum((p for p, bit in zip(noise.probabilities, bits.tolist(), strict=True) if bit == 1), Fraction(0))


def test_the_bit_is_exactly_epsilon_private():
    yes, no = law_of_the_bit(1), law_of_the_bit(-1)
    assert (yes, no) == (1 / (1 + Q), Q / (1 + Q))
    assert max(yes / no, (1 - no) / (1 - yes)) == 1 / Q


def test_one_voter_moves_the_count_by_as_much_as_the_noise_covers():
    moved = int(answered_alike(ballot(1))[0]) - int(answered_alike(ballot(-1))[0])
    noise, settings = RecordingNoise(), MechanismSettings(KIDNEY, 2.0)
    mechanism = central("voter-score", KIDNEY)
    mechanism.release(mechanism.measure(crowd_of(30), settings, Epsilon(1)), settings, Epsilon(1), noise)
    assert moved == STEPS
    assert noise.asked[-1] == ("cube", STEPS, [1_000_000 // ONE_IN], 1)


@pytest.mark.parametrize(
    ("name", "third"),
    [(name, None) for name in CENTRAL if name in PURE]
    + [("voter-score", "Toss a coin"), ("pooled-choices", "Toss a coin")],
)
def test_a_central_budget_is_split_and_never_exceeded(name, third):
    study = replace(KIDNEY, indifference=third)
    (drawn,) = simulated_batches(study, 40, np.random.default_rng(1))
    noise, settings = RecordingNoise(), MechanismSettings(study, 2.0)
    mechanism = central(name, study)
    mechanism.release(mechanism.measure(drawn, settings, Epsilon(1)), settings, Epsilon(1), noise)
    spent = [micro for _, _, (micro,), _ in noise.asked]
    assert spent[-1] == 100_000
    assert sum(spent) == 1_000_000


def test_the_split_is_shown_before_it_is_spent(crowd):
    assert preview(crowd, "vlcp", epsilon=2).as_dict()["split"] == {"preference": 1.8, "reliability": 0.2}
    assert preview(crowd, "vldp", epsilon=2).as_dict()["split"] == {"preference": 0.9, "reliability": 0.1}
    (plain,) = simulated_batches("kidney", 40, np.random.default_rng(1))
    assert "split" not in preview(plain, "vlcp", epsilon=2).as_dict()


@pytest.mark.parametrize("name", ["vlcp", "rlcp", "alcp", "vldp", "rldp", "aldp"])
def test_every_paradigm_tells_the_share_who_answer_alike(crowd, name):
    made = release_for_experiments(crowd, name, epsilon=3, seed=4)
    found = made.reliability
    assert found.low <= 0.9 <= found.high
    assert abs(found.share - np.mean(crowd.alike == 1)) < (0.02 if name.endswith("cp") else 0.2)
    assert release_from_dict(made.as_dict(), allow_experiment=True).reliability == found


@pytest.mark.parametrize("name", PURE)
def test_the_second_answer_changes_nothing_but_the_reliability(crowd, name):
    others = replace(crowd, alike=-crowd.alike)
    one, other = (
        release_for_experiments(ballots, PURE[name].paradigms[0], epsilon=1, seed=4, mechanism=name)
        for ballots in (crowd[:300], others[:300])
    )
    assert one.parameter.tolist() == other.parameter.tolist()
    assert one.reliability.share > other.reliability.share


def test_a_declared_repeat_counts_in_the_total(crowd):
    (plain,) = simulated_batches("kidney", 40, np.random.default_rng(1))
    assert preview(plain, "alcp", epsilon=1).charge.records_per_voter == plain.study.drawing.dilemmas
    assert preview(crowd, "alcp", epsilon=1).charge.records_per_voter == KIDNEY.drawing.dilemmas + 1


@pytest.mark.parametrize(("seen", "voters", "epsilon"), [(7.3, 10, 1), (10.4, 10, 0.3), (181.0, 200, 0.1), (-4, 50, 1)])
def test_the_interval_is_that_of_a_binomial_count_seen_through_noise(seen, voters, epsilon):
    share = NoisyShare(seen / voters, 0.1)
    found = counted_reliability(share, voters, Epsilon(epsilon))
    counts = np.arange(voters + 1)

    def at_least(rate):
        return stats.binom.pmf(counts, voters, rate) @ stats.laplace.sf(seen - counts, scale=1 / epsilon)

    if found.low > 0:
        assert at_least(found.low) == pytest.approx(0.025)
    else:
        assert at_least(0) >= 0.025 or seen <= 0
    if found.high < 1 and seen > 0:
        assert 1 - at_least(found.high) == pytest.approx(0.025)


def test_intervals_of_a_count_cover_as_often_as_they_say():
    """Over the draw of voters and noise, fixed by a seed."""
    rng = np.random.default_rng(1)
    for voters, rate, epsilon in [(20, 0.9, 0.2), (200, 0.95, 0.1), (200, 0.6, 1)]:
        seen = rng.binomial(voters, rate, 120) + rng.laplace(0, 1 / epsilon, 120)
        found = [counted_reliability(NoisyShare(one / voters, 0.1), voters, Epsilon(epsilon)) for one in seen]
        assert np.mean([one.low <= rate <= one.high for one in found]) >= 0.91  # 120 of them: within two deviations


@pytest.mark.parametrize(
    ("voters", "rate", "epsilon"), [(8, 0.9, 1), (100, 0.95, 1), (100, 0.6, 4), (30, 0.9, 8), (400, 0.9, 3)]
)
def test_intervals_of_bits_cover_as_often_as_they_say(voters, rate, epsilon):
    """Over every number of bits that may say yes."""
    kept = 1 / (1 + np.exp(-epsilon))
    yes = np.arange(voters + 1)
    sums = [BitSums({epsilon * 1_000_000: (voters, 2 * one - voters)}) for one in yes.tolist()]
    found = [reported_reliability(one.share(equal_votes=False)) for one in sums]
    covers = np.array([one.low <= rate <= one.high for one in found])
    covered = stats.binom.pmf(yes, voters, rate * kept + (1 - rate) * (1 - kept)) @ covers
    assert 0.93 <= covered <= 0.995


def test_bits_that_were_never_turned_over_give_the_interval_of_wilson():
    found = reported_reliability(BitSums({50_000_000: (40, 2 * 33 - 40)}).share(equal_votes=False))
    known = stats.binomtest(33, 40).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((known.low, known.high))
    assert found.deviation == pytest.approx(np.sqrt(33 / 40 * 7 / 40 / 40))


def test_without_a_bit_nothing_is_known():
    found = reported_reliability(NoisyShare(0.5, 1.0))
    assert (found.low, found.high) == (0, 1)


@pytest.mark.parametrize("name", [*DISTRIBUTED])
def test_reports_of_both_kinds_travel_and_come_back(name):
    voters = crowd_of(60)
    epsilons, settings = Epsilons.same(1, 60), MechanismSettings(KIDNEY, 2.0, drawn=True)
    mechanism = distributed(name, KIDNEY)
    made = mechanism.report(voters, settings, epsilons, BulkNoise())
    bodies = write_reports(name, KIDNEY, epsilons, made)
    terms = Terms(name, settings, [Epsilon(1)])
    for body in bodies:
        check_report(body, terms)
        assert (body["preference"] is None) != (body["alike"] is None)
    again = read_reports(bodies, terms)
    assert again.bits.tolist() == made.bits.tolist()
    assert again.rows().tolist() == made.rows().tolist()


def test_a_report_that_no_device_makes_is_refused():
    terms = Terms("one-bit", MechanismSettings(KIDNEY, 2.0, drawn=True), [Epsilon(1)])
    epsilons = Epsilons.same(1, 60)
    made = distributed("one-bit", KIDNEY).report(crowd_of(60), terms.settings, epsilons, BulkNoise())
    bodies = write_reports("one-bit", KIDNEY, epsilons, made)
    told = next(body for body in bodies if body["preference"] is not None)
    for change in ({"alike": 1}, {"preference": None, "alike": 2}, {"preference": None, "alike": True}):
        with pytest.raises(Refusal):
            check_report({**told, **change}, terms)


def test_a_rho_tells_no_reliability():
    with pytest.raises(CrowdveilError, match="asks one dilemma twice"):
        mechanism_name(paradigm("vlcp"), None, KIDNEY, Epsilons.same(1, 2), PrivacyMeasure.RHO)


def test_too_small_a_budget_cannot_be_split():
    with pytest.raises(CrowdveilError, match="too small to be shared between a preference and its reliability"):
        central("voter-score", KIDNEY).measure(crowd_of(5), MechanismSettings(KIDNEY, 2.0), Epsilon("0.0005"))
