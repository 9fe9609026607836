"""A restored database is the one that was backed up, on either kind of database and from one to the other."""

import gzip
import hashlib
import json
import stat
from collections import Counter
from contextlib import suppress
from datetime import date

import pytest
from sqlalchemy import select
from tests.program import answer, crowdveil, refused
from tests.service.host.website import CENTRAL, DISTRIBUTED

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Amount, Epsilon
from crowdveil.protocol.submission import report_id
from crowdveil.service.poll import poll_from_dict
from crowdveil.service.poll_release import make_effects, make_release
from crowdveil.service.store.backup import TABLES, back_up, check_backup, restore
from crowdveil.service.store.batches import OpenedReport
from crowdveil.service.store.hosts import LogEntry
from crowdveil.service.store.polls import OPENED
from crowdveil.service.store.store import open_store
from crowdveil.service.store.submissions import SubmissionRow
from crowdveil.study.bundled import load_study
from crowdveil.study.plain_data import canonical_json

TODAY = date(2026, 3, 1)
RELAYED = poll_from_dict(
    {
        "name": "relayed",
        "study": "kidney",
        "paradigm": "vldp",
        "levels": {"one": 3},
        "relay": "https://relay.example",
        "batch": 2,
    }
)


def fill(store):
    """Put something into every table."""
    for poll in (CENTRAL, DISTRIBUTED):
        store.polls.add(poll_from_dict(poll))
    submissions, study = store.submissions, load_study("kidney")
    tokens = submissions.create_links("trusted", 3)
    shown = {"left": [0.0, 5.0, 0.0, 0.0, 1.0], "right": [0.0, 10.0, 0.0, 0.0, 1.0], "chosen": "left"}
    ballots = [SubmissionRow("trusted", report_id(t), canonical_json([shown]), '{"age":"old"}') for t in tokens]
    body = {"format": "crowdveil report 1", "study": study.fingerprint, "values": [2**62, -(2**62)], "word": "日本語"}
    reports = [SubmissionRow("untrusted", f"{n:032x}", canonical_json(body), "{}", Epsilon("0.5")) for n in range(2500)]
    submissions.put([*ballots, *reports], TODAY, {("untrusted", "malformed"): 3})
    submissions.withdraw("untrusted", f"{7:032x}")
    make_release(store, "trusted", TODAY, Epsilon("0.5"))
    make_effects(store, "trusted", TODAY, epsilon=Epsilon("0.5"))
    store.polls.add(RELAYED)
    store.batches.put(RELAYED, "a" * 32, 3, [OpenedReport("b" * 64, "{}")], Counter({"unreadable": 2}), TODAY)
    store.polls.close("untrusted")
    store.polls.add(poll_from_dict({**DISTRIBUTED, "name": "gone"}))
    store.polls.delete("gone")
    store.steps.count("untrusted", OPENED, TODAY)
    store.steps.write(TODAY)
    store.hosts.create_sign_in_link(0)
    store.hosts.start_session("host", 0)
    store.audit_log.add(LogEntry(0, "host", "signed in", None, ""))


def contents(store):
    """Every row that a backup promises to keep."""
    with store.database.reading() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key))]
            for table in TABLES
        }


def test_what_is_restored_is_what_was_backed_up(store, address, tmp_path):
    fill(store)
    before = contents(store)
    assert all(before.values()), "the test must put something into every table"
    made = back_up(address, tmp_path / "b.crowdveil.gz")
    assert made.rows == {name: len(rows) for name, rows in before.items()}
    other = f"sqlite:///{tmp_path / 'restored.sqlite'}"
    restore(tmp_path / "b.crowdveil.gz", other)
    with open_store(other) as restored:
        assert contents(restored) == before


def test_a_restored_database_goes_on(address, tmp_path):
    """Into either kind of database: new releases, effects and charges are numbered after the old ones."""
    source = f"sqlite:///{tmp_path / 'source.sqlite'}"
    with open_store(source) as store:
        fill(store)
        before = contents(store)
    back_up(source, tmp_path / "b.crowdveil.gz")
    restore(tmp_path / "b.crowdveil.gz", address)
    with open_store(address) as restored:
        assert contents(restored) == before
        make_release(restored, "trusted", TODAY, Epsilon("0.5"))
        make_effects(restored, "trusted", TODAY, epsilon=Epsilon("0.5"))
        account = restored.releases.account("trusted")
        assert account.spent == Amount(2_000_000)
        assert len({charge.id for charge in account.charges}) == 4
        assert len(restored.releases.all("trusted")) == 2
        assert len(restored.effects.all("trusted")) == 2


def test_nothing_is_overwritten(store, address, tmp_path):
    fill(store)
    back_up(address, tmp_path / "b.crowdveil.gz")
    other = f"sqlite:///{tmp_path / 'other.sqlite'}"
    with open_store(other) as full:
        full.polls.add(poll_from_dict({**DISTRIBUTED, "name": "mine"}))
    with pytest.raises(CrowdveilError, match="not empty"):
        restore(tmp_path / "b.crowdveil.gz", other)
    with open_store(other) as full:
        assert [status.poll.name for status in full.polls.all()] == ["mine"]


def test_sessions_and_links_stay_out_and_the_file_is_private(store, address, tmp_path):
    fill(store)
    path = tmp_path / "b.crowdveil.gz"
    back_up(address, path)
    tables = {json.loads(line)[0] for line in lines_of(path)[1:-1]}
    assert tables == {table.name for table in TABLES}
    assert not tables & {"session", "sign_in_link"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.fixture
def backup_file(tmp_path):
    source = f"sqlite:///{tmp_path / 'source.sqlite'}"
    with open_store(source) as store:
        store.polls.add(poll_from_dict(DISTRIBUTED))
    back_up(source, tmp_path / "b.crowdveil.gz")
    return tmp_path / "b.crowdveil.gz"


def lines_of(path):
    return gzip.decompress(path.read_bytes()).decode().splitlines(keepends=True)


def rewritten(path, change):
    lines = lines_of(path)
    with gzip.open(path, "wt") as file:
        file.writelines(change(lines))
    return path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: [], "its end is missing"),
        (lambda lines: lines[:-1], "its end is missing"),
        (lambda lines: [lines[0], *lines[2:]], "checksum does not match"),
        (lambda lines: [line.replace("untrusted", "intrusted") for line in lines], "checksum does not match"),
        (lambda lines: ['{"format": "another"}\n', *lines[1:]], "not a backup"),
        (lambda lines: ["no JSON\n"], "cannot read the backup"),
    ],
)
def test_a_damaged_backup_is_refused_and_nothing_is_restored(backup_file, tmp_path, change, said):
    rewritten(backup_file, change)
    with pytest.raises(CrowdveilError, match=said):
        restore(backup_file, f"sqlite:///{tmp_path / 'new.sqlite'}")
    assert not (tmp_path / "new.sqlite").exists()


def test_a_backup_with_any_byte_changed_is_refused_or_says_the_same(backup_file):
    whole = backup_file.read_bytes()
    said = lines_of(backup_file)
    for place in range(len(whole)):
        backup_file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :])
        with suppress(CrowdveilError):
            check_backup(backup_file)
            assert lines_of(backup_file) == said  # as in the name and the time that gzip writes first


def test_a_backup_cut_short_is_refused(backup_file):
    backup_file.write_bytes(backup_file.read_bytes()[:-20])
    with pytest.raises(CrowdveilError, match="cannot read the backup"):
        check_backup(backup_file)


def test_a_backup_of_other_tables_is_refused(backup_file, tmp_path):
    def older(lines):
        kept = [lines[0].replace('"tables":"', '"tables":"0-'), *lines[1:-1]]
        end = {**json.loads(lines[-1]), "checksum": hashlib.sha256("".join(kept).encode()).hexdigest()}
        return [*kept, json.dumps(end) + "\n"]

    rewritten(backup_file, older)
    with pytest.raises(CrowdveilError, match="restore it with crowdveil"):
        restore(backup_file, f"sqlite:///{tmp_path / 'new.sqlite'}")


def test_the_commands(tmp_path):
    folder, file = tmp_path / "data", tmp_path / "b.crowdveil.gz"
    folder.mkdir()
    with open_store(f"sqlite:///{folder / 'crowdveil.sqlite'}") as store:
        fill(store)
        before = contents(store)
        made = answer("backup", "--data", folder, "--out", file)  # while it is open
    assert made["rows"]["report"] == 2500
    assert crowdveil("restore", file, "--data", tmp_path / "new").code == 0
    with open_store(f"sqlite:///{tmp_path / 'new' / 'crowdveil.sqlite'}") as restored:
        assert contents(restored) == before
    refused(crowdveil("restore", file, "--data", tmp_path / "new"), "not empty")
    refused(crowdveil("restore", tmp_path / "nothing.gz", "--data", tmp_path / "newer"), "nothing.gz")
    assert not (tmp_path / "newer").exists()
    refused(crowdveil("restore", file, "--data", file), f"cannot make the folder {file}: it is a file")
    refused(crowdveil("backup", "--data", tmp_path / "nothing", "--out", file), "there is no database")
