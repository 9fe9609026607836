"""An account belongs to people: whatever is done to a file, the same people meet the same budget."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from tests.privacy.ledger.posting import crowd_of

from crowdveil.ballots.ballot_file import open_ballots, write_ballots
from crowdveil.ballots.ballots import Ballots, concatenate, resampled
from crowdveil.errors import BudgetExceeded, CrowdveilError
from crowdveil.privacy.epsilon import Amount
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.ledger.entries import Charge, Crowd
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.privacy.ledger.people import key_path, people_of
from crowdveil.publish.release import preview, release
from crowdveil.study.bundled import load_study


def crowd(names, seed=1, study=None):
    """Ballots of people with these names, two records each."""
    study = study or load_study("synthetic-3")
    rng = np.random.default_rng(seed)
    whose = [name for name in names for _ in range(2)]
    shown = rng.normal(size=(2, len(whose), study.dimension)).clip(-1, 1)
    return Ballots.from_arrays(study, whose, *shown, rng.choice([1, -1], len(whose)))


NAMES = [f"voter {i}" for i in range(20)]


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "study.ledger", 1)


def spend(ledger, ballots, epsilon="0.6", **options):
    return release(ballots, "vlcp", epsilon=epsilon, ledger=ledger, mechanism="algorithm-1", **options)


def other_order(ballots):
    return replace(ballots.take(np.arange(ballots.voters)[::-1]), selection=None)


def other_title(ballots):
    return replace(ballots, study=replace(ballots.study, title="Another title"))


def without_one(ballots):
    return ballots[1:]


def with_others(ballots):
    return concatenate(ballots.study, [ballots, crowd([f"newcomer {i}" for i in range(5)], 2)])


def a_later_wave(ballots):
    return crowd(ballots.voter_names(), seed=3)


def digests_for_names(ballots):
    return ballots.with_digests()


def a_half(ballots):
    return ballots.split(0.5, seed=1)[0]


@pytest.mark.parametrize(
    "changed", [other_order, other_title, without_one, with_others, a_later_wave, digests_for_names, a_half]
)
def test_the_same_people_meet_the_same_budget(ledger, changed):
    ballots = crowd(NAMES)
    spend(ledger, ballots)
    with pytest.raises(BudgetExceeded, match=r"remaining 0\.4 of 1"):
        spend(ledger, changed(ballots))
    spend(ledger, changed(ballots), "0.4")


def test_people_who_were_not_there_have_lost_nothing(ledger):
    spend(ledger, crowd(NAMES[:10]), 1)
    spend(ledger, crowd(NAMES[10:]), 1)
    with pytest.raises(BudgetExceeded, match="10 of these people"):
        spend(ledger, crowd(NAMES), "0.1")


def test_both_halves_of_a_seeded_split_are_free_of_each_other(ledger):
    for half in crowd(NAMES).split(0.5, seed=7):
        spend(ledger, half, 1)


def test_who_overlaps_and_why_is_told(ledger):
    spend(ledger, crowd(NAMES[:12]), "0.2")
    spend(ledger, crowd(NAMES[8:]), "0.3")
    asked = ledger.preview(preview(crowd(NAMES), "vlcp", epsilon=1).charge)
    assert (str(asked.remaining), asked.fits, asked.caution) == ("0.5", False, None)
    assert [(o.crowd, o.shared, str(o.spent)) for o in asked.overlaps] == [(1, 12, "0.2"), (2, 12, "0.3")]
    first, second = ledger.statement().accounts
    assert [str(first.spent), str(second.spent)] == ["0.5", "0.5"]
    assert [(o.crowd, o.shared) for o in first.overlaps] == [(2, 4)]


def nameless(ballots):
    return replace(ballots, names=None)


def test_a_crowd_without_names_may_be_anybody_of_its_study(ledger):
    spend(ledger, nameless(crowd(NAMES[:10])))
    for again in (nameless(crowd(NAMES[10:], seed=5)), crowd(NAMES[10:], seed=5)):
        with pytest.raises(BudgetExceeded, match="counted as the same people because not all are known by name"):
            spend(ledger, again)
    asked = ledger.preview(preview(nameless(crowd(NAMES)), "vlcp", epsilon=1).charge)
    assert asked.caution == "the ballots do not name their voters: import them with names or digests"
    spend(ledger, crowd(["a", "b"], study=load_study("synthetic-3")), "0.4")


def test_another_study_without_names_is_another_crowd(ledger):
    spend(ledger, nameless(crowd(NAMES)), 1)
    other = load_study("kidney")
    level = np.array([[f.high for f in other.features]] * 4, float)
    low = np.array([[f.low for f in other.features]] * 4, float)
    spend(ledger, nameless(Ballots.from_arrays(other, list("aabb"), level, low, [1, -1, 1, 1])), 1)


def test_a_crowd_without_names_meets_what_people_of_its_study_have_lost_in_others(ledger):
    """In both orders: somebody who is known in a study may be in its crowd without names."""
    first = crowd(NAMES)
    other = load_study("synthetic-2")
    second = crowd(NAMES, study=other)
    spend(ledger, first, "0.4")
    spend(ledger, second, "0.3")
    with pytest.raises(BudgetExceeded, match=r"remaining 0\.3 of 1.*0\.3 on crowd 2, counted as the same people"):
        spend(ledger, nameless(first), "0.4")
    spend(ledger, nameless(first), "0.2")
    with pytest.raises(BudgetExceeded, match=r"remaining 0\.1 of 1.*0\.2 on crowd 3, counted as the same people"):
        spend(ledger, second, "0.2")
    spend(ledger, crowd([f"stranger {i}" for i in range(4)], study=other), 1)


def test_named_people_count_against_a_nameless_crowd(ledger):
    spend(ledger, crowd(NAMES[:10]), "0.5")
    spend(ledger, crowd(NAMES[10:]), "0.3")
    asked = ledger.preview(preview(nameless(crowd(NAMES)), "vlcp", epsilon=1).charge)
    assert str(asked.remaining) == "0.5"


def test_without_its_key_a_ledger_knows_nobody(ledger):
    spend(ledger, crowd(NAMES))
    key = key_path(ledger.path)
    hidden = key.rename(key.with_suffix(".hidden"))
    strangers = crowd([f"stranger {i}" for i in range(4)])
    with pytest.raises(BudgetExceeded, match="counted as the same people because not all are known by name"):
        spend(ledger, strangers)
    assert "key" in ledger.preview(preview(strangers, "vlcp", epsilon=1).charge).caution
    hidden.rename(key)
    spend(ledger, strangers)


def test_the_key_of_another_ledger_is_refused(ledger, tmp_path):
    other = Ledger.create(tmp_path / "other.ledger", 1)
    key_path(ledger.path).write_bytes(key_path(other.path).read_bytes())
    with pytest.raises(CrowdveilError, match="is not the key of"):
        spend(ledger, crowd(NAMES))
    assert ledger.statement().accounts == ()


def test_a_person_is_aes_of_the_names_digest():
    key = bytes(range(32))
    names = ["ann", "bob", "välj"]
    expected = []
    for name in names:
        cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
        block = cipher.update(hashlib.blake2b(name.encode(), digest_size=16).digest())
        expected.append(int.from_bytes(block[:8], "little"))
    assert people_of(crowd_of(*names), key).tolist() == sorted(expected)


def test_names_are_not_in_the_ledger(ledger):
    spend(ledger, crowd(NAMES))
    content = ledger.path.read_bytes()
    for name in NAMES:
        assert name.encode() not in content
        assert hashlib.blake2b(name.encode(), digest_size=16).digest()[:8] not in content


def test_somebody_who_is_there_twice_is_refused(ledger):
    doubled = resampled(crowd(NAMES), np.array([0, 1, 2, 0]))
    with pytest.raises(CrowdveilError, match="1 of 3 voters occur more than once"):
        spend(ledger, doubled)


def test_a_selection_is_refused_unless_its_label_is_public(ledger, tmp_path):
    ballots = crowd(NAMES)
    some = ballots.filter(np.arange(20) < 10, "those who swerve")
    for ask in (lambda **o: spend(ledger, some, **o), lambda **o: preview(some, "vlcp", epsilon=1, **o)):
        with pytest.raises(CrowdveilError, match="were selected by 'those who swerve'"):
            ask()
        with pytest.raises(CrowdveilError, match="were selected by 'those who swerve'"):
            ask(public_selection="those who are young")
    assert ledger.statement().accounts == ()
    write_ballots(tmp_path / "some.parquet", some.study, [some], {})
    with pytest.raises(CrowdveilError, match="were selected by"):
        spend(ledger, open_ballots(tmp_path / "some.parquet"))
    made = spend(ledger, open_ballots(tmp_path / "some.parquet"), public_selection="those who swerve")
    assert made.facts["selected_by"] == "those who swerve"


def test_many_people_are_charged():
    """Sorted numbers of 8 bytes: a second crowd that shares a half is found out."""
    digests = np.random.default_rng(1).integers(0, 256, 16 * 150_000, np.uint8).tobytes()
    first, second = (Crowd("s", 10**5, digests[16 * start : 16 * (start + 10**5)]) for start in (0, 50_000))
    key = bytes(32)
    assert len(np.intersect1d(people_of(first, key), people_of(second, key))) == 50_000


def test_a_charge_holds_its_crowd_for_good(ledger):
    ledger.charge(Charge("0" * 64, crowd_of("a", "b"), Unit.VOTER, Amount(400_000), 1, "x"))
    ledger.charge(Charge("1" * 64, crowd_of("b", "a"), Unit.VOTER, Amount(400_000), 1, "x"))
    (account,) = Ledger.open(ledger.path).statement().accounts
    assert (account.voters, account.named, len(account.entries)) == (2, True, 2)
