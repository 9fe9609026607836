"""The vectors in vectors/: checked against closed forms in exact arithmetic, and up to date."""

import hashlib
import json
import math
from decimal import Decimal, getcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_ndtr
from vectors import generate

from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.protocol.report import Terms, check_report
from crowdveil.study.study import Study

FOLDER = Path(generate.__file__).parent
getcontext().prec = 60


def load(name):
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("make", generate.VECTORS, ids=lambda make: make.__name__)
def test_vectors_are_up_to_date(make):
    written = load(make.__name__.replace("_", "-"))
    made = {"meaning": make.__doc__, **make()}
    if make is generate.fit:  # floating point: the same to a tolerance on every machine
        for a, b in zip(written.pop("cases"), made.pop("cases"), strict=True):
            assert a["differences"] == b["differences"]
            assert a["preference"] == pytest.approx(b["preference"], abs=written["tolerance"])
    assert written == json.loads(json.dumps(made))


def test_a_report_from_scripted_bytes_is_one_that_the_service_takes():
    vectors = load("scripted-reports")
    assert {case["mechanism"] for case in vectors["cases"]} == set(DISTRIBUTED)
    takes_all(vectors)


def test_of_few_axes_not_all_records_are_scored():
    """Four of eight, so that lengths are told as that of four records, and such that the service takes the reports."""
    vectors = load("few-axes")
    assert (len(vectors["dilemmas"]), vectors["polls"]["one-bit"]["method"]["records"]) == (8, 4)
    takes_all(vectors)


def test_a_third_answers_reports_are_of_both_kinds_and_such_that_the_service_takes():
    vectors = load("third-answer")
    said = {
        (case["mechanism"], json.loads(case["report"]).get("indifferent", "three answers")) for case in vectors["cases"]
    }
    bits = {(name, bit) for name in ("one-bit", "score") for bit in (1, -1, None)}
    assert said == {*bits, ("randomised-response", "three answers")}
    takes_all(vectors)


@pytest.mark.parametrize(("name", "mechanisms"), [("repeats", set(DISTRIBUTED)), ("repeats-of-three", None)])
def test_reports_on_a_repeat_are_of_both_kinds_and_such_that_the_service_takes(name, mechanisms):
    vectors = load(name)
    assert mechanisms in (None, {case["mechanism"] for case in vectors["cases"]})
    assert {json.loads(case["report"])["alike"] for case in vectors["cases"]} == {1, -1, None}
    takes_all(vectors)


def takes_all(vectors):
    for case in vectors["cases"]:
        study = Study.from_dict(vectors["polls"][case["mechanism"]]["study"])
        terms = Terms(
            case["mechanism"],
            MechanismSettings(study, study.norm_bound, drawn=True),
            [Epsilon.of_millionths(case["epsilon_micro"])],
        )
        body = json.loads(case["report"])
        assert body.pop("about").keys() == vectors["about"].keys() - {"check"}
        check_report(body, terms)


def test_report_ids_are_half_a_sha256():
    for case in load("report-ids")["cases"]:
        digest = hashlib.sha256(b"crowdveil report " + case["token"].encode()).digest()
        assert bytes.fromhex(case["id"]) == digest[:16]


def floor_of(probability):
    return str(int(probability * 2**64))


def test_flip_coins_are_one_over_one_plus_e_to_the_epsilon():
    for case in load("randomised-response")["flips"]:
        epsilon = Decimal(case["epsilon_micro"]) / 10**6
        assert case["floor_of_2_to_64_p"] == floor_of(1 / (1 + epsilon.exp()))


def test_laplace_coins_follow_their_theorem():
    vectors = load("laplace")
    for case in vectors["cases"]:
        inverse_scale = Decimal(case["epsilon_micro"]) / (Decimal(vectors["sensitivity"]) * 10**6)
        q = (-inverse_scale).exp()
        digits = [1 / (1 + (inverse_scale * 2**k).exp()) for k in range(case["digits"])]
        expected = [2 * q / (1 + q), (-inverse_scale * 2 ** case["digits"]).exp(), *digits]
        assert case["floor_of_2_to_64_p"] == [floor_of(p) for p in expected]


def test_probabilities_of_laplace_noise_are_those_of_its_law():
    for case in load("laplace")["laws"]:
        q = (-Decimal(case["scale"][1]) / case["scale"][0]).exp()
        total = sum(q ** abs(x) for x in range(-1000, 1001))
        assert case["floor_of_2_to_64_p"] == [floor_of(q**x / total) for x in range(6)]


def test_cube_noise_has_the_shift_of_its_radius_and_the_probabilities_of_its_law():
    vectors = load("cube")
    for case in vectors["laws"]:
        q, d = (-Decimal(case["scale"][1]) / case["scale"][0]).exp(), case["dimension"]
        # (2r + 1)^d points have a norm of r or less.
        total = 1 + sum(q**r * ((2 * r + 1) ** d - (2 * r - 1) ** d) for r in range(1, 1000))
        assert case["floor_of_2_to_64_p"] == [floor_of(q**r / total) for r in range(6)]
    for case in vectors["cases"]:
        q, d = (-Decimal(case["scale"][1]) / case["scale"][0]).exp(), case["dimension"]
        # b(d, k), the coefficients of (1 - z)^(d + 1) sum_r (2r + 1)^d z^r.
        signs = [(-1) ** j * math.comb(d + 1, j) for j in range(d + 2)]
        numbers = [sum(signs[j] * (2 * (k - j) + 1) ** d for j in range(k + 1)) for k in range(d + 1)]
        weights = [number * q**k for k, number in enumerate(numbers)]
        assert case["floor_of_2_to_64_p"] == [floor_of(sum(weights[: k + 1]) / sum(weights)) for k in range(d)]


def test_options_are_kept_with_odds_of_e_to_the_epsilon():
    for case in load("about")["cases"]:
        favour = (Decimal(case["epsilon_micro"]) / 10**6).exp()
        assert case["floor_of_2_to_64_p"] == floor_of(favour / (favour + case["options"] - 1))


def test_sensitivities_of_coefficients_are_the_closed_forms():
    for d, steps in load("coefficients")["sensitivity"].items():
        d, coefficients = int(d), int(d) + int(d) * (int(d) + 1) // 2
        first, second = 2 * math.sqrt(2 * d / math.pi), math.sqrt(2) * d / math.pi
        angles = np.linspace(math.pi / 2, math.pi, 100_001)
        tight = np.max(first * np.sin(angles / 2) + second * np.sin(angles))
        assert tight <= (steps["tight"] - coefficients) / 2**30 <= tight * (1 + 1e-8)
        paper = first + 2 * d / math.pi
        assert paper <= (steps["paper"] - coefficients) / 2**30 <= paper * (1 + 1e-8)
        assert first <= steps["linear"] / 2**30 <= first * (1 + 1e-8)


def test_subset_selection_minimises_its_error_and_has_the_theorems_coin():
    for case in load("subset-selection")["cases"]:
        d, epsilon = case["features"], Decimal(case["epsilon_micro"]) / 10**6
        a = epsilon.exp() - 1
        errors = {k: k * (1 + 2 * d / (k * a)) ** 2 for k in range(1, d + 1)}
        assert errors[case["signs"]] == min(errors.values())
        r = Decimal(case["signs"]) / (2 * d)
        p = r * (epsilon.exp() + 1) / (1 + r * a)
        assert case["floor_of_2_to_64_p"] == (floor_of(p) if case["signs"] < d else str(2**64 - 1))


def test_grid_truncates_toward_zero_and_keeps_the_norm():
    vectors = load("grid")
    steps = vectors["steps_per_bound"]
    for case in vectors["cases"]:
        exact = [int(Fraction(v) / Fraction(vectors["norm_bound"]) * steps) for v in case["values"]]
        assert sum(map(abs, case["steps"])) <= steps
        if sum(map(abs, exact)) <= steps:
            assert case["steps"] == exact


def test_coefficients_are_those_of_the_expansion_and_scores_are_clipped_projections():
    vectors = load("coefficients")
    for case in vectors["cases"]:
        v = np.array(case["record"]) / max(vectors["record_bound"], np.linalg.norm(case["record"]))
        rows, columns = np.triu_indices(3)
        square = -np.outer(v, v)[rows, columns] * np.where(rows == columns, 1, 2) / math.pi
        expected = np.concatenate([math.sqrt(2 / math.pi) * v, square])
        assert np.array(case["coefficients"]) / vectors["coefficient_steps"] == pytest.approx(expected, abs=1e-4)
    vectors = load("scores")
    for case in vectors["cases"]:
        steps = [math.floor(value * unit + 0.5) for value, unit in zip(case["record"], vectors["units"], strict=True)]
        along = [sum(s * a for s, a in zip(steps, axis, strict=True)) for axis in zip(*vectors["axes"], strict=True)]
        assert case["scores"] == [max(-vectors["clip"], min(score, vectors["clip"])) for score in along]


def test_fits_are_not_beaten_by_another_optimiser():
    vectors = load("fit")
    bound = vectors["norm_bound"]
    for case in vectors["cases"]:
        v, beta = np.array(case["differences"]), np.array(case["preference"])
        split = np.hstack([v, -v])  # beta = u - w with u, w >= 0 and sum <= B
        best = minimize(
            lambda x, rows=split: -log_ndtr(rows @ x).sum(),
            np.full(split.shape[1], bound / (2 * split.shape[1])),
            bounds=[(0, bound)] * split.shape[1],
            constraints={"type": "ineq", "fun": lambda x: bound - x.sum()},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 1000},
        )
        assert np.abs(beta).sum() <= bound * (1 + 1e-9)
        assert log_ndtr(v @ beta).sum() >= -best.fun - 1e-6
