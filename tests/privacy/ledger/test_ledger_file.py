"""What can be wrong with a ledger's file, each in one line that says what to do."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from tests.privacy.ledger.posting import post
from tests.privacy.ledger.races import PROCESSES

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Amount
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.ledger import ledger_file as ledger_file
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.privacy.ledger.people import key_path

EPSILON = 1_000_000
DATASET = "a" * 64
HOW_TO_CREATE = "create one with: crowdveil ledger create PATH --budget 3"
NOBODY = 65534


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "budget.ledger", Amount(3 * EPSILON))


def complaint_of_open(path: Path) -> str:
    with pytest.raises(CrowdveilError) as refused:
        Ledger.open(path)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def complaint_of_charge(ledger: Ledger) -> str:
    with pytest.raises(CrowdveilError) as refused:
        post(ledger, DATASET, 1, Unit.VOTER, 5, "x")
    assert "\n" not in str(refused.value)
    return str(refused.value)


def complaint_of_statement(ledger: Ledger) -> str:
    with pytest.raises(CrowdveilError) as refused:
        ledger.statement()
    return str(refused.value)


def test_a_commit_is_on_disk_when_it_returns(ledger: Ledger) -> None:
    with ledger_file.transaction(ledger.path, writes=True) as book:
        assert book.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert book.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
        assert book.execute("PRAGMA fullfsync").fetchone() == (1,)


def test_a_ledger_at_rest_is_one_file_and_its_key(ledger: Ledger) -> None:
    post(ledger, DATASET, 1, Unit.VOTER, 5, "x")
    assert sorted(ledger.path.parent.iterdir()) == [ledger.path, key_path(ledger.path)]
    assert stat.S_IMODE(key_path(ledger.path).stat().st_mode) == 0o600
    assert key_path(ledger.path).read_bytes().strip() not in ledger.path.read_bytes()


@pytest.mark.parametrize(("set_by_owner", "expected"), [(None, 0o600), (0o640, 0o640)])
def test_a_ledger_is_readable_by_its_owner_alone_unless_the_owner_says_otherwise(
    tmp_path: Path, set_by_owner: int | None, expected: int
) -> None:
    usual = os.umask(0)
    try:
        ledger = Ledger.create(tmp_path / "budget.ledger", Amount(3 * EPSILON))
        if set_by_owner is not None:
            ledger.path.chmod(set_by_owner)
        with ledger_file.transaction(ledger.path, writes=True) as book:
            book.execute("INSERT INTO budget_raise VALUES (1, 3000000, 4000000, 'why', 'now')")
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
        post(Ledger.open(ledger.path), DATASET, 1, Unit.VOTER, 5, "x")
    finally:
        os.umask(usual)
    assert modes == {"budget.ledger": expected, "budget.ledger-journal": expected, "budget.ledger.key": 0o600}
    assert stat.S_IMODE(ledger.path.stat().st_mode) == expected


@pytest.mark.parametrize("name", ["a b.ledger", "50%.ledger", "what?.ledger", "no#1.ledger", "välj.ledger"])
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    post(Ledger.create(tmp_path / name, Amount(EPSILON)), DATASET, 1, Unit.VOTER, 5, "x")
    assert sorted(file.name for file in tmp_path.iterdir()) == [name, f"{name}.key"]
    assert len(Ledger.open(tmp_path / name).statement().accounts) == 1


def test_a_relative_path_survives_a_change_of_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.create(Path("budget.ledger"), Amount(EPSILON))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    post(ledger, DATASET, 1, Unit.VOTER, 5, "x")


def test_missing(tmp_path: Path) -> None:
    path = tmp_path / "none.ledger"
    assert complaint_of_open(path) == f"there is no ledger at {path}: {HOW_TO_CREATE}"
    assert complaint_of_open(path / "below").endswith(HOW_TO_CREATE)
    assert not path.exists()


def test_removed_at_the_last_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_file, "_check_path", lambda path: None)
    assert "it cannot be opened" in complaint_of_open(tmp_path / "gone.ledger")
    assert list(tmp_path.iterdir()) == []


def test_unreachable(tmp_path: Path) -> None:
    assert complaint_of_open(tmp_path / ("x" * 300)).endswith("no file has such a name; give one of up to 255 bytes")


def test_directory(tmp_path: Path) -> None:
    assert complaint_of_open(tmp_path).startswith(f"{tmp_path} is a directory, not a ledger: ")


def test_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert complaint_of_open(tmp_path / "pipe").startswith(f"{tmp_path / 'pipe'} is not a file")


@pytest.mark.parametrize("content", [b"", b"x", b"voter,answer\n" * 3, b"voter,answer\n" * 3000])
def test_some_other_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "answers.csv"
    path.write_bytes(content)
    complaint = complaint_of_open(path)
    assert "is not a crowdveil ledger" in complaint
    assert complaint.endswith(HOW_TO_CREATE)
    assert path.read_bytes() == content


def test_some_other_database(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE ledger (id TEXT)")
    other.commit()
    other.close()
    before = path.read_bytes()
    assert complaint_of_open(path) == (
        f"{path} is not a crowdveil ledger, or its creation was cut off: {HOW_TO_CREATE}"
    )
    assert path.read_bytes() == before


def test_another_format(ledger: Ledger) -> None:
    other = sqlite3.connect(ledger.path)
    other.execute("PRAGMA user_version = 2")
    other.close()
    expected = (
        f"ledger {ledger.path} has format 2, this crowdveil knows formats 3 and 4: use the crowdveil that made it"
    )
    assert complaint_of_open(ledger.path) == expected
    assert complaint_of_charge(ledger) == expected


def test_creation_never_overwrites(ledger: Ledger, tmp_path: Path) -> None:
    before = ledger.path.read_bytes()
    for path in (ledger.path, tmp_path):
        with pytest.raises(CrowdveilError, match="already exists: use it as it is, or choose another path"):
            Ledger.create(path, Amount(EPSILON))
    assert ledger.path.read_bytes() == before


def test_creation_needs_a_directory(tmp_path: Path) -> None:
    with pytest.raises(CrowdveilError, match=r"cannot create ledger .*: No such file or directory"):
        Ledger.create(tmp_path / "none" / "budget.ledger", Amount(EPSILON))


def test_replaced_while_in_use(ledger: Ledger) -> None:
    ledger.path.unlink()
    assert complaint_of_charge(ledger).startswith("there is no ledger at ")
    with pytest.raises(CrowdveilError, match="already exists, the key of a ledger that was here"):
        Ledger.create(ledger.path, Amount(EPSILON))
    assert not ledger.path.exists()
    key_path(ledger.path).unlink()
    Ledger.create(ledger.path, Amount(EPSILON))
    assert "is not the key of" in complaint_of_charge(ledger)
    assert "was replaced by another ledger" in complaint_of_statement(ledger)


def test_locked_for_too_long(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_file, "PATIENCE_SECONDS", 0.05)
    other = sqlite3.connect(ledger.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    locked = f"cannot use ledger {ledger.path}: another program keeps it locked (0.05 s waited): try again"
    assert complaint_of_charge(ledger) == locked
    assert complaint_of_open(ledger.path) == locked
    other.close()
    post(ledger, DATASET, 1, Unit.VOTER, 5, "x")


@pytest.mark.parametrize(
    ("limit", "complaint"),
    [
        ("PRAGMA max_page_count = 1", "the disk is full: free some space, then try again"),
        ("PRAGMA query_only = ON", "it is not writable: get write permission to it and its directory"),
    ],
)
def test_sqlite_cannot_write(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, limit: str, complaint: str) -> None:
    post(ledger, DATASET, 1, Unit.VOTER, 5, "first")
    connect = ledger_file._connect

    def limited(path: Path) -> sqlite3.Connection:
        book = connect(path)
        book.execute(limit)
        return book

    before = ledger.statement()
    with monkeypatch.context() as patched:
        patched.setattr(ledger_file, "_connect", limited)
        with pytest.raises(CrowdveilError) as refused:
            post(ledger, DATASET, 1, Unit.VOTER, 5, "a purpose too long for the pages there are" * 10_000)
        with pytest.raises(CrowdveilError):
            Ledger.create(ledger.path.with_name("new.ledger"), Amount(EPSILON))
    assert str(refused.value) == f"cannot use ledger {ledger.path}: {complaint}"
    assert ledger.statement() == before
    assert sorted(ledger.path.parent.iterdir()) == [ledger.path, key_path(ledger.path)]


def test_damaged(ledger: Ledger) -> None:
    content = bytearray(ledger.path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    ledger.path.write_bytes(content)
    assert complaint_of_open(ledger.path).endswith("it is damaged: restore a backup, then charge what is missing in it")


def test_a_bug_is_not_taken_for_a_mistake(ledger: Ledger) -> None:
    with (
        pytest.raises(sqlite3.OperationalError, match="no such table"),
        ledger_file.transaction(ledger.path, writes=True) as book,
    ):
        book.execute("SELECT * FROM nonsense")


def charge_with_small_files(path: Path, answer: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    answer.send(complaint_of_charge(Ledger.open(path)))


def open_as_nobody(path: Path, answer: Connection) -> None:
    if os.geteuid() == 0:
        os.setuid(NOBODY)
    answer.send(complaint_of_open(path))


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that another user can look into; pytest's own ones are closed to others."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def in_another_process(target: Callable[[Path, Connection], None], path: Path) -> str:
    answer, end = PROCESSES.Pipe()
    process = PROCESSES.Process(target=target, args=(path, end))
    process.start()
    assert answer.poll(60)
    complaint = answer.recv()
    process.join()
    return str(complaint)


def test_a_failing_disk(ledger: Ledger) -> None:
    assert in_another_process(charge_with_small_files, ledger.path).endswith(
        "the disk could not be read or written: check it, then look at the ledger"
    )
    assert ledger.statement().accounts == ()


def test_a_file_without_write_permission(public_folder: Path) -> None:
    path = Ledger.create(public_folder / "budget.ledger", Amount(EPSILON)).path
    path.chmod(0o444)
    public_folder.chmod(0o777)
    assert in_another_process(open_as_nobody, path) == (
        f"ledger {path} cannot be charged because {path} is not writable: get write permission to it"
    )


def test_a_directory_without_write_permission(public_folder: Path) -> None:
    path = Ledger.create(public_folder / "budget.ledger", Amount(EPSILON)).path
    path.chmod(0o666)
    public_folder.chmod(0o555)
    assert in_another_process(open_as_nobody, path) == (
        f"ledger {path} cannot be charged because {public_folder} is not writable: get write permission to it"
    )
