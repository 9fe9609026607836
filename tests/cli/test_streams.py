"""Where the output goes: full disks, closed streams, readers who leave, devices and links, and how NumPy is started."""

import os
import stat
import subprocess
import sys

import numpy as np
import pytest
from tests.program import crowdveil, refused

from crowdveil.ballots.ballot_file import write_ballots
from crowdveil.errors import CrowdveilError
from crowdveil.files import check_writable, write_text
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.sources.moral_machine.importing import import_moral_machine
from crowdveil.sources.simulated import synthetic_crowd
from crowdveil.sources.simulated_layout import write_public_layout
from crowdveil.sources.table import TableMapping, import_table
from crowdveil.study.bundled import load_study


def shell(line, folder, **variables):
    """Run a line of a shell in which ``crowdveil`` is the program."""
    program = f'crowdveil() {{ "{sys.executable}" -m crowdveil "$@"; }}; '
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    words = ["bash", "-o", "pipefail", "-c", program + line]
    return subprocess.run(words, cwd=folder, env={**kept, **variables}, capture_output=True, text=True)


@pytest.mark.parametrize("form", ["", "--json"])
def test_a_full_disk_is_told_in_one_line(form, tmp_path):
    done = shell(f"crowdveil studies kidney {form} > /dev/full", tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("crowdveil: cannot print the result: No space left on device")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-", "2>/dev/full"])
@pytest.mark.parametrize("form", ["", "--json"])
def test_closed_streams_stop_nothing(closed, form, tmp_path):
    done = shell(f"crowdveil studies kidney {form} {closed}", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) == (">&-" not in closed or closed == "2>&-")


def test_a_mistake_is_one_even_if_it_cannot_be_told(tmp_path):
    done = shell("crowdveil studies mars 2>/dev/full", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


def test_a_reader_who_leaves_is_no_mistake(tmp_path):
    done = shell("crowdveil studies moral-machine | :", tmp_path)
    assert done.returncode in (0, 1)  # 0 if everything fitted into the pipe
    assert done.stderr == ""


def test_a_release_is_delivered_if_nothing_can_be_told(tmp_path):
    crowd = synthetic_crowd(30, 10, 3, np.random.default_rng(1)).ballots
    write_ballots(tmp_path / "b.parquet", crowd.study, [crowd], {})
    ledger = Ledger.create(tmp_path / "l", 5)
    words = "crowdveil release b.parquet --paradigm vlcp --epsilon 1 --ledger l --out"
    done = shell(f"{words} closed.json >&- 2>&- <&- && {words} full.json > /dev/full 2>&1", tmp_path)
    assert done.returncode == 2
    (account,) = ledger.statement().accounts
    assert [entry.state for entry in account.entries] == ["delivered"] * 2
    assert (tmp_path / "closed.json").exists()
    assert (tmp_path / "full.json").exists()


@pytest.mark.parametrize("form", ["", "--effects e.json"])
def test_a_disk_without_room_for_the_release_costs_nothing(form, tmp_path):
    """The ledger is small enough for the limit of 64 KiB on each file, and the release of 23 features is not."""
    assert crowdveil("simulate", "moral-machine", "--voters", 40, "--out", tmp_path / "b.parquet").code == 0
    ledger = Ledger.create(tmp_path / "l", 5)
    words = f"crowdveil release b.parquet --paradigm vlcp --epsilon 1 --ledger l --out r.json {form}"
    done = shell(f"ulimit -f 64; {words}", tmp_path)
    assert (done.returncode, done.stderr) == (2, "crowdveil: cannot write r.json: File too large\n")
    assert ledger.statement().accounts == ()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.parquet", "l", "l.key"]


@pytest.mark.parametrize("room", [0, 4])
def test_a_ledger_without_room_leaves_nothing_behind(room, tmp_path):
    """In 0 KiB there is no room for its key, in 4 none for its tables."""
    done = shell(f"ulimit -f {room}; crowdveil ledger create l --budget 1", tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "l.key: File too large" in line or "the disk could not be read or written" in line
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_too_long_is_refused_and_a_long_one_is_not(tmp_path):
    write_text(tmp_path / ("x" * 255), "text")
    assert (tmp_path / ("x" * 255)).read_text() == "text"
    for write in (check_writable, lambda path: write_text(path, "text")):
        with pytest.raises(CrowdveilError, match="File name too long"):
            write(tmp_path / ("x" * 256))


def test_a_device_or_a_pipe_is_never_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    refused(crowdveil("simulate", "kidney", "--voters", 2, "--out", pipe), "cannot write", "it is a device or a pipe")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(CrowdveilError, match="name a file"):
        check_writable(pipe)
    (tmp_path / "link").symlink_to(pipe)
    with pytest.raises(CrowdveilError, match="name a file"):
        check_writable(tmp_path / "link")


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link, file = tmp_path / "link", tmp_path / "elsewhere" / "file"
    link.symlink_to(file)
    for text in ("first", "second"):
        write_text(link, text)
        assert link.is_symlink()
        assert file.read_text() == text
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["elsewhere", "file", "link"]
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing" / "file")
    with pytest.raises(CrowdveilError, match=r"nowhere: there is no directory .*missing$"):
        check_writable(tmp_path / "nowhere")


def test_a_link_to_itself_is_replaced(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    write_text(tmp_path / "loop", "text")
    assert (tmp_path / "loop").read_text() == "text"


def test_a_path_is_told_as_it_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(
        crowdveil("simulate", "kidney", "--voters", 2, "--out", "missing/b.parquet"),
        "cannot write missing/b.parquet: there is no directory missing",
    )


THREADS = """
import os, sys
from crowdveil.cli.app import main
assert "numpy" not in sys.modules  # it reads the number of threads when it is loaded
try:
    main(["studies", "kidney"])
except SystemExit:
    assert "numpy" in sys.modules
    print(os.environ.get("OPENBLAS_NUM_THREADS"))
"""


@pytest.mark.parametrize(
    ("variables", "expected"),
    [({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2"), ({"OMP_NUM_THREADS": "2"}, "None")],
)
def test_matrices_are_multiplied_by_one_thread_unless_the_user_says_more(variables, expected, tmp_path):
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    words = [sys.executable, "-c", THREADS]
    done = subprocess.run(words, cwd=tmp_path, env={**kept, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == expected


INTERRUPTED = """
import signal, sys
from importlib.abc import MetaPathFinder
from crowdveil.cli.app import main

class CtrlC(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "crowdveil.cli.release":
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                if "turned" in sys.argv:  # as SciPy's solver does while it is loaded
                    raise ImportError("initialization failed")
                raise

sys.meta_path.insert(0, CtrlC())
main(["release", "b.parquet", "--paradigm", "vlcp", "--epsilon", "1", "--ledger", "my.ledger", "--out", "r.json"])
"""


@pytest.mark.parametrize("more", [[], ["turned"]])
def test_an_interruption_is_one_line_that_says_where_to_look(more, tmp_path):
    words = [sys.executable, "-c", INTERRUPTED, *more]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (130, "")
    (line,) = done.stderr.splitlines()
    assert (
        line == "crowdveil: interrupted: crowdveil ledger show my.ledger says whether this was charged, and delivered"
    )


@pytest.mark.parametrize(("before", "after"), [(0o600, 0o600), (0o640, 0o640), (0o400, 0o600)])
def test_a_file_that_is_written_again_is_no_more_open_than_before(tmp_path, before, after):
    path = tmp_path / "crowd.parquet"
    words = ("simulate", "kidney", "--voters", "3", "--out", path)
    assert crowdveil(*words).code == 0
    path.chmod(before)
    assert crowdveil(*words, "--seed", "2").code == 0
    assert stat.S_IMODE(path.stat().st_mode) == after


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def usual_umask():
    """The system's default, under which others may read a new file."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("usual_umask")
def test_new_files_of_peoples_answers_are_for_their_owner_only(tmp_path):
    path = tmp_path / "crowd.parquet"
    crowd = synthetic_crowd(3, 2, 3, np.random.default_rng(1)).ballots
    write_ballots(path, crowd.study, [crowd], {})
    write_text(tmp_path / "page.html", "for everybody")
    assert (mode(path), mode(tmp_path / "page.html")) == (0o600, 0o644)
    rows, kept, refused_rows = (tmp_path / name for name in ("rows.csv", "kept.parquet", "refused.csv"))
    sides = [f"{side}_{feature.name}" for side in ("left", "right") for feature in crowd.study.features]
    told = (["voter", "chosen", *sides], ["ann", "left", *"010101"], ["bob", "nobody", *"010101"])
    rows.write_text("\n".join(map(",".join, told)))
    import_table(rows, kept, TableMapping(crowd.study), refused_rows, allow_refused=1, one_record_each=True)
    assert (mode(kept), mode(refused_rows)) == (0o600, 0o600)
    assert "bob" in refused_rows.read_text()


@pytest.mark.usefixtures("usual_umask")
def test_an_import_of_the_moral_machine_is_for_its_owner_only_and_keeps_the_mode_of_what_it_replaces(tmp_path):
    source, out, refused_rows = (tmp_path / name for name in ("answers.csv", "out.parquet", "refused.csv"))
    write_public_layout(source, load_study("moral-machine"), 3, np.random.default_rng(1))
    for expected in (0o600, 0o640):
        import_moral_machine(source, out, refused_rows, allow_refused=1)
        assert (mode(out), mode(refused_rows)) == (expected, expected)
        for path in (out, refused_rows):
            path.chmod(0o640)
