"""The voter beside the crowd: the page's numbers against scipy's and Python's."""

import numpy as np
import pytest
from scipy.special import ndtr

from crowdveil.ballots import Ballots
from crowdveil.estimation.society import fit_voters
from crowdveil.study.bundled import load_study
from crowdveil.study.drawing import draw_session
from crowdveil.study.study import Study
from crowdveil.study.translations import words


def test_a_share_is_the_normal_distribution(modules):
    at = [-9.0, -3.3, -1.0, -1e-9, 0.0, 0.4, 2.0, 7.5]
    shares = modules.evaluate(
        "async (at) => { const { normalShare } = await import('/web/comparison.js'); return at.map(normalShare); }", at
    )
    np.testing.assert_allclose(shares, ndtr(at), rtol=1e-12, atol=1e-16)


COMPARE = """async ([poll, words, release]) => {
  const { compare } = await import('/web/comparison.js');
  return compare(poll, words, release, null);
}"""


def test_the_crowds_shares_are_those_of_two_outcomes_that_differ_in_one_factor(modules, address, service):
    (stored,) = service.store.releases.all("released")
    release = service.read(stored)
    study, beta = release.study, dict(zip(release.study.feature_names, release.parameter, strict=True))
    described = modules.request.get(f"{address}/api/polls/released").json()
    rows = modules.evaluate(COMPARE, [described, words(study, "fr"), release.as_dict()])
    said = words(study, "fr")["factors"]
    assert [(row["title"], row["poles"]) for row in rows] == [(f["title"], f["poles"]) for f in said.values()]
    crowd = dict(zip(said, rows, strict=True))

    theta, *_ = np.linalg.lstsq(study.factor_matrix, release.parameter)
    lengths = {"number": 1, "intervention": 1, "passenger": 1}  # the others have somebody at either pole
    for k, name in enumerate(said):
        assert crowd[name]["crowd"] == pytest.approx(ndtr(lengths.get(name, 2) * theta[k]), abs=1e-6)
    assert crowd["law"]["crowd"] == pytest.approx(ndtr(2 * beta["legality"]), abs=1e-6)
    for name, (low, high) in zip(said, release.factor_intervals, strict=True):
        assert crowd[name]["low"] == pytest.approx(ndtr(lengths.get(name, 2) * low), abs=1e-6)
        assert crowd[name]["high"] == pytest.approx(ndtr(lengths.get(name, 2) * high), abs=1e-6)
    pairs = [("woman", "man"), ("old_woman", "old_man"), ("girl", "boy"), ("large_woman", "large_man")]
    pairs += [(f"female_{who}", f"male_{who}") for who in ("executive", "athlete", "doctor")]
    gender = np.mean([beta[woman] - beta[man] for woman, man in pairs])
    assert crowd["gender"]["crowd"] == pytest.approx(ndtr(gender), abs=1e-6)


def test_without_named_factors_the_features_are_compared(modules):
    study = Study.from_dict({key: given for key, given in load_study("kidney").as_dict().items() if key != "factors"})
    steps = [{"name": name, "step": step} for name, step in zip(study.feature_names, np.eye(5).tolist(), strict=True)]
    numbers = dict(zip(study.feature_names, [0.25, -0.5, 0.0, 1.0, -2.0], strict=True))
    factors = [{"name": name, "interval": [value - 0.1, value + 0.2]} for name, value in numbers.items()]
    release = {"parameter": numbers, "factors": factors}
    rows = modules.evaluate(COMPARE, [{"study": study.as_dict(), "factors": steps}, words(study, "en"), release])
    assert [row["title"] for row in rows] == [feature.label for feature in study.features]
    assert [row["poles"] for row in rows] == [None] * 5
    values = np.array(list(numbers.values()))
    for end, off in (("crowd", 0), ("low", -0.1), ("high", 0.2)):
        assert [row[end] for row in rows] == pytest.approx(ndtr(values + off), abs=1e-12)


def test_the_voters_own_values_are_the_preference_that_python_fits(modules):
    study = load_study("moral-machine")
    dilemmas = [
        {a.name: list(a.values) for a in dilemma.alternatives}
        for dilemma in draw_session(study, np.random.default_rng(3))
    ]
    choices = ["left", "right", "right"] * 4 + ["left"]
    own = modules.evaluate(
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
