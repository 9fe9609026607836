"""The search: it finds the worst cases that are known, and never leaves the neighbouring relation."""

import math

import numpy as np
import pytest

from crowdveil.audit.neighbours import Effort, on_two_axes, worst_neighbours
from crowdveil.audit.setups import CentralSetup, DistributedSetup
from crowdveil.audit.targets import promises
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import paradigm
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.registry import CENTRAL, DISTRIBUTED
from crowdveil.study.bundled import synthetic_study

ONE = Epsilon("1")


def settings(features, **choices):
    study = synthetic_study(features, 4)
    return MechanismSettings(study, study.norm_bound, **choices)


def test_opposite_corners_of_the_ball_are_found():
    subject = DistributedSetup(DISTRIBUTED["algorithm-2"], paradigm("vldp"), settings(3), ONE)
    found = worst_neighbours(subject, Effort(2, 150))
    assert float(found.reach) == pytest.approx(1.0, abs=1e-6)
    assert found.reach <= 1


def test_of_two_axes_each_side_keeps_one():
    target = next(target for target in promises(ONE) if target.mechanism == "subset-selection")
    subject = target.subject(Effort(2, 150)).setup
    found = on_two_axes(subject, Effort(2, 150))
    left, right = subject.exact(found.left), subject.exact(found.right)
    assert float(found.reach) == pytest.approx(1.0, abs=1e-6)
    assert not np.any((np.abs(left) > 2**20) & (np.abs(right) > 2**20))


@pytest.mark.parametrize("features", [1, 2])
def test_algorithm_3_reaches_what_two_records_can_do(features):
    """d = 1: V = 1 against -1 moves the linear coefficient by 2 sqrt(2/pi); an enumeration of angles for d = 2."""
    angles = np.linspace(0, 2 * math.pi, 721)
    points = np.array([[1.0], [-1.0]]) if features == 1 else np.column_stack([np.cos(angles), np.sin(angles)])
    linear = math.sqrt(2 / math.pi) * points
    square = (points[:, :, None] * points[:, None, :]).reshape(len(points), -1) / math.pi
    vectors = np.concatenate([linear, square], axis=1)
    largest = max(np.abs(vectors - vector).sum(axis=1).max() for vector in vectors)

    subject = DistributedSetup(DISTRIBUTED["algorithm-3"], paradigm("rldp"), settings(features), ONE)
    found = worst_neighbours(subject, Effort(4, 400))
    asked = subject.request(found.left)
    assert float(found.reach) * asked.sensitivity / 2**30 == pytest.approx(largest, rel=0.01)


@pytest.mark.parametrize("name", ["pooled-score", "algorithm-1"])
def test_a_record_neighbour_differs_in_one_record(name):
    found = worst_neighbours(CentralSetup(CENTRAL[name], paradigm("rlcp"), settings(3), ONE), Effort(2, 60))
    assert found.left.shape == found.right.shape
    assert np.sum(np.any(found.left != found.right, axis=1)) == 1


def test_a_choice_neighbour_has_one_choice_turned_over():
    found = worst_neighbours(CentralSetup(CENTRAL["pooled-choices"], paradigm("alcp"), settings(3), ONE), Effort(2, 60))
    differs = np.any(found.left != found.right, axis=1)
    assert differs.sum() == 1
    assert np.array_equal(found.left[differs], -found.right[differs])


def test_records_stay_within_the_studys_ranges():
    found = worst_neighbours(CentralSetup(CENTRAL["voter-score"], paradigm("vlcp"), settings(3), ONE), Effort(2, 200))
    assert max(np.abs(found.left).max(), np.abs(found.right).max()) <= settings(3).study.reach.max()
