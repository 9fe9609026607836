"""A verdict follows from the intervals, and from nothing else."""

import numpy as np
import polars as pl
import pytest
from made_up_results import DATA, MadeUpResults

from crowdveil.evaluation.paper.claims import all_claims
from crowdveil.evaluation.paper.figures import FIGURE_NAMES, NEED_DATA, figures
from crowdveil.evaluation.paper.headline import THRESHOLDS, recommended_claims
from crowdveil.evaluation.paper.plan import all_experiments
from crowdveil.evaluation.paper.verdicts import Claim, ClaimPart, ClaimVerdict, PartOutcome, advantage, rise, steps_down
from crowdveil.evaluation.toolkit.plotting import draw
from crowdveil.evaluation.toolkit.scores import Interval
from crowdveil.evaluation.toolkit.sweep import Curve, Results, rows
from crowdveil.privacy.guarantee import PARADIGMS


class Watched(MadeUpResults):
    """Remembers which experiments were asked for."""

    def __init__(self):
        self.asked = set()

    def curve(self, experiment, series, measure):
        self.asked.add(experiment.name)
        return super().curve(experiment, series, measure)


def part(low, high, above=-np.inf, below=np.inf, counts=True):
    return ClaimPart("x", Interval((low + high) / 2, low, high), above, below, counts)


@pytest.mark.parametrize(("made", "outcome"), [
    (part(0.1, 0.2, above=0), PartOutcome.YES),
    (part(-0.1, 0.2, above=0), PartOutcome.UNCLEAR),
    (part(-0.2, -0.1, above=0), PartOutcome.NO),
    (part(-0.2, -0.1, below=0), PartOutcome.YES),
    (part(0.91, 0.92, above=0.9, below=0.93), PartOutcome.YES),
    (part(0.91, 0.94, above=0.9, below=0.93), PartOutcome.UNCLEAR),
    (part(0.94, 0.95, above=0.9, below=0.93), PartOutcome.NO),
    (part(0.0, 0.1, above=0), PartOutcome.UNCLEAR),
    (part(-np.inf, np.inf, above=0), PartOutcome.UNCLEAR),
])  # fmt: skip
def test_outcomes(made, outcome):
    assert made.outcome is outcome


YES, NO, UNCLEAR = part(1, 2, above=0), part(-2, -1, above=0), part(-1, 1, above=0)
CONTEXT = part(-2, -1, above=0, counts=False)


@pytest.mark.parametrize(("parts", "verdict"), [
    ((YES, YES), ClaimVerdict.HOLDS),
    ((YES, CONTEXT), ClaimVerdict.HOLDS),
    ((YES, UNCLEAR), ClaimVerdict.PARTLY),
    ((YES, NO), ClaimVerdict.PARTLY),
    ((UNCLEAR, NO), ClaimVerdict.FAILS),
    ((NO, NO), ClaimVerdict.FAILS),
    ((UNCLEAR, UNCLEAR), ClaimVerdict.UNCLEAR),
    ((UNCLEAR, CONTEXT), ClaimVerdict.UNCLEAR),
])  # fmt: skip
def test_verdicts(parts, verdict):
    assert Claim("n", "s", "q", parts, "w").verdict is verdict


def test_summaries_of_curves():
    flat = np.random.default_rng(1).normal(0, 1e-3, (50, 1))
    up = Curve((1.0, 2.0, 3.0), flat + np.array([0.5, 0.6, 0.8]))
    dip = Curve((1.0, 2.0, 3.0), flat + np.array([0.5, 0.4, 0.8]))
    assert rise([up, dip]).estimate == pytest.approx(0.3)
    assert steps_down([up]).estimate == 0
    assert steps_down([up, dip]).estimate == 1
    assert advantage([up], [dip]).estimate == pytest.approx(0.2 / 3)
    assert up.where(np.array([True, False, True])).points == (1.0, 3.0)


def test_curves_come_out_of_the_table_in_order():
    class Named:
        name = "e"

    table = pl.concat(rows(range(2), "s", (10.0, 0.5), {"m": np.array([[1.0, 2.0], [3.0, 4.0]])}))
    curve = Results(table.select(pl.lit("e").alias("experiment"), pl.all())).curve(Named(), "s", "m")
    assert curve.points == (0.5, 10.0)
    assert curve.values.tolist() == [[2.0, 1.0], [4.0, 3.0]]
    assert curve.at(10.0).tolist() == [1.0, 3.0]


def test_claims_are_complete_and_need_no_more_than_the_experiments():
    results = Watched()
    claims = all_claims(results, DATA)
    assert len({claim.name for claim in claims}) == len(claims)
    assert {claim.section[:3] for claim in claims} == {"4.2", "4.3", "4.4", "5.1", "5.2", "5.3"}
    assert all(any(p.counts for p in claim.parts) and claim.why for claim in claims)
    recommended_claims(results, DATA)
    for plan in figures(DATA).values():
        plan.panels(results)
    planned = {experiment.name for experiment in all_experiments(DATA)}
    assert results.asked <= planned


class Flat(MadeUpResults):
    """The recommended mechanisms keep a given share of the accuracy at every epsilon, the paper's half of it."""

    def __init__(self, share):
        self.share = share

    def curve(self, experiment, series, measure):
        points = super().curve(experiment, series, measure).points
        level = 1.0 if len(points) == 1 else self.share if series in PARADIGMS else self.share / 2
        return Curve(points, np.full((4, len(points)), level))


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.91, ClaimVerdict.HOLDS), (0.85, ClaimVerdict.PARTLY), (0.79, ClaimVerdict.FAILS)]
)
def test_the_headline_is_asked_of_every_paradigm_and_the_papers_mechanism_does_not_count(share, verdict):
    with_data, without = (recommended_claims(Flat(share), data) for data in (DATA, None))
    assert len(without) == len(PARADIGMS)
    assert len(with_data) == 2 * len(PARADIGMS)
    assert {claim.verdict for claim in with_data} == {verdict}
    for claim in without:
        assert [p.above for p in claim.parts if p.counts] == [wanted for _, _, wanted in THRESHOLDS]


def test_without_real_data_the_synthetic_claims_remain():
    with_data, without = (all_claims(MadeUpResults(), data) for data in (DATA, None))
    assert {c.section[:3] for c in without} == {"4.2", "4.3", "4.4", "5.1", "5.3"}
    assert {c.name for c in without} < {c.name for c in with_data}
    assert tuple(figures(DATA)) == FIGURE_NAMES
    assert set(FIGURE_NAMES) - set(figures(None)) == set(NEED_DATA)


@pytest.mark.parametrize("name", FIGURE_NAMES)
def test_a_figure_asks_for_what_it_shows(name):
    plan = figures(DATA)[name]

    results = Watched()
    panels = plan.panels(results)
    assert results.asked == {experiment.name for experiment in plan.experiments}
    assert len({tuple(one.label for one in panel.lines) for panel in panels}) == 1, "one legend serves all panels"
    assert len(panels) % plan.columns == 0
    drawn = draw(panels, plan.columns)
    assert [axes.get_title(loc="left") for axes in drawn.axes] == [panel.title for panel in panels]
    assert plan.beside_the_paper
