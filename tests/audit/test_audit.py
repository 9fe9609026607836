"""The quick audit, end to end: all promises hold, all mistakes are caught, and a broken promise is reported."""

import json
import math
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from laws_of_reports import flipped_law
from scipy.stats import norm
from tests.program import crowdveil, refused

from crowdveil.audit import targets
from crowdveil.audit.audit import FEWEST_DRAWS, AuditRequest, audit, draw
from crowdveil.audit.neighbours import Effort
from crowdveil.audit.trial import Flaw, TrialVerdict
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.mechanisms.fisher_scoring import PooledChoices
from crowdveil.privacy.mechanisms.registry import ALL
from crowdveil.privacy.noise.exact_noise import BulkNoise

ONE = Epsilon("1")


@pytest.fixture(scope="module", params=[Effort(1, 120), pytest.param(Effort(3, 150), marks=pytest.mark.slow)], ids=repr)
def done(request):
    """The audit. In 120 rounds the search finds neighbours that are as far apart as the quick audit's, who are slow."""
    return audit(AuditRequest(ONE, FEWEST_DRAWS, request.param))


def test_every_promise_holds(done):
    assert [(t.name, t.remark, t.flaws) for t in done.promises if not t.as_it_should_be] == []


def test_every_mechanism_is_on_trial(done):
    assert set(ALL) <= {trial.name for trial in done.promises}


def test_reports_along_features_are_on_trial(done):
    assert {trial.name for trial in done.promises if trial.remark == "along features"} == {"one-bit", "score"}


def test_every_mistake_is_caught(done):
    assert [(t.name, t.bug) for t in done.bugs if not t.as_it_should_be] == []
    assert {trial.bug for trial in done.bugs} >= {
        "factor 2 missing",
        "scale too small by sqrt 2",
        "sensitivity per coordinate",
        "wrong odds of k",
        "flips with e^-epsilon",
        "one draw for two coordinates",
        "clipping left out",
        "clip of a step left out",
        "whole epsilon at every step",
        "same noise after a fork",
        "floating-point noise",
        "one side of a choice forgotten",
        "odds of two options for three",
        "indifference never turned over",
        "odds of two answers for three",
        "half the noise of a share",
        "a second answer never turned over",
        "said where answers differ",
        "half the noise of a count",
        "deviation halved",
        "bound of a larger crowd",
        "delta forgotten",
        "not shuffled",
        "order of arrival kept",
        "batch too small",
        "length varies",
    }


def test_mistakes_in_promises_with_a_delta_are_caught_by_the_attack(done):
    told = {trial.bug: trial.flaws for trial in done.bugs}
    of_relays = ("order of arrival kept", "batch too small", "length varies")
    for bug in ("deviation halved", "bound of a larger crowd", "delta forgotten", "not shuffled", *of_relays):
        assert Flaw.BOUND in told[bug]


def test_all_noise_follows_its_law(done):
    assert [(test.sampler, test.law) for test in done.laws if not test.passed] == []
    assert done.clean


def test_bounds_are_near_the_truth_where_the_truth_is_known(done):
    """Epsilon 1 is reached by these; halving the noise gives 2; e^-0.1 for 1 / (1 + e^0.1) gives ln(q / (1 - q)).

    The allowances are wider than ten standard deviations at 20,000 draws.
    """
    promised = {trial.name: trial.evidence.shown for trial in done.promises if not trial.remark}
    for name in ("algorithm-1", "algorithm-2", "voter-score", "pooled-score", "pooled-choices", "score"):
        assert 0.7 < promised[name] <= 1.05
    wrong = {trial.bug: trial.evidence.shown for trial in done.bugs}
    assert 1.3 < wrong["factor 2 missing"] <= 2.1
    assert 1.9 < wrong["flips with e^-epsilon"] <= 2.35
    assert wrong["one draw for two coordinates"] > 6


def gaussian_delta(mu, epsilon):
    """The exact delta of two unit Gaussians at a distance of mu (Balle and Wang 2018, Theorem 5)."""
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


def test_what_is_proved_of_the_gaussian_mean_is_below_its_exact_curve(done):
    """The sides are sqrt(2 rho) standard deviations apart; the exact epsilon lies below the promised one."""
    made = next(trial for trial in done.promises if trial.name == "gaussian-mean")
    mu, delta = math.sqrt(2 * float(made.remark.removeprefix("rho = "))), made.claimed.delta
    assert made.verdict is TrialVerdict.HOLDS
    assert gaussian_delta(mu, made.evidence.judged) > delta
    assert gaussian_delta(mu, made.claimed.epsilon) < delta
    assert made.evidence.shown > 0


def test_what_is_proved_of_shuffled_reports_is_below_the_exact_curve(done):
    made = next(trial for trial in done.promises if trial.remark == "shuffled, 10 voters, d = 1 (randomised response)")
    assert made.verdict is TrialVerdict.HOLDS
    sides = flipped_law(1), flipped_law(-1)
    judged = math.exp(made.evidence.judged)
    assert max(np.maximum(p - judged * q, 0).sum() for p, q in (sides, sides[::-1])) > made.claimed.delta
    assert made.evidence.shown > 0.3 * made.claimed.epsilon


def test_algorithm_3_is_judged_by_its_noise_where_the_attack_is_blind(done):
    halved = next(trial for trial in done.bugs if trial.bug == "Delta halved")
    assert Flaw.NOISE in halved.flaws
    assert all(t.reach < 1 and t.noise_p_value is not None for t in done.promises if t.name == "algorithm-3")


def test_the_result_is_plain_data(done):
    data = json.loads(json.dumps(done.as_dict(), allow_nan=False))
    assert data["clean"] is True
    assert {"mechanism", "claimed", "lower_bound", "verdict", "flaws", "reach"} <= set(data["promises"][0])


def test_the_picture_names_every_trial(done, tmp_path):
    path = tmp_path / "audit.svg"
    draw(done).savefig(path)
    ElementTree.parse(path)
    labels = [label.get_text() for label in draw(done).axes[0].get_yticklabels()]
    assert len(labels) == len(done.trials)
    assert "wrong on purpose: factor 2 missing" in labels


class Doubled(PooledChoices):
    """Counts every choice twice, with noise for one."""

    def measure(self, source, settings, loss):
        measured = super().measure(source, settings, loss)
        return replace(measured, total=2 * measured.total)


def test_a_broken_promise_ends_with_exit_code_1(monkeypatch, tmp_path):
    monkeypatch.setattr(targets, "PooledChoices", Doubled)
    plot = tmp_path / "audit.png"
    result = crowdveil("audit", "--quick", "--mechanism", "pooled-choices", "--json", "--plot", plot)
    assert result.code == 1
    (broken,) = json.loads(result.stdout)["promises"]
    assert broken["verdict"] == "VIOLATED"
    assert broken["flaws"] == ["attack", "neighbours too far apart"]
    assert 1.5 < broken["lower_bound"] < 2.1
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_a_missed_mistake_fails_the_audit(monkeypatch):
    monkeypatch.setattr(targets, "TooLittleNoise", lambda factor: BulkNoise())
    done = audit(AuditRequest(ONE, FEWEST_DRAWS, Effort(1, 80), "algorithm-1"))
    verdicts = {trial.bug: trial.verdict for trial in done.bugs}
    assert verdicts == {"factor 2 missing": TrialVerdict.MISSED, "one draw for two coordinates": TrialVerdict.CAUGHT}
    assert not done.clean


def test_in_words(done, monkeypatch):
    monkeypatch.setattr("crowdveil.audit.audit.audit", lambda order, advance: done)
    result = crowdveil("audit", "--quick")
    assert result.code == 0
    assert "All promises held" in result.stdout
    assert set(ALL) <= set(result.stdout.split())
    assert ", delta 0.0" in result.stdout
    assert "deviation" in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--draws", "10"], "20000 to 1000000 draws"),
        (["--mechanism", "magic"], "choose one of algorithm-1"),
        (["--plot", "audit.xyz"], "must end in .svg"),
        (["--plot", "no/such/place.svg"], "no directory"),
        (["--epsilon", "0"], "0.0001 to 50"),
    ],
)
def test_mistakes_of_the_user_are_refused_before_anything_runs(words, said):
    refused(crowdveil("audit", *words), said)
