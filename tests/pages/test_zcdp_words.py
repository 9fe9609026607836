"""A promise with a delta is told as one, and a pure promise has no word of it."""

from __future__ import annotations

import re

import pytest

from crowdveil.pages.plain_words import guarantee_sentences, guess_text, limit_sentences, mechanism_words, odds_text
from crowdveil.pages.release_page import release_page
from crowdveil.privacy.epsilon import Amount, Epsilon
from crowdveil.privacy.guarantee import Guarantee, paradigm

# OpenDP converts rho = 0.02 to epsilon 0.89994 at delta 1e-6, and rho = 2 (ten voters) to 11.5.
CONCENTRATED = Guarantee(paradigm("vlcp"), Epsilon("0.899936"), Epsilon("0.899936"), 2.0, 2097, 1e-6, Amount.of("0.02"))


def test_the_delta_is_in_every_number(make_release):
    said = " ".join(guarantee_sentences(make_release(guarantee=CONCENTRATED)))
    assert "e^0.899936 = 2.46 times more or less likely" in said
    assert "and by delta = 1e-06 beyond that" in said
    assert "at most 71.1% + 1e-06 of the time" in said
    assert "This promise is not pure: with a probability of up to 1e-06 it may fail altogether" in said
    assert "rho = 0.02 " in said


def test_ten_people_together_cost_a_hundred_rhos(make_release):
    (group,) = (limit for limit in limit_sentences(make_release(guarantee=CONCENTRATED)) if "ten people" in limit)
    found = float(re.search(r"an epsilon of ([0-9.]+),", group).group(1))
    # The closed form of Bun and Steinke, 2 + 2 sqrt(2 ln 10^6) = 12.51, is a little larger.
    assert 11 < found < 12.51
    assert "with the same delta" in group


def test_a_pure_promise_stays_as_it_was(make_release):
    said = " ".join([*guarantee_sentences(make_release()), *limit_sentences(make_release())])
    assert "delta" not in said
    assert "rho" not in said.replace("through", "")
    assert guess_text(1.0, 0.0) == odds_text(1.0)


def test_the_page_shows_it(make_release):
    page = release_page([make_release(guarantee=CONCENTRATED, mechanism="gaussian-mean")])
    assert "0.899936 (delta 1e-06)" in page
    assert "71.1% + 1e-06" in page
    assert "may fail altogether" in page
    assert mechanism_words("gaussian-mean").replace("'", "&#x27;") in page or mechanism_words("gaussian-mean") in page
    assert "delta 1e-06" not in release_page([make_release()])


@pytest.mark.parametrize("delta", [1e-6, 1e-9])
def test_the_best_guess_with_a_delta_is_no_more_than_it_says(delta):
    """(e^eps + delta) / (1 + e^eps) is what (eps, delta) allows for even odds; the text adds the whole delta."""
    shown = guess_text(1.0, delta)
    assert shown.endswith(f" + {delta:g}")
