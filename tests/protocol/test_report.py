import json
import re
from dataclasses import replace
from itertools import cycle, islice

import numpy as np
import pytest

from crowdveil.ballots.ballots import Ballots
from crowdveil.errors import CrowdveilError, Reason, Refusal
from crowdveil.pages.plain_words import NoiseParty, noise_party
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.protocol.report import Terms, check_report, read_reports, write_reports
from crowdveil.publish.gather import release_from_reports
from crowdveil.releases import release_from_dict
from crowdveil.study.bundled import load_study, synthetic_study
from crowdveil.study.drawing import draw_dilemmas

pytestmark = pytest.mark.usefixtures("few_crowds")

EPSILONS = (Epsilon("0.5"), Epsilon(4))
STUDIES = {"moral-machine": load_study("moral-machine"), "kidney": load_study("kidney"), "small": synthetic_study(3, 5)}


def crowd(study, voters, seed=0):
    """Voters who choose the left side of every dilemma."""
    left, right = draw_dilemmas(study, voters, np.random.default_rng(seed))
    offsets = np.arange(voters + 1) * study.drawing.dilemmas
    return Ballots.from_differences(study, offsets, (left - right) / study.units)


def made(mechanism, study, voters, seed=0):
    epsilons = Epsilons(islice(cycle(EPSILONS), voters))
    settings = MechanismSettings(study, study.norm_bound, drawn=True)
    batch = DISTRIBUTED[mechanism].report(crowd(study, voters, seed), settings, epsilons, BulkNoise())
    bodies = write_reports(mechanism, study, epsilons, batch)
    return json.loads(json.dumps(bodies)), batch, Terms(mechanism, settings, EPSILONS)


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
@pytest.mark.parametrize("mechanism", DISTRIBUTED)
def test_honest_reports_are_accepted_and_read_back_as_they_were_made(mechanism, study):
    bodies, batch, terms = made(mechanism, study, 40)
    for body in bodies:
        check_report(body, terms)
    read = read_reports(bodies, terms)
    for field, value in vars(batch).items():
        assert np.array_equal(getattr(read, field), value), field


@pytest.mark.parametrize("mechanism", DISTRIBUTED)
def test_a_release_from_reports_says_what_the_mechanism_says_of_them(mechanism):
    first, first_batch, terms = made(mechanism, STUDIES["small"], 30)
    rest, rest_batch, _ = made(mechanism, STUDIES["small"], 10, seed=1)
    paradigm = PARADIGMS[DISTRIBUTED[mechanism].paradigms[0]]
    # One report alone is held back until there is a second: the mechanism gets two batches, of 30 and of 10. Given the
    # same batches, an iterative fit ends at the same bits; given others, only as near as it stops from the maximum.
    release = release_from_reports([first[:1], first[1:], rest], paradigm, terms)
    expected = DISTRIBUTED[mechanism].aggregate([first_batch, rest_batch], terms.settings)
    assert np.array_equal(release.parameter, expected.parameter)
    assert (release.guarantee.epsilon.micro, release.guarantee.smallest_epsilon.micro) == (4_000_000, 500_000)
    assert release.guarantee.voters == 40
    assert noise_party(release) is NoiseParty.DEVICES
    assert release_from_dict(json.loads(json.dumps(release.as_dict()))).digest == release.digest


def test_one_report_is_not_a_crowd():
    bodies, _, terms = made("score", STUDIES["small"], 2)
    for chunks in ([], [bodies[:1]]):
        with pytest.raises(CrowdveilError, match="at least 2 voters"):
            release_from_reports(chunks, PARADIGMS["rldp"], terms)


def test_a_mechanism_is_not_released_as_what_it_does_not_promise():
    bodies, _, terms = made("score", STUDIES["small"], 2)
    with pytest.raises(CrowdveilError, match="score serves rldp and aldp, not vldp"):
        release_from_reports([bodies], PARADIGMS["vldp"], terms)


BAD = {
    "no object": ("algorithm-2", lambda body: [body], Reason.MALFORMED),
    "a field more": ("algorithm-2", lambda body: {**body, "choices": [1, -1, 1]}, Reason.MALFORMED),
    "a field less": ("algorithm-2", lambda body: {k: v for k, v in body.items() if k != "values"}, Reason.MALFORMED),
    "another format": ("algorithm-2", lambda body: {**body, "format": "crowdveil report 0"}, Reason.MALFORMED),
    "another study": ("algorithm-2", lambda body: {**body, "study": "0" * 64}, Reason.WRONG_STUDY),
    "another mechanism": ("algorithm-2", lambda body: {**body, "mechanism": "score"}, Reason.WRONG_MECHANISM),
    "more epsilon": ("algorithm-2", lambda body: {**body, "epsilon_micro": 50_000_000}, Reason.WRONG_EPSILON),
    "half an epsilon": ("algorithm-2", lambda body: {**body, "epsilon_micro": 500_000.0}, Reason.WRONG_EPSILON),
    "a short row": ("algorithm-2", lambda body: {**body, "values": body["values"][1:]}, Reason.WRONG_SIZE),
    "floats": ("algorithm-2", lambda body: {**body, "values": [0.5, 0, 0]}, Reason.MALFORMED),
    "truths": ("algorithm-2", lambda body: {**body, "values": [True, 0, 0]}, Reason.MALFORMED),
    "a number": ("algorithm-2", lambda body: {**body, "values": 3}, Reason.MALFORMED),
    "65 bits": ("algorithm-2", lambda body: {**body, "values": [2**63, 0, 0]}, Reason.OUT_OF_RANGE),
    "too far out": ("algorithm-2", lambda body: {**body, "values": [2**50, 0, 0]}, Reason.OUT_OF_RANGE),
    "no signs": ("subset-selection", lambda body: {**body, "values": [0, 0, 0]}, Reason.OUT_OF_RANGE),
    "two in a place": ("subset-selection", lambda body: {**body, "values": [2, 0, 0]}, Reason.OUT_OF_RANGE),
    "too few terms": ("algorithm-3", lambda body: {**body, "values": body["values"][:3]}, Reason.WRONG_SIZE),
    "a longer ballot": ("score", lambda body: {**body, "records": 6}, Reason.WRONG_SIZE),
    "the same axis twice": ("score", lambda body: {**body, "coordinates": [0, 0], "values": [1, 1]}, Reason.MALFORMED),
    "no such axis": ("score", lambda body: {**body, "coordinates": [3], "values": [1]}, Reason.OUT_OF_RANGE),
    "axis from behind": ("score", lambda body: {**body, "coordinates": [-1], "values": [1]}, Reason.OUT_OF_RANGE),
    "no axis": ("score", lambda body: {**body, "coordinates": [], "values": []}, Reason.OUT_OF_RANGE),
    "a value more": ("score", lambda body: {**body, "coordinates": [0], "values": [1, 1]}, Reason.WRONG_SIZE),
    "a far score": ("score", lambda body: {**body, "values": [2**60] * len(body["values"])}, Reason.OUT_OF_RANGE),
    "no choice": ("randomised-response", lambda body: {**body, "choices": [0] * 5}, Reason.OUT_OF_RANGE),
    "a choice less": ("randomised-response", lambda body: {**body, "choices": [1] * 4}, Reason.WRONG_SIZE),
    "a dilemma less": (
        "randomised-response",
        lambda body: {**body, "dilemmas": body["dilemmas"][1:]},
        Reason.WRONG_SIZE,
    ),
    "a long dilemma": ("randomised-response", lambda body: {**body, "dilemmas": [[1, 1, 1, 1]] * 5}, Reason.WRONG_SIZE),
    "words": ("randomised-response", lambda body: {**body, "dilemmas": [["1", 1, 1]] * 5}, Reason.MALFORMED),
    "no number": ("randomised-response", lambda body: {**body, "dilemmas": [[np.nan, 1, 1]] * 5}, Reason.MALFORMED),
    "no double": ("randomised-response", lambda body: {**body, "dilemmas": [[10**400, 1, 1]] * 5}, Reason.MALFORMED),
    "another side": ("randomised-response", lambda body: {**body, "dilemmas": [[0, -1, 1]] * 5}, Reason.MALFORMED),
    "no such dilemma": (
        "randomised-response",
        lambda body: {**body, "dilemmas": [[17, 0, 0]] * 5},
        Reason.OUT_OF_RANGE,
    ),
    "all choices": (
        "one-choice",
        lambda body: {**body, "choices": [1] * 5, "dilemmas": [[1, 0, 0]] * 5},
        Reason.WRONG_SIZE,
    ),
}


@pytest.mark.parametrize(("mechanism", "spoil", "reason"), BAD.values(), ids=BAD)
def test_what_no_honest_device_sends_is_refused_with_its_reason(mechanism, spoil, reason):
    bodies, _, terms = made(mechanism, STUDIES["small"], 1)
    with pytest.raises(Refusal) as refused:
        check_report(spoil(bodies[0]), terms)
    assert refused.value.reason is reason


def test_a_wrong_epsilon_is_refused_in_epsilons():
    bodies, _, terms = made("algorithm-2", STUDIES["small"], 1)
    offered = " or ".join(map(str, sorted(terms.epsilons)))
    with pytest.raises(Refusal, match=f"report with epsilon {re.escape(offered)}, .*; got 50000000$"):
        check_report({**bodies[0], "epsilon_micro": 50_000_000}, terms)


def test_algorithm_3_without_the_repair_takes_no_reports():
    bodies, _, terms = made("algorithm-3", STUDIES["small"], 1)
    with pytest.raises(Refusal, match="no honest device"):
        check_report(bodies[0], replace(terms, settings=replace(terms.settings, repair=False)))
