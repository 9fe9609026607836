from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import expit

from crowdveil.pages.feature_estimates import (
    FeatureEstimate,
    error_bar_sentence,
    expected_error_bar_sentence,
    finding_sentences,
)
from crowdveil.pages.plain_words import (
    attacker_odds,
    factor_text,
    guarantee_sentences,
    likelihood_factor,
    limit_sentences,
    mechanism_words,
    odds_text,
    paradigm_title,
    protected_words,
)
from crowdveil.privacy.epsilon import GREATEST_MICRO, LEAST_MICRO
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.privacy.mechanisms.registry import CENTRAL, DISTRIBUTED
from crowdveil.privacy.noise.distribution import EmpiricalNormal, Gaussian, LaplaceSum
from crowdveil.releases import Release

MakeRelease = Callable[..., Release]

epsilons = st.integers(LEAST_MICRO, GREATEST_MICRO).map(lambda micro: micro / 1e6)


def number(text: str) -> float:
    """Read a number as a person would write it."""
    return float(text.replace(",", "").replace(" × 10^", "e").rstrip("%"))


def test_attacker_who_sees_randomised_response_reaches_the_bound() -> None:
    """Enumerate: a bit, told truly with probability e^eps / (1 + e^eps), and Bayes' rule on what was told."""
    for epsilon in (0.1, 1.0, 3.0):
        joint = {
            (truth, told): 0.5 * (math.exp(epsilon) if truth == told else 1) / (1 + math.exp(epsilon))
            for truth in (0, 1)
            for told in (0, 1)
        }
        posterior = joint[1, 1] / (joint[0, 1] + joint[1, 1])
        assert attacker_odds(epsilon) == pytest.approx(posterior, rel=1e-12)


@given(epsilons)
def test_odds_are_the_logistic_function(epsilon: float) -> None:
    assert attacker_odds(epsilon) == pytest.approx(float(expit(epsilon)), rel=1e-14)
    assert likelihood_factor(epsilon) == math.exp(epsilon)


@pytest.mark.parametrize(
    ("epsilon", "factor", "odds"),
    [
        (1.0, "2.72", "73.1%"),
        (math.log(3), "3", "75.0%"),
        (0.1, "1.11", "52.5%"),
        (0.0001, "1.00010", "50.0025%"),
        (5.0, "148", "99.3%"),
        (10.0, "22,026", "99.995%"),
        (50.0, "5.2 × 10^21", "practically 100%"),
    ],
)
def test_numbers_read_well(epsilon: float, factor: str, odds: str) -> None:
    assert factor_text(epsilon) == factor
    assert odds_text(epsilon) == odds


@given(epsilons)
@example(0.0001)
@example(18.4)
def test_written_numbers_are_the_true_ones_and_never_round_to_nothing_or_certainty(epsilon: float) -> None:
    factor, odds = math.exp(epsilon), float(expit(epsilon))
    assert number(factor_text(epsilon)) == pytest.approx(factor, rel=0.05)
    assert number(factor_text(epsilon)) - 1 == pytest.approx(factor - 1, rel=0.06)
    if epsilon < 18:
        shown = number(odds_text(epsilon)) / 100
        assert 0.5 < shown < 1
        assert shown - 0.5 == pytest.approx(odds - 0.5, rel=0.06)


@pytest.mark.parametrize("name", PARADIGMS)
@pytest.mark.parametrize("epsilon", ["0.3", "1", "7.25"])
def test_guarantee_says_the_factor_and_the_best_guess(make_release: MakeRelease, name: str, epsilon: str) -> None:
    said = " ".join(guarantee_sentences(make_release(name, epsilon)))
    factor = re.search(rf"at most e\^{re.escape(epsilon)} = (\S+) times more or less likely", said)
    guess = re.search(r"right 50% of the time, is right at most (\S+%) of the time", said)
    assert factor is not None
    assert guess is not None
    assert number(factor[1]) == pytest.approx(math.exp(float(epsilon)), rel=0.005)
    assert number(guess[1]) == pytest.approx(100 * float(expit(float(epsilon))), abs=0.05)


def test_who_is_protected_against_whom(make_release: MakeRelease) -> None:
    said = {name: " ".join(guarantee_sentences(make_release(name))) for name in PARADIGMS}
    for name, words in said.items():
        assert ("all records of a voter, taken together" in words) == (name in ("vlcp", "vldp"))
        assert ("Each single record" in words) == (name in ("rlcp", "rldp"))
        assert ("which side a voter took" in words) == (name in ("alcp", "aldp"))
        assert ("shown to whom is public" in words) == (name in ("alcp", "aldp"))
        assert ("not protected against the aggregator" in words) == (name in ("vlcp", "rlcp", "alcp"))
        assert ("each voter's own device added the noise" in words) == (name in ("vldp", "rldp", "aldp"))
        assert "2,097 voters" in words
    assert len({paradigm_title(p) for p in PARADIGMS.values()}) == len(PARADIGMS) == 6
    assert len({protected_words(p) for p in PARADIGMS.values()}) == 3


def test_only_a_large_epsilon_is_called_a_small_promise(make_release: MakeRelease) -> None:
    # 95 % sure is odds of 19 to 1: epsilon = ln 19 = 2.944.
    for epsilon, weak in (("0.1", False), ("2.94", False), ("2.95", True), ("50", True)):
        assert ("promises little" in " ".join(guarantee_sentences(make_release("vlcp", epsilon)))) == weak


def test_personal_epsilons_are_told(make_release: MakeRelease) -> None:
    alike = " ".join(guarantee_sentences(make_release("vldp", "2")))
    personal = " ".join(guarantee_sentences(make_release("vldp", "2", smallest="0.5")))
    assert "epsilons of their own" not in alike
    assert "from 0.5 to 2" in personal
    assert "1.65" in personal  # e^0.5
    assert "62.2%" in personal  # 1 / (1 + e^-0.5)


def test_limits_say_what_is_not_promised(make_release: MakeRelease) -> None:
    names = ("vlcp", "rldp", "aldp")
    voter, record, choice = (" ".join(limit_sentences(make_release(name, "0.2"))) for name in names)
    for said in (voter, record, choice):
        assert "That you took part." in said
        assert "A group that chooses alike" in said
        assert "What the crowd thinks." in said
        assert "an epsilon of 2, a factor of 7.39" in said  # ten times 0.2, and e^2
    assert "All records of one person together." in record
    assert "All choices of one person together." in choice
    assert "of one person together" not in voter
    assert "Which dilemmas you were shown." in choice
    assert "Which dilemmas you were shown." not in record


def test_error_bars_say_what_they_cover(make_release: MakeRelease) -> None:
    laplace, spread = (make_release(noise=noise) for noise in (LaplaceSum((0.1,), (1,)), EmpiricalNormal(((1.0,),))))
    assert "noise that privacy added, and nothing else" in error_bar_sentence(laplace, 5)
    assert "differences between voters" in error_bar_sentence(spread, 5)
    assert "expect about 3 of these 60 to miss" in error_bar_sentence(laplace, 60)
    assert "expect about" not in error_bar_sentence(laplace, 5)


def test_findings_name_the_extremes_that_stand_clear_of_noise() -> None:
    shown = [FeatureEstimate(f"f{value}", value, 0.1) for value in (0.5, 0.4, 0.3, 0.2, 0.05, -0.05, -0.2, -0.3)]
    said = finding_sentences(shown, 1)
    assert said == [
        "6 of 8 features can be told from zero.",
        "What speaks most for an alternative: “f0.5”\u200e (+0.5), “f0.4”\u200e (+0.4), “f0.3”\u200e (+0.3).",
        "What speaks most against one: “f-0.3”\u200e (−0.3), “f-0.2”\u200e (−0.2).",
    ]


def test_findings_admit_that_there_are_none() -> None:
    (said,) = finding_sentences([FeatureEstimate("a", 0.1, 0.2), FeatureEstimate("b", -0.1, 0.2)], 1)
    assert said.startswith("None of the 2 features can be told from zero")


def test_every_mechanism_has_words() -> None:
    for name in (*CENTRAL, *DISTRIBUTED):
        assert re.match("((Gaussian )?noise, added|random signs|coin tosses),? ", mechanism_words(name)), name
    assert mechanism_words("of-tomorrow") == "of-tomorrow"


def test_error_bars_are_foretold_only_as_far_as_they_are_known() -> None:
    # 95 % of a normal variable lie within 1.96 standard deviations.
    exactly = expected_error_bar_sentence(Gaussian(0.1))
    assert exactly.startswith("The noise will move each value by up to ± 0.196, with 95 %. That is the noise only")
    about = expected_error_bar_sentence(EmpiricalNormal(((0.01,),)))
    assert "by more than about ± 0.196, with 95 % each" in about
    assert "It can be more." in about
    assert "It can be more." in expected_error_bar_sentence(LaplaceSum((0.1,), (10,)), robust=0.05)
    assert "known only afterwards" in expected_error_bar_sentence(None)
    for noise in (None, Gaussian(0.1), EmpiricalNormal(((0.01,),))):
        assert "at most" not in expected_error_bar_sentence(noise)
