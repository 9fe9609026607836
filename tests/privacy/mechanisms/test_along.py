"""What releases measure: factors, every direction in which features differ, or what promises the least error."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crowdveil.ballots.ballots import concatenate
from crowdveil.decision import crowd_certainty
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.crowd_preference import crowd_preference
from crowdveil.estimation.design import measured_design, public_design
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.mechanisms.expected_errors import ExpectedErrors
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED, MECHANISMS, recommended_along
from crowdveil.publish.release import preview, release_for_experiments
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study
from crowdveil.study.drawing import draw_dilemmas

MACHINE = load_study("moral-machine")
EVERYTHING = replace(MACHINE, along="features")
PAGE = (Path(__file__).parents[3] / "docs/mechanisms.md").read_text(encoding="utf-8")
CROWD = concatenate(MACHINE, list(simulated_batches(MACHINE, 1500, np.random.default_rng(4))))


def test_what_releases_measure_is_no_part_of_what_is_asked():
    assert EVERYTHING.fingerprint == MACHINE.fingerprint
    assert EVERYTHING != MACHINE
    assert type(MACHINE).from_dict(EVERYTHING.as_dict()) == EVERYTHING


def test_devices_report_along_axes_of_all_directions_that_vary_those_of_factors_first():
    factors, whole = measured_design(MACHINE), measured_design(EVERYTHING)
    assert (factors.directions, whole.directions) == (len(MACHINE.factors), MACHINE.dimension)
    assert np.array_equal(whole.axes[:, : factors.directions], factors.axes)
    assert not whole.rest.size
    moments = whole.along.T @ whole.along / len(whole.along)
    assert moments == pytest.approx(np.eye(MACHINE.dimension), abs=0.01)


def test_rotated_axes_of_the_rest_hold_nothing_of_a_factor():
    whole = measured_design(EVERYTHING)
    turned = np.linalg.pinv(whole.basis) @ whole.rotated.basis
    k = public_design(MACHINE).directions
    assert turned[:k, k:] == pytest.approx(0.0, abs=1e-4)
    assert turned[k:, :k] == pytest.approx(0.0, abs=1e-4)
    assert turned @ turned.T == pytest.approx(np.eye(len(turned)), abs=1e-3)


OF_EACH_UNIT = [("vlcp", 3), ("rlcp", 1), ("vldp", 8), ("rldp", 3), ("aldp", 3)]


@pytest.mark.usefixtures("few_crowds_unless_slow")
@pytest.mark.parametrize(
    ("paradigm", "epsilon"), [*OF_EACH_UNIT, *(pytest.param(*pair, marks=pytest.mark.slow) for pair in OF_EACH_UNIT)]
)
def test_measured_along_features_no_direction_is_left_to_the_prior(paradigm, epsilon):
    """Along factors, the bound on what they leave out is nearly the margin itself, and hardly anything is certain."""
    given = {"epsilon": epsilon, "seed": 1} | ({"design": "study"} if paradigm in ("vldp", "rldp") else {})
    factors, features = (
        release_for_experiments(CROWD, paradigm, along=along, **given) for along in ("factors", "features")
    )
    left, right = draw_dilemmas(MACHINE, 10, np.random.default_rng(2))
    dilemmas = (left - right) / MACHINE.units
    assert min(factors.unknown.rest_bound(one) for one in dilemmas) > 0
    assert max(features.unknown.rest_bound(one) for one in dilemmas) == 0
    exact = crowd_preference(CROWD).preference

    def certain(release):
        sides = dilemmas * np.sign(dilemmas @ release.unknown.basis @ release.unknown.center)[:, None]
        sure = np.array([crowd_certainty(release, side) >= 0.9 for side in sides])
        return sure.mean(), (sure & (sides @ exact < 0)).mean()

    (before, _), (after, wrong) = certain(factors), certain(features)
    assert after > before
    assert wrong <= 0.1


@pytest.mark.parametrize("mechanism", ["score", "one-bit"])
def test_devices_measure_what_promises_the_least_error(mechanism):
    """Few voters along factors, many along features; and never by anything but public numbers."""
    paradigm = DISTRIBUTED[mechanism].paradigms[0]
    faint, loud = (
        preview(CROWD, paradigm, epsilon=epsilon, mechanism=mechanism, design="study") for epsilon in ("0.1", 20)
    )
    assert faint.settings.study.along == "factors"
    assert loud.settings.study.along == "features"
    unknown = preview(CROWD, paradigm, epsilon=20, mechanism=mechanism)
    assert unknown.settings.study.along is None  # of a file's dilemmas, how directions correlate is not known


def test_the_error_of_a_margin_is_what_shrinking_leaves():
    """Nine axes of prior variance 1/4 with errors of as much; 14 of (0.15)^2 / 14, measured without error, or not."""
    design = public_design(MACHINE)
    noise = np.diag(np.repeat([0.25, 0.0], [9, 14]))
    known, unknown = (ExpectedErrors(noise, 0 * noise, 0.0, rest_known=rest) for rest in (True, False))
    assert known.margin_error(design) == pytest.approx(9 * 0.125)
    assert unknown.margin_error(design) == pytest.approx(9 * 0.125 + 0.15**2)


@pytest.mark.parametrize("mechanism", ["score", "one-bit", "randomised-response", "voter-score", "pooled-score"])
def test_a_forecast_knows_what_is_measured(mechanism):
    settings = MechanismSettings(EVERYTHING, 2.0, drawn=True)
    found = MECHANISMS[mechanism].expected_errors(settings, 2000, 13, Epsilon(1))
    assert found.rest_known
    assert np.diag(found.noise).min() > 0
    fewer = MECHANISMS[mechanism].expected_errors(
        replace(settings, study=replace(MACHINE, along="factors")), 2000, 13, Epsilon(1)
    )
    assert not fewer.rest_known
    assert np.diag(fewer.noise)[:9].sum() < np.diag(found.noise)[:9].sum() or mechanism == "randomised-response"


@pytest.mark.parametrize(
    ("paradigm", "options", "message"),
    [
        ("vlcp", {"along": "axes"}, "along is 'axes': use 'factors' or 'features'"),
        ("vlcp", {"along": 3}, "along is 3: use"),
        ("vlcp", {"mechanism": "algorithm-1", "along": "features"}, "estimates the paper's society"),
        ("rldp", {"design": CROWD[:100]}, "reports of score are made along the study's own axes"),
    ],
)
def test_what_cannot_be_measured_is_refused(paradigm, options, message):
    with pytest.raises(CrowdveilError, match=message):
        preview(CROWD, paradigm, epsilon=1, **options)


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "voters"),
    [
        ("score", "0.3", 18_600),
        ("score", 1, 2530),
        ("score", 3, 620),
        ("score", 10, 111),
        ("one-bit", "0.3", 128_000),
        ("one-bit", 1, 13_300),
        ("one-bit", 3, 3470),
        ("one-bit", 10, 980),
    ],
)
def test_the_docs_say_from_how_many_voters_on_every_direction_is_measured(mechanism, epsilon, voters):
    settings = MechanismSettings(MACHINE, 2.0, drawn=True)
    chosen = [recommended_along(mechanism, settings, round(voters * part), Epsilon(epsilon)) for part in (0.98, 1.02)]
    assert chosen == ["factors", "features"]
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{mechanism}` | "))
    assert f"{voters:,}" in row


def test_three_answers_are_measured_along_features_too():
    study = replace(MACHINE, indifference="Toss a coin")
    crowd = concatenate(study, list(simulated_batches(study, 300, np.random.default_rng(4))))
    factors, features = (
        release_for_experiments(crowd, "aldp", epsilon=1, seed=1, along=along) for along in ("factors", "features")
    )
    assert (len(factors.unknown.center), len(features.unknown.center)) == (len(study.factors), study.dimension)
