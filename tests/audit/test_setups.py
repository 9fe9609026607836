"""What the attacker sees is all that leaves, and what the noise is added to is what the mechanism says it is."""

from dataclasses import replace

import numpy as np
import pytest

from crowdveil.audit.mutants import SignedZeros
from crowdveil.audit.neighbours import Effort, worst_neighbours
from crowdveil.audit.setups import CentralSetup, DistributedSetup, LaterStepSetup, likelihood
from crowdveil.estimation.record_axes import record_axes
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.guarantee import paradigm
from crowdveil.privacy.mechanisms.fisher_scoring import PooledScore, VoterScore
from crowdveil.privacy.mechanisms.integer_scores import RECORD_CLIP
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.registry import CENTRAL, DISTRIBUTED
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.privacy.noise.experimental_noise import NoiseLaw, NoiseRequest
from crowdveil.study.bundled import synthetic_study

ONE = Epsilon("1")
STUDY = synthetic_study(3, 4)
SETTINGS = MechanismSettings(STUDY, 2.0, drawn=True)
RECORDS = np.array([[1.0, 0.5, -0.5], [0.0, 1.0, 2.0]])


def test_the_noise_asked_for_is_the_theorems():
    """Theorem 1: l1 sensitivity 2 of 2^30 steps each. Scores: 2 of 2^20 in the maximum norm."""
    first = CentralSetup(CENTRAL["algorithm-1"], paradigm("vlcp"), SETTINGS, ONE).request(RECORDS)
    assert (first.kind, first.sensitivity, first.epsilon, first.columns) == (NoiseLaw.LAPLACE, 2**31, Epsilon(1), 3)
    pooled = CentralSetup(CENTRAL["pooled-score"], paradigm("rlcp"), SETTINGS, ONE).request(RECORDS)
    assert (pooled.kind, pooled.sensitivity) == (NoiseLaw.CUBE, 2**21)


def test_the_exact_coefficients_of_algorithm_3_are_those_of_the_expansion():
    """ln Phi(t) = ln(1/2) + sqrt(2/pi) t - t^2 / pi, for records divided by the study's bound."""
    subject = DistributedSetup(DISTRIBUTED["algorithm-3"], paradigm("rldp"), SETTINGS, ONE)
    v = RECORDS / STUDY.record_bound
    rows, columns = np.triu_indices(3)
    square = -np.einsum("ri,rj->ij", v, v)[rows, columns] * np.where(rows == columns, 1, 2) / np.pi
    expected = np.concatenate([np.sqrt(2 / np.pi) * v.sum(axis=0), square])
    assert subject.exact(RECORDS) / 2**30 == pytest.approx(expected, abs=1e-4)


def test_all_coordinates_of_a_score_are_put_together_from_reports_that_tell_a_part():
    """A voter's records along the axes of records, each kept within the clip, added up by numpy."""
    subject = DistributedSetup(DISTRIBUTED["score"], paradigm("rldp"), SETTINGS, ONE)
    axes = record_axes(STUDY)
    along = np.floor(RECORDS * axes.design.units + 0.5) @ axes.axes
    assert subject.exact(RECORDS).tolist() == np.clip(along, -RECORD_CLIP, RECORD_CLIP).sum(axis=0).tolist()


def test_what_is_said_of_the_unknown_is_part_of_a_release():
    class CountsInDoubt(VoterScore):
        """Tells the number of records in what it says that it does not know."""

        def release(self, measurement, settings, loss, noise):
            made = super().release(measurement, settings, loss, noise)
            return replace(made, unknown=replace(made.unknown, doubt=made.unknown.doubt + measurement.records))

    honest = CentralSetup(CENTRAL["voter-score"], paradigm("vlcp"), SETTINGS, ONE)
    assert not replace(honest, mechanism=CountsInDoubt()).same_release(RECORDS, RECORDS[:1])


def test_a_later_step_stays_within_its_sensitivity_and_reaches_most_of_it():
    """Two records of one voter; a record in question with another that stays."""
    for name, by_voter in (("voter-score", True), ("pooled-score", False)):
        setup = LaterStepSetup(CentralSetup(CENTRAL[name], paradigm("rlcp"), SETTINGS, ONE), by_voter)
        assert setup.request(RECORDS) == NoiseRequest(NoiseLaw.CUBE, 2**21, ONE, 4)
        found = worst_neighbours(setup, Effort(2, 150))
        assert 0.5 < found.reach <= 1


def test_a_release_that_depends_on_more_than_the_noisy_sum_is_noticed():
    class CountsRecords(VoterScore):
        """Divides by the number of records, which voter-neighbours need not share."""

        def release(self, measurement, settings, loss, noise):
            made = super().release(measurement, settings, loss, noise)
            return replace(made, parameter=made.parameter / measurement.records)

    honest = CentralSetup(CENTRAL["voter-score"], paradigm("vlcp"), SETTINGS, ONE)
    assert honest.same_release(RECORDS, RECORDS[:1])
    assert not replace(honest, mechanism=CountsRecords()).same_release(RECORDS, RECORDS[:1])


def test_noise_that_depends_on_the_answers_is_noticed():
    class LocalSensitivity(PooledScore):
        """Less noise for a smaller sum."""

        def release(self, measurement, settings, loss, noise):
            drawn = noise.cube(1 + abs(int(measurement.total[0])), Epsilons.same(loss, 1), 3)
            return super().release(replace(measurement, total=measurement.total + drawn[0]), settings, loss, _Zero())

    class _Zero(BulkNoise):
        def cube(self, sensitivity, epsilons, columns):
            return np.zeros((len(epsilons), columns), np.int64)

    subject = CentralSetup(LocalSensitivity(), paradigm("rlcp"), SETTINGS, ONE)
    assert not subject.same_release(RECORDS, -RECORDS)


def test_the_sign_of_a_zero_is_part_of_what_leaves():
    subject = DistributedSetup(SignedZeros(), paradigm("aldp"), SETTINGS, ONE)
    record = np.array([[1.0, 0.0, 2.0]])
    left, right = (subject.sample(side, 10, BulkNoise()) for side in (record, 0.0 - record))
    public = slice(0, 5)  # epsilon, count and the bits of the dilemma
    assert not np.array_equal(left[:, public], right[:, public])
    assert (left[:, 3] != right[:, 3]).all()


def test_the_likelihood_is_at_most_the_distance_of_the_sides():
    subject = DistributedSetup(DISTRIBUTED["algorithm-2"], paradigm("vldp"), SETTINGS, ONE)
    score = likelihood(subject, NoiseLaw.LAPLACE, RECORDS, -RECORDS)
    scores = score(subject.sample(RECORDS, 500, BulkNoise()))
    apart = np.abs(subject.exact(RECORDS) - subject.exact(-RECORDS)).sum()
    assert np.abs(scores).max() <= apart
    assert scores.mean() > 0
