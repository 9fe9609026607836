"""Ballots on disk: they come back as they were written, and what is no ballot file is refused in one line."""

from __future__ import annotations

import hashlib
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.ballots.test_ballots import STUDY, crowd, full_crowd, same

from crowdveil.ballots import ballot_file as ballot_file
from crowdveil.ballots import ballots as module
from crowdveil.ballots.ballot_file import open_ballots, read_ballots, write_ballots
from crowdveil.ballots.ballots import Ballots, census, resampled
from crowdveil.errors import CrowdveilError
from crowdveil.study.bundled import load_study


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.integers(1, 4), st.text(st.characters(codec="utf-8"), max_size=4)),
        min_size=1,
        max_size=12,
        unique_by=lambda v: v[1],
    ),
    st.sampled_from([np.int8, np.float64]),
    st.integers(1, 5),
)
def test_a_ballot_file_gives_back_what_was_written(
    tmp_path: Path, voters: list[tuple[int, str]], kind: type, per_batch: int
) -> None:
    ballots = full_crowd([count for count, _ in voters], [name for _, name in voters], kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "VOTERS_PER_BATCH", per_batch)
        assert write_ballots(tmp_path / "crowd", STUDY, [ballots], {"from": "a test"}) == len(voters)
    file = open_ballots(tmp_path / "crowd")
    assert (file.study, file.voters, file.origin) == (STUDY, len(voters), {"from": "a test"})
    assert max(batch.voters for batch in file.batches()) <= per_batch
    assert same(file.load(), ballots)
    assert census(file) == census(ballots)


def test_a_crowd_in_memory_is_saved_with_its_origin(tmp_path: Path) -> None:
    ballots = replace(full_crowd([2, 1], ["ann", "bob"]), origin={"from": "a test"})
    ballots.save(tmp_path / "crowd")
    assert same(read_ballots(tmp_path / "crowd"), ballots)
    assert read_ballots(tmp_path / "crowd").origin == {"from": "a test"}


def test_a_ballot_file_can_be_read_without_crowdveil(tmp_path: Path) -> None:
    for kind in (np.int8, np.float64):
        ballots = full_crowd([2, 1], ["ann", "bob"], kind)
        write_ballots(tmp_path / "crowd", STUDY, [ballots], {})
        table = pq.read_table(tmp_path / "crowd")
        assert [np.frombuffer(cell, kind).reshape(-1, 2).tolist() for cell in table["dilemmas"].to_pylist()] == [
            ballots.dilemmas[:2].tolist(),
            ballots.dilemmas[2:].tolist(),
        ]
        assert [list(np.frombuffer(cell, np.int8)) for cell in table["choices"].to_pylist()] == [[1, -1], [1]]
        assert [list(np.frombuffer(cell, "<i2")) for cell in table["scenarios"].to_pylist()] == [[0, 1], [-1]]
        assert table["about pet"].to_pylist() == [1, 0]
        header = json.loads(pq.read_metadata(tmp_path / "crowd").metadata[b"crowdveil"])
        assert (header["scenarios"], header["about"]) == (["few", "many"], {"pet": ["cat", "dog"]})


def test_batches_are_bounded_in_bytes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BYTES_PER_BATCH", 8)  # four records of two features
    ballots = crowd([2, 2, 1, 5, 1, 3, 1])
    assert [batch.counts.tolist() for batch in ballots.batches()] == [[2, 2], [1], [5], [1, 3], [1]]
    write_ballots(tmp_path / "crowd", STUDY, [ballots], {})
    file = open_ballots(tmp_path / "crowd")
    assert file.batch_count == 5
    assert file.batch(3).counts.tolist() == [1, 3]


def test_a_voter_with_more_records_than_a_cell_can_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ballot_file, "_MOST_BYTES_PER_CELL", 9)
    monkeypatch.setattr(module, "BYTES_PER_BATCH", 8)
    with pytest.raises(CrowdveilError, match=r"voter bob has 5 records, 0\.0 GB: .* at most 2 GB a voter"):
        write_ballots(tmp_path / "crowd", STUDY, [crowd([1, 5], ["ann", "bob"])], {})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_ballot_files_is_one_crowd(tmp_path: Path) -> None:
    ballots = crowd([2, 1, 3, 2, 1], ["ann", "bob", "cy", "dee", "eve"])
    (tmp_path / "folder").mkdir()
    for number, some in enumerate([slice(0, 2), slice(2, 3), slice(3, 5)]):
        write_ballots(tmp_path / "folder" / f"part-{number}.parquet", STUDY, [ballots[some]], {"shard": number})
    (tmp_path / "folder" / "_SUCCESS").touch()
    folder = open_ballots(tmp_path / "folder")
    assert (folder.voters, folder.batch_count, folder.origin) == (5, 3, {"shard": 0})
    assert [folder.voters_before(number) for number in range(4)] == [0, 2, 3, 5]
    assert same(folder.load(), ballots)
    assert census(folder) == census(ballots)
    other = Ballots.from_differences(load_study("synthetic-2"), np.array([0, 1]), np.zeros((1, 2)))
    write_ballots(tmp_path / "folder" / "z.parquet", other.study, [other], {})
    with pytest.raises(CrowdveilError, match=r"z\.parquet is of another study than .*part-0\.parquet"):
        open_ballots(tmp_path / "folder")


def test_a_ballot_file_is_sent_as_where_it_is(tmp_path: Path) -> None:
    ballots = crowd([2, 1, 3])
    write_ballots(tmp_path / "crowd", STUDY, [ballots], {})
    sent = pickle.dumps(open_ballots(tmp_path / "crowd"))
    assert len(sent) < 1000
    assert same(pickle.loads(sent).load(), ballots)
    write_ballots(tmp_path / "crowd", STUDY, [ballots[:2]], {})
    with pytest.raises(CrowdveilError, match="another file here than where the program runs"):
        pickle.loads(sent)


def test_the_origin_may_be_known_only_at_the_end(tmp_path: Path) -> None:
    written: list[int] = []

    def batches() -> Any:
        for _ in range(3):
            yield crowd([1])
            written.append(1)

    write_ballots(tmp_path / "crowd", STUDY, batches(), lambda: {"batches": len(written)})
    assert open_ballots(tmp_path / "crowd").origin == {"batches": 3}


def test_nameless_voters_are_numbered_through_the_whole_file(tmp_path: Path) -> None:
    write_ballots(tmp_path / "crowd", STUDY, [crowd([1, 2]), crowd([1])], {})
    assert read_ballots(tmp_path / "crowd").voter_names() == ["1", "2", "3"]


def test_a_crowd_of_nobody_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(CrowdveilError, match="not one usable record"):
        write_ballots(tmp_path / "crowd", STUDY, [], {})
    with pytest.raises(CrowdveilError, match="not one usable record"):
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


HEADER = json.dumps(
    {
        "format": 3,
        "numbers": "int8",
        "study": STUDY.as_dict(),
        "scenarios": None,
        "about": {},
        "selection": None,
        "origin": {},
    }
).encode()
CELLS = pa.array([b"\1\2"], pa.binary())
GOOD = {"voter": ["a"], "dilemmas": CELLS, "choices": pa.array([b"\1"], pa.binary())}


@pytest.mark.parametrize(
    ("columns", "header", "message"),
    [
        (GOOD, None, "not a ballot file: import it with"),
        (GOOD, b"{", "unreadable header"),
        (GOOD, b"5", "unreadable header"),
        (GOOD, b'{"format": 2}', "ballot format 2, this version of crowdveil reads 3: import it again"),
        (GOOD, b'{"format": 3}', "unreadable header"),
        (GOOD, HEADER.replace(b"int8", b"int9"), "unreadable header"),
        (GOOD | {"dilemmas": ["x"]}, HEADER, "no column 'dilemmas' of type binary"),
        ({"voter": ["a"], "dilemmas": CELLS}, HEADER, "no column 'choices' of type binary"),
        (GOOD | {"voter": [1]}, HEADER, "neither names nor digests"),
        (GOOD, HEADER.replace(b'"about": {}', b'"about": {"pet": ["cat"]}'), "no column 'about pet' of type int16"),
        ({name: pa.array(column)[:0] for name, column in GOOD.items()}, HEADER, "holds no voters"),
    ],
)
def test_what_is_no_ballot_file_is_not_opened(
    tmp_path: Path, columns: dict[str, Any], header: bytes | None, message: str
) -> None:
    with pytest.raises(CrowdveilError, match=message):
        open_ballots(parquet(tmp_path / "file", columns, header))


@pytest.mark.parametrize(
    ("dilemmas", "choices", "message"),
    [
        ([b"\1\2", None], [b"\1", b"\1"], "blank"),
        ([b"\1\2", b"\1\2\3"], [b"\1", b"\1"], "groups of 2 features"),
        ([b"\1\2", b""], [b"\1", b""], "no records"),
        ([b"\1\2", b"\1\2"], [b"\1\1", b""], "choices are more or fewer than their dilemmas"),
        ([b"\1\2", b"\1\2"], [b"\1", b"\2"], "a choice is 1"),
    ],
)
def test_a_damaged_ballot_file_is_refused_when_read(
    tmp_path: Path, dilemmas: list[Any], choices: list[Any], message: str
) -> None:
    columns = {"dilemmas": pa.array(dilemmas, pa.binary()), "choices": pa.array(choices, pa.binary())}
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


@pytest.mark.parametrize("digests", [(False, False), (True, True), (True, False)])
def test_a_voter_who_is_there_twice_is_refused_on_opening(tmp_path: Path, digests: tuple[bool, bool]) -> None:
    shards = [crowd([1, 2, 1], ["ann", "bob", "cy"]), crowd([2, 1, 1], ["dee", "cy", "ann"], seed=2)]
    for number, (shard, digest) in enumerate(zip(shards, digests, strict=True)):
        write_ballots(tmp_path / f"{number}.parquet", STUDY, [shard.with_digests() if digest else shard], {})
        assert open_ballots(tmp_path / f"{number}.parquet").voters == 3
    with pytest.raises(CrowdveilError, match=r": 2 of 4 voters occur more than once, the first .* at position 5: one"):
        open_ballots(tmp_path)
    write_ballots(tmp_path / "one", STUDY, [resampled(shards[0], np.array([0, 1, 0]))], {})
    with pytest.raises(CrowdveilError, match=r"one: 1 of 2 voters occur more than once, the first .* at position 3"):
        open_ballots(tmp_path / "one")


def test_a_file_that_changes_between_two_passes_is_refused(tmp_path: Path) -> None:
    ballots = crowd([2, 1, 3], ["ann", "bob", "cy"])
    for change in (
        lambda: write_ballots(tmp_path / "crowd", STUDY, [crowd([2, 1, 3], ["ann", "bob", "cy"], seed=2)], {}),
        lambda: (tmp_path / "crowd").unlink(),
    ):
        write_ballots(tmp_path / "crowd", STUDY, [ballots], {})
        file = open_ballots(tmp_path / "crowd")
        assert census(file) == census(ballots)
        change()
        with pytest.raises(CrowdveilError, match="has changed since it was opened: open it again"):
            census(file)


def test_names_and_digests_of_one_folder_are_read_as_digests(tmp_path: Path) -> None:
    write_ballots(tmp_path / "a.parquet", STUDY, [crowd([1], ["ann"])], {})
    write_ballots(tmp_path / "b.parquet", STUDY, [crowd([1], ["bob"]).with_digests()], {})
    names = read_ballots(tmp_path).voter_names()
    assert names == [hashlib.blake2b(name, digest_size=16).hexdigest() for name in (b"ann", b"bob")]


def test_batches_of_unlike_columns_are_not_written(tmp_path: Path) -> None:
    eve = crowd([1], ["eve"])
    for other, message in (
        (full_crowd([1], ["eve"]), "differ in scenarios, about: give"),
        (crowd([1]), "differ in names: give"),
        (crowd([1], ["eve"], np.float64), "differ in numbers: give batches that are alike, or write a file of each"),
        (eve.filter(np.array([True]), "pet = cat"), "differ in selection: give"),
        (
            replace(eve, study=replace(STUDY, name="other")),
            r"about the study other \(\w{8}\), and the file about toy \(",
        ),
    ):
        with pytest.raises(CrowdveilError, match=message):
            write_ballots(tmp_path / "crowd", STUDY, [crowd([1], ["ann"]), other], {})
    assert list(tmp_path.iterdir()) == []
