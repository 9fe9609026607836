"""The public design: axes that whiten a study's dilemmas, and the mean scores of a crowd, against quadrature."""

import numpy as np
import pytest
from scipy import integrate, stats

from crowdveil.estimation.design import CLIP, SAMPLE, public_design
from crowdveil.study.bundled import load_study, synthetic_study

STUDIES = [synthetic_study(1), synthetic_study(5), load_study("moral-machine"), load_study("kidney")]


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.name)
def test_along_the_axes_the_dilemmas_are_uncorrelated_and_of_unit_size(study):
    design = public_design(study)
    along = design.differences @ design.axes
    assert np.allclose(along.T @ along / len(along), np.eye(design.directions), rtol=0, atol=1e-6)


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.name)
def test_there_are_as_many_axes_as_directions_that_vary(study):
    design = public_design(study)
    assert design.directions == np.linalg.matrix_rank(design.differences.T @ design.differences)
    assert len(design.differences) >= SAMPLE
    # Nothing is lost: what the axes do not see is not there.
    some = design.differences[:1000]
    assert np.allclose(some @ design.axes @ np.linalg.pinv(design.axes), some, rtol=0, atol=1e-5)


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.name)
def test_everybody_finds_the_same_axes(study):
    first = public_design(study)
    public_design.cache_clear()
    second = public_design(study)
    assert first is not second
    assert first.axes.tobytes() == second.axes.tobytes()
    largest = np.abs(first.axes).argmax(axis=0)
    assert (first.axes[largest, np.arange(first.directions)] > 0).all()


def test_scores_are_odd_and_kept_within_one():
    design = public_design(STUDIES[2])
    wild = np.array([[100.0] * 23, [-3.0] * 23, [0.0] * 23])
    scores = design.scores(wild)
    assert np.abs(scores).max() == 1.0
    assert np.array_equal(design.scores(-wild), -scores)
    small = design.axes[:, 0] * 1e-3
    assert design.scores(small[None])[0, 0] == pytest.approx(1e-3 * design.axes[:, 0] @ design.axes[:, 0] / CLIP)


@pytest.mark.parametrize("study", STUDIES[1:], ids=lambda s: s.name)
def test_the_derivative_of_the_expected_scores_against_differences(study):
    design, rng = public_design(study), np.random.default_rng(2)
    preference = rng.normal(0, 0.3, study.dimension)
    _, derivative = design.expected_scores(preference)
    direction = rng.normal(0, 1, study.dimension)
    ahead, behind = (design.expected_scores(preference + s * direction)[0] for s in (1e-5, -1e-5))
    assert np.allclose(derivative @ direction, (ahead - behind) / 2e-5, rtol=0, atol=1e-7)


@pytest.mark.parametrize("beta", [0.0, 0.2, -1.0])
def test_expected_scores_against_quadrature(beta):
    """One feature: v ~ N(0, 2), its score clip(v / (CLIP sqrt 2)), the answer v with probability Phi(beta v)."""
    law = stats.norm(scale=np.sqrt(2))

    def integrand(v):
        return np.clip(v / np.sqrt(2) / CLIP, -1, 1) * (2 * stats.norm.cdf(beta * v) - 1) * law.pdf(v)

    exact = integrate.quad(integrand, -12, 12, points=[-1, 0, 1])[0]
    design = public_design(STUDIES[0])
    assert design.expected_scores(np.array([beta]))[0][0] == pytest.approx(exact, abs=5 / np.sqrt(SAMPLE))
    share = 2 * stats.norm.cdf(CLIP) - 1  # Stein: E[z clip(z, c)] = P(|z| < c)
    assert design.score_signal == pytest.approx(share / CLIP, abs=5 / np.sqrt(SAMPLE))
    square = share - 2 * CLIP * stats.norm.pdf(CLIP) + CLIP**2 * (1 - share)
    assert design.score_size == pytest.approx(square / CLIP**2, abs=5 / np.sqrt(SAMPLE))
