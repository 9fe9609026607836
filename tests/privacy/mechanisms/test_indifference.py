"""A third answer beside a mechanism: exact laws of what leaves, shares and thresholds that are right, and refusals."""

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from crowdveil.ballots.ballots import Ballots, resampled
from crowdveil.errors import CrowdveilError, Refusal
from crowdveil.privacy.epsilon import Epsilon, Epsilons, PrivacyMeasure
from crowdveil.privacy.guarantee import paradigm
from crowdveil.privacy.mechanisms.indifference import BUDGET_ONE_IN, REPORTS_ONE_IN
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.randomised_response import ThreeWayResponse
from crowdveil.privacy.mechanisms.registry import (
    CENTRAL,
    DISTRIBUTED,
    PURE,
    THREE_ANSWERS,
    central,
    distributed,
    mechanism_name,
)
from crowdveil.privacy.mechanisms.shares import (
    STEPS,
    BitSums,
    indifference_bits,
    indifferent_by_record,
    indifferent_by_voter,
    noisy_share,
)
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.protocol.report import Terms, check_report, read_reports, write_reports
from crowdveil.publish.release import release_for_experiments
from crowdveil.releases import release_from_dict
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study, synthetic_study
from scripted_noise import EveryOutcome, RecordingNoise

pytestmark = pytest.mark.usefixtures("few_crowds")

Q = Fraction(1, 3)
"""exp(-epsilon): epsilon = ln 3."""
STUDY = replace(synthetic_study(2, 2), indifference="Toss a coin")
SHOWN = np.array([[1.0, -0.5], [-2.0, 1.0]])
ONE = Epsilons.same(1, 1)


def ballot(choices, copies=1):
    """One voter's answers, so often."""
    one = Ballots(STUDY, np.array([0, len(choices)]), SHOWN[: len(choices)], np.array(choices, np.int8))
    return resampled(one, np.zeros(copies, np.int64))


def law_of_the_bit(choices, odds_instead=None):
    """P(bit = 1) of one voter's report about indifference."""
    noise = EveryOutcome([len(choices), "toss"], Q, odds_instead or {})
    copies = ballot(choices, noise.rows)
    bits = indifference_bits(copies, Epsilons.same(1, noise.rows), noise)
    return sum((p for p, bit in zip(noise.probabilities, bits.tolist(), strict=True) if bit == 1), Fraction(0))


def test_the_bit_is_exactly_epsilon_private_for_the_whole_ballot():
    laws = {choices: law_of_the_bit(choices) for choices in [(1, 1), (-1, 1), (0, 1), (1, 0), (0, 0)]}
    assert laws[1, 1] == laws[-1, 1] == Q / (1 + Q)
    assert laws[0, 0] == 1 / (1 + Q)
    assert laws[0, 1] == laws[1, 0] == Fraction(1, 2)
    ratios = [a / b for p in laws.values() for r in laws.values() for a, b in [(p, r), (1 - p, 1 - r)]]
    assert max(ratios) == 1 / Q


def law_of_an_answer(truth):
    """The probability of each of three answers."""
    noise = EveryOutcome(["toss", 2], Q)
    copies = ballot([truth], noise.rows)
    reports = ThreeWayResponse().report(copies, MechanismSettings(STUDY, 2.0), Epsilons.same(1, noise.rows), noise)
    law = defaultdict(Fraction)
    for p, said in zip(noise.probabilities, reports.choices.tolist(), strict=True):
        law[said] += p
    return dict(law)


def test_an_answer_among_three_is_reported_e_to_the_epsilon_times_as_often_as_each_other():
    for truth in (-1, 0, 1):
        others = dict.fromkeys((-1, 0, 1), Q / (1 + 2 * Q))
        assert law_of_an_answer(truth) == {**others, truth: 1 / (1 + 2 * Q)}


def test_a_reported_dilemma_tells_nothing_of_the_answer():
    reports = [
        ThreeWayResponse().report(ballot(c), MechanismSettings(STUDY, 2.0), ONE, BulkNoise()) for c in ([1, -1], [0, 0])
    ]
    assert reports[0].dilemmas.tobytes() == reports[1].dilemmas.tobytes()
    assert (reports[0].dilemmas[:, 0] > 0).all()


def test_voters_add_their_own_share_and_records_themselves():
    crowd = Ballots(STUDY, np.array([0, 2, 3]), np.vstack([SHOWN, SHOWN[:1]]), np.array([0, 1, 0], np.int8))
    assert indifferent_by_voter(crowd).tolist() == [STEPS // 2 + STEPS]
    assert indifferent_by_record(crowd).tolist() == [2 * STEPS]


def test_one_unit_moves_a_sum_by_no_more_than_the_noise_covers():
    noise = RecordingNoise()
    noisy_share(0, 3, 3, Epsilon(1), noise)
    (asked,) = noise.asked
    assert asked == ("cube", STEPS, [1_000_000], 1)
    every = [[a, b] for a in (-1, 0, 1) for b in (-1, 0, 1)]
    by_voter = [int(indifferent_by_voter(ballot(choices))[0]) for choices in every]
    assert max(by_voter) - min(by_voter) <= STEPS
    by_record = [int(indifferent_by_record(ballot([choice]))[0]) for choice in (-1, 0, 1)]
    assert max(by_record) - min(by_record) <= STEPS


@pytest.mark.parametrize(("by", "effective"), [("vlcp", 24), ("rlcp", 60**2 / 420)])
def test_the_error_of_a_share_of_records_is_that_of_ballots_of_these_lengths(by, effective):
    """4 ballots of 10 records and 20 of 1: a mean of voters' own shares varies by 1 / 24, that of records by more."""
    counts = np.repeat([10, 1], [4, 20])
    whole = Ballots(
        STUDY, np.concatenate([[0], np.cumsum(counts)]), np.tile(SHOWN, (30, 1)), np.tile([0, 1], 30).astype(np.int8)
    )
    settings, epsilon = MechanismSettings(STUDY, 2.0), Epsilon(10)
    name = mechanism_name(paradigm(by), None, STUDY, ONE)
    mechanism = central(name, STUDY)
    measurement = mechanism.measure(whole, settings, epsilon)
    share = mechanism.release(measurement, settings, epsilon, RecordingNoise()).indifference
    units = 24 if by == "vlcp" else 60
    kept = (share.share * effective + 2) / (effective + 4)
    expected = 2 / (units * epsilon.value / BUDGET_ONE_IN) ** 2 + kept * (1 - kept) / effective
    assert share.share_deviation**2 == pytest.approx(expected)


@pytest.mark.parametrize("name", [name for name in THREE_ANSWERS if name in CENTRAL])
def test_a_central_budget_is_split_and_never_exceeded(name):
    noise, crowd = RecordingNoise(), indifferent_crowd(60)
    settings = MechanismSettings(crowd.study, 2.0)
    mechanism = central(name, crowd.study)
    mechanism.release(mechanism.measure(crowd, settings, Epsilon(1)), settings, Epsilon(1), noise)
    spent = [micro for kind, _, (micro,), _ in noise.asked]
    assert spent[-1] == 1_000_000 // BUDGET_ONE_IN
    assert sum(spent) == 1_000_000


def test_too_small_a_budget_cannot_be_split():
    with pytest.raises(CrowdveilError, match="too small to be shared"):
        central("voter-score", STUDY).measure(indifferent_crowd(5), MechanismSettings(STUDY, 2.0), Epsilon("0.0005"))


def indifferent_crowd(voters, tau=0.5, seed=3):
    """A crowd that answers by the threshold model, and in which nobody differs."""
    study = replace(load_study("kidney"), indifference="Toss a coin")
    (drawn,) = simulated_batches(study, voters, np.random.default_rng(seed), spread=0, tau=tau)
    return drawn


@pytest.fixture(scope="module")
def crowd():
    return indifferent_crowd(3000)


LEAN = np.array([0.25, 0.6, -0.15, 0.1, 0.2])


@pytest.mark.parametrize("name", ["vlcp", "rlcp", "alcp", "aldp"])
def test_preference_and_threshold_are_found_together(crowd, name):
    release = release_for_experiments(crowd, name, epsilon=3, seed=1)
    third = release.indifference
    assert third.low <= 0.5 <= third.high
    assert abs(third.tau - 0.5) < 0.05
    assert np.abs(release.parameter - LEAN).max() < 0.07
    exact = float((crowd.choices == 0).mean())
    assert abs(third.share - exact) < 4 * third.share_deviation


@pytest.mark.parametrize("name", ["vldp", "rldp"])
def test_a_fifth_of_the_reports_tells_the_threshold(crowd, name):
    release = release_for_experiments(crowd, name, epsilon=3, seed=1)
    third = release.indifference
    assert third.low <= 0.5 <= third.high
    about = release.facts["reports_about_indifference"]
    assert abs(about - 3000 / REPORTS_ONE_IN) < 5 * np.sqrt(3000 * 0.16)


def test_a_release_keeps_its_threshold_in_its_file(crowd):
    release = release_for_experiments(crowd, "vlcp", epsilon=1, seed=1)
    read = release_from_dict(release.as_dict(), allow_experiment=True)
    assert read.indifference == release.indifference
    assert read.digest == release.digest


def test_bits_of_several_epsilons_are_corrected_for_their_own_flips():
    sums = BitSums({1_000_000: (1000, 200), 3_000_000: (10, 6)})
    both = BitSums({1_000_000: (1000, 200)}) + BitSums({3_000_000: (10, 6)})
    assert both == sums
    alone = BitSums({1_000_000: (1000, 200)}).share(equal_votes=False)
    assert alone.value == pytest.approx((1 + 0.2 / np.tanh(0.5)) / 2)
    assert alone.deviation == pytest.approx(0.5 / np.tanh(0.5) / np.sqrt(1000))
    assert sums.share(equal_votes=False).deviation < alone.deviation


@pytest.mark.parametrize("name", [name for name in THREE_ANSWERS if name in DISTRIBUTED])
def test_reports_travel_and_come_back_as_they_were(name):
    crowd = indifferent_crowd(200)
    settings, epsilons = MechanismSettings(crowd.study, 2.0, drawn=True), Epsilons.same(1, crowd.voters)
    mechanism = distributed(name, crowd.study)
    made = mechanism.report(crowd, settings, epsilons, BulkNoise())
    bodies = write_reports(name, crowd.study, epsilons, made)
    terms = Terms(name, settings, [Epsilon(1)])
    for body in bodies:
        check_report(body, terms)
    assert np.array_equal(read_reports(bodies, terms).rows(), made.rows())
    whole = mechanism.aggregate([made], settings)
    halves = mechanism.aggregate([read_reports(bodies[:90], terms), read_reports(bodies[90:], terms)], settings)
    assert whole.indifference.tau == pytest.approx(halves.indifference.tau, abs=1e-9)


@pytest.mark.parametrize(
    "change",
    [
        {"indifferent": 0},
        {"indifferent": 2},
        {"indifferent": True},
        {"indifferent": None},
        {"preference": {"bits": []}},
    ],
)
def test_reports_that_no_device_makes_are_refused(change):
    study = replace(load_study("kidney"), indifference="Toss a coin")
    body = {"format": "crowdveil report 1", "study": study.fingerprint, "mechanism": "one-bit"}
    body |= {"epsilon_micro": 1_000_000, "preference": None, "indifferent": 1}
    terms = Terms("one-bit", MechanismSettings(study, 2.0), [Epsilon(1)])
    check_report(body, terms)
    with pytest.raises(Refusal):
        check_report({**body, **change}, terms)


def test_mechanisms_that_cannot_carry_a_third_answer_are_refused_in_one_line():
    for name in sorted(set(PURE) - set(THREE_ANSWERS)):
        serving = paradigm(PURE[name].paradigms[0])
        with pytest.raises(CrowdveilError, match=f"third answer, which {name} cannot carry"):
            mechanism_name(serving, name, STUDY, ONE)
    with pytest.raises(CrowdveilError, match="no mechanism with a rho can carry"):
        mechanism_name(paradigm("vlcp"), None, STUDY, ONE, PrivacyMeasure.RHO)


def test_every_paradigm_has_a_recommended_mechanism_for_three_answers():
    for name in ("vlcp", "rlcp", "alcp", "vldp", "rldp", "aldp"):
        assert mechanism_name(paradigm(name), None, STUDY, ONE) in THREE_ANSWERS
