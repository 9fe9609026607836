from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from crowdveil.pages.feature_estimates import (
    FeatureEstimate,
    PreferenceSign,
    decimals,
    feature_estimates,
    finding_sentences,
    one_line,
    signed,
)
from crowdveil.pages.release_page import release_page
from crowdveil.privacy.noise.distribution import EmpiricalNormal
from crowdveil.privacy.uncertainty import Uncertainty
from crowdveil.releases import Release
from crowdveil.study.bundled import load_study


def test_features_are_sorted_and_keep_their_error_bars(make_release: Callable[..., Release]) -> None:
    study = load_study("kidney")
    values = np.array([0.1, 0.5, -0.3, 0.0, 0.2])
    variances = np.diag([1.0, 4.0, 9.0, 16.0, 25.0]) / 1e4
    release = make_release(study=study, parameter=values, noise=EmpiricalNormal(tuple(map(tuple, variances.tolist()))))
    found = feature_estimates(release)
    labels = [study.features[k].label for k in (1, 4, 0, 3, 2)]
    assert [r.label for r in found] == labels
    assert [r.value for r in found] == [0.5, 0.2, 0.1, 0.0, -0.3]
    # 95 % of a normal variable lie within 1.96 standard deviations.
    reach = NormalDist().inv_cdf(0.975)
    assert [r.error_bar for r in found] == pytest.approx([reach * s / 100 for s in (2, 5, 1, 4, 3)])


@pytest.mark.parametrize(
    ("value", "error_bar", "sign"),
    [
        (0.2, 0.1, PreferenceSign.MORE),
        (-0.2, 0.1, PreferenceSign.LESS),
        (0.1, 0.1, PreferenceSign.UNCLEAR),
        (-0.05, 0.1, PreferenceSign.UNCLEAR),
    ],
)
def test_a_bar_that_reaches_zero_is_unclear(value: float, error_bar: float, sign: PreferenceSign) -> None:
    assert FeatureEstimate("x", value, error_bar).sign is sign


def test_a_value_that_was_drawn_toward_zero_is_told_from_it_by_what_was_measured(
    make_release: Callable[..., Release],
) -> None:
    """0.4 was measured with a bar of 0.06, and shrunk to 0.1: the largest error is 0.36, but zero is far away."""
    study = load_study("kidney")
    values, measured, none = np.full(5, 0.1), np.array([0.4, 0.4, -0.4, 0.03, 0.4]), np.zeros((5, 5))
    unknown = Uncertainty(np.eye(5), np.zeros((5, 0)), values, none, measured, none, np.zeros(5))
    release = make_release(study=study, parameter=values, unknown=unknown)
    shown = {estimate.label: estimate for estimate in feature_estimates(release)}
    signs = [shown[feature.label].sign for feature in study.features]
    more, unclear = PreferenceSign.MORE, PreferenceSign.UNCLEAR
    assert signs == [more, more, unclear, unclear, more]
    first = shown[study.features[0].label]
    assert first.ends == pytest.approx((0.34, 0.46), abs=1e-3)
    assert first.error_bar == pytest.approx(0.36, abs=1e-3)
    page = release_page([release])
    assert "3 of 5 features can be told from zero." in page
    assert "+0.34 to +0.46" in page


def test_a_share_is_stated_of_a_crowd_and_never_of_a_society(make_release: Callable[..., Release]) -> None:
    """With gamma normal, the mean of Phi(gamma) is Phi(mean / sqrt(1 + variance))."""
    study = load_study("kidney")
    values = np.array([0.5, 0.4, 0.3, 0.2, -0.1])
    none = np.zeros((5, 5))
    society = make_release(study=study, parameter=values)
    unknown = Uncertainty(np.eye(5), np.zeros((5, 0)), values, np.diag([0.1] * 5), values, none, np.zeros(5))
    assert [r.share for r in feature_estimates(society)] == [None] * 5
    shares = [r.share for r in feature_estimates(replace(society, unknown=unknown))]
    assert shares == pytest.approx([NormalDist().cdf(value / np.sqrt(1.1)) for value in values])


def test_a_feature_that_the_study_never_varies_is_told_as_not_known(make_release: Callable[..., Release]) -> None:
    study = load_study("kidney")
    values = np.array([0.5, 0.4, 0.0, 0.2, -0.1])
    basis = np.eye(5)
    basis[2, 2] = 0.0
    none = np.zeros((5, 5))
    unknown = Uncertainty(basis, np.zeros((5, 0)), values, none, values, none, np.zeros(5))
    label = study.features[2].label
    shown = feature_estimates(make_release(study=study, parameter=values, unknown=unknown))
    assert [r.label for r in shown if not r.known] == [label]
    assert {r.label: r.bar_text(2) for r in shown if not r.known} == {label: "not known"}
    # Laplace noise of the fixture's size is within 0.06, around what was measured.
    measured = {study.features[k].label: (value - 0.06, value + 0.06) for k, value in enumerate(values)}
    assert all(r.ends == pytest.approx(measured[r.label], abs=1e-3) for r in shown if r.known)
    assert shown[0].bar_text(2) == "+0.44 to +0.56"
    assert finding_sentences(shown, 2)[-1].startswith(f"Nothing is known about “{label}”")
    page = release_page([make_release(study=study, parameter=values, unknown=unknown)])
    assert '<td role="cell" class="number"></td><td role="cell" class="number">not known</td>' in page
    assert "A cross: not known." in page
    assert "± 0.000" not in page


@pytest.mark.parametrize(
    ("bars", "places"), [((0.057, 0.2), 3), ((0.0057,), 4), ((5.2,), 1), ((16.0, 20.0), 0), ((0.0,), 3), ((0.1,), 2)]
)
def test_decimals_show_two_digits_of_the_smallest_bar(bars: tuple[float, ...], places: int) -> None:
    assert decimals([FeatureEstimate("x", 1.0, bar) for bar in bars]) == places


def test_signed_numbers() -> None:
    assert [signed(v, 2) for v in (0.126, -0.126, 0.001, -0.001, 0.0)] == ["+0.13", "−0.13", "0.00", "0.00", "0.00"]


def test_words_from_a_file_become_one_line_that_utf8_can_carry() -> None:
    hostile = "a\nb\t c\x00d\x1be\ud800f\u202eg\x85h"
    cleaned = one_line(hostile)
    assert cleaned.encode() == "a b c\ufffdd\ufffde\ufffdf\ufffdg h".encode()
    assert one_line("Ünïcode 漢字 👩‍👩‍👧 עברית") == "Ünïcode 漢字 👩‍👩‍👧 עברית"
