"""Effects that reports of bits and scores imply, by group: as if groups were known where they are, and wider else."""

from dataclasses import replace

import numpy as np
import pytest

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.guarantee import paradigm
from crowdveil.privacy.mechanisms.about_you import AboutYou
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.privacy.mechanisms.reports import LevelSums
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments
from crowdveil.protocol.report import Terms, write_reports
from crowdveil.publish.gather import ReportedGroups, check_implied, implied_from_reports, release_from_reports
from crowdveil.publish.implied_effects import implied_effects
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import synthetic_study

pytestmark = pytest.mark.usefixtures("few_crowds")

STUDY = synthetic_study(2, 6)
SETTINGS = MechanismSettings(STUDY, 2.0, drawn=True)
LEVEL = Epsilon(2)
OPTIONS = ("a", "b")
CROWDS = {"score": "rldp", "one-bit": "vldp"}


def reports(mechanism, voters, about, seed=1):
    """Voters who prefer more of the first feature, and of whom every third is in a group that prefers less."""
    noise = FloatNoiseForExperiments(seed)
    (drawn,) = simulated_batches(STUDY, voters, np.random.default_rng(seed))
    group = (np.arange(voters) % 3 == 0).astype(np.int64)
    wanted = np.where(np.repeat(group, drawn.counts) == 1, -1, 1) * drawn.dilemmas[:, 0]
    margins = wanted + np.random.default_rng([seed, 1]).standard_normal(drawn.records)
    ballots = replace(drawn, choices=np.where(margins > 0, 1, -1).astype(np.int8))
    epsilons = Epsilons.same(LEVEL, voters)
    made = DISTRIBUTED[mechanism].report(ballots, SETTINGS, epsilons, noise)
    said = AboutYou().report(group, 2, Epsilons.same(about, voters), noise)
    bodies = write_reports(mechanism, STUDY, epsilons, made)
    return [(body, {"team": OPTIONS[one]}) for body, one in zip(bodies, said.tolist(), strict=True)]


def terms(mechanism, study=STUDY):
    return Terms(mechanism, replace(SETTINGS, study=study), frozenset([LEVEL]))


@pytest.mark.parametrize("mechanism", CROWDS)
def test_groups_that_are_known_have_the_effects_of_their_own_reports(mechanism):
    """At epsilon 50 nobody reports another group than the true one."""
    given = reports(mechanism, 300, Epsilon(50))
    groups = ReportedGroups("team", OPTIONS, Epsilon(50))
    made = implied_from_reports([given[:100], given[100:]], paradigm(CROWDS[mechanism]), terms(mechanism), groups)
    assert [group.voters for group in made.effects.groups] == pytest.approx([200, 100])
    own = [body for body, about in given if about["team"] == "a"]
    alone = implied_effects(release_from_reports([own], CROWDS[mechanism], terms(mechanism)))
    for one, other in zip(made.effects.groups[0].effects, alone.groups[0].effects, strict=True):
        assert one.estimate == pytest.approx(other.estimate, abs=0.15 * (other.high - other.low))
        assert 0.9 <= (one.high - one.low) / (other.high - other.low) <= 1.35, "bounds allow for others who differ"


def test_groups_that_were_tossed_are_taken_apart_and_their_intervals_say_what_that_costs():
    """Seeded: two groups that prefer the opposite, heard through coin tosses at epsilon 1."""
    known, tossed = (
        implied_from_reports(
            [reports("score", 3000, about)], paradigm("rldp"), terms("score"), ReportedGroups("team", OPTIONS, about)
        ).effects
        for about in (Epsilon(50), Epsilon(1))
    )
    for group, other in zip(known.groups, tossed.groups, strict=True):
        assert other.voters == pytest.approx(group.voters, abs=250)
        for one, wider in zip(group.effects, other.effects, strict=True):
            assert wider.low <= one.estimate <= wider.high
            assert wider.high - wider.low > 1.2 * (one.high - one.low)
    strongest = max(known.differences, key=lambda one: abs(one.estimate))
    again = next(one for one in tossed.differences if one.factor == strongest.factor)
    assert again.told_apart
    assert again.estimate * strongest.estimate > 0
    # Errors of the two go against each other, so a difference is off by more than if they were independent.
    errors = [next(e for e in g.effects if e.factor == again.factor).standard_error for g in tossed.groups]
    assert (again.high - again.low) / 2 / 1.96 > 1.1 * np.hypot(*errors)


def test_everybody_needs_no_groups_and_costs_nothing():
    given = reports("score", 200, Epsilon(1))
    made = implied_from_reports([given], paradigm("rldp"), terms("score"))
    release = release_from_reports([[body for body, _ in given]], "rldp", terms("score"))
    assert made.effects == implied_effects(release)
    assert made.ledger is None
    assert made.facts["read_from"].startswith("the preference")


@pytest.mark.parametrize(
    ("mechanism", "indifference", "said"),
    [
        ("algorithm-2", None, "states no probabilities"),
        ("one-choice", None, "fitted one by one"),
        ("score", "Toss a coin", "allows a third answer"),
    ],
)
def test_what_reports_cannot_tell_of_groups_is_said(mechanism, indifference, said):
    with pytest.raises(CrowdveilError, match=said):
        check_implied(terms(mechanism, replace(STUDY, indifference=indifference)), grouped=True)


def test_mixed_sums_are_the_weighted_sums_of_their_parts():
    rows = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 4.0]])
    one, other = LevelSums.of(np.array([1, 1, 2]), rows), LevelSums.of(np.array([1, 2, 2]), -rows)
    mixed = LevelSums.mixed([one, other], [1.5, -0.5])
    assert mixed.levels.tolist() == [[1], [1], [2], [2]]
    weights = mixed.weights(np.ones(4), equal_votes=True) * 6
    expected = 1.5 * rows.sum(axis=0) + 0.5 * rows.sum(axis=0)
    assert mixed.mean(weights) == pytest.approx(expected)
    assert mixed.squares(weights) == pytest.approx((1.5**2 + 0.5**2) * rows.T @ rows)
    assert mixed.voters == round((3 * 1.5 - 3 * 0.5) ** 2 / (3 * 1.5**2 + 3 * 0.5**2))
