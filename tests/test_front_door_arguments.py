"""The front door: what is no argument, and a crowd of nobody, is refused in one line of ours."""

import numpy as np
import pytest

import crowdveil as cv
from crowdveil.publish.groups import groups_of
from crowdveil.publish.request import Request


@pytest.fixture(scope="module")
def crowd():
    return cv.simulate_crowd("kidney", 40, seed=1)


@pytest.fixture
def ledger(tmp_path):
    return cv.Ledger.open(tmp_path / "study.ledger", budget=10)


def test_a_selection_of_a_selection_is_released_only_if_both_are_declared(crowd, ledger):
    first = crowd.filter(crowd.counts > 0, "gender = women")
    again = first.filter(lambda ballots: ballots.counts >= 0, "at least 0 answers")
    for declared in (None, "gender = women", "at least 0 answers"):
        with pytest.raises(
            cv.CrowdveilError, match="these voters were selected by 'gender = women, at least 0 answers'"
        ):
            cv.release(again, "vlcp", epsilon=1, ledger=ledger, public_selection=declared)
    both = "gender = women, at least 0 answers"
    released = cv.release(again, "vlcp", epsilon=1, ledger=ledger, public_selection=both)
    assert released.facts["selected_by"] == both


def test_one_voter_cannot_be_released_as_many(crowd):
    nameless = cv.Ballots(crowd.study, crowd.offsets, crowd.dilemmas, crowd.choices)
    with pytest.raises(cv.CrowdveilError, match="position 0 is given 500 times"):
        nameless.take([0] * 500)


def nobodies(crowd):
    return [crowd[:0], crowd.filter(np.zeros(crowd.voters, bool)), crowd.split(0, 1)[0]]


@pytest.mark.parametrize(
    "work",
    [
        lambda crowd, ledger: cv.preview(crowd, "vlcp", epsilon=1),
        lambda crowd, ledger: cv.release(crowd, "vlcp", epsilon=1, ledger=ledger),
        lambda crowd, ledger: cv.release_for_experiments(crowd, "vldp", epsilon=1, seed=1),
        lambda crowd, ledger: cv.release_by(crowd, "gender", "vlcp", epsilon=1, ledger=ledger),
        lambda crowd, ledger: cv.release_by(crowd, "gender", "rlcp", epsilon=1, ledger=ledger),
        lambda crowd, ledger: groups_of(crowd, "gender", Request.of("rlcp", 1)),
        lambda crowd, ledger: cv.preview(cv.simulate_crowd("kidney", 40, seed=2), "vlcp", epsilon=1, design=crowd),
        lambda crowd, ledger: cv.preview_effects(crowd, "vlcp", epsilon=1),
        lambda crowd, ledger: cv.effects(crowd, "vlcp", epsilon=1, ledger=ledger),
        lambda crowd, ledger: cv.effects(crowd, "rlcp", epsilon=1, ledger=ledger, by="gender"),
        lambda crowd, ledger: cv.effects_for_experiments(crowd, "vlcp", epsilon=1, seed=1),
        lambda crowd, ledger: cv.preview_together(crowd, "vlcp", epsilon=1),
        lambda crowd, ledger: cv.exact_effects(crowd),
        lambda crowd, ledger: cv.exact_effects(crowd, "gender"),
        lambda crowd, ledger: cv.crowd_preference(crowd),
        lambda crowd, ledger: cv.society(crowd, 2.0),
        lambda crowd, ledger: cv.society(crowd, None),
    ],
)
def test_nothing_is_said_about_nobody(crowd, ledger, work):
    for nobody in nobodies(crowd):
        with pytest.raises(
            cv.CrowdveilError, match="there are no voters in these ballots of the study kidney"
        ) as refusal:
            work(nobody, ledger)
        assert "\n" not in str(refusal.value)
    assert ledger.statement().accounts == ()


def test_nobody_judges_no_release(crowd):
    release = cv.release_for_experiments(crowd, "vlcp", epsilon=1, seed=1)
    for nobody in nobodies(crowd):
        with pytest.raises(cv.CrowdveilError, match="there are no voters in these ballots"):
            cv.evaluate(release, nobody)


def test_an_array_without_dimensions_is_no_list_of_epsilons(crowd, ledger):
    with pytest.raises(cv.CrowdveilError, match=r"personal epsilons are array\(1\), and must be a list of numbers"):
        cv.release(crowd, "vlcp", epsilon=np.array(1), ledger=ledger)


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_number_without_end_is_none(crowd, tmp_path, digits):
    huge = 10**digits
    for work in (
        lambda: cv.society(crowd, huge),
        lambda: cv.fit_voters(crowd, huge),
        lambda: cv.crowd_preference(crowd, directions=huge),
        lambda: cv.Epsilon(huge),
        lambda: cv.Ledger.open(tmp_path / "study.ledger", budget=huge),
    ):
        with pytest.raises(cv.CrowdveilError, match=r"100000|thousands of digits"):
            work()


def test_ballots_are_written_as_what_they_are_about(crowd, tmp_path):
    other = cv.simulate_crowd("moral-machine", 3, seed=1)
    with pytest.raises(
        cv.CrowdveilError,
        match=r"a batch is about the study moral-machine \(\w{8}\), and the file about kidney \(\w{8}\)",
    ):
        cv.write_ballots(tmp_path / "crowd", crowd.study, [other], {})
    assert list(tmp_path.iterdir()) == []
