from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowdveil import ballots as module
from crowdveil.ballots import Ballots, census, concatenate, open_ballots, smallest_type, write_ballots
from crowdveil.errors import CrowdveilError
from crowdveil.study.bundled import load_study
from crowdveil.study.study import Drawing, Feature, Study

STUDY = Study(
    "toy",
    "Toy",
    "Which?",
    (Feature("a", "a", 0, 5, levels=(0, 1)), Feature("b", "b", 0, 5, levels=(0, 1))),
    Drawing("independent", 2),
)


def crowd(counts: list[int], names: list[str] | None = None, kind: type = np.int8, seed: int = 1) -> Ballots:
    random = np.random.default_rng(seed)
    return Ballots(
        STUDY,
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        random.integers(-5, 6, (sum(counts), 2)).astype(kind),
        None if names is None else pa.array(names, pa.string()),
    )


def same(one: Ballots, other: Ballots) -> bool:
    return (
        one.study == other.study
        and one.differences.dtype == other.differences.dtype
        and np.array_equal(one.offsets, other.offsets)
        and np.array_equal(one.differences, other.differences)
        and one.voter_names() == other.voter_names()
    )


def test_a_crowd_is_counted() -> None:
    ballots = crowd([2, 1, 3])
    assert (ballots.voters, ballots.records) == (3, 6)
    assert ballots.counts.tolist() == [2, 1, 3]
    assert ballots.voter_names() == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("offsets", "differences", "message"),
    [
        ([0, 1], np.zeros((1, 3)), "has 2 features"),
        ([0, 1], np.zeros(2), "has 2 features"),
        ([0, 2], np.zeros((1, 2)), "offsets"),
        ([1, 2], np.zeros((2, 2)), "offsets"),
        ([], np.zeros((0, 2)), "offsets"),
        ([0, 1, 1], np.zeros((1, 2)), "1 of 2 voters have no records"),
        ([0, 2, 1, 3], np.zeros((3, 2)), "voters have no records"),
        ([0, 1], np.array([[np.nan, 0]]), "not finite"),
        ([0, 1], np.array([[np.inf, 0]]), "not finite"),
    ],
)
def test_ballots_that_do_not_fit_are_refused(offsets: list[int], differences: Any, message: str) -> None:
    with pytest.raises(CrowdveilError, match=message):
        Ballots(STUDY, np.array(offsets, np.int64), differences)


@pytest.mark.parametrize("names", [None, ["ann", "bob", "cy", "dee"]])
def test_some_voters_can_be_taken(names: list[str] | None) -> None:
    ballots = crowd([2, 1, 3, 2], names)
    middle = ballots.of(slice(1, 3))
    assert middle.counts.tolist() == [1, 3]
    assert middle.differences.tolist() == ballots.differences[2:6].tolist()
    assert np.shares_memory(middle.differences, ballots.differences)
    picked = ballots.choose(np.array([3, 0, 3]))
    assert picked.counts.tolist() == [2, 2, 2]
    rows = [6, 7, 0, 1, 6, 7]
    assert picked.differences.tolist() == ballots.differences[rows].tolist()
    if names:
        assert middle.voter_names() == ["bob", "cy"]
        assert picked.voter_names() == ["dee", "ann", "dee"]
    assert ballots.of(slice(2, 2)).voters == ballots.of(slice(3, 1)).voters == 0


def test_pieces_join_to_the_whole() -> None:
    ballots = crowd([2, 1, 3, 2], ["ann", "bob", "cy", "dee"])
    pieces = [ballots.of(slice(0, 1)), ballots.of(slice(1, 3)), ballots.of(slice(3, 4))]
    assert same(concatenate(STUDY, pieces), ballots)
    with pytest.raises(CrowdveilError, match="no voters"):
        concatenate(STUDY, [])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(1, 4), st.text(max_size=4)), min_size=1, max_size=12),
    st.sampled_from([np.int8, np.float64]),
    st.integers(1, 5),
)
def test_a_ballot_file_gives_back_what_was_written(
    tmp_path: Path, voters: list[tuple[int, str]], kind: type, per_chunk: int
) -> None:
    names = [name.encode("utf-8", "replace").decode() for _, name in voters]
    ballots = crowd([count for count, _ in voters], names, kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "VOTERS_PER_CHUNK", per_chunk)
        assert write_ballots(tmp_path / "crowd", STUDY, [ballots], {"from": "a test"}) == len(voters)
    file = open_ballots(tmp_path / "crowd")
    assert (file.study, file.voters, file.origin) == (STUDY, len(voters), {"from": "a test"})
    assert max(chunk.voters for chunk in file.batches()) <= per_chunk
    assert same(file.load(), ballots)
    assert census(file) == census(ballots)


def test_a_cell_of_a_ballot_file_is_the_bytes_of_the_voters_differences(tmp_path: Path) -> None:
    for kind in (np.int8, np.float64):
        ballots = crowd([2, 1], kind=kind)
        write_ballots(tmp_path / "crowd", STUDY, [ballots], {})
        cells = pq.read_table(tmp_path / "crowd")["differences"].to_pylist()
        assert [np.frombuffer(cell, kind).tolist() for cell in cells] == [
            ballots.differences[:2].reshape(-1).tolist(),
            ballots.differences[2].tolist(),
        ]


def test_pieces_are_bounded_in_bytes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BYTES_PER_CHUNK", 8)  # four records of two features
    ballots = crowd([2, 2, 1, 5, 1, 3, 1])
    assert [chunk.counts.tolist() for chunk in ballots.batches()] == [[2, 2], [1], [5], [1, 3], [1]]
    write_ballots(tmp_path / "crowd", STUDY, [ballots], {})
    file = open_ballots(tmp_path / "crowd")
    assert file.pieces == 5
    assert file.piece(3).counts.tolist() == [1, 3]


def test_a_voter_with_more_answers_than_a_cell_can_hold_is_refused(tmp_path: Path) -> None:
    records = 2**30  # of two bytes each: one more byte than Parquet's offsets reach
    endless = Ballots(STUDY, np.array([0, 1, 1 + records]), np.broadcast_to(np.int8(1), (1 + records, 2)))
    with pytest.raises(CrowdveilError, match=r"voter 2 has 1073741824 answers, 2\.1 GB: .* at most 2 GB a voter"):
        write_ballots(tmp_path / "crowd", STUDY, [endless], {})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_ballot_files_is_one_crowd(tmp_path: Path) -> None:
    ballots = crowd([2, 1, 3, 2, 1], ["ann", "bob", "cy", "dee", "eve"])
    (tmp_path / "folder").mkdir()
    for number, part in enumerate([slice(0, 2), slice(2, 3), slice(3, 5)]):
        write_ballots(tmp_path / "folder" / f"part-{number}.parquet", STUDY, [ballots.of(part)], {"part": number})
    (tmp_path / "folder" / "_SUCCESS").touch()
    folder = open_ballots(tmp_path / "folder")
    assert (folder.voters, folder.pieces, folder.origin) == (5, 3, {"part": 0})
    assert [folder.voters_before(number) for number in range(4)] == [0, 2, 3, 5]
    assert same(folder.load(), ballots)
    assert census(folder) == census(ballots)
    other = Ballots(load_study("synthetic-2"), np.array([0, 1]), np.zeros((1, 2)))
    write_ballots(tmp_path / "folder" / "z.parquet", other.study, [other], {})
    with pytest.raises(CrowdveilError, match=r"z\.parquet is of another study than .*part-0\.parquet"):
        open_ballots(tmp_path / "folder")


def test_a_ballot_file_is_sent_as_where_it_is(tmp_path: Path) -> None:
    ballots = crowd([2, 1, 3])
    write_ballots(tmp_path / "crowd", STUDY, [ballots], {})
    sent = pickle.dumps(open_ballots(tmp_path / "crowd"))
    assert len(sent) < 1000
    assert same(pickle.loads(sent).load(), ballots)
    write_ballots(tmp_path / "crowd", STUDY, [ballots.of(slice(0, 2))], {})
    with pytest.raises(CrowdveilError, match="another file here than where the program runs"):
        pickle.loads(sent)


def test_the_origin_may_be_known_only_at_the_end(tmp_path: Path) -> None:
    written: list[int] = []

    def pieces() -> Any:
        for _ in range(3):
            yield crowd([1])
            written.append(1)

    write_ballots(tmp_path / "crowd", STUDY, pieces(), lambda: {"pieces": len(written)})
    assert open_ballots(tmp_path / "crowd").origin == {"pieces": 3}


def test_nameless_voters_are_numbered_through_the_whole_file(tmp_path: Path) -> None:
    write_ballots(tmp_path / "crowd", STUDY, [crowd([1, 2]), crowd([1])], {})
    assert open_ballots(tmp_path / "crowd").load().voter_names() == ["1", "2", "3"]


def test_the_census_counts_and_names_exactly_these_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    ballots = crowd([2, 1, 3, 2])
    counted = census(ballots)
    assert (counted.voters, counted.records, counted.fewest_records, counted.most_records) == (4, 8, 1, 3)
    monkeypatch.setattr(module, "VOTERS_PER_CHUNK", 1)
    assert census(ballots) == counted, "it depends on how the crowd is cut"
    flipped = ballots.differences.copy()
    flipped[3, 1] += 1
    others = [
        Ballots(STUDY, ballots.offsets, flipped),
        Ballots(STUDY, np.array([0, 1, 3, 6, 8]), ballots.differences),
        ballots.choose(np.array([1, 0, 2, 3])),
        Ballots(load_study("synthetic-2"), ballots.offsets, ballots.differences),
    ]
    prints = {census(other).fingerprint for other in others}
    assert len(prints | {counted.fingerprint}) == 5


def test_a_crowd_of_nobody_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(CrowdveilError, match="not one usable answer"):
        write_ballots(tmp_path / "crowd", STUDY, [], {})
    with pytest.raises(CrowdveilError, match="not one usable answer"):
        write_ballots(tmp_path / "crowd", STUDY, [crowd([])], {})
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "crowd"
    write_ballots(path, STUDY, [crowd([1])], {})
    before = path.read_bytes()

    def interrupted() -> Any:
        yield crowd([2])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_ballots(path, STUDY, interrupted(), {})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def parquet(path: Path, columns: dict[str, Any], header: bytes | None) -> Path:
    metadata = {} if header is None else {b"crowdveil": header}
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), path)
    return path


HEADER = json.dumps({"format": 2, "numbers": "int8", "study": STUDY.as_dict(), "origin": {}}).encode()
CELLS = pa.array([b"\1\2"], pa.binary())


@pytest.mark.parametrize(
    ("columns", "header", "message"),
    [
        ({"voter": ["a"], "differences": CELLS}, None, "no ballot file: import it with"),
        ({"voter": ["a"], "differences": CELLS}, b"{", "unreadable header"),
        ({"voter": ["a"], "differences": CELLS}, b"5", "unreadable header"),
        ({"voter": ["a"], "differences": CELLS}, b'{"format": 9}', "ballot format 9"),
        ({"voter": ["a"], "differences": CELLS}, b'{"format": 2}', "ballot format"),
        ({"voter": ["a"], "differences": ["x"]}, HEADER, "no column of differences"),
        ({"voter": ["a"], "differences": CELLS}, HEADER.replace(b"int8", b"int9"), "no column of differences"),
        ({"voter": ["a"]}, HEADER, "no column of differences"),
        ({"voter": pa.array([], pa.string()), "differences": CELLS[:0]}, HEADER, "holds no voters"),
    ],
)
def test_what_is_no_ballot_file_is_not_opened(
    tmp_path: Path, columns: dict[str, Any], header: bytes | None, message: str
) -> None:
    with pytest.raises(CrowdveilError, match=message):
        open_ballots(parquet(tmp_path / "file", columns, header))


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([b"\1\2", None], "blank"),
        ([b"\1\2", b"\1\2\3"], "groups of 2 features"),
        ([b"\1\2", b""], "no records"),
    ],
)
def test_a_damaged_ballot_file_is_refused_when_read(tmp_path: Path, answers: list[Any], message: str) -> None:
    columns = {"voter": ["a", "b"], "differences": pa.array(answers, pa.binary())}
    file = open_ballots(parquet(tmp_path / "file", columns, HEADER))
    with pytest.raises(CrowdveilError, match=message):
        file.load()


@pytest.mark.parametrize("content", [b"", b"PAR1", b"voter,chosen\n", bytes(1000)])
def test_other_files_are_no_ballot_files(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(CrowdveilError, match="not a ballot file"):
        open_ballots(tmp_path / "file")
    with pytest.raises(CrowdveilError, match="directory"):
        open_ballots(tmp_path)
    with pytest.raises(CrowdveilError, match="no ballot file"):
        open_ballots(tmp_path / "absent")


@pytest.mark.parametrize(
    ("feature", "kind"),
    [
        (Feature("a", "a", 0, 5, levels=(0, 1)), np.int8),
        (Feature("a", "a", -60, 67, levels=(0, 1)), np.int8),
        (Feature("a", "a", -60, 68, levels=(0, 1)), np.float64),
        (Feature("a", "a", 0, 5, unit=10, levels=(0, 1)), np.float64),
        (Feature("a", "a", 0, 5.5, levels=(0, 1)), np.float64),
        (Feature("a", "a", 0, 5, levels=(0, 0.5)), np.float64),
    ],
)
def test_small_whole_differences_need_one_byte(feature: Feature, kind: type) -> None:
    assert smallest_type(Study("s", "S", "?", (feature,), Drawing("independent", 1))) is kind
    assert smallest_type(load_study("synthetic-2")) is np.float64
    assert smallest_type(load_study("moral-machine")) is np.int8
