"""The public design: integer axes that whiten a study's dilemmas, and what a crowd of a preference would choose."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from crowdveil.estimation.design import CLIP, GRID, SAMPLE, AxisSample, public_design
from crowdveil.study.bundled import load_study, synthetic_study

MACHINE = load_study("moral-machine")
FEW = replace(MACHINE, drawing=replace(MACHINE.drawing, dilemmas=5))  # its sessions never vary one of the factors
STUDIES = [synthetic_study(1), synthetic_study(5), MACHINE, load_study("kidney"), FEW]


def name(study):
    return f"{study.name}-{study.drawing.dilemmas}"


every_study = pytest.mark.parametrize("study", STUDIES, ids=name)


@every_study
def test_along_the_axes_the_dilemmas_are_uncorrelated_and_of_unit_size(study):
    """Also along those of the rest, and across. Axes are rounded to whole steps, of which GRID make a unit."""
    design = public_design(study).whole
    along = design.differences @ design.basis
    # A rounded axis is off by at most half a step for each step of a value; then Cauchy and Schwarz.
    steps = np.abs(design.differences * design.units).sum(axis=1)
    off = 0.5 / GRID * np.sqrt(np.mean(steps**2))
    assert np.abs(along.T @ along / len(along) - np.eye(design.directions)).max() < 2 * off + off**2 + 1e-9 < 0.02


@every_study
def test_values_and_axes_are_integers_whose_products_no_float_rounds(study):
    design = public_design(study)
    assert design.axes.dtype == design.rest.dtype == np.int64
    assert np.abs(design.whole.axes).max() * (study.reach * design.units).sum() < 2**53
    values = design.differences * design.units
    assert np.array_equal(values, np.rint(values)) == (not study.name.startswith("synthetic"))


@every_study
def test_the_axes_of_the_factors_span_the_factors_and_all_together_every_direction_that_varies(study):
    design = public_design(study)
    contrasts = design.differences @ study.factor_matrix
    assert design.directions == np.linalg.matrix_rank(contrasts)
    assert design.whole.directions == np.linalg.matrix_rank(design.differences.T @ design.differences)
    assert design.whole.rest.shape == (study.dimension, 0)
    assert np.array_equal(design.whole.axes, np.hstack([design.axes, design.rest]))
    assert len(design.differences) >= SAMPLE
    # A preference along the factors is one along the axes: theta' A'V = gamma . x for some gamma.
    x = design.differences[:2000] @ design.basis
    gamma = np.linalg.lstsq(x, contrasts[:2000], rcond=None)[0]
    assert x @ gamma == pytest.approx(contrasts[:2000], abs=1e-3)
    # Nothing is lost: what is seen along all axes tells the dilemma.
    some = design.differences[:2000]
    seen = some @ design.whole.basis
    assert seen @ np.linalg.lstsq(seen, some, rcond=None)[0] == pytest.approx(some, abs=1e-3)


@pytest.mark.parametrize("study", [MACHINE, STUDIES[3]], ids=name)
def test_each_axis_is_nearer_to_its_own_factor_than_to_any_other(study):
    design = public_design(study)
    together = np.corrcoef(design.along.T, (design.differences @ study.factor_matrix).T)
    across = together[: design.directions, design.directions :]
    assert np.array_equal(np.abs(across).argmax(axis=1), np.arange(design.directions))
    assert (np.diag(across) > 0.5).all()


@pytest.mark.parametrize("dilemmas", [1, 2, 5, 13])
def test_factors_that_a_short_session_never_varies_have_no_axis_and_no_warning(dilemmas):
    study = replace(MACHINE, drawing=replace(MACHINE.drawing, dilemmas=dilemmas))
    public_design.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        design = public_design(study)
    varied = study.contrasts(design.differences).any(axis=0)
    assert design.directions <= np.count_nonzero(varied)
    assert (dilemmas < 13) == (not varied.all())


@every_study
def test_everybody_finds_the_same_axes(study):
    first = public_design(study)
    public_design.cache_clear()
    second = public_design(study)
    assert first is not second
    assert first.whole.axes.tobytes() == second.whole.axes.tobytes()


def small_sample(study, dilemmas=3000):
    return public_design(study).sample.head(dilemmas)


def derivative_along(function, preference, direction):
    """By central differences: the error is of the order of 1e-10 times third derivatives, which are of order 1."""
    return (function(preference + 1e-5 * direction) - function(preference - 1e-5 * direction)) / 2e-5


@pytest.mark.parametrize("study", STUDIES[1:4], ids=name)
def test_derivatives_against_differences(study):
    sample, rng = small_sample(study), np.random.default_rng(2)
    preference, direction = rng.normal(0, 0.3, (2, sample.along.shape[1]))
    scores = rng.normal(size=sample.along.shape)
    for function in (
        sample.expected_means,
        lambda gamma: sample.expected_scores(gamma, CLIP),
        lambda gamma: sample.instrumented(scores, gamma),
    ):
        expected = derivative_along(lambda gamma, f=function: f(gamma)[0], preference, direction)
        assert function(preference)[1] @ direction == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("gamma", [0.0, 0.3, -1.4])
def test_expectations_against_quadrature(gamma):
    """One feature: x ~ N(0, 1), the chosen side x with probability Phi(gamma x). Its mean has a closed form, too."""

    def mean(of):
        return integrate.quad(
            lambda x: of(x) * (2 * stats.norm.cdf(gamma * x) - 1) * stats.norm.pdf(x), -9, 9, points=[-CLIP, 0, CLIP]
        )[0]

    sample = public_design(STUDIES[0]).sample
    # Numbers in [-1, 1], or of mean square 1: five deviations of a mean of SAMPLE of them (which is always the same).
    allowed = 5 / np.sqrt(SAMPLE)
    scores = sample.expected_scores(np.array([gamma]), CLIP)[0]
    assert scores[0] == pytest.approx(mean(lambda x: np.clip(x / CLIP, -1, 1)), abs=allowed)
    means = sample.expected_means(np.array([gamma]))[0]
    assert means[0] == pytest.approx(mean(lambda x: x), abs=allowed)
    assert mean(lambda x: x) == pytest.approx(np.sqrt(2 / np.pi) * gamma / np.sqrt(1 + gamma**2), abs=1e-9)


def test_shaped_dilemmas_have_the_mean_products_that_are_given():
    sample = AxisSample(np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]))
    assert sample.shaped(np.diag([4.0, 0.25])).along == pytest.approx(sample.along * [2.0, 0.5])
    moments = np.array([[1.5, -0.6], [-0.6, 0.7]])
    shaped = sample.shaped(moments).along
    assert shaped.T @ shaped / 4 == pytest.approx(moments)


def test_the_head_of_a_sample_is_its_first_dilemmas():
    sample = AxisSample(np.array([[1.0, -2.0], [3.0, 0.5]]))
    assert sample.head(1).along.tolist() == [[1.0, -2.0]]
