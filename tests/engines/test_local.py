"""The bits before noise are the same for any number of threads, however the crowd is cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crowdveil.ballots import ballots as ballots_module
from crowdveil.ballots.ballot_file import BallotFile, open_ballots, write_ballots
from crowdveil.ballots.ballots import Ballots, BallotSource, concatenate
from crowdveil.engines.batches import BatchedBallots, add_up, map_batches
from crowdveil.engines.engine import LocalEngine, chosen_engine
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.society import fit_voters, society
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.grid import to_steps
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.registry import CENTRAL, PURE
from crowdveil.sources.simulated import simulated_batches, synthetic_crowd
from crowdveil.study.bundled import load_study

STUDY = load_study("moral-machine")
VOTERS, BOUND, ONE = 700, 2.0, Epsilon.of_millionths(1_000_000)


@pytest.fixture(scope="module")
def crowd() -> Ballots:
    return concatenate(STUDY, list(simulated_batches(STUDY, VOTERS, np.random.default_rng(5))))


def cut(crowd: Ballots, path: Path, per_batch: int) -> BallotFile:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ballots_module, "VOTERS_PER_BATCH", per_batch)
        write_ballots(path, crowd.study, [crowd], {})
    file = open_ballots(path)
    assert file.batch_count == -(-VOTERS // per_batch)
    return file


def measurements(source: BallotSource) -> dict[str, Any]:
    settings, fitted = MechanismSettings(STUDY, BOUND), society(source, BOUND)
    measured = {name: mechanism.measure(source, settings, ONE) for name, mechanism in CENTRAL.items() if name in PURE}
    exact = {name: (m.total.tolist(), m.voters, m.records) for name, m in measured.items()}
    return exact | {"society": (fitted.parameter.tolist(), fitted.largest_gap)}


@pytest.fixture(scope="module")
def measured_whole(crowd: Ballots) -> dict[str, Any]:
    return measurements(crowd)


# What a thread count can change is the order; what the cut can change is which sums there are.
@pytest.mark.parametrize(("threads", "per_batch"), [(1, 37), (2, 256), (3, 37), (3, VOTERS)])
def test_neither_threads_nor_batches_change_a_bit(
    tmp_path: Path, crowd: Ballots, measured_whole: dict[str, Any], threads: int, per_batch: int
) -> None:
    batches = BatchedBallots(cut(crowd, tmp_path / "crowd", per_batch), LocalEngine(threads))
    assert measurements(batches) == measured_whole
    assert measured_whole["algorithm-1"][1:] == (VOTERS, crowd.records)


def test_nor_do_they_change_estimates_without_a_bound(tmp_path: Path) -> None:
    crowd = synthetic_crowd(VOTERS, 60, 3, np.random.default_rng(1)).ballots
    batches = BatchedBallots(cut(crowd, tmp_path / "crowd", 60), LocalEngine(3))
    here, there = society(crowd, None), society(batches, None)
    assert (there.voters, there.left_out) == (here.voters, here.left_out)
    assert there.voters > 0 < there.left_out
    assert there.parameter.tolist() == here.parameter.tolist()


def test_what_is_added_up_is_what_single_voters_add_up_to(tmp_path: Path, crowd: Ballots) -> None:
    batches = BatchedBallots(cut(crowd, tmp_path / "crowd", 100), LocalEngine(2))
    one_by_one = [fit_voters(crowd[i : i + 1], BOUND, threads=1).values[0] for i in range(VOTERS)]
    steps = sum(to_steps(value[None], BOUND)[0] for value in one_by_one)
    assert (
        CENTRAL["algorithm-1"].measure(batches, MechanismSettings(STUDY, BOUND), ONE).total.tolist() == steps.tolist()
    )
    np.testing.assert_allclose(society(batches, BOUND).parameter, np.mean(one_by_one, axis=0), rtol=0, atol=1e-14)


def test_a_batch_is_told_how_many_voters_come_before_it(tmp_path: Path, crowd: Ballots) -> None:
    file, told = cut(crowd, tmp_path / "crowd", 300), []
    batches = BatchedBallots(file, LocalEngine(3), told.append)
    assert list(map_batches(batches, lambda ballots, before: (before, ballots.voters))) == [
        (0, 300),
        (300, 300),
        (600, 100),
    ]
    assert told == [300, 300, 100]
    assert [batch.voters for batch in batches.batches()] == [300, 300, 100]
    assert told == [300, 300, 100] * 2


def test_results_come_in_order_and_a_failure_is_not_lost() -> None:
    assert list(LocalEngine(3).each(lambda number: number**2, 50)) == [number**2 for number in range(50)]

    def fail(number: int) -> int:
        if number == 7:
            raise CrowdveilError("this batch is damaged")
        return number

    with pytest.raises(CrowdveilError, match="this batch is damaged"):
        list(LocalEngine(2).each(fail, 20))


def test_a_crowd_that_can_only_be_walked_is_added_up_too(crowd: Ballots) -> None:
    class Walked:
        study, voters = crowd.study, crowd.voters

        def __init__(self, *ends: int) -> None:
            self.ends = ends

        def batches(self):
            start = 0
            for end in self.ends:
                yield crowd[start:end]
                start = end

    expected = crowd.differences.astype(np.int64).sum(axis=0).tolist()
    for ends in [(VOTERS,), (1, VOTERS), (10, 20, 30, 600, VOTERS)]:
        total = add_up(Walked(*ends), lambda ballots: ballots.differences.astype(np.int64).sum(axis=0))
        assert total.tolist() == expected


def test_an_engine_is_chosen_by_name() -> None:
    with chosen_engine("local") as engine:
        assert isinstance(engine, LocalEngine)
    with pytest.raises(CrowdveilError, match="no engine 'dask': use local or spark"), chosen_engine("dask"):
        pass
    with (
        pytest.raises(CrowdveilError, match="--master is for --engine spark"),
        chosen_engine("local", "spark://host:7077"),
    ):
        pass
