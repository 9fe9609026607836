"""The recommended mechanisms in the reproduction: the library's own releases, on the crowds of the paper's curves."""

from dataclasses import replace

import polars as pl
import pytest

from crowdveil.evaluation.paper.experiments import ParadigmSweep
from crowdveil.evaluation.toolkit.crowds import SyntheticSource, seed
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments
from crowdveil.publish.release import experiment
from crowdveil.publish.request import Request

pytestmark = pytest.mark.usefixtures("few_crowds")

SOURCE, VOTERS, CROWDS = SyntheticSource(12, 3), 40, range(2, 3)
MADE = ParadigmSweep(SOURCE, VOTERS, (0.5, 5.0))


@pytest.fixture(scope="module")
def table():
    return MADE.measure(CROWDS)


def from_devices(ballots, mechanism, epsilon, seed):
    """Release as a poll does, whose dilemmas the study's generator drew: a file's are not known to be."""
    settings = MechanismSettings(ballots.study, ballots.study.norm_bound, drawn=True)
    epsilons = Epsilons.same(Epsilon(epsilon), ballots.voters)
    made = DISTRIBUTED[mechanism]
    reports = made.report(ballots, settings, epsilons, FloatNoiseForExperiments(seed))
    return made.aggregate([reports], settings).parameter


@pytest.mark.parametrize("paradigm", PARADIGMS.values(), ids=lambda paradigm: paradigm.name)
@pytest.mark.parametrize("epsilon", MADE.epsilons)
def test_a_point_is_what_a_user_gets_who_leaves_the_choice_to_the_library(table, paradigm, epsilon):
    drawn = SOURCE.draw(VOTERS, CROWDS)
    request = Request(paradigm, Epsilon(epsilon))
    chosen = experiment(drawn.ballots, request, seed=0).mechanism
    if chosen in ("voter-score", "pooled-score"):  # of choices, the dilemmas themselves are known
        request = replace(request, design="study")
    drawn_noise = seed(MADE.name, str(CROWDS), chosen, epsilon)
    made = (
        from_devices(drawn.ballots, chosen, epsilon, drawn_noise)
        if chosen in DISTRIBUTED
        else experiment(drawn.ballots, request, drawn_noise).parameter
    )
    expected = drawn.judge(made[None, None], made[None])["accuracy on all pairs"]
    found = table.filter(series=paradigm.name, point=epsilon, measure="accuracy on all pairs")["value"]
    # An angle over pi of parameters that an optimiser finds to 1e-5; other noise would turn them by far more.
    assert found.to_list() == pytest.approx(expected[0].tolist(), abs=1e-4)


def test_every_paradigm_has_a_value_for_every_crowd_and_epsilon(table):
    counted = table.filter(measure="accuracy").group_by("series").agg(pl.len())
    assert dict(counted.iter_rows()) == dict.fromkeys(PARADIGMS, len(CROWDS) * len(MADE.epsilons))
