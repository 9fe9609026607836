"""The bits before noise are the same for any number of threads, however the crowd is cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crowdveil import ballots as ballots_module
from crowdveil.ballot_file import BallotFile, open_ballots, write_ballots
from crowdveil.ballots import Ballots, concatenate
from crowdveil.engines.choice import chosen_engine
from crowdveil.engines.crowd import Crowd, add_up, map_batches
from crowdveil.engines.local import LocalEngine
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.fit import fit_voters
from crowdveil.estimation.society import society
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.grid import to_steps
from crowdveil.privacy.mechanisms.mechanism import Settings
from crowdveil.privacy.mechanisms.registry import CENTRAL
from crowdveil.sources.simulated import simulate_crowd, synthetic_crowd
from crowdveil.study.bundled import load_study

STUDY = load_study("moral-machine")
VOTERS, BOUND, ONE = 700, 2.0, Epsilon.of_millionths(1_000_000)


@pytest.fixture(scope="module")
def crowd() -> Ballots:
    return concatenate(STUDY, list(simulate_crowd(STUDY, VOTERS, np.random.default_rng(5))))


def cut(crowd: Ballots, path: Path, per_piece: int) -> BallotFile:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ballots_module, "VOTERS_PER_BATCH", per_piece)
        write_ballots(path, crowd.study, [crowd], {})
    file = open_ballots(path)
    assert file.batch_count == -(-VOTERS // per_piece)
    return file


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("per_piece", [37, 256, VOTERS])
def test_neither_threads_nor_pieces_change_a_bit(tmp_path: Path, crowd: Ballots, threads: int, per_piece: int) -> None:
    pieces = Crowd(cut(crowd, tmp_path / "crowd", per_piece), LocalEngine(threads))
    settings = Settings(STUDY, BOUND)
    for mechanism in CENTRAL.values():
        whole, parts = (mechanism.measure(source, settings, ONE) for source in (crowd, pieces))
        assert parts.total.tolist() == whole.total.tolist()
        assert (parts.voters, parts.records) == (VOTERS, crowd.records)
    whole_society, society_of_parts = (society(source, BOUND) for source in (crowd, pieces))
    assert society_of_parts.parameter.tolist() == whole_society.parameter.tolist()
    assert society_of_parts.largest_gap == whole_society.largest_gap


def test_nor_do_they_change_estimates_without_a_bound(tmp_path: Path) -> None:
    crowd = synthetic_crowd(VOTERS, 60, 3, np.random.default_rng(1)).ballots
    pieces = Crowd(cut(crowd, tmp_path / "crowd", 60), LocalEngine(3))
    here, there = society(crowd, None), society(pieces, None)
    assert (there.voters, there.left_out) == (here.voters, here.left_out)
    assert there.voters > 0 < there.left_out
    assert there.parameter.tolist() == here.parameter.tolist()


def test_what_is_added_up_is_what_single_voters_add_up_to(tmp_path: Path, crowd: Ballots) -> None:
    pieces = Crowd(cut(crowd, tmp_path / "crowd", 100), LocalEngine(2))
    one_by_one = [fit_voters(crowd[i : i + 1], BOUND, threads=1).values[0] for i in range(VOTERS)]
    steps = sum(to_steps(value[None], BOUND)[0] for value in one_by_one)
    assert CENTRAL["algorithm-1"].measure(pieces, Settings(STUDY, BOUND), ONE).total.tolist() == steps.tolist()
    np.testing.assert_allclose(society(pieces, BOUND).parameter, np.mean(one_by_one, axis=0), rtol=0, atol=1e-14)


def test_a_piece_is_told_how_many_voters_come_before_it(tmp_path: Path, crowd: Ballots) -> None:
    file, told = cut(crowd, tmp_path / "crowd", 300), []
    pieces = Crowd(file, LocalEngine(3), told.append)
    assert list(map_batches(pieces, lambda ballots, before: (before, ballots.voters))) == [
        (0, 300),
        (300, 300),
        (600, 100),
    ]
    assert told == [300, 300, 100]
    assert [chunk.voters for chunk in pieces.batches()] == [300, 300, 100]
    assert told == [300, 300, 100] * 2


def test_results_come_in_order_and_a_failure_is_not_lost() -> None:
    assert list(LocalEngine(3).each(lambda number: number**2, 50)) == [number**2 for number in range(50)]

    def fail(number: int) -> int:
        if number == 7:
            raise CrowdveilError("this piece is damaged")
        return number

    with pytest.raises(CrowdveilError, match="this piece is damaged"):
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
