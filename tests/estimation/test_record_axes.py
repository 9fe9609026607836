"""Axes of records: a rotation of the design's, on which clipped scores tell more."""

import numpy as np
import pytest
from scipy.fft import dct

from crowdveil.estimation.design import CLIP, GRID, public_design
from crowdveil.estimation.record_axes import record_axes
from crowdveil.study.bundled import load_study, synthetic_study

STUDIES = [load_study("moral-machine"), load_study("kidney"), synthetic_study(3)]


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.name)
def test_they_are_the_cosine_transform_of_the_designs_axes_with_alternating_signs(study):
    design, axes = public_design(study), record_axes(study).axes
    assert axes.dtype == np.int64
    alternating = design.axes * (-1) ** np.arange(design.directions)
    assert np.abs(axes - dct(alternating, norm="ortho", axis=1)).max() <= 0.5 + 1e-6


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.name)
def test_dilemmas_stay_uncorrelated_and_of_unit_size(study):
    """Rounding moves an entry of an axis by half a step, and where values are not whole entries have about 700."""
    design, axes = public_design(study), record_axes(study).axes
    along = design.differences @ (axes * design.units[:, None] / GRID)
    assert along.T @ along / len(along) == pytest.approx(np.eye(len(axes.T)), abs=5e-3)
    assert np.abs(record_axes(study).scores).max() <= 1


def noise_carried(scores, along):
    """Total variance in a small preference of unit noise on the mean scores."""
    return np.square(np.linalg.inv(scores.T @ along / len(along))).sum()


def test_noise_on_the_moral_machines_scores_is_halved():
    axes = record_axes(STUDIES[0])
    along = axes.design.along
    unmixed = noise_carried(np.clip(along / CLIP, -1, 1), along)
    assert noise_carried(axes.scores, along) < 0.52 * unmixed
    assert axes.signal == pytest.approx(np.sqrt(9 / noise_carried(axes.scores, along)), rel=1e-9)
