"""The voter beside the crowd: the page's numbers against scipy's and Python's."""

import numpy as np
import pytest
from scipy.special import ndtr

from crowdveil.ballots import Ballots
from crowdveil.estimation.society import fit_voters
from crowdveil.study.bundled import load_study
from crowdveil.study.drawing import draw_session


@pytest.fixture(scope="module")
def page(browser, address):
    """A page that can load the voter's page's own modules."""
    opened = browser.new_page()
    opened.goto(f"{address}/p/algorithm-2/")
    yield opened
    opened.close()


def test_a_share_is_the_normal_distribution(page):
    at = [-9.0, -3.3, -1.0, -1e-9, 0.0, 0.4, 2.0, 7.5]
    shares = page.evaluate(
        "async (at) => { const { normalShare } = await import('/web/comparison.js'); return at.map(normalShare); }", at
    )
    np.testing.assert_allclose(shares, ndtr(at), rtol=1e-12, atol=1e-16)


def test_the_crowds_shares_are_those_of_two_outcomes_that_differ_in_one_respect(page, service):
    (stored,) = service.store.releases.all("released")
    release = service.read(stored)
    study, beta = release.study, dict(zip(release.study.feature_names, release.parameter, strict=True))
    bars = dict(zip(study.feature_names, release.error_bars, strict=True))
    rows = page.evaluate(
        """async ([study, release]) => {
          const { compare } = await import('/web/comparison.js');
          return compare(study, null, release, null, true);
        }""",
        [study.as_dict(), release.as_dict()],
    )
    crowd = {row["name"]: row for row in rows}

    def mean(*names):
        return float(np.mean([beta[name] for name in names]))

    expected = {
        "law": 2 * beta["legality"],
        "passengers": beta["barrier"],
        "course": beta["intervention"],
        "age": mean("boy", "girl") - mean("old_man", "old_woman"),
        "fitness": mean("male_athlete", "female_athlete") - mean("large_man", "large_woman"),
    }
    for name, utility in expected.items():
        assert crowd[name]["crowd"] == pytest.approx(ndtr(utility), abs=1e-12)
    people = [f.name for f in study.features if f.part == "characters" and f.name not in ("dog", "cat")]
    assert crowd["number"]["crowd"] == pytest.approx(ndtr(mean(*people)), abs=1e-12)
    assert crowd["species"]["crowd"] == pytest.approx(ndtr(mean(*people) - mean("dog", "cat")), abs=1e-12)
    assert crowd["law"]["high"] == pytest.approx(ndtr(2 * beta["legality"] + 2 * bars["legality"]), abs=1e-12)
    assert crowd["law"]["low"] == pytest.approx(ndtr(2 * beta["legality"] - 2 * bars["legality"]), abs=1e-12)


def test_the_voters_own_values_are_the_preference_that_python_fits(page):
    study = load_study("moral-machine")
    dilemmas = [
        {a.name: list(a.values) for a in dilemma.alternatives}
        for dilemma in draw_session(study, np.random.default_rng(3))
    ]
    choices = ["left", "right", "right"] * 4 + ["left"]
    own = page.evaluate(
        """async ([poll, dilemmas, choices]) => {
          const { ownPreference } = await import('/web/comparison.js');
          return ownPreference(poll, dilemmas, choices);
        }""",
        [{"study": study.as_dict(), "method": {"norm_bound": 2.0}}, dilemmas, choices],
    )
    signs = np.array([1.0 if choice == "left" else -1.0 for choice in choices])
    records = signs[:, None] * np.array([np.subtract(d["left"], d["right"]) for d in dilemmas])
    ballots = Ballots.from_differences(study, np.array([0, len(records)], np.int64), records.astype(np.int8))
    np.testing.assert_allclose(own, fit_voters(ballots, 2.0).values[0], atol=1e-5)
