"""The recommended mechanisms in the reproduction: the library's own releases, on the crowds of the paper's curves."""

import polars as pl
import pytest

from crowdveil.evaluation.paper.experiments import AcrossParadigms
from crowdveil.evaluation.toolkit.crowds import Synthetic, seed
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.publish import experiment
from crowdveil.request import Request

SOURCE, VOTERS, CROWDS = Synthetic(12, 3), 40, range(2, 3)
MADE = AcrossParadigms(SOURCE, VOTERS, (0.5, 5.0))


@pytest.fixture(scope="module")
def table():
    return MADE.measure(CROWDS)


@pytest.mark.parametrize("paradigm", PARADIGMS.values(), ids=lambda paradigm: paradigm.name)
@pytest.mark.parametrize("epsilon", MADE.epsilons)
def test_a_point_is_what_a_user_gets_who_leaves_the_choice_to_the_library(table, paradigm, epsilon):
    drawn = SOURCE.draw(VOTERS, CROWDS)
    request = Request(paradigm, Epsilon(epsilon))
    chosen = experiment(drawn.ballots, request, seed=0).mechanism
    made = experiment(drawn.ballots, request, seed(MADE.name, str(CROWDS), chosen, epsilon))
    expected = drawn.judge(made.parameter[None, None], made.parameter[None])["accuracy on all pairs"]
    found = table.filter(series=paradigm.name, point=epsilon, measure="accuracy on all pairs")["value"]
    # An angle over pi of parameters that an optimiser finds to 1e-5; other noise would turn them by far more.
    assert found.to_list() == pytest.approx(expected[0].tolist(), abs=1e-4)


def test_every_paradigm_has_a_value_for_every_crowd_and_epsilon(table):
    counted = table.filter(measure="accuracy").group_by("series").agg(pl.len())
    assert dict(counted.iter_rows()) == dict.fromkeys(PARADIGMS, len(CROWDS) * len(MADE.epsilons))
