"""Attacks on the ledger and the import: ours hold, mistakes are caught, and what is found is told."""

import re
import sys
from contextlib import nullcontext
from random import Random

import pytest
from tests.program import answer, crowdveil, refused

from crowdveil.audit import attacks, client_attack, page_attack
from crowdveil.audit.attacks import ATTACKS, Attack, crowds_against_ledger, dirty_files_against_import
from crowdveil.audit.browser import INSTRUCTION
from crowdveil.audit.client_attack import CLIENT_MUTANTS
from crowdveil.audit.dirty_csv import COLUMNS, ImportOutcome, dirty_file, import_file, import_plainly
from crowdveil.errors import BudgetExceeded, CrowdveilError
from crowdveil.sources.import_report import RowDefect

pytestmark = pytest.mark.xdist_group("audit")


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.mistake or attack.name)
def test_ours_holds_and_every_mistake_is_caught(attack, monkeypatch):
    monkeypatch.setattr(attacks, "HISTORIES", 10)
    monkeypatch.setattr(attacks, "FILES", 30)
    test = attack.run(1)
    assert test.passed, test.findings


@pytest.mark.slow
@pytest.mark.parametrize("attack", [a for a in ATTACKS if a.mistake is None], ids=lambda attack: attack.name)
def test_ours_holds_for_long(attack):
    test = attack.run(2)
    assert test.passed, test.findings


def test_the_mistakes_are_those_of_old():
    assert {attack.mistake for attack in ATTACKS} >= {
        "a ledger that goes by the bytes",
        "a ledger that forgets unnamed crowds",
        "a folder that takes ballots for voters",
        "every line break ends a row",
        "refused rows are not told",
    }


class TooStrict:
    """A ledger that allows nothing."""

    delta = None

    def __init__(self, ledger):
        pass

    def charge(self, charge):
        raise BudgetExceeded("no", 1, 0)


def test_a_ledger_that_refuses_without_a_reason_is_found_out():
    first = next(finding for finding in crowds_against_ledger(1, TooStrict) if finding is not None)
    assert "refused though everybody has" in first


def test_a_voter_who_is_left_out_is_found_out():
    def without_a_voter(path):
        outcome = import_file(path)
        return ImportOutcome(outcome.refused, dict(list(outcome.records.items())[1:]))

    assert next(dirty_files_against_import(1, without_a_voter)).startswith("file 0: imported as")


def test_the_plain_reader_on_a_file_that_was_read_by_hand(tmp_path):
    """One pair with a broken line, a doubled quote and a blank line in it; one row alone; one that is cut short."""

    def row(dilemma, voter, remark, saved, man, cat):
        values = {"Saved": saved, "Man": man, "Cat": cat, "NumberOfCharacters": man + cat}
        words = {"ResponseID": dilemma, "ExtendedSessionID": voter, "Weather": remark}
        return ",".join(str((words | values).get(name, 0)) for name in COLUMNS)

    lines = [
        ",".join(COLUMNS),
        row("d1", "ann", '"fine,\n""later"" rain"', 1, 2, 0),
        "",
        row("d2", "bob", "fine", 1, 1, 0),
        "d3,ann,fine",
        row("d1", "ann", "fine", 0, 0, 3),
    ]
    path = tmp_path / "answers.csv"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    man, cat = (COLUMNS.index(name) - 5 for name in ("Man", "Cat"))
    difference = [0] * 23
    difference[man], difference[cat] = 2, -3
    expected = ImportOutcome({2: RowDefect.UNPAIRED, 3: RowDefect.RAGGED}, {"ann": [difference]})
    assert import_plainly(path) == expected
    assert import_file(path) == expected


def test_dirty_files_hold_all_kinds_of_dirt():
    """Otherwise the attack proves less than it says."""
    files = [dirty_file(Random(seed)) for seed in range(40)]
    kinds = (b"\xef\xbb\xbf", b"\r\n", b'""no""', b",\nlater rain", b"\n\n", b'"Saved"')
    for kind in kinds:
        assert any(kind in file for file in files), kind
    assert any(b"\r" not in file.replace(b'"\r\n"', b"") for file in files)


def test_the_command_tells_what_was_attacked_and_what_not(monkeypatch):
    monkeypatch.setattr(attacks, "HISTORIES", 2)
    monkeypatch.setattr(attacks, "FILES", 3)
    told = answer("audit", "--surroundings", "--seed", "2")
    assert (told["clean"], told["seed"], len(told["attacks"])) == (True, 2, len(ATTACKS) + 1 + len(CLIENT_MUTANTS))
    assert told["not_tried"] == {"a lying server before the page": "give --browser"}


@pytest.fixture
def alone(monkeypatch):
    """No other attacks beside those of a test."""
    monkeypatch.setattr(attacks, "ATTACKS", ())
    monkeypatch.setattr(client_attack, "open_server", lambda: nullcontext("a server"))
    monkeypatch.setattr(client_attack, "client_attacks", lambda server: ())


def test_without_the_service_the_client_is_not_lied_to(alone, monkeypatch):
    monkeypatch.delitem(sys.modules, "crowdveil.audit.client_attack")
    monkeypatch.setitem(sys.modules, "httpx", None)
    result = crowdveil("audit", "--surroundings")
    assert re.search("a lying server before the client +not tried", result.stdout)
    assert "'.[client]'" in result.stdout
    assert result.code == 0


def test_the_browsers_attacks_are_run_and_told_like_the_others(alone, monkeypatch):
    """What they do is tested in tests/web/page/test_lying_server.py."""
    harnesses = []
    monkeypatch.setattr(page_attack, "open_page_harness", lambda: nullcontext("a harness"))
    tried = Attack("a lying server before the page", None, lambda seed: iter([None, None]))
    monkeypatch.setattr(page_attack, "page_attacks", lambda harness: harnesses.append(harness) or (tried,))
    told = answer("audit", "--surroundings", "--browser")
    assert harnesses == ["a harness"]
    assert ([one["cases"] for one in told["attacks"]], told["not_tried"]) == ([2], {})


def no_browser():
    raise CrowdveilError(INSTRUCTION)


def test_without_a_browser_it_says_what_to_install(alone, monkeypatch):
    monkeypatch.setattr(page_attack, "open_page_harness", no_browser)
    result = crowdveil("audit", "--surroundings", "--browser")
    assert re.search("a lying server before the page +not tried", result.stdout)
    (line,) = result.stderr.splitlines()
    assert "playwright install chromium" in line
    assert result.code != 0


def test_without_its_extra_it_says_what_to_install(alone, monkeypatch):
    monkeypatch.delitem(sys.modules, "crowdveil.audit.page_attack")
    monkeypatch.delitem(sys.modules, "crowdveil.audit.browser")
    monkeypatch.setitem(sys.modules, "playwright.sync_api", None)
    result = crowdveil("audit", "--surroundings", "--browser")
    assert re.search("a lying server before the page +not tried", result.stdout)
    assert "'.[browser]'" in result.stderr
    assert result.code != 0


def test_a_browser_is_for_the_surroundings():
    refused(crowdveil("audit", "--browser"), "give --surroundings")


def test_a_finding_is_told_and_ends_with_code_1(alone, monkeypatch):
    found = Attack("crowds", None, lambda seed: iter(["step 1: ann has lost 2 of 1", None]))
    missed = Attack("crowds", "a mistake that nobody finds", lambda seed: iter([None]))
    monkeypatch.setattr(attacks, "ATTACKS", (found, missed))
    result = crowdveil("audit", "--surroundings")
    assert result.code == 1
    for said in ("BROKEN", "MISSED", "step 1: ann has lost 2 of 1", "This audit FAILED."):
        assert said in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize("option", [["--quick"], ["--draws", "20000"], ["--mechanism", "score"], ["--plot", "a.svg"]])
def test_options_of_the_other_audit_are_refused(option):
    refused(crowdveil("audit", "--surroundings", *option), "attacks no mechanism")
