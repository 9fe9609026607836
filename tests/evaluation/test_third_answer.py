"""Three answers judged: the public study in which people could toss a coin, by people who are not in the release."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr
from tests.real_data import INDECISION, with_indecision

from crowdveil.estimation.crowd_preference import crowd_preference
from crowdveil.estimation.threshold import exact_threshold, three_shares
from crowdveil.evaluation.scorecard import evaluate
from crowdveil.publish.release import release_for_experiments
from crowdveil.sources.table import read_table

MAPPING = Path(__file__).parents[2] / "examples/indecision-mapping.toml"
SPLITS = 20


@pytest.fixture(scope="module")
def ballots():
    return read_table(INDECISION, mapping=MAPPING)


@with_indecision
def test_the_public_file_imports_by_a_mapping_alone(ballots):
    assert (ballots.voters, ballots.records) == (62, 930)
    assert int((ballots.choices == 0).sum()) == 275


def log_loss(shares, choices):
    columns = {1: 0, -1: 1, 0: 2}
    return -np.log([row[columns[choice]] for row, choice in zip(shares, choices.tolist(), strict=True)]).mean()


@with_indecision
def test_the_threshold_beats_a_constant_share_of_coins_for_people_it_has_not_seen(ballots):
    losses = []
    for seed in range(SPLITS):
        learned, unseen = ballots.split(0.75, seed)
        dilemmas = unseen.dilemmas.astype(np.float64)
        exact = exact_threshold(learned, weighting="choices")
        forced = ndtr(dilemmas @ crowd_preference(learned, weighting="choices").preference)
        share = (learned.choices == 0).mean()
        constant = np.stack([(1 - share) * forced, (1 - share) * (1 - forced), np.full(len(forced), share)], axis=1)
        model = three_shares(dilemmas @ exact.preference, exact.tau)
        losses.append((log_loss(model, unseen.choices), log_loss(constant, unseen.choices)))
    model, constant = np.mean(losses, axis=0)
    assert model == pytest.approx(0.930, abs=0.01)
    assert constant - model > 0.008


@with_indecision
def test_a_private_release_of_choices_is_better_than_the_constant_share_of_the_unseen_people_themselves(ballots):
    """At epsilon 3 for a choice; the constant share and the preference beside it are exact, and fitted to these."""
    learned, unseen = ballots.split(0.75, 1)
    release = release_for_experiments(learned, "aldp", epsilon=3, seed=0)
    found = evaluate(release, unseen, weighting="choices")
    assert found.third is not None
    assert found.third.limit < found.third.constant
    assert found.third.log_loss < np.log(3)
    assert found.third.share == pytest.approx((unseen.choices == 0).mean())
    assert found.as_dict()["third_answer"]["tau"] == release.indifference.tau
    assert ("three-way log loss", f"{found.third.log_loss:.3f}", f"{found.third.limit:.3f}", "1.099") in found.rows()
    assert ("threshold tau", f"{found.third.tau:.3f}", f"{found.third.exact_tau:.3f}", "") in found.rows()
