"""The picture of effects: numbers of the axis that are true, and labels that stay inside."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest

from crowdveil.effect_release import Effects
from crowdveil.pages.effects_page import effects_figure
from crowdveil.publish.effects import exact_effects
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study


@pytest.fixture(scope="module")
def effects() -> Effects:
    (drawn,) = simulated_batches(load_study("moral-machine"), 100, np.random.default_rng(1))
    return exact_effects(drawn)


def reaching(effects: Effects, reach: float) -> Effects:
    """Return effects that are at most as large as this."""
    group = effects.groups[0]
    shown = tuple(replace(one, estimate=reach / 2, low=0.0, high=reach, known=True) for one in group.effects)
    return replace(effects, groups=(replace(group, effects=shown),))


@pytest.mark.parametrize("reach", [0.03, 0.06, 0.11, 0.2, 0.4, 1.0])
def test_the_axis_says_where_its_ticks_are(effects: Effects, reach: float) -> None:
    figure = effects_figure(reaching(effects, reach))
    figure.content(".svg")
    (axes,) = figure.axes
    said = [label.get_text() for label in axes.get_xticklabels()]
    assert [float(one) for one in said] == pytest.approx(axes.get_xticks(), abs=1e-9)
    assert len(said) > 2


def test_labels_stay_inside_the_picture(effects: Effects) -> None:
    figure = effects_figure(effects)
    figure.savefig(io.BytesIO(), format="png", dpi=72)
    width = figure.bbox.width
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert all(box.x0 >= 0 and box.x1 <= width for box in boxes)
