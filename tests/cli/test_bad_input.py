"""Every mistake ends in one clear line and exit code 2: no traceback, nothing half-written, nothing spent."""

import gzip
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.program import answer, crowdveil, refused

from crowdveil.ballots.ballot_file import write_ballots
from crowdveil.ballots.ballots import Ballots
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.sources.simulated import synthetic_crowd
from crowdveil.study.bundled import load_study


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    crowd = synthetic_crowd(30, 10, 3, np.random.default_rng(1)).ballots
    write_ballots(folder / "b.parquet", crowd.study, [crowd], {})
    write_ballots(folder / "one.parquet", crowd.study, [crowd[:1]], {})
    Ledger.create(folder / "l", 5)
    return folder


def release(folder, *more, ballots="b.parquet", epsilon="1", paradigm="vlcp", ledger="l", out="r.json"):
    return crowdveil("release", folder / ballots, "--paradigm", paradigm, "--epsilon", epsilon,
                "--ledger", folder / ledger, "--out", folder / out, *more)  # fmt: skip


def test_a_demo_replaces_nothing_but_a_demo(tmp_path):
    """The tutorials call a ledger study.ledger: no demo may remove it, or write over the ballots beside it."""
    Ledger.create(tmp_path / "study.ledger", 5)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    refused(crowdveil("demo", "--voters", 20, "--out", tmp_path), f"{tmp_path} holds files that no demo wrote: name a")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    for epsilon in ("1.4", "0.5"):  # the budget is for four releases, whatever the epsilon; the second demo is new
        answer("demo", "--voters", 20, "--epsilon", epsilon, "--out", tmp_path / "demo")
        (account,) = answer("ledger", "show", tmp_path / "demo/demo.ledger")["accounts"]
        assert (account["budget"], account["remaining"]) == (4 * float(epsilon), 0)


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "1e9", "inf", "abc", "", "0.0000001"])
def test_epsilon_out_of_range(folder, epsilon):
    refused(release(folder, epsilon=epsilon), "epsilon", "0.0001 to 50")


@pytest.mark.parametrize("bound", ["0", "-2", "nan", "inf"])
def test_norm_bound_out_of_range(folder, bound):
    refused(release(folder, "--bound", bound), "norm bound B must be a positive number")


def test_one_voter(folder):
    refused(release(folder, ballots="one.parquet"), "not a crowd")


def rewritten(folder, name, **columns):
    """Write the ballots of b.parquet again, with other cells in some columns."""
    table = pq.read_table(folder / "b.parquet")
    for column, cells in columns.items():
        table = table.set_column(table.column_names.index(column), column, pa.array(cells, pa.binary()))
    header = pq.read_metadata(folder / "b.parquet").metadata[b"crowdveil"]
    pq.write_table(table.replace_schema_metadata({b"crowdveil": header}), folder / name)


def test_voters_without_records(folder):
    rewritten(folder, "empty.parquet", dilemmas=[b""] * 30, choices=[b""] * 30)
    refused(release(folder, ballots="empty.parquet"), "30 of 30 voters have no records")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_not_finite(folder, value):
    first, *others = pq.read_table(folder / "b.parquet")["dilemmas"].to_pylist()
    rewritten(folder, "broken.parquet", dilemmas=[np.array([value, 0.0, 0.0]).tobytes() + first[24:], *others])
    refused(release(folder, ballots="broken.parquet"), "not finite")


def test_budget_already_spent(folder):
    Ledger.create(folder / "small", 1.5)
    assert release(folder, ledger="small", out="first.json").code == 0
    refused(
        release(folder, ledger="small", out="second.json"), "requested epsilon 1", "remaining 0.5", "difference 0.5"
    )
    assert not (folder / "second.json").exists()


@pytest.mark.parametrize("out", ["missing/r.json", "."])
def test_unwritable_output_costs_nothing(folder, out):
    before = Ledger.open(folder / "l").statement()
    refused(release(folder, out=out), "cannot write")
    assert Ledger.open(folder / "l").statement() == before


@pytest.mark.parametrize("ledger", ["nowhere", "b.parquet", "."])
def test_no_such_ledger(folder, ledger):
    refused(release(folder, ledger=ledger), "ledger")


def test_a_release_needs_a_ledger_and_a_place(folder):
    words = ["release", folder / "b.parquet", "--paradigm", "vlcp", "--epsilon", "1"]
    refused(crowdveil(*words, "--out", folder / "r2.json"), "crowdveil ledger create")
    refused(crowdveil(*words, "--ledger", folder / "l"), "--out")


def test_unknown_words(folder):
    refused(release(folder, paradigm="xyz"), "vlcp, rlcp, vldp, rldp")
    refused(release(folder, "--mechanism", "algorithm-9"), "algorithm-1")
    refused(release(folder, "--sensitivity", "loose"), "'tight', 'paper'")
    refused(crowdveil("relaese"), "relaese", "Did you mean 'release'")
    refused(crowdveil("release"), "crowdveil release --help")
    refused(crowdveil("studies", "mars"), "moral-machine")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.csv", b"", "empty"),
        ("cut.csv.gz", gzip.compress(b"ResponseID,Saved\n" * 1000, mtime=0)[:40], ""),
        ("words.csv", b"to be or not to be\nthat is\n", "column"),
        ("noise.csv.gz", bytes(range(256)) * 20, ""),
        ("noise.parquet", b"PAR1" + bytes(range(256)), ""),
        ("header.csv", b"ResponseID,ExtendedSessionID,Saved\n", "column"),
    ],
    ids=["empty", "cut", "words", "noise-gz", "noise-parquet", "header"],
)
def test_files_that_are_no_moral_machine(folder, name, content, said):
    (folder / name).write_bytes(content)
    refused(crowdveil("import", "moral-machine", folder / name, "--out", folder / "x.parquet"), name, said)
    assert not (folder / "x.parquet").exists()


def test_directories_and_missing_files(folder):
    refused(crowdveil("import", "moral-machine", folder, "--out", folder / "x.parquet"), "directory")
    refused(crowdveil("import", "moral-machine", folder / "none.csv", "--out", folder / "x.parquet"), "none.csv")
    refused(crowdveil("describe", folder), "not a ballot file")  # of the files in it, the first that is none
    (folder / "empty").mkdir()
    refused(crowdveil("describe", folder / "empty"), "empty")
    refused(crowdveil("describe", folder / "none.parquet"), "crowdveil import")
    refused(crowdveil("decide", folder, "[]"), "directory")
    refused(crowdveil("fit", folder / "l"), "not a ballot file")
    for name in ("words.csv", "words.csv.gz"):
        (folder / name).write_bytes(b"a,b\n1,2\n")
        refused(crowdveil("describe", folder / name), name, "crowdveil import moral-machine")


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "it is empty"),
        (b"\x00\x01\x02" * 999, "damaged, or no Parquet file"),
        (b"PAR1xxxxPAR1", "damaged, or no Parquet file"),
        (None, "damaged, or no Parquet file"),
    ],
    ids=["empty", "noise", "cut in the middle", "cut at the end"],
)
def test_damaged_ballots_are_told_with_what_to_do(folder, content, found):
    (folder / "damaged.parquet").write_bytes((folder / "b.parquet").read_bytes()[:-9] if content is None else content)
    what_to_do = "copy it again, or make one with `crowdveil import` or `crowdveil simulate`"
    refused(
        crowdveil("describe", folder / "damaged.parquet"), "damaged.parquet is not a ballot file", found, what_to_do
    )
    refused(release(folder, ballots="damaged.parquet"), found, what_to_do)


def test_empty_and_missing_files_of_settings(folder, tmp_path):
    (tmp_path / "empty.toml").write_text("\n")
    (tmp_path / "folder").mkdir()
    for command in (("studies",), ("simulate", "--voters", "3", "--out", tmp_path / "x.parquet")):
        name, *more = command
        said = ("empty.toml is empty, and not a study file", "write a name, [drawing] and [[features]] into it")
        refused(crowdveil(name, tmp_path / "empty.toml", *more), *said)
    poll = ("empty.toml is empty, and not a poll file", "write a name and a study into it")
    refused(crowdveil("serve", tmp_path / "empty.toml"), *poll)
    for command in (("serve",), ("relay", "--host", "http://127.0.0.1:9")):
        missing, directory = (crowdveil(*command, "--settings", tmp_path / name) for name in ("no.toml", "folder"))
        refused(missing, "there is no settings file", "no.toml: check its name")
        refused(directory, "folder is a directory, and not a settings file: name a file (TOML)")
    (tmp_path / "poll.toml").write_text('name = "x"')
    refused(
        crowdveil("serve", tmp_path / "poll.toml"), "study must be a bundled name, a path or a table: it is missing"
    )
    table = ("import", "table", folder / "b.parquet", "--out", tmp_path / "x.parquet", "--mapping")
    refused(crowdveil(*table, tmp_path / "empty.toml"), "empty.toml is empty, and not a mapping file: say in it which")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.toml", "folder", "poll.toml"]


def test_ballots_without_answers_about_voters_have_no_groups(folder):
    said = ("hold nothing that voters said of themselves", "no group can be made by 'age': import them again")
    refused(release(folder, "--by", "age"), "these ballots", *said)
    filtering = ("--group", "age=old", "--out", folder / "x.parquet")
    refused(crowdveil("ballots", "filter", folder / "b.parquet", *filtering), "b.parquet", *said)


def test_a_table_of_which_nothing_is_usable_is_told_why(folder, tmp_path):
    columns = [f"{side}_{feature.name}" for side in ("left", "right") for feature in load_study("kidney").features]
    table, out = tmp_path / "rows.csv", tmp_path / "x.parquet"
    rows = [",".join(["voter", "chosen", *columns]), ",".join(["", "left", *["0"] * len(columns)])]
    words = ("import", "table", table, "--study", "kidney", "--out", out)
    for shown, why in ((rows[:1], "no row follows the header"), (rows, "of 1 row, 1 voter missing; check that")):
        table.write_text("\n".join(shown) + "\n")
        refused(crowdveil(*words), "not one usable record, so there are no ballots", why, "--refused FILE")
        assert not out.exists()


def test_tables_and_ballots_are_no_releases(folder):
    (folder / "table.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    for command in (("decide", "[]"), ("page",)):
        name, *dilemma = command
        refused(crowdveil(name, folder / "table.csv.gz", *dilemma), "table.csv.gz: it is a table", "crowdveil import")
        refused(crowdveil(name, folder / "b.parquet", *dilemma), "it is a Parquet file", "crowdveil release")


def test_ballots_of_another_kind(folder):
    pq.write_table(pa.table({"a": [1, 2]}), folder / "other.parquet")
    refused(crowdveil("describe", folder / "other.parquet"), "not a ballot file", "crowdveil import table")


def test_a_file_where_a_folder_is_to_be(folder, tmp_path):
    file = tmp_path / "file"
    file.write_text("kept")
    said = f"cannot make the folder {file}: it is a file; name another place"
    refused(crowdveil("demo", "--out", file), said)
    refused(crowdveil("serve", "kidney", "--data", file), said)
    refused(crowdveil("serve", "kidney", "--data", file / "inside"), f"cannot make the folder {file / 'inside'}")
    assert file.read_text() == "kept"


def test_ballots_need_no_import(folder):
    words = ("import", "table", folder / "b.parquet", "--study", "kidney", "--out", folder / "x.parquet")
    refused(crowdveil(*words), "b.parquet lacks the columns voter, chosen", "it is a ballot file already")
    pq.write_table(pa.table({"a": [1, 2]}), folder / "table.parquet")
    told = crowdveil("import", "table", folder / "table.parquet", *words[3:])
    assert "ballot file already" not in told.stderr


def test_dilemmas_that_are_none(folder):
    assert release(folder, out="d.json", epsilon="0.5").code == 0
    made = folder / "d.json"
    refused(crowdveil("decide", made, "nowhere.json"), "nowhere.json")
    refused(crowdveil("decide", made, ""), "the dilemma is empty: give a dilemma as JSON")
    refused(crowdveil("decide", made, folder), f"{folder} is a directory: give a dilemma as JSON")
    refused(crowdveil("decide", made, "[1, 2"), "not JSON")
    refused(crowdveil("decide", made, "[]"), "two or more")
    refused(crowdveil("decide", made, '{"a": {"x1": 1}, "b": {}, "a": {"x1": 2}}'), "'a' is there twice")
    refused(crowdveil("decide", made, '[{"x1": 1, "x1": 2}, {}]'), "'x1' is there twice")
    refused(crowdveil("decide", made, '[{"features": {"x9": 1}}, {"features": {}}]'), "x1")
    refused(crowdveil("decide", made, '[{"features": {"x1": 99}}, {"features": {}}]'), "-8 to 8")
    refused(crowdveil("decide", made, '[{"features": {"x1": NaN}}, {"features": {}}]'), "-8 to 8")
    refused(crowdveil("decide", made, '[{"features": {"x1": "many"}}, {"features": {}}]'), "number")
    refused(crowdveil("decide", made, '{"question": "?"}'), "the dilemma is one alternative")
    refused(crowdveil("decide", made, '{"alternatives": 5}'), "list of alternatives")
    plain, named = '[{"x1": 1}, {}]', '{"alternatives": [{"features": {"x1": 1}}, {"features": {}}]}'
    assert answer("decide", made, plain) == answer("decide", made, named)
    refused(crowdveil("decide", made, '[{"features": {}}, {"features": {}}]', "--certainty", "2"), "certainty")
    text = json.loads(made.read_text())
    text["parameter"]["x1"] = 9.0
    made.write_text(json.dumps(text))
    refused(crowdveil("decide", made, '[{"features": {}}, {"features": {}}]'), "edited")


@pytest.mark.parametrize(
    ("content", "said"),
    [("[" * 100_000 + "]" * 100_000, "nested too deeply"), ("9" * 5000, "too many digits")],
    ids=["deep", "long"],
)
def test_files_that_no_parser_takes(folder, content, said):
    (folder / "much.json").write_text(content)
    (folder / "much.jsonl").write_text(f'{{"number": {content}}}')
    (folder / "much.toml").write_text(f"a = {content}")
    assert release(folder, out="m.json", epsilon="0.5").code == 0
    refused(crowdveil("decide", folder / "m.json", folder / "much.json"), "the dilemma is not JSON", said)
    refused(crowdveil("decide", folder / "much.json", "[]"), "not a release file", said)
    refused(crowdveil("page", folder / "much.json"), "not a release file", said)
    refused(crowdveil("align", folder / "m.json", "--answers", folder / "much.jsonl"), "line 1 is not JSON", said)
    refused(crowdveil("studies", folder / "much.toml"), "not a readable TOML file", said)
    table = ["import", "table", folder / "b.parquet", "--out", folder / "x.parquet"]
    refused(crowdveil(*table, "--mapping", folder / "much.toml"), "not a readable TOML file", said)
    refused(crowdveil("serve", folder / "much.toml"), "not a readable TOML file", said)


@pytest.mark.parametrize("budget", ["0", "-1", "nan", "inf", "abc", "0.0000001"])
def test_budgets_that_are_none(folder, budget):
    refused(crowdveil("ledger", "create", folder / "new.ledger", "--budget", budget), "budget")
    assert not (folder / "new.ledger").exists()


def test_an_existing_ledger_is_never_overwritten(folder):
    refused(crowdveil("ledger", "create", folder / "l", "--budget", "3"), "exists")


def test_numbers_that_nothing_can_be_simulated_with(folder):
    simulate = ["simulate", "synthetic-3", "--out", folder / "s.parquet", "--voters"]
    refused(crowdveil(*simulate, 10**20), f"the number of voters is {10**20}", "at most 10,000,000,000")
    for plan in (("plan",), ("plan", "relay")):
        refused(crowdveil(*plan, "--voters", 10**400, "--epsilon", 1), "the number of voters is 1000", "10,000,000,000")
    synthetic = ("--records", 5, "--features", 3, "--epsilon", 1, "--crowds", 2)
    refused(crowdveil("compare", "--voters", 10**400, *synthetic), "--voters is 1000", "at most 10,000,000")
    refused(crowdveil(*simulate, 5, "--records", 10**11), "1 to 1,000,000 dilemmas")
    refused(crowdveil(*simulate, 10**10, "--records", 10**6), "more memory than there is", "ask for less")
    refused(crowdveil(*simulate, 5, "--seed", -1), "the seed is -1: give a whole number from 0 up")
    refused(crowdveil("studies", "kidney", "--example", "--seed", -1), "the seed is -1")
    refused(crowdveil("audit", "--surroundings", "--seed", -1), "the seed is -1")
    parts = ["--out", folder / "s.parquet", "--rest", folder / "t.parquet"]
    refused(crowdveil("ballots", "split", folder / "b.parquet", *parts, "--share", 0.5, "--seed", -1), "the seed is -1")
    assert release(folder, out="s.json", epsilon="0.5").code == 0
    ask = ["--ask-command", "cat", "--model", "m", "--transcript", folder / "t.jsonl"]
    refused(crowdveil("align", folder / "s.json", *ask, "--seed", -1), "the seed is -1")


def test_nothing_is_written_over_a_file_that_is_given(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.parquet", "l", "l.key"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "link").symlink_to("b.parquet")
    assert release(tmp_path, out="r.html", epsilon="0.5").code == 0
    assert crowdveil("simulate", "moral-machine", "--voters", 3, "--as-csv", "a.csv").code == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    spend = ["b.parquet", "--paradigm", "rlcp", "--epsilon", "0.5", "--ledger", "l"]
    for out, other in (("b.parquet", "BALLOTS"), ("./link", "BALLOTS"), (tmp_path / "l", "--ledger")):
        refused(crowdveil("release", *spend, "--out", out), f"{other} and --out are the same file")
        refused(crowdveil("effects", *spend, "--out", out), "and --out are the same file")
    for out in ("l.key", folder / "l", folder / "l.key"):
        refused(crowdveil("release", *spend, "--out", out), "it is a ledger or its key")
    refused(crowdveil("release", *spend, "--out", "x.json", "--effects", "x.json"), "are the same file, x.json")
    refused(crowdveil("page", "r.html", "--out", "r.html"), "RELEASE and --out are the same file")
    refused(crowdveil("page", "r.html"), "r.html is the file that is read")
    for to in ("--out", "--refused"):
        words = {"--out": "x.parquet", "--refused": "x.csv", to: "a.csv"}
        asked = [word for pair in words.items() for word in pair]
        refused(crowdveil("import", "moral-machine", "a.csv", *asked), f"FILE and {to} are the same file")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_ballots_and_releases_are_replaced_by_their_own_kind_only(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.parquet", "other.parquet"):
        (tmp_path / name).write_bytes((folder / "b.parquet").read_bytes())
    Ledger.create(tmp_path / "l", 5)
    (tmp_path / "link").symlink_to("other.parquet")
    for name in ("r.json", "s.json"):
        assert release(tmp_path, out=name, epsilon="0.5").code == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    spend = ["b.parquet", "--paradigm", "rlcp", "--epsilon", "0.5", "--ledger", "l"]
    for lost in ("other.parquet", "link"):
        said = f"{lost} holds ballots, which would be lost: name another file, or remove it"
        refused(crowdveil("release", *spend, "--out", lost), f"--out: {said}")
        refused(crowdveil("release", *spend, "--out", "t.json", "--effects", lost), f"--effects: {said}")
        refused(crowdveil("page", "r.json", "--out", lost), said)
        for option in ("--refused", "--as-csv", "--table"):
            words = {
                "--refused": ["import", "table", "b.csv", "--mapping", "m.toml", "--out", "x.parquet"],
                "--as-csv": ["simulate", "kidney", "--voters", 3],
                "--table": ["effects", *spend, "--out", "e.json"],
            }[option]
            refused(crowdveil(*words, option, lost), f"{option}: {said}")
    refused(crowdveil("effects", *spend, "--out", "s.json"), "--out: s.json holds a release, which would be lost")
    pq.write_table(pa.table({"a": [1]}), "t.parquet")
    refused(crowdveil("simulate", "kidney", "--voters", 3, "--out", "t.parquet"), "t.parquet holds a table, which")
    (tmp_path / "t.parquet").unlink()
    (tmp_path / "answers.csv").write_bytes(b'\xef\xbb\xbf"voter",chosen\r\n')
    (tmp_path / "semicolons.txt").write_bytes("voter;ch\u00f6sen\n".encode())
    (tmp_path / "answers.csv.gz").write_bytes(gzip.compress(b"voter,chosen\n"))
    (tmp_path / "own.toml").write_text('name = "own"\n', encoding="utf-8")
    for lost in ("answers.csv", "semicolons.txt", "answers.csv.gz", "own.toml"):
        before[lost] = (tmp_path / lost).read_bytes()
        said = f"{lost} holds a {'study, a mapping or settings' if lost == 'own.toml' else 'table'} "
        refused(crowdveil("release", *spend, "--out", lost), f"--out: {said}")
        refused(crowdveil("page", "r.json", "--out", lost), said)
        refused(crowdveil("simulate", "kidney", "--voters", 3, "--out", lost), said)
    refused(crowdveil("simulate", "moral-machine", "--voters", 3, "--as-csv", "own.toml"), "--as-csv: own.toml holds")
    refused(crowdveil("page", "r.json", "--out", "s.json"), "--out: s.json holds a release, which would be lost")
    refused(crowdveil("simulate", "kidney", "--voters", 3, "--out", "s.json"), "s.json holds a release")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    os.mkfifo("pipe")
    refused(crowdveil("page", "r.json", "--out", "pipe"), "it is a device or a pipe")
    assert crowdveil("simulate", "kidney", "--voters", 3, "--out", "other.parquet").code == 0
    assert crowdveil("simulate", "moral-machine", "--voters", 3, "--as-csv", "answers.csv").code == 0
    assert crowdveil("page", "r.json", "--out", "r.html").code == 0
    assert crowdveil("page", "r.json", "--out", "r.html").code == 0
    assert release(tmp_path, out="r.json", epsilon="0.5").code == 0


def test_no_leftovers(folder):
    assert not list(folder.glob("*.unfinished"))


def test_ballots_cannot_hold_a_damaged_crowd():
    crowd = synthetic_crowd(3, 4, 2, np.random.default_rng(1)).ballots
    with pytest.raises(Exception, match="offsets"):
        Ballots.from_differences(crowd.study, np.array([0, 2]), crowd.differences)


@pytest.mark.parametrize("url", ["nonsense", "ftp://crowd.example", "http://[::1", "http://crowd.example:port"])
def test_addresses_that_are_none(url):
    for words in (["check-page", "--poll", "x"], ["crowd", "--voters", "2"], ["mcp"]):
        refused(crowdveil(*words, "--url", url), f"{url!r} is not the address of a website")


def test_an_option_that_is_given_twice(folder):
    """Otherwise the first epsilon would be lost, and the second spent."""
    before = answer("ledger", "show", folder / "l")
    refused(release(folder, "--epsilon", "2"), "--epsilon is given twice", "give it once")
    refused(crowdveil("compare", "--epsilon=0.3", "--epsilon", "1"), "--epsilon is given twice")
    assert answer("ledger", "show", folder / "l") == before
    assert not (folder / "r.json").exists()


def test_an_empty_word_is_not_this_folder(folder, monkeypatch):
    """A variable of the shell that is not set must not release every ballot file that lies here."""
    monkeypatch.chdir(folder)
    before = answer("ledger", "show", "l")
    spend = ["--paradigm", "rlcp", "--epsilon", "0.1", "--ledger", "l", "--out", "x.json"]
    refused(crowdveil("release", "", *spend), "BALLOTS is empty: give a path")
    refused(crowdveil("describe", ""), "BALLOTS is empty")
    refused(crowdveil("page", ""), "RELEASE is empty")
    refused(crowdveil("ledger", "create", "new", "--budget", "1", "--delta="), "--delta is '': give a number")
    refused(crowdveil("import", "moral-machine", "b.parquet", "--out="), "--out is empty")
    assert answer("ledger", "show", "l") == before
    refused(crowdveil("page", "/"), "/: it is a directory, not a release file")
    refused(crowdveil("page", "/none.json"), "/none.json: there is no such release file", "crowdveil release makes one")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["simulate", "kidney", "--voters", "many"], "--voters is 'many': give a whole number (see crowdveil simulate"),
        (["simulate", "kidney", "--voters=1.5"], "--voters is '1.5': give a whole number (see crowdveil simulate"),
        (["decide", "r", "d", "--certainty", "high"], "--certainty is 'high': give a number (see crowdveil decide"),
        (
            ["plan", "shuffle", "--voters", "x"],
            "--voters is 'x': give a whole number (see crowdveil plan shuffle --help)",
        ),
        (["release", "b", "--engine", "x"], "--engine is 'x': 'x' is not one of 'local', 'spark'"),
        (["plan", "shuffle", "--voters", "3"], "Missing option '--epsilon'. (see crowdveil plan shuffle --help)"),
        (["plan", "nothing"], "No such command 'nothing'. (see crowdveil plan --help)"),
        (["nothing"], "No such command 'nothing'. (see crowdveil --help)"),
    ],
)
def test_words_that_a_command_does_not_take_are_told_with_what_to_give(words, said):
    refused(crowdveil(*words), said)


def test_a_byte_order_mark_hides_nothing(folder, tmp_path):
    assert release(folder, out="m.json", epsilon="0.5").code == 0
    plain = answer("decide", folder / "m.json", '[{"x1": 1}, {}]')
    (tmp_path / "m.json").write_bytes(b"\xef\xbb\xbf" + (folder / "m.json").read_bytes())
    (tmp_path / "d.json").write_bytes(b'\xef\xbb\xbf[{"x1": 1}, {}]')
    assert answer("decide", tmp_path / "m.json", tmp_path / "d.json") == plain
    (tmp_path / "d.json").write_bytes('[{"x1": 1}, {}]'.encode("utf-16"))
    refused(
        crowdveil("decide", tmp_path / "m.json", tmp_path / "d.json"), "d.json is not JSON: it is not text in UTF-8"
    )


def test_a_file_is_not_merged_with_itself(folder, tmp_path):
    (tmp_path / "link.parquet").symlink_to(folder / "b.parquet")
    merge = ["ballots", "merge", folder / "b.parquet", tmp_path / "link.parquet", "--out", tmp_path / "m.parquet"]
    refused(crowdveil(*merge), "link.parquet is given twice, and each of its voters would count twice")
    assert not (tmp_path / "m.parquet").exists()
